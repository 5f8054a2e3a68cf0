"""``tuner.overlap_tiles``: which loops it changes, and that what they compute stays."""

import numpy as np
import pytest

from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu import lowering
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments

pytestmark = pytest.mark.mlir

ANY = "!transform.any_op"
OVERLAP = f'"tuner.overlap_tiles"(%func) : ({ANY}) -> ()'
CANONICALIZE = f"""transform.apply_patterns to %func {{
      transform.apply_patterns.canonicalization
      transform.apply_patterns.linalg.tiling_canonicalization
    }} : {ANY}
    transform.apply_cse to %func : {ANY}"""
TO_BUFFERS = f"%buffers = transform.bufferization.one_shot_bufferize %func : ({ANY}) -> {ANY}"
DOUBLED = text_beside(__file__, "DOUBLED")


def tiled(size: int) -> str:
    return f"""%generic = transform.structured.match ops{{["linalg.generic"]}} in %func : ({ANY}) -> {ANY}
    %tile, %loop = transform.structured.tile_using_for %generic tile_sizes [{size}]
      : ({ANY}) -> ({ANY}, {ANY})"""


def payload(extent: int) -> str:
    """Returns f(x, y): y = 2 x of ``extent`` elements."""
    return DOUBLED.replace("EXTENT", str(extent))


# What the docstring shows: before and after.
PAYLOAD = text_beside(__file__, "SHOWN_PAYLOAD")


@pytest.mark.parametrize("size", [1, 5, 11, 14, 54, 55])
def test_what_the_tiles_compute_stays(size: int, apply: Apply) -> None:
    text = apply(f"{tiled(size)}\n    {OVERLAP}\n    {CANONICALIZE}\n    {TO_BUFFERS}", payload(55))
    with transform.new_context(), ir.Location.unknown():
        code = lowering.lower_to_llvm(transform.parse(text, "payload"))
    x, y = np.arange(55, dtype=np.float32), np.zeros(55, np.float32)
    jitted = JittedModule(code, ("f",))
    CompiledFunction(jitted.addresses["f"])(PackedArguments(x.ctypes.data, y.ctypes.data))
    assert np.array_equal(y, 2 * x)


@pytest.mark.parametrize(("extent", "size"), [(56, 14), (10, 14)])
def test_loops_without_a_smaller_last_tile_and_short_loops_stay(extent: int, size: int, apply: Apply) -> None:
    assert apply(f"{tiled(size)}\n    {OVERLAP}", payload(extent)) == apply(tiled(size), payload(extent))


def test_a_loop_that_is_not_tiled_stays(apply: Apply) -> None:
    text = PAYLOAD.replace("(-d0 + 55, 14)", "(-d0 + 55, 13)")
    assert apply(OVERLAP, text) == apply("", text)


SHOWN = f"{OVERLAP}\n    {CANONICALIZE}", PAYLOAD
BECOMES = {
    "overlap_tiles": (f"{tiled(14)}\n    {OVERLAP}\n    {CANONICALIZE}", payload(55)),
}
