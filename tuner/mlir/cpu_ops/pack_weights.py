"""``tuner.pack_weights`` and ``tuner.pack_by_rows``: panels of B, packed once or at each call."""

from dataclasses import dataclass

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.ir.building import DYNAMIC, create, index, value
from tuner.mlir.ir.packed_weights import begins_panel, packed_type, set_packed, weights_of
from tuner.mlir.ir.reading import (
    constant_of,
    op_of,
    ops_in,
    set_operands,
    source_of,
    users_of,
    uses_of,
    walk,
    walk_where,
)

READ = "vector.transfer_read"
WRITE = "vector.transfer_write"
# Ops of a loop that only copies: reads, writes, and ops without effect or whose order does not matter.
OF_A_COPY = {
    *(READ, WRITE, "memref.prefetch", "memref.subview", "scf.for", "scf.yield", "affine.apply", "affine.min"),
    *("arith.constant", "arith.addi", "arith.subi", "arith.muli", "vector.create_mask", "ub.poison"),
    *("vector.constant_mask", "vector.mask", "vector.yield", "vector.maskedload", "vector.maskedstore"),
}
STORES = (WRITE, "vector.maskedstore")
BOUNDS = 3  # operands of an scf.for: lower bound, upper bound, step; then the initial values of its results
VIEWS = ("memref.subview",)
COLUMNS = 64  # default of the attribute
B_OPERAND = 1  # of a matmul


class PackByRowsOp(InPlaceOp, name="pack_by_rows"):
    """``tuner.pack_by_rows``: packing reads whole rows of B, not one panel of columns after the other.

    Takes a function on buffers. Exchanges a loop over panels with the loop over rows that is its body, where
    both only copy to one buffer. Reads of B are then contiguous; each panel is still written in order.

        scf.for %j = %c0 to %c200 step %c64 {
          %view = memref.subview %packed[%panel, 0, 0] [1, 32, 64] [1, 1, 1] : ...
          scf.for %i = %c0 to %c32 step %c1 {
            %x = vector.transfer_read %b[%i, %j], %zero : memref<32x200xf32>, vector<64xf32>
            vector.transfer_write %x, %view[%i, %c0] {in_bounds = [true]} : ...
          }
        }
      becomes
        scf.for %i = %c0 to %c32 step %c1 {
          scf.for %j = %c0 to %c200 step %c64 {
            %view = memref.subview %packed[%panel, 0, 0] [1, 32, 64] [1, 1, 1] : ...
            %x = vector.transfer_read %b[%i, %j], %zero : memref<32x200xf32>, vector<64xf32>
            vector.transfer_write %x, %view[%i, %c0] {in_bounds = [true]} : ...
          }
        }

    The handle (a func.func) stays valid. Never fails.
    """

    def change(self, function: Op) -> Refusal | None:
        for panels in walk(function, "scf.for"):
            rows = _rows_of(panels)
            if rows is not None and _only_copies(panels):
                inside = rows.regions[0].blocks[0]
                first = inside.operations[0]
                # the packed panel's view goes into the inner loop; the loops swap variables and bounds
                for op in ops_in(panels.regions[0].blocks[0])[:-2]:
                    op.move_before(first.operation)
                outer = panels.regions[0].blocks[0].arguments[0]
                inner = inside.arguments[0]
                uses = uses_of(outer), uses_of(inner)
                for uses_of_variable, other in zip(uses, (inner, outer), strict=True):
                    set_operands(uses_of_variable, other)
                for number in range(BOUNDS):
                    bounds = panels.operands[number], rows.operands[number]
                    panels.operands[number], rows.operands[number] = reversed(bounds)
        return None


def _rows_of(panels: Op) -> Op | None:
    body = ops_in(panels.regions[0].blocks[0])
    loops = [op for op in body if op.name == "scf.for"]
    if len(loops) != 1 or len(panels.operands) > BOUNDS or len(loops[0].operands) > BOUNDS:
        return None
    (rows,) = loops
    is_last = body[-2] == rows  # before scf.yield
    is_rectangular = all(_is_outside(bound, panels) for bound in rows.operands)
    is_of_rows = constant_of(rows.operands[2]) == 1 and constant_of(panels.operands[2]) != 1
    if is_last and is_rectangular and is_of_rows:
        return rows
    return None


