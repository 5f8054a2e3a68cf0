"""A user's schedule changes no result by upstream's miscompilations; it finds affine loops as written."""

import itertools
from typing import Any

import numpy as np
import pytest

from tests.support.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.gpu.interpreter.host_functions import read_function
from tuner.mlir import miscompiled
from tuner.models.execution import host_function
from tuner.targets.children import apply_script

pytestmark = pytest.mark.mlir

ANY = "!transform.any_op"
CANONICALIZE = f"transform.apply_patterns to %f {{ transform.apply_patterns.canonicalization }} : {ANY}"
AFFINE, MASKS = (
    f'%g = transform.apply_registered_pass "{name}" to %f : ({ANY}) -> {ANY}'
    for name in ("lower-affine", "lower-vector-mask")
)
FOLD = CANONICALIZE.replace("%f", "%g")
LEAST = -(2**63)
# payload: the schedule's steps, the arguments
CASES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "WHILE": (CANONICALIZE, ()),
    "QUOTIENTS": (AFFINE, (LEAST, 7)),
    "MASKED": (f"{MASKS}\n{FOLD}", (2, 3, 10)),
}


def payload(name: str) -> str:
    return text_beside(__file__, name)


def scheduled(name: str, steps: str) -> str:
    return apply_script(payload("PASSES").replace("PASS", steps), payload(name), allows_effects=False)


def results(text: str, arguments: tuple[Any, ...]) -> list[Any]:
    """Returns the results of a function that is interpreted as its text says, without a pass."""
    return [np.asarray(each).tolist() for each in read_function(text, "main")(arguments, print)]


@pytest.mark.parametrize("name", CASES)
def test_a_schedule_does_not_change_what_its_payload_computes(name: str) -> None:
    steps, arguments = CASES[name]
    assert results(scheduled(name, steps), arguments) == results(payload(name), arguments)


@pytest.mark.parametrize("name", CASES)
def test_without_the_rewrites_upstream_changes_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails once a newer MLIR mends the defect: the rewrite is then to be deleted."""
    monkeypatch.setattr(miscompiled, "avoid_miscompilations_by_scripts", lambda _: None)
    steps, arguments = CASES[name]
    assert results(scheduled(name, steps), arguments) != results(payload(name), arguments)


def test_a_quotient_is_rounded_up_for_each_sign() -> None:
    function = read_function(scheduled("QUOTIENTS", CANONICALIZE), "main")
    dividends = (LEAST + 1, -8, -7, -1, 0, 1, 7, 8, 2**63 - 2)
    for dividend, divisor in itertools.product(dividends, (-7, -1, 1, 7)):
        by_seven = -(-dividend // 7)
        upward = (-(-dividend // divisor), by_seven, max(-(-(dividend + 1) // 7), dividend))
        assert tuple(function((dividend, divisor), print)) == upward, (dividend, divisor)


def test_affine_loops_stay_for_the_schedule() -> None:
    text = scheduled("AFFINE", CANONICALIZE)
    assert "affine.for" in text
    assert "affine.store" in text


# Known and not mended: docs/guides/own-schedules.md says when the pass is right.
SUPER_VECTORIZE = (
    '%g = transform.apply_registered_pass "affine-super-vectorize" with options = '
    f'{{ "virtual-vector-size" = 4 }} to %f : ({ANY}) -> {ANY}'
)


@pytest.mark.parametrize("name", ["TRIPS_BELOW_THE_BUFFER", "STRIDE_OF_TWO", "STEP_OF_TWO"])
def test_super_vectorize_doubles_elements_that_its_loop_does_not_touch(name: str) -> None:
    """Fails once a newer MLIR mends the pass: the warning of the page is then to be deleted."""
    written = np.arange(1, 9, dtype=np.int32)
    doubled = written.copy()
    read_function(payload(name), "main")((written,), print)
    compiled = compiler_of(TargetName("cpu")).compile(scheduled(name, SUPER_VECTORIZE))
    host_function(compiled, print)(doubled)
    assert doubled.tolist() != written.tolist()
