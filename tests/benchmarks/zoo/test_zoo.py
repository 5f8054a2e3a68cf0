"""The zoo of models: outcomes are kept and summarized, and a child that crashes or hangs is an outcome."""

import os
import sysconfig
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.limited_child import Stopped, in_child
from benchmarks.results_file import RESULTS
from benchmarks.zoo import __main__ as zoo
from benchmarks.zoo import generation
from benchmarks.zoo.outcome import (
    LEFT,
    MISSING,
    RIGHT,
    WRONG,
    ZooModel,
    ZooOutcome,
    models,
    outcome_of,
    without_folders,
)

RATIOS = {"eager": (4.0, 3.9, 4.1), "torch.compile": (2.0, 1.9, 2.2)}
OUTCOMES = [
    ZooOutcome("transformers", "bert", RIGHT, taken=1, share=1.0, compile_s=5.5, peak_mb=700, ratios=RATIOS),
    ZooOutcome("timm", "other", RIGHT, taken=2, left=1, reasons=("why",), ratios={"eager": (1.0, 0.9, 1.1)}),
    ZooOutcome("timm", "third", LEFT, "sizes", left=1, reasons=("sizes",), share=0.0),
]


def test_outcomes_are_read_again_and_their_models_are_not_compiled_again(tmp_path: Path) -> None:
    file = tmp_path / "zoo.json"
    zoo.write(file, OUTCOMES)
    assert zoo.kept(file) == OUTCOMES
    assert ZooModel("transformers", "bert") not in zoo.wanted([], [], OUTCOMES)
    assert zoo.wanted(["gpt2", "bert"], [], OUTCOMES) == [ZooModel("transformers", "gpt2")]
    assert {model.library for model in zoo.wanted([], ["timm"], OUTCOMES)} == {"timm"}
    assert zoo.kept(tmp_path / "none.json") == []


def test_missing_models_are_tried_again_and_files_are_joined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = ZooOutcome("timm", "vit_tiny_patch16_224", MISSING, "no module named timm")
    zoo.write(tmp_path / "language.json", [OUTCOMES[0], missing])
    zoo.write(tmp_path / "vision.json", [OUTCOMES[1], OUTCOMES[0]])
    joined = tmp_path / "zoo.json"
    files = [str(tmp_path / name) for name in ("language.json", "vision.json")]
    assert zoo.main(["--library", "none", "--output", str(joined), "--merge", *files]) == 0
    assert zoo.kept(joined) == OUTCOMES[:2]
    assert '"transformers": 1' in capsys.readouterr().out


