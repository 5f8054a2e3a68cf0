"""Turns paddings of a negative width into slices, before bufferization.

Upstream's bufferization of ``tensor.pad`` writes the source at the offset of the low padding, which must not
be negative. torch-mlir exports ``F.pad`` with negative widths, which crop, as such paddings. Widths that are
known at run time only stay.

    %y = tensor.pad %x low[-1] high[2] {...} : tensor<8xf32> to tensor<9xf32>
  becomes
    %s = tensor.extract_slice %x[1] [7] [1] : tensor<8xf32> to tensor<7xf32>
    %y = tensor.pad %s low[0] high[2] {...} : tensor<7xf32> to tensor<9xf32>
"""

from collections.abc import Iterable

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import value
from tuner.mlir.rewrite.walking import walk

LOW, HIGH = "static_low", "static_high"
DYNAMIC = ir.ShapedType.get_dynamic_size()


def crop_negative_padding(function: Op) -> None:
    """Gives each ``tensor.pad`` with a negative width a slice of its source and no negative width, in place.

    Paddings of a source of dynamic shape stay.
    """
    for pad in walk(function, "tensor.pad"):
        source = ir.RankedTensorType(pad.operands[0].type)
        low, high = (list(pad.attributes[name]) for name in (LOW, HIGH))
        is_negative = any(width < 0 and width != DYNAMIC for width in low + high)
        if is_negative and source.has_static_shape:
            _crop(pad, low, high)


def _crop(pad: Op, low: list[int], high: list[int]) -> None:
    offsets, ends = _cropped(low), _cropped(high)
    sizes = [
        size - begin - end for size, begin, end in zip(pad.operands[0].type.shape, offsets, ends, strict=True)
    ]
    with pad.location, ir.InsertionPoint(pad):
        pad.operands[0] = _slice(pad.operands[0], offsets, sizes)
    pad.attributes[LOW] = _widths(each if each == DYNAMIC else max(each, 0) for each in low)
    pad.attributes[HIGH] = _widths(each if each == DYNAMIC else max(each, 0) for each in high)


def _cropped(widths: list[int]) -> list[int]:
    return [0 if width == DYNAMIC else max(-width, 0) for width in widths]


def _slice(source: Value, offsets: list[int], sizes: list[int]) -> Value:
    kind = ir.RankedTensorType.get(sizes, source.type.element_type)
    return value(
        "tensor.extract_slice",
        kind,
        source,
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
        static_offsets=_widths(offsets),
        static_sizes=_widths(sizes),
        static_strides=_widths([1] * len(sizes)),
    )


def _widths(numbers: Iterable[int]) -> ir.Attribute:
    return ir.DenseI64ArrayAttr.get(list(numbers))
