"""``tuner.amx_block``: the code it makes of a matmul of buffers, that it is right, and what it refuses."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.mlir.kernels import parsed
from tests.mlir.ops import block_runs
from tests.mlir.ops.block_runs import SUMS, Sizes, exact, payload, require_product, run
from tests.mlir.ops.one_op import apply, line_of
from tuner.mlir.cpu.lowering import lower_to_llvm
from tuner.runtime.cpu.host import describe_machine

DRAWN = {"bf16": block_runs.small_numbers(ml_dtypes.bfloat16), "i8": block_runs.small_numbers(np.int8)}
HERE = describe_machine()
HAS = {"bf16": HERE.has_amx_bf16, "i8": HERE.has_amx_int8}


def line(tiles_m: int = 2, tiles_n: int = 2, pack_a: int = 1, **more: int) -> str:
    return line_of("amx_block", tiles_m=tiles_m, tiles_n=tiles_n, pack_a=pack_a, **more)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("emulates", [True, False], ids=["emulated", "tiles"])
@pytest.mark.parametrize("element", SUMS)
@pytest.mark.parametrize(
    ("sizes", "layout", "knobs"),
    [
        ((32, 32, 64), "nn", (2, 2)),
        ((17, 49, 35), "nn", (2, 2)),
        ((17, 49, 35), "nt", (1, 4)),
        ((17, 49, 35), "tn", (2, 1)),
        ((5, 3, 1), "nt", (1, 1)),
        ((33, 65, 131), "tn", (2, 2)),
        ((77, 50, 64), "tn", (2, 2)),  # a rest of rows of more than one tile, none of K
        ((64, 40, 70), "tn", (1, 4)),  # a rest of K, none of rows
        ((45, 48, 70), "nt", (2, 2)),
        ((45, 90, 64), "nt", (2, 1)),
        ((45, 100, 64), "nn", (1, 4)),
        ((64, 32, 128), "nt", (2, 2, 0)),  # A is read where it lies
    ],
    ids=str,
)
def test_tiles_give_the_product(sizes: Sizes, layout: str, knobs: Any, element: str, emulates: bool) -> None:
    if not emulates and not HAS[element]:
        pytest.skip(f"this processor has no AMX for {element}, or may not use it")
    require_product(line(*knobs), sizes, DRAWN[element], layout=layout, emulates=emulates)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
@pytest.mark.parametrize(("n", "block"), [(100, 64), (70, 64), (64, 64), (90, 48), (5, 16)])
@pytest.mark.parametrize("element", SUMS)
def test_blocks_of_two_widths_share_code(n: int, block: int, element: str, layout: str) -> None:
    script = line(columns=block, last_columns=n % block or block)
    require_product(script, (18, n, 37), DRAWN[element], layout=layout, block=block)


@pytest.mark.parametrize(("layout", "transposes"), [("nn", 0), ("nt", 1), ("tn", 1)], ids=["nn", "nt", "tn"])
def test_rests_of_every_size_share_one_transpose(layout: str, transposes: int) -> None:
    text = apply(line(), payload(77, 85, 131, "i8", layout))
    assert text.count("vector.transpose") == transposes
    assert text.count("x86.amx.tile_zero") == 12  # strips of 2 or 1 tiles by panels of 2, whole and rest


def test_llvm_leaves_the_loops_of_rests_as_loops() -> None:
    with parsed(apply(line(), payload(45, 32, 64, "bf16"))) as module:
        code = lower_to_llvm(module)
    assert "#llvm.loop_unroll<disable = true>" in code
    assert "loop_annotation = #" in code


@pytest.mark.parametrize("fill", ["", "3"])
def test_without_a_fill_of_zero_c_is_added_to(fill: str) -> None:
    require_product(line(), (33, 17, 40), DRAWN["i8"], fill=fill)


def test_a_weight_comes_packed_to_k_groups_unless_something_else_reads_it() -> None:
    def of_weight(text: str) -> str:
        return text.replace("xbf16>, %c:", "xbf16> {tuner.weight}, %c:")

    text = apply(line(ahead=1), of_weight(payload(32, 60, 70, "bf16")))
    # 2 panels of 32 columns, and 48 K groups of pairs for 70 rows
    packed = "tuner.depth = 32 : i64, tuner.interleave = 2 : i64, tuner.packing = 32 : i64, tuner.weight"
    assert f"memref<96x64xbf16> {{{packed}}}" in text
    assert "memref.prefetch" in text
    read = "%i = arith.constant 0 : index\n %first = memref.load %b[%i, %i] : memref<64x64xbf16>\n return"
    text = of_weight(payload(32, 64, 64, "bf16")).replace("return", read)
    assert "memref<64x64xbf16> {tuner.weight}" in apply(line(), text)


def test_what_lies_behind_the_last_of_k_never_reaches_c() -> None:
    a = np.full((17, 64), np.nan, ml_dtypes.bfloat16)
    a[:, :35] = DRAWN["bf16"]((17, 35))
    b, c = DRAWN["bf16"]((35, 20)), np.zeros((17, 20), np.float32)
    text = payload(17, 20, 35, "bf16").replace("17x35xbf16", "17x35xbf16, strided<[64, 1]>")
    run(line(), text, (a, b, c), emulates=True)
    assert np.array_equal(c, exact(a[:, :35], b))


SHOWN = [(line(1, 1), payload(32, 32, 64, "bf16"))]
BECOMES = {
    "amx_block": (line(1, 1), payload(16, 16, 64, "bf16")),
    "amx_block_planes": (line(1, 1, planes=3), payload(16, 16, 32, "f32", "nt")),
}
UNCHANGED = [(line(), "func.func @f() { return }", "no matmul")]
OF_F32 = payload(32, 64, 64, "bf16").replace("xbf16", "xf32")
DYNAMIC = payload(32, 64, 64, "bf16").replace("32x64xbf16", "?x64xbf16")
TYPES = r"memref<\?x64xbf16> x memref<64x64xbf16> x memref<32x64xf32>"
REFUSED = [
    (line(2, 4), payload(32, 64, 64, "bf16"), "found 2 x 4 tiles, which need 11 registers, allowed 8"),
    (line(0, 1), payload(32, 64, 64, "bf16"), "found 0 x 1 tiles"),
    (line(2, 2, 0), payload(33, 64, 64, "bf16"), "found pack_a = 0 for 33 rows and 64 of K, layout nn"),
    (line(2, 2, 0), payload(32, 64, 64, "i8", "tn"), "found pack_a = 0 for 32 rows and 64 of K, layout tn"),
    (line(planes=2), OF_F32, "found planes = 2, allowed 0 or 3"),
    (
        line(2, 2, 0, planes=3),
        payload(32, 64, 64, "f32"),
        "found pack_a = 0 with planes, allowed 1: planes are",
    ),
    (line(planes=3), payload(32, 64, 64, "bf16"), "found a matmul of bf16 into f32, allowed f32 into f32"),
    (line(), OF_F32, "found a matmul of f32 into f32, allowed bf16 into f32 or i8 into i32"),
    (line(), DYNAMIC, rf"found a matmul of {TYPES}, allowed memrefs"),
]
