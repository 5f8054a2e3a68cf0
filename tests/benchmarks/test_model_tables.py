"""Tables of models have each model of each file, and a mark where one did not run."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import model_tables
from benchmarks.model_tables import COLUMNS, MODELS_1_THREAD, models_sentence, models_table
from benchmarks.results_file import RESULTS

RATIO = {"median": 1.5, "low": 1.25, "high": 1.75}
BOTH = {"eager": RATIO, "compile": RATIO}
TWICE = {name: {key: 2 * value for key, value in found.items()} for name, found in BOTH.items()}


def document(models: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "rows": [
            {"model": model, "is_large": model == "a", "best_compile": "compile", "ratios": found}
            for model, found in models.items()
        ]
    }


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_tables, "RESULTS", tmp_path)
    files = [file for each in COLUMNS.values() for file in each]
    models = ({"a": BOTH, "b": BOTH}, {"a": {"eager": RATIO}}, {"b": BOTH}, {"b": TWICE})
    for file, found in zip(files, models, strict=True):
        (tmp_path / file).write_text(json.dumps(document(found)))


@pytest.mark.usefixtures("results")
def test_a_model_that_a_file_lacks_or_that_did_not_run_has_a_dash() -> None:
    _, _, first, second, *means = models_table().splitlines()
    ratio = "1.50 [1.25, 1.75]"
    assert first == f"| a | {ratio} | {ratio} | {ratio} | - | - | - |"
    assert means[0] == "| geometric mean, large | **1.50** | **1.50** | **1.50** | - | - | - |"
    assert second.startswith(f"| b | {ratio} | {ratio} | - | - | ")


@pytest.mark.usefixtures("results")
def test_a_model_counts_as_it_was_measured_last() -> None:
    *_, second, _, small = models_table().splitlines()
    assert second.endswith(" | 3.00 [2.50, 3.50] | 3.00 [2.50, 3.50] |")
    assert small == "| geometric mean, small | **1.50** | **1.50** | - | - | **3.00** | **3.00** |"


def test_the_sentence_names_budget_and_means() -> None:
    found = json.loads((RESULTS / MODELS_1_THREAD).read_text())
    sentence = models_sentence()
    assert f"tuned for {found['settings']['budget']:.0f} seconds each" in sentence
    assert f"large ones are {found['summary']['large_over_eager']:.2f} times" in sentence
