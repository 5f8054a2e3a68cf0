"""Tables of models have each model of each file, and a mark where one did not run."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import model_tables
from benchmarks.model_tables import FILES, models_sentence, models_table
from benchmarks.results_file import RESULTS

RATIO = {"median": 1.5, "low": 1.25, "high": 1.75}
SUMMARY = {f"{size}_over_{other}": 1.5 for size in ("large", "small") for other in ("eager", "compile")}


def document(models: dict[str, dict[str, Any]], **settings: Any) -> dict[str, Any]:
    rows = [{"model": model, "best_compile": "compile", "ratios": found} for model, found in models.items()]
    machine = {"isa": "avx2", "processor": "A processor", "physical_cores": 4}
    described = {"budget": 30.0, "seconds": 6.0, "torch": "2.13.0+cpu"} | settings
    return {
        "rows": rows,
        "summary": SUMMARY | {"small_over_compile": None},
        "settings": described,
        "machine": machine,
    }


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_tables, "RESULTS", tmp_path)
    both = {"eager": RATIO, "compile": RATIO}
    for file, models in zip(
        FILES, ({"a": both, "b": both}, {"a": {"eager": RATIO}}, {"b": both}), strict=True
    ):
        (tmp_path / file).write_text(json.dumps(document(models)))


@pytest.mark.usefixtures("results")
def test_a_model_that_a_file_lacks_or_that_did_not_run_has_a_dash() -> None:
    _, _, first, second, *means = models_table().splitlines()
    ratio = "1.50 [1.25, 1.75]"
    assert first == f"| a | {ratio} | {ratio} | {ratio} | - | - | - |"
    assert second == f"| b | {ratio} | {ratio} | - | - | {ratio} | {ratio} |"
    assert means[1] == "| geometric mean, small | **1.50** | - | **1.50** | - | **1.50** | - |"


def test_the_sentence_names_budget_and_means() -> None:
    found = json.loads((RESULTS / FILES[0]).read_text())
    sentence = models_sentence()
    assert f"tuned for {found['settings']['budget']:.0f} seconds each" in sentence
    assert f"large ones are {found['summary']['large_over_eager']:.2f} times" in sentence
