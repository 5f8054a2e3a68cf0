"""``tuner.pack_weights``: slices of columns of a weight become slices of a weight that comes packed.

Takes a function on tensors, tiled by panels of columns; changes the type of arguments marked ``tuner.weight``
to ``(ceil(n / columns), k, columns)``, whose last panel is padded with zeros. The caller packs the weight
once; nothing is packed when the function runs. A weight stays as it is where something other than B of a
``linalg.matmul`` reads it, and where a slice crosses panels.

    func.func @f(%a: tensor<8x64xf32>, %w: memref<64x100xf32> {tuner.weight}, ...
    %b = tensor.extract_slice %weight[0, %j] [64, 48] [1, 1] : tensor<64x100xf32> to tensor<64x48xf32>
    %rest = tensor.extract_slice %weight[0, 96] [64, 4] [1, 1] : tensor<64x100xf32> to tensor<64x4xf32>
    %last = tensor.pad %rest low[0, 0] high[0, 12] {
  becomes
    func.func @f(%a: tensor<8x64xf32>, %w: memref<3x64x48xf32> {tuner.packing = 48 : i64, tuner.weight}, ...
    %panel = arith.divui %j, %c48 : index
    %b = tensor.extract_slice %weight[%panel, 0, 0] [1, 64, 48] [1, 1, 1] : ...
    %last = tensor.extract_slice %weight[2, 0, 0] [1, 64, 16] [1, 1, 1] : ...
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ops.dialect import InPlaceOp, attribute
from tuner.mlir.rewrite.building import DYNAMIC, create, index, value
from tuner.mlir.rewrite.definitions import op_of
from tuner.mlir.rewrite.packed_weights import begins_panel, packed_type, set_packed, weights_of

COLUMNS = 64  # default of the attribute
B_OPERAND = 1  # of a matmul


@dataclass(frozen=True)
class _Slice:
    """Columns of a weight that a matmul reads as B, of one panel."""

    op: Op | None  # tensor.extract_slice; None: the matmul reads the whole weight
    pad: Op | None  # tensor.pad of the slice
    panel: Value | int  # the panel, or the first column, a value that a panel's columns divide
    row: Value | int
    rows: int
    columns: int  # with padding
    users: tuple[tuple[Op, int], ...]  # whose operand the slice is


class PackWeightsOp(InPlaceOp, name="pack_weights"):
    """The transform op ``tuner.pack_weights``: B of matmuls is read from weights that come packed.

    Attribute ``columns`` (i64, default 64): the columns of a panel. Arguments marked ``tuner.weight`` that
    only ``linalg.matmul`` ops read as B, by slices within a panel, get the type of their panels and the
    attribute ``tuner.packing``; others stay as they are. The handle (a func.func) stays valid. Silenceable
    failure: an op that is no func.func with a body, or ``columns`` below 1.
    """

    def change(self, function: Op) -> str | None:
        """Packs the weights of one function, in place; returns None, or why it is refused."""
        columns = attribute(self, "columns", COLUMNS)
        if columns < 1:
            return f"columns: found {columns}, allowed 1 and more"
        if function.name != "func.func" or not function.regions[0].blocks:
            return f"target: found {function.name}, allowed func.func with a body"
        for number, weight in weights_of(function):
            slices = _slices(weight, columns)
            if slices:
                _pack(function, number, columns, slices)
        return None


def _slices(weight: Value, columns: int) -> list[_Slice]:
    """Returns all reads of a weight by matmuls; [] where something else reads it, or across panels."""
    found: list[_Slice] = []
    for use in weight.uses:
        if use.owner.name != "bufferization.to_tensor":
            return []
        for each in use.owner.results[0].uses:
            read = _read(each.owner.operation, each.operand_number, use.owner.results[0], columns)
            if read is None:
                return []
            found.append(read)
    return found


def _read(user: Op, number: int, tensor: Value, columns: int) -> _Slice | None:
    k, n = tensor.type.shape
    if user.name != "tensor.extract_slice":
        return _padded(None, (0, 0), (k, n), [(user, number)]) if n <= columns else None
    sizes = list(user.attributes["static_sizes"])
    strides = list(user.attributes["static_strides"])
    offsets = _offsets(user)
    if user.results[0].type.rank != 2 or strides != [1, 1] or DYNAMIC in sizes or sizes[1] > columns:
        return None
    row, column = offsets
    if not begins_panel(column, columns):
        return None
    uses = [(use.owner.operation, use.operand_number) for use in user.results[0].uses]
    return _padded(user, (row, column), (sizes[0], sizes[1]), uses)


def _padded(
    op: Op | None, place: tuple[Value | int, Value | int], sizes: tuple[int, int], uses: list[tuple[Op, int]]
) -> _Slice | None:
    """Returns the slice that matmuls read as B, directly or after it was padded with zeros; else None."""
    (row, column), (rows, columns) = place, sizes
    if len(uses) == 1 and uses[0][0].name == "tensor.pad":
        pad = uses[0][0]
        uses = [(use.owner.operation, use.operand_number) for use in pad.results[0].uses]
        if not _pads_columns_with_zeros(pad) or not _are_matmuls(uses):
            return None
        return _Slice(op, pad, column, row, rows, pad.results[0].type.shape[1], tuple(uses))
    if not _are_matmuls(uses):
        return None
    return _Slice(op, None, column, row, rows, columns, tuple(uses))


def _are_matmuls(uses: list[tuple[Op, int]]) -> bool:
    return bool(uses) and all(op.name == "linalg.matmul" and number == B_OPERAND for op, number in uses)


def _pads_columns_with_zeros(pad: Op) -> bool:
    low, high = list(pad.attributes["static_low"]), list(pad.attributes["static_high"])
    body = list(pad.regions[0].blocks[0].operations)
    number = op_of(body[-1].operands[0], "arith.constant")
    is_zero = number is not None and number.attributes["value"].value == 0
    return is_zero and low == [0, 0] and high[0] == 0 and high[1] != DYNAMIC


def _offsets(op: Op) -> tuple[Value | int, Value | int]:
    operands = iter(list(op.operands)[1:])
    row, column = (next(operands) if each == DYNAMIC else each for each in op.attributes["static_offsets"])
    return row, column


def _pack(function: Op, number: int, columns: int, slices: list[_Slice]) -> None:
    if any(each.columns > columns for each in slices):
        return  # padded to more than a panel has
    weight = function.regions[0].blocks[0].arguments[number]
    old = [use.owner.operation for use in weight.uses]
    shape = ir.RankedTensorType(old[0].results[0].type)
    kind = packed_type(ir.MemRefType(weight.type), columns)
    set_packed(function, number, columns)
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]), function.location:
        tensor = ir.RankedTensorType.get(kind.shape, kind.element_type)
        packed = create("bufferization.to_tensor", [tensor], [weight], restrict=ir.UnitAttr.get())
        unused = create("tensor.empty", [shape])
    for each in slices:
        first = each.pad or each.op or each.users[0][0]
        with ir.InsertionPoint(first), first.location:
            made = _packed_slice(packed.results[0], each, columns)
        for user, operand in each.users:
            user.operands[operand] = made
    for op in old:  # slices that a handle may refer to are left behind: nothing uses their results
        op.results[0].replace_all_uses_with(unused.results[0])
        op.erase()


def _packed_slice(source: Value, each: _Slice, columns: int) -> Value:
    """Creates the slice of one panel, a matrix of ``each.rows`` x ``each.columns``."""
    panel: Value | int
    if isinstance(each.panel, int):
        panel = each.panel // columns
    else:
        panel = value("arith.divui", ir.IndexType.get(), each.panel, index(columns))
    places = (panel, each.row, 0)
    dynamic = [place for place in places if not isinstance(place, int)]
    return value(
        "tensor.extract_slice",
        ir.RankedTensorType.get([each.rows, each.columns], source.type.element_type),
        source,
        *dynamic,
        static_offsets=ir.DenseI64ArrayAttr.get(
            [place if isinstance(place, int) else DYNAMIC for place in places]
        ),
        static_sizes=ir.DenseI64ArrayAttr.get([1, each.rows, each.columns]),
        static_strides=ir.DenseI64ArrayAttr.get([1, 1, 1]),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, len(dynamic), 0, 0]),
    )