def test_models_without_a_ratio_are_timed_again_and_take_the_place_of_their_outcome(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "zoo.json"
    gpt2 = ZooOutcome("transformers", "gpt2", RIGHT, taken=1, ratios=RATIOS, untimed={"freezing": "busy"})
    zoo.write(file, [OUTCOMES[0], gpt2])
    asked = []

    def in_child(_work: object, model: ZooModel, is_timed: bool, limit_s: float) -> ZooOutcome:
        asked.append((model.name, is_timed))
        return replace(gpt2, untimed={"freezing": "busier"})

    monkeypatch.setattr(zoo, "in_child", in_child)
    options = ["--model", "bert", "gpt2", "--output", str(file)]
    assert zoo.main(options) == 0
    assert asked == []
    assert zoo.main([*options, "--times"]) == 0
    assert asked == [("gpt2", True)]
    assert "no ratio to freezing: busier" in capsys.readouterr().out
    assert zoo.kept(file) == [OUTCOMES[0], replace(gpt2, untimed={"freezing": "busier"})]


def test_the_summary_has_means_over_models_and_the_least() -> None:
    summary = zoo.summary_of(OUTCOMES)
    assert summary["by_outcome"][RIGHT] == 2
    assert (summary["run"], summary["all graphs taken"]) == (3, 1)
    assert summary["times as fast as"] == {
        "transformers": {
            "eager": {"models": 1, "mean": 4.0, "least": 4.0},
            "torch.compile": {"models": 1, "mean": 2.0, "least": 2.0},
        },
        "timm": {"eager": {"models": 1, "mean": 1.0, "least": 1.0}},
    }
    assert summary["share of operations"] == {"models": 2, "mean": 0.5, "least": 0.0}
    assert summary["of libraries"] == {"transformers": 1, "timm": 2}
    line = "right    bert: 1 graphs taken, 0 left, 5.5 s, 100% of the operations; 4.00 x eager"
    assert zoo.line_of(OUTCOMES[0]).startswith(line)


def test_there_are_sixty_models_of_each_kind_but_for_the_libraries_of_vision() -> None:
    names = [model.name for model in models() if model.library == "transformers"]
    assert len(names) == len({*names}) >= 60


def test_each_model_generates_with_each_cache_greedy_and_sampled() -> None:
    starts = generation.starts(("llama", "gpt2"), ("dynamic", "static"), "float32", is_greedy=False)
    assert len(starts) == 8
    ended = replace(starts[0], is_equal=True, taken=3, tokens_per_s={"tuner": 30.0, "inductor": 20.0})
    summary = generation.summary_of([ended, starts[1]])
    assert summary == {
        "generations": 2,
        "equal": 1,
        "all graphs taken": 1,
        "least speed over inductor": 1.5,
    }
    assert (
        ended.text == "llama dynamic greedy float32: equal; 3 graphs taken, 0 left; tuner 30.0, inductor 20.0"
    )
    assert [each.is_right for each in (ended, starts[1])] == [True, False]
    assert replace(starts[1], dtype="bfloat16").is_right
    assert generation.sizes_of(1024, 4)["num_attention_heads"] == 16


def test_reasons_name_files_of_packages_without_the_folder_they_are_installed_in() -> None:
    folder = sysconfig.get_path("purelib")
    assert without_folders([f"aten.sort at {folder}/transformers/moe.py:7 (why)", "model.py:3"]) == (
        "aten.sort at transformers/moe.py:7 (why)",
        "model.py:3",
    )
    assert "site-packages" not in (RESULTS / "zoo.json").read_text()


def crash() -> None:
    os._exit(3)


def wait() -> None:
    time.sleep(600)


@pytest.mark.slow
def test_a_child_that_crashes_or_hangs_returns_why() -> None:
    assert in_child(abs, -3, limit_s=60) == 3
    assert in_child(crash, limit_s=60) == Stopped("its process ended with 3")
    assert in_child(wait, limit_s=1) == Stopped("timed out after 1 s")


@pytest.mark.mlir
@pytest.mark.slow
def test_a_model_is_right_wrong_left_or_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")
    from benchmarks.zoo import outcome
    from tuner.models.torch.baselines import Example

    class Counted(torch.nn.Module):  # type: ignore[misc, name-defined]
        """Computes something else where it is compiled: what a wrong compiler looks like."""

        def forward(self, x: Any) -> Any:
            return x * (1.0 if torch.compiler.is_compiling() else 2.0)

    x = (torch.linspace(1, 2, 64).reshape(8, 8),)
    modules = {
        RIGHT: torch.nn.Linear(8, 8).eval(),
        WRONG: Counted(),
        LEFT: torch.nn.Flatten(0).eval(),
    }
    shares = {RIGHT: 1.0, WRONG: None, LEFT: None}
    for expected, module in modules.items():
        torch._dynamo.reset()  # noqa: SLF001 - torch's documented name
        monkeypatch.setattr(outcome, "_example_of", lambda _, module=module: Example(module, x, {}))
        found = outcome_of(ZooModel("none", expected), is_timed=False)
        assert (found.outcome, found.share) == (expected, shares[expected]), found
    monkeypatch.undo()
    assert outcome_of(ZooModel("timm", "no_such_model"), is_timed=False).outcome == MISSING
