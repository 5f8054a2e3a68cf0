"""A failure is explained with the lines of its ops, within the columns of a summary."""

import pytest

from tests.trials import measurement, trial
from tuner.core.errors import Failure, Stage
from tuner.core.record import Measurement, Verdict
from tuner.mlir.op_place import PAYLOAD, SCRIPT, OpPlace
from tuner.output.explanation import explain_document, explain_lines
from tuner.output.formatting import SUMMARY_COLUMNS
from tuner.run_history.failed_ops import FailedOp

FAILED = trial(7, Failure(Stage.COMPILE, "linalg.fill at payload:7:16: Attempted to vectorize, but failed"))
OPS = (
    FailedOp(
        OpPlace(SCRIPT, "transform.structured.vectorize", 12, 5), "transform.structured.vectorize %fill"
    ),
    FailedOp(OpPlace(PAYLOAD, "linalg.fill", 7, 16), f"%cleared = linalg.fill {'x' * 90}"),
)


def test_an_op_is_told_with_its_place_and_its_line() -> None:
    assert explain_lines(FAILED, OPS) == [
        "trial 107 failed at stage compile: linalg.fill at payload:7:16: Attempted to",
        "          vectorize, but failed",
        "problem   matmul 8x8x8 f32 nn none",
        "strategy  fake",
        "knobs     knob_0=7",
        "script    line 12, column 5: transform.structured.vectorize",
        "          transform.structured.vectorize %fill",
        "payload   line 7, column 16: linalg.fill",
        f"          %cleared = linalg.fill {'x' * 44}...",
        "texts     tuner show 107 --json",
    ]


def test_every_line_ends_within_the_columns() -> None:
    assert max(map(len, explain_lines(FAILED, OPS))) == SUMMARY_COLUMNS


def test_the_document_has_the_ops() -> None:
    assert explain_document(FAILED, OPS)["failed_ops"][0] == {
        "text": "script",
        "op": "transform.structured.vectorize",
        "line": 12,
        "column": 5,
        "line_text": "transform.structured.vectorize %fill",
    }
    assert explain_document(FAILED, ())["failed_ops"] == []


@pytest.mark.parametrize(
    ("outcome", "words"), [(measurement(1e-3), "measured, 1 ms"), (Verdict(0.5, 64), "verified, not timed")]
)
def test_what_did_not_fail_is_told_with_its_time(outcome: Measurement | Verdict, words: str) -> None:
    assert explain_lines(trial(7, outcome), ()) == [f"trial 107 did not fail: {words}"]
