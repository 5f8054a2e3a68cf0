"""What the survey of vision models says of a module: right, wrong, refused; or that a library is missing."""

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from benchmarks import vision_survey  # noqa: E402 - after the skip
from benchmarks.results_file import RESULTS  # noqa: E402

START = vision_survey.VisionOutcome("none", "model", 4, vision_survey.RIGHT)


class Counted(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Computes something else where it is exported: what a wrong compiler looks like."""

    def forward(self, x: Any) -> Any:
        return x * (1.0 if torch.compiler.is_exporting() else 2.0)


@pytest.mark.slow
def test_a_module_is_right_wrong_or_refused() -> None:
    x = (torch.ones(2, 4),)
    right = vision_survey._compared(START, torch.nn.Linear(4, 4).eval(), x)  # noqa: SLF001
    assert (right.outcome, right.fusions, right.loops) == (vision_survey.RIGHT, 1, 0)
    wrong = vision_survey._compared(START, Counted(), x)  # noqa: SLF001
    assert (wrong.outcome, wrong.reason) == (vision_survey.WRONG, "an error of 0.5 of the greatest number")
    refused = vision_survey._compared(START, torch.nn.Dropout(0.5).train(), x)  # noqa: SLF001
    assert refused.outcome == vision_survey.REFUSED
    assert "draws random numbers" in refused.reason


def test_a_model_that_no_library_has_is_missing() -> None:
    assert vision_survey.outcome_of("no_such_library", "model", 8).outcome == vision_survey.MISSING


def test_outcomes_are_read_again_from_the_file_of_results(tmp_path: Path) -> None:
    outcomes = [START, vision_survey.VisionOutcome("none", "other", 8, vision_survey.REFUSED, "why")]
    file = tmp_path / "outcomes.json"
    vision_survey._write(file, outcomes)  # noqa: SLF001
    assert vision_survey._kept(file) == outcomes  # noqa: SLF001
    assert json.loads(file.read_text())["summary"]["by_outcome"]["refused"] == 1
    assert len(vision_survey._kept(RESULTS / "vision_survey.json")) == 41  # noqa: SLF001
