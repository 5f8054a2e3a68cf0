"""The ops that a failure is about come with their lines of the script and of the payload."""

from dataclasses import replace

import pytest

from tests.mlir.scripts import script
from tests.trials import measurement, trial
from tests.tuning import fakes
from tuner.core.candidate import TargetName
from tuner.core.errors import PAYLOAD, SCRIPT, Failure, OpPlace, Stage, TunerError
from tuner.results.explanations import FailedOp, failed_ops
from tuner.targets.registry import real_backends

TEXT = "module {\n  one\n  two\n}\n"
ONE, TWO = OpPlace(SCRIPT, "t.one", 2, 3), OpPlace(SCRIPT, "t.two", 3, 3)
FIRST = OpPlace(PAYLOAD, "linalg.fill", 1, 1)
BACKENDS = fakes.backends()
SOURCE = "// source of 8x8x8"


def failed(reason: str, text: str = TEXT) -> tuple[FailedOp, ...]:
    def find(given: str, payload: str) -> OpPlace:
        assert (given, payload) == (text, f"{SOURCE}\n")
        return TWO

    stored = trial(1, Failure(Stage.COMPILE, reason), script=text)
    return failed_ops(replace(BACKENDS, failing_op=find), stored)


def test_the_op_that_mlir_names_has_its_line() -> None:
    assert failed("t.one at script:2:3: no") == (FailedOp(ONE, "one"),)


def test_the_op_that_mlir_does_not_name_is_found_by_applying_the_script_again() -> None:
    assert failed("linalg.fill at payload:1:1: no") == (FailedOp(TWO, "two"), FailedOp(FIRST, SOURCE))


def test_a_line_that_is_no_more_is_empty() -> None:
    assert failed("t.one at script:2:3: no; linalg.fill at payload:9:1: here")[1].line_text == ""


def test_a_compiler_that_crashes_leaves_the_payload_op() -> None:
    def crash(_script: str, _payload: str) -> OpPlace | None:
        raise TunerError("apply: exited with status 3")

    stored = trial(1, Failure(Stage.COMPILE, "linalg.fill at payload:1:1: no"))
    found = failed_ops(replace(BACKENDS, failing_op=crash), stored)
    assert [each.place for each in found] == [FIRST]


@pytest.mark.parametrize("reason", ["element (0, 1): found 2, expected 1", "ran for 10 s"])
def test_a_failure_on_another_machine_is_about_no_op(reason: str) -> None:
    assert failed(reason) == ()


def test_what_did_not_fail_or_was_never_bound_is_about_no_op() -> None:
    assert failed_ops(BACKENDS, trial(1, measurement(1.0))) == ()
    assert failed("t.one at script:2:3: no", text="") == ()


@pytest.mark.slow
@pytest.mark.mlir
def test_a_real_script_is_applied_to_the_payload_that_it_was_given() -> None:
    text = script("transform.structured.vectorize %product vector_sizes [3, 3] : !transform.any_op")
    stored = trial(1, Failure(Stage.COMPILE, "linalg.matmul at payload:8:14: no"), script=text)
    stored = replace(stored, record=replace(stored.record, target=TargetName("cpu")))
    op, product = failed_ops(real_backends(), stored)
    assert op.place == OpPlace(SCRIPT, "transform.structured.vectorize", 5, 5)
    assert op.line_text.startswith("transform.structured.vectorize %product")
    assert product.line_text.startswith("%product = linalg.matmul")
