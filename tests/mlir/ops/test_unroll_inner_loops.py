"""``tuner.unroll_inner_loops``: which loops go, that their copies compute the same, and what is refused."""

import numpy as np

from tests.mlir.ops import block_runs
from tests.mlir.ops.one_op import apply, line_of
from tests.texts import text_beside

LINE = '"tuner.unroll_inner_loops"(%func) : (!transform.any_op) -> ()'
# The outer loop allocates shared memory; in it a nest of two, then one that carries two values.
PIPELINE = text_beside(__file__, "PIPELINE")
# For i, j: an scf.if nested in the loops, values from outside and from both counters, a loop of no trips.
NEST = text_beside(__file__, "NEST")


def test_the_copies_compute_what_the_loops_did() -> None:
    text = apply(LINE, NEST)
    assert "scf.for" not in text
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
    block_runs.call(text, a, c)
    assert np.array_equal(c, expected, equal_nan=True)


def test_a_loop_of_variable_bounds_stays_where_a_script_goes_on_after_the_refusal() -> None:
    assert apply(text_beside(__file__, "GUARDED"), VARIABLE).count("scf.for") == 4


def test_as_many_copies_of_a_body_as_the_limit_are_made() -> None:
    assert "scf.for" not in apply(line_of("unroll_inner_loops", limit=18), NEST)


BECOMES = {"unroll_inner_loops": (LINE, PIPELINE)}
UNCHANGED = [(LINE, "func.func @f() { return }", "no loops")]
VARIABLE = PIPELINE.replace("%a: memref<8x4xf32>)", "%a: memref<8x4xf32>, %n: index)")
VARIABLE = VARIABLE.replace("scf.for %j = %c0 to %c4", "scf.for %j = %c0 to %n")
REFUSED = [
    (LINE, VARIABLE, "the loop's bounds are not constant"),
    (line_of("unroll_inner_loops", limit=17), NEST, "found a loop to be copied 18 times, allowed 17"),
]