def _only_copies(loop: Op) -> bool:
    """Returns whether a loop only copies to one buffer, which is allocated outside and not read in it."""
    ops = walk_where(loop, lambda _: True)
    written = {source_of(op.operands[1 if op.name == WRITE else 0], VIEWS) for op in ops if op.name in STORES}
    read = {source_of(op.operands[0], VIEWS) for op in ops if op.name in (READ, "vector.maskedload")}
    if len(written) != 1 or written & read or any(op.name not in OF_A_COPY for op in ops):
        return False
    return op_of(next(iter(written)), "memref.alloc") is not None


def _is_outside(value: Value, loop: Op) -> bool:
    block = value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block
    return bool(block != loop.regions[0].blocks[0])


@dataclass(frozen=True)
class _Slice:
    """Columns of a weight that a matmul reads as B, of one panel."""

    op: Op | None  # tensor.extract_slice; None: the matmul reads the whole weight
    pad: Op | None  # tensor.pad of the slice
    column: Value | int  # the first, which is also the first of a panel
    row: Value | int
    rows: int
    columns: int  # with padding
    users: tuple[tuple[Op, int], ...]  # whose operand the slice is


class PackWeightsOp(InPlaceOp, name="pack_weights"):
    """``tuner.pack_weights``: slices of columns of a weight become slices of a weight that comes packed.

    Takes a function on tensors, tiled by panels of columns. Arguments marked ``tuner.weight`` that only
    ``linalg.matmul`` ops read as B, by slices from a panel's first column on, get the type ``(ceil(n /
    columns), k, columns)``, whose last panel is padded with zeros, and the attribute ``tuner.packing``.

        func.func @f(%a: tensor<8x64xf32>, %w: memref<64x100xf32> {tuner.weight}, ...
        %b = tensor.extract_slice %weight[0, %j] [64, 48] [1, 1] : tensor<64x100xf32> to tensor<64x48xf32>
        %rest = tensor.extract_slice %weight[0, 96] [64, 4] [1, 1] : tensor<64x100xf32> to tensor<64x4xf32>
        %last = tensor.pad %rest low[0, 0] high[0, 12] {
      becomes
        func.func @f(%a: tensor<8x64xf32>, %w: memref<3x64x48xf32> {tuner.packing = 48 : i64, ...
        %panel = arith.divui %j, %c48 : index
        %b = tensor.extract_slice %weight[%panel, 0, 0] [1, 64, 48] [1, 1, 1] : ...
        %last = tensor.extract_slice %weight[2, 0, 0] [1, 64, 16] [1, 1, 1] : ...

    Attribute ``columns`` (i64, default 64): the columns of a panel. The handle (a func.func) stays valid.
    Silenceable failure: an op that is not a func.func with a body, or ``columns`` below 1.
    """

    def change(self, function: Op) -> Refusal | None:
        columns = attribute(self, "columns", COLUMNS)
        if columns < 1:
            return Refusal(f"columns: found {columns}, allowed 1 and more")
        if function.name != "func.func" or not function.regions[0].blocks:
            return Refusal(f"target: found {function.name}, allowed func.func with a body")
        for number, weight in weights_of(function):
            slices = _slices(weight, columns)
            if slices:
                _pack(function, number, columns, slices)
        return None


def _slices(weight: Value, columns: int) -> list[_Slice]:
    """Returns all reads of a weight by matmuls; [] if another op reads it, or if a read crosses panels."""
    slices: list[_Slice] = []
    for use in weight.uses:
        if use.owner.name != "bufferization.to_tensor":
            return []
        for view_use in use.owner.results[0].uses:
            read = _read(view_use.owner.operation, view_use.operand_number, use.owner.results[0], columns)
            if read is None:
                return []
            slices.append(read)
    return slices


