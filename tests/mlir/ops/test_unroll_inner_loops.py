"""``tuner.unroll_inner_loops``: which loops go, that their copies compute the same, and what is refused."""

import numpy as np
import pytest

from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu import lowering
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments

LINE = '"tuner.unroll_inner_loops"(%func) : (!transform.any_op) -> ()'
# The outer loop allocates shared memory; in it a nest of two, then one that carries two values.
PIPELINE = text_beside(__file__, "PIPELINE")
# For i, j: an scf.if nested in the loops, values from outside and from both counters, a loop of no trips.
NEST = text_beside(__file__, "NEST")


def test_the_copies_compute_what_the_loops_did(apply: Apply) -> None:
    text = apply(LINE, NEST)
    assert "scf.for" not in text
    with transform.new_context(), ir.Location.unknown():
        code = JittedModule(lowering.lower_to_llvm(transform.parse(text, "payload")), ("f",))
    a = np.random.default_rng(0).standard_normal((6, 5))
    c = np.full_like(a, np.nan)
    expected = c.copy()
    for i in range(6):
        total = 0.5
        for j in range(0, 5, 2):
            if j < i:
                expected[i, j] = a[i, j] + total
            total += a[i, j]
        expected[i, 1] = total
    CompiledFunction(code.addresses["f"])(PackedArguments(a.ctypes.data, c.ctypes.data))
    assert np.array_equal(c, expected, equal_nan=True)


def test_a_function_without_loops_is_left_alone(apply: Apply) -> None:
    empty = "module { func.func @f() { return } }"
    before = apply('transform.annotate %func "seen" : !transform.any_op', empty)
    assert apply(f'{LINE}\n    transform.annotate %func "seen" : !transform.any_op', empty) == before


def test_variable_bounds_are_refused_and_nothing_is_changed(apply: Apply) -> None:
    variable = PIPELINE.replace("%a: memref<8x4xf32>)", "%a: memref<8x4xf32>, %n: index)").replace(
        "scf.for %j = %c0 to %c4", "scf.for %j = %c0 to %n"
    )
    reason = r"^tuner\.unroll_inner_loops at script:.*the loop's bounds are not constant"
    with pytest.raises(CandidateError, match=reason) as caught:
        apply(LINE, variable)
    assert caught.value.stage == Stage.COMPILE
    guarded = f"""transform.sequence %func : !transform.any_op failures(suppress) {{
    ^bb0(%inner: !transform.any_op):
      {LINE.replace("%func", "%inner")}
    }}"""
    assert apply(guarded, variable).count("scf.for") == 4


@pytest.mark.parametrize(("limit", "is_allowed"), [(18, True), (17, False)])
def test_more_copies_of_a_body_than_the_limit_are_refused(limit: int, is_allowed: bool, apply: Apply) -> None:
    line = LINE.replace("(%func)", f"(%func) {{limit = {limit} : i64}}")
    if is_allowed:
        assert "scf.for" not in apply(line, NEST)
        return
    with pytest.raises(CandidateError, match=r"found a loop to be copied 18 times, allowed 17"):
        apply(line, NEST)


SHOWN = [(LINE, PIPELINE)]
BECOMES = {"unroll_inner_loops": SHOWN[0]}
