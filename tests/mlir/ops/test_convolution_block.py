"""``tuner.convolution_block``: the code of a tile of a convolution, that it is right, what is refused."""

from typing import Any

import numpy as np
import pytest

from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu import lowering
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments

pytestmark = pytest.mark.mlir

Array = Any
TRANSPOSES = """transform.apply_patterns to %func {
      transform.apply_patterns.vector.lower_transpose lowering_strategy = "shuffle_16x16"
      transform.apply_patterns.canonicalization
    } : !transform.any_op"""
FILL = "linalg.fill ins(%zero : f32) outs(%sums : memref<1x{filters}x1x4xf32>)"

DYNAMIC = text_beside(__file__, "DYNAMIC")


def line(along: str = "filters", lanes: int = 16, channels: int = 0, unroll: int = 1) -> str:
    knobs = f'along = "{along}", channels = {channels} : i64, lanes = {lanes} : i64, unroll = {unroll} : i64'
    return f'"tuner.convolution_block"(%func) {{{knobs}}} : (!transform.any_op) -> ()'


def payload(filters: int = 16, fill: str = FILL, element: str = "f32") -> str:
    """Returns f(x, w, y): tiles of ``filters`` of 32 filters, of one row of the output, 4 x 4 pixels."""
    part = f"memref<3x3x3x{filters}xf32, strided<[288, 96, 32, 1], offset: ?>>"
    tile = f"memref<1x{filters}x1x4xf32>"
    row = "memref<1x3x3x6xf32, strided<[108, 36, 6, 1], offset: ?>>"
    of_y = f"memref<1x{filters}x1x4xf32, strided<[512, 16, 4, 1], offset: ?>>"
    return f"""
module {{
  func.func @f(%x: memref<1x3x6x6xf32>, %w: memref<3x3x3x32xf32> {{tuner.weight}},
               %y: memref<1x32x4x4xf32>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %step = arith.constant {filters} : index
    %zero = arith.constant 0.0 : f32
    %sums = memref.alloc() : {tile}
    scf.for %i = %c0 to %c32 step %step {{
      scf.for %j = %c0 to %c4 step %c1 {{
        %input = memref.subview %x[0, 0, %j, 0] [1, 3, 3, 6] [1, 1, 1, 1]
          : memref<1x3x6x6xf32> to {row}
        %weights = memref.subview %w[0, 0, 0, %i] [3, 3, 3, {filters}] [1, 1, 1, 1]
          : memref<3x3x3x32xf32> to {part}
        {fill.format(filters=filters)}
        linalg.generic {{
          indexing_maps = [affine_map<(n, f, h, w, a, b, c) -> (n, c, h + a, w + b)>,
                           affine_map<(n, f, h, w, a, b, c) -> (a, b, c, f)>,
                           affine_map<(n, f, h, w, a, b, c) -> (n, f, h, w)>],
          iterator_types = ["parallel", "parallel", "parallel", "parallel",
                            "reduction", "reduction", "reduction"]
        }} ins(%input, %weights : {row}, {part}) outs(%sums : {tile}) attrs = {{contraction}} {{
          ^bb0(%one: f32, %other: f32, %before: f32):
            %product = arith.mulf %one, %other : f32
            %sum = arith.addf %before, %product : f32
            linalg.yield %sum : f32
        }}
        %out = memref.subview %y[0, %i, %j, 0] [1, {filters}, 1, 4] [1, 1, 1, 1]
          : memref<1x32x4x4xf32> to {of_y}
        linalg.copy ins(%sums : {tile}) outs(%out : {of_y})
      }}
    }}
    return
  }}
}}
""".replace("xf32", f"x{element}").replace(": f32", f": {element}")


def run(apply: Apply, script: str, text: str, columns: int) -> tuple[Array, Array]:
    """Returns what the code computes of random operands, and numpy's result."""
    with transform.new_context(), ir.Location.unknown():
        code = lowering.lower_to_llvm(transform.parse(apply(f"{script}\n    {TRANSPOSES}", text), "payload"))
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((1, 3, 6, 6)), rng.standard_normal((3, 3, 3, 32))
    x, w = x.astype(np.float32), w.astype(np.float32)
    y = np.full((1, 32, 4, 4), np.nan, np.float32)
    panels = np.ascontiguousarray(w.reshape(27, 32 // columns, columns).transpose(1, 0, 2)) if columns else w
    jitted = JittedModule(code, ("f",))
    CompiledFunction(jitted.addresses["f"])(PackedArguments(*(each.ctypes.data for each in (x, panels, y))))
    windows = np.lib.stride_tricks.sliding_window_view(x[0].astype(np.float64), (3, 3), axis=(1, 2))
    return y[0], np.einsum("chwab,abcf->fhw", windows, w.astype(np.float64))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("filters", [1, 4, 8, 16, 32])
@pytest.mark.parametrize(
    "script",
    [
        line(),
        line("last"),
        line(channels=1, unroll=3),
        line("last", unroll=3),
        line(channels=2),  # does not divide 3: all channels
    ],
)
def test_sums_are_those_of_the_convolution(script: str, filters: int, apply: Apply) -> None:
    found, expected = run(apply, script, payload(filters), filters if filters < 32 else 0)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


K_GROUPS = text_beside(__file__, "K_GROUPS")


def test_k_groups_are_multiplied_by_dot_products(apply: Apply) -> None:
    text = apply(line(), K_GROUPS)
    assert "vector.fma" not in text
    assert text.count("x86.avx512.dot") == 1
    assert "vector.broadcast" in text


def test_without_a_fill_of_zero_the_buffer_is_added_to(apply: Apply) -> None:
    two = "%two = arith.constant 2.0 : f32\n        " + FILL.replace("%zero", "%two")
    for script in (line(), line("last")):
        found, expected = run(apply, script, payload(8, fill=two), 8)
        np.testing.assert_allclose(found, expected + 2, rtol=1e-4, atol=1e-5)


def test_the_next_tile_of_a_row_is_fetched_ahead(apply: Apply) -> None:
    plain, ahead = line(), line().replace("unroll", "prefetch = 1 : i64, unroll")
    assert "memref.prefetch" not in apply(plain, payload())
    assert apply(ahead, payload()).count("memref.prefetch") == 2  # the first and the last pixel
    found, expected = run(apply, ahead, payload(8), 8)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_integers_are_multiplied_as_such(apply: Apply) -> None:
    integers = payload(element="i32").replace("mulf", "muli").replace("addf", "addi").replace("0.0 :", "0 :")
    text = apply(line(), integers)
    assert "arith.muli" in text
    assert "vector.fma" not in text


SHOWN = line(), payload()
BECOMES = {
    "convolution_block": (line(), payload()),
}
REFUSED = [
    (line("rows"), payload(), "along: found rows, allowed filters or last"),
    (line(), DYNAMIC, r"found a convolution of memref<\?x3xf32> x .* allowed memrefs of static sizes"),
    (line(lanes=8), K_GROUPS, "found K groups with 8 lanes, allowed 16"),
]
