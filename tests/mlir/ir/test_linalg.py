"""Dimensions of convolutions, roundings after limits, and weights that come packed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.mlir.documented_ir import missing
from tests.mlir.kernels import changed, parsed
from tests.texts import filled, text_beside
from tuner.core.packings import WeightPacking
from tuner.mlir.bindings import ir
from tuner.mlir.fusions.convolutions import ConvolutionForm, convolution_form
from tuner.mlir.ir.linalg import round_late
from tuner.mlir.ir.packed_weights import packing_of, set_packed, set_packed_as
from tuner.mlir.ir.reading import walk


def test_a_form_has_the_dimensions_and_steps_of_its_op_and_sums_over_a_window_only_if_depthwise() -> None:
    with parsed(text_beside(__file__, "CONVOLUTION")) as module:
        (op,) = walk(module, "linalg.conv_1d_ncw_fcw")
        assert convolution_form(op) == ConvolutionForm("ncW", "fcw", "nfW", (2,), (4,))
        del op.attributes["strides"], op.attributes["dilations"]
        assert convolution_form(op) == ConvolutionForm("ncW", "fcw", "nfW", (1,), (1,))
    usual = ConvolutionForm("ncHW", "fchw", "nfHW", (1, 1), (1, 1))
    depthwise = ConvolutionForm("nHWc", "hwc", "nHWc", (1, 1), (1, 1))
    assert (usual.is_depthwise, usual.reduced, usual.filters) == (False, "hwc", "f")
    assert (depthwise.is_depthwise, depthwise.reduced, depthwise.filters) == (True, "hw", "c")


# Roundings to bf16 after limits: what is moved, what is not, and that no result changes.
BODY = """%r = arith.truncf %x : f32 to bf16
  %c = arith.cmpf ugt, %r, %limit : bf16
  %y = arith.select %c, %r, %limit : bf16"""


def rewritten(body: str) -> tuple[str, str]:
    """Returns a function before and after the rewriting, without what nobody uses."""
    text = filled(__file__, "LIMITED", body=body)
    return changed(lambda module: round_late(walk(module, "func.func")[0]), text)[:2]


def test_each_limit_of_a_chain_is_applied_before_the_number_is_rounded() -> None:
    before, once = rewritten(BODY)
    assert missing(round_late.__doc__ or "", before, once) == []
    _, twice = rewritten(f"""{BODY.replace("%y", "%once")}
  %low = arith.cmpf ult, %once, %zero : bf16
  %y = arith.select %low, %zero, %once : bf16""")
    for text, limits in ((once, 1), (twice, 2)):
        assert ": f32 to bf16\n    return" in text
        selections = [line for line in text.splitlines() if "arith.select" in line]
        assert [line.rsplit(" ", 1)[1] for line in selections] == ["f32"] * limits


@pytest.mark.parametrize(
    "body",
    [
        BODY.replace("%r, %limit : bf16\n", "%r, %other : bf16\n"),  # no constant
        BODY.replace("select %c, %r, %limit", "select %c, %r, %zero"),  # another number than the limit
        BODY.replace("select %c, %r, %limit", "select %c, %other, %limit"),
        BODY.replace("arith.truncf %x : f32 to bf16", "arith.addf %other, %other : bf16"),
    ],
)
def test_other_selections_stay(body: str) -> None:
    _, text = rewritten(body)
    assert "arith.select %" in text
    assert "f32 to bf16\n    return" not in text


# How arguments say that weights come packed.
@contextmanager
def of_weights() -> Iterator[Any]:
    arguments = "%w: memref<64x100xf32> {tuner.weight}, %x: memref<8x3x3x3xf32> {tuner.weight}"
    with parsed(f"func.func @f({arguments}) {{ return }}") as module:
        yield walk(module, "func.func")[0]


def test_a_packed_argument_has_the_type_of_its_panels() -> None:
    with of_weights() as function:
        assert packing_of(function, 0) is None
        set_packed(function, 0, 48)
        assert packing_of(function, 0) == WeightPacking(48)
        assert "(%arg0: memref<3x64x48xf32> {tuner.packing = 48 : i64, tuner.weight}" in str(function)


def test_an_order_words_of_unsigned_bytes_and_runs_of_rows_are_read_back_and_stay() -> None:
    with of_weights() as function:
        element, number = ir.F32Type.get(), ir.IntegerType.get_signless
        set_packed_as(function, 1, ir.MemRefType.get([3, 3, 3, 8], element), 8, (2, 3, 1, 0))
        assert packing_of(function, 1) == WeightPacking(8, order=(2, 3, 1, 0))
        set_packed_as(function, 1, ir.MemRefType.get([2, 3, 3, 3, 4], element), 4)
        assert packing_of(function, 1) == WeightPacking(4, order=(2, 3, 1, 0))
        assert function.verify()
        kind = ir.MemRefType.get([128, 256], number(8))
        set_packed_as(function, 0, kind, 64, interleave=4, depth=64, unsigned=True)
        assert packing_of(function, 0) == WeightPacking(64, 4, depth=64, unsigned=True)
        assert "tuner.unsigned = 1 : i64" in str(function)
    with of_weights() as function:
        kind = ir.MemRefType.get([2, 8], ir.IntegerType.get_signless(32))
        set_packed_as(function, 0, kind, 8, [1, 0], interleave=2, depth=2, run=3)
        set_packed_as(function, 0, kind, 4)
        assert packing_of(function, 0) == WeightPacking(4, 2, (1, 0), depth=2, run=3)
