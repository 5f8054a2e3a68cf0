"""Padding of depthwise convolutions joins their fusions: a schedule reads the image alone, without a copy.

Other padding is in memory before the first call (``placement``), and the image is computed or copied there: a
product of matrices, whose rows are all pixels of an image, cannot write between the padding of its rows.
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.convolutions import YIELD, is_padding_of_zeros, takes_padding
from tuner.mlir.fusions.operations import COLLAPSE, EXPAND, FREE, SLICE, defining
from tuner.mlir.ir.building import create, recreated
from tuner.mlir.ir.reading import source_of
from tuner.models.fusions.payload import TensorPayload

PIXELS = 2  # dimensions of an image: rows and columns


def join_paddings(payload: TensorPayload, first_weight: int) -> tuple[Op, ...]:
    """Gives each depthwise convolution that needs no padding in memory a ``tensor.pad`` of its own, in place.

    Reshapes come before the padding then. Returns these paddings. Convolutions by other weights than the
    function's arguments from ``first_weight`` on are left: rows of padding are not multiplied, so that an
    infinite weight would not give NaN there.

        %p = tensor.pad %x low[0, 1, 1] high[0, 1, 1] ... : tensor<8x6x6xf32> to tensor<8x8x8xf32>
        %e = tensor.expand_shape %p [[0, 1], [2], [3]] ... into tensor<1x8x8x8xf32>
        %c = linalg.depthwise_conv_2d_nchw_chw ins(%e, %w : ...)
      becomes
        %e = tensor.expand_shape %x [[0, 1], [2], [3]] ... into tensor<1x8x6x6xf32>
        %p = tensor.pad %e low[0, 0, 1, 1] high[0, 0, 1, 1] ... to tensor<1x8x8x8xf32>
        %c = linalg.depthwise_conv_2d_nchw_chw ins(%p, %w : ...)
    """
    joined = []
    for op in payload.ops:
        if not takes_padding(op) or not _is_weight(op.operands[1], first_weight):
            continue
        padding = defining(source_of(op.operands[0], (EXPAND,)))
        if padding is None or not is_padding_of_zeros(padding) or not _is_of_image(padding):
            continue
        with ir.InsertionPoint(op), op.location:
            old = op.operands[0]
            op.operands[0] = _padded(_expanded(old, padding), padding, old.type)
        joined.append(op.operands[0].owner.operation)
        _erase_unused(old)
    return tuple(joined)


def _is_weight(value: Value, first_weight: int) -> bool:
    source = source_of(value, (EXPAND, COLLAPSE))
    return isinstance(source.owner, ir.Block) and ir.BlockArgument(source).arg_number >= first_weight


def _is_of_image(padding: Op) -> bool:
    """Returns whether only rows and columns are padded, of an image whose rows have adjacent elements."""
    amounts = [list(padding.attributes[name]) for name in ("static_low", "static_high")]
    producer = defining(source_of(padding.operands[0], (EXPAND, COLLAPSE)))
    is_in_rows = producer is None or producer.name not in (*FREE, SLICE)
    return is_in_rows and not any(amount for side in amounts for amount in side[:-PIXELS])


def _expanded(value: Value, padding: Op) -> Value:
    """Creates the reshapes between a padding and ``value``, of what the padding reads; returns the last."""
    if value.owner.operation == padding:
        return padding.operands[0]
    reshape = value.owner.operation
    source = _expanded(reshape.operands[0], padding)
    pixels = list(source.type.shape)[-PIXELS:]
    shape = [*list(value.type.shape)[:-PIXELS], *pixels]
    type_ = ir.RankedTensorType.get(shape, value.type.element_type)
    return recreated(reshape, [type_], [source], static_output_shape=ir.DenseI64ArrayAttr.get(shape)).results[
        0
    ]


def _padded(image: Value, padding: Op, type_: ir.Type) -> Value:
    rank = len(type_.shape)
    amounts = {
        name: ir.DenseI64ArrayAttr.get([0] * (rank - PIXELS) + list(padding.attributes[name])[-PIXELS:])
        for name in ("static_low", "static_high")
    }
    copy = recreated(padding, [type_], [image], **amounts)
    *_, end = padding.regions[0].blocks[0].operations
    index = ir.IndexType.get()
    block = copy.regions[0].blocks.append(*[index] * rank, arg_locs=[copy.location] * rank)
    with ir.InsertionPoint(block):
        create(YIELD, [], [end.operation.operands[0]])
    return copy.results[0]


def _erase_unused(value: Value) -> None:
    while (op := defining(value)) is not None and not list(value.uses) and op.name in (EXPAND, "tensor.pad"):
        value = op.operands[0]
        op.erase()