def _read(user: Op, number: int, tensor: Value, columns: int) -> _Slice | None:
    k, n = tensor.type.shape
    if user.name != "tensor.extract_slice":  # the whole weight is read: it must be one panel
        if n <= columns:
            return _padded(None, (0, 0), (k, n), [(user, number)])
        return None
    sizes = list(user.attributes["static_sizes"])
    strides = list(user.attributes["static_strides"])
    offsets = _offsets(user)
    if user.results[0].type.rank != 2 or strides != [1, 1] or DYNAMIC in sizes or sizes[1] > columns:
        return None
    row, column = offsets
    if not begins_panel(column, columns):
        return None
    uses = uses_of(user.results[0])
    return _padded(user, (row, column), (sizes[0], sizes[1]), uses)


def _padded(
    op: Op | None,
    offsets: tuple[Value | int, Value | int],
    sizes: tuple[int, int],
    uses: list[tuple[Op, int]],
) -> _Slice | None:
    """Returns the slice that matmuls read as B, directly or after it was padded with zeros; else None."""
    (row, column), (rows, columns) = offsets, sizes
    if len(uses) == 1 and uses[0][0].name == "tensor.pad":
        pad = uses[0][0]
        uses = uses_of(pad.results[0])
        low = list(pad.attributes["static_low"])
        high = list(pad.attributes["static_high"])
        body = list(pad.regions[0].blocks[0].operations)
        number = op_of(body[-1].operands[0], "arith.constant")
        is_zero = number is not None and number.attributes["value"].value == 0
        if not (is_zero and low == [0, 0] and high[0] == 0 and high[1] != DYNAMIC) or not _are_matmuls(uses):
            return None
        return _Slice(op, pad, column, row, rows, pad.results[0].type.shape[1], tuple(uses))
    if not _are_matmuls(uses):
        return None
    return _Slice(op, None, column, row, rows, columns, tuple(uses))


def _are_matmuls(uses: list[tuple[Op, int]]) -> bool:
    return bool(uses) and all(op.name == "linalg.matmul" and number == B_OPERAND for op, number in uses)


def _offsets(op: Op) -> tuple[Value | int, Value | int]:
    operands = iter(list(op.operands)[1:])
    row, column = (
        next(operands) if offset == DYNAMIC else offset for offset in op.attributes["static_offsets"]
    )
    return row, column


def _pack(function: Op, number: int, columns: int, slices: list[_Slice]) -> None:
    if any(slice_.columns > columns for slice_ in slices):
        return  # padded to more than a panel has
    weight = function.regions[0].blocks[0].arguments[number]
    old = users_of(weight)
    shape = ir.RankedTensorType(old[0].results[0].type)
    type_ = packed_type(ir.MemRefType(weight.type), columns)
    set_packed(function, number, columns)
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]), function.location:
        tensor = ir.RankedTensorType.get(type_.shape, type_.element_type)
        packed = create("bufferization.to_tensor", [tensor], [weight], restrict=ir.UnitAttr.get())
        unused = create("tensor.empty", [shape])
    for slice_ in slices:
        first = slice_.pad or slice_.op or slice_.users[0][0]
        with ir.InsertionPoint(first), first.location:
            source = packed.results[0]
            panel: Value | int
            if isinstance(slice_.column, int):
                panel = slice_.column // columns
            else:
                panel = value("arith.divui", ir.IndexType.get(), slice_.column, index(columns))
            offsets = (panel, slice_.row, 0)
            dynamic = [offset for offset in offsets if not isinstance(offset, int)]
            padded = value(
                "tensor.extract_slice",
                ir.RankedTensorType.get([slice_.rows, slice_.columns], source.type.element_type),
                source,
                *dynamic,
                static_offsets=ir.DenseI64ArrayAttr.get(
                    [offset if isinstance(offset, int) else DYNAMIC for offset in offsets]
                ),
                static_sizes=ir.DenseI64ArrayAttr.get([1, slice_.rows, slice_.columns]),
                static_strides=ir.DenseI64ArrayAttr.get([1, 1, 1]),
                operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, len(dynamic), 0, 0]),
            )
        for user, operand in slice_.users:
            user.operands[operand] = padded
    for op in old:  # slices that a handle may refer to are left behind: nothing uses their results
        op.results[0].replace_all_uses_with(unused.results[0])
        op.erase()
