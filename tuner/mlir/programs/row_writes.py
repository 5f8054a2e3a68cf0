"""Rows that are written at positions, ``tensor.scatter`` along the first dimension, as loops.

MLIR leaves open what equal positions mean; here the last of their rows stays. A position out of range is an
error of the call, before any row is written.
"""

from tuner.mlir.bindings import Value, ir
from tuner.mlir.ir.building import DYNAMIC, as_index, compared, create, for_each, index, loop, value
from tuner.mlir.ir.reading import unsupported, walk

SCATTER = "tensor.scatter"
ALLOWED = "scatter_dims([0]), one position for each row, and static sizes"


def require_row_writes(module: ir.Module) -> None:
    """Raises CandidateError(COMPILE) for a ``tensor.scatter`` of a module that has no lowering here."""
    for op in walk(module, SCATTER):
        types = [operand.type for operand in op.operands]
        is_of_rows = list(op.attributes["scatter_dims"]) == [0] and types[1].rank > 0
        is_static = all(type_.has_static_shape for type_ in types)
        if not is_of_rows or not is_static or list(types[2].shape[1:]) != [1]:
            raise unsupported(op, str(op), ALLOWED)


def row_writes_to_loops(module: ir.Module) -> None:
    """Replaces each ``tensor.scatter`` of a module that ``require_row_writes`` accepts by a loop, in place.

      %r = tensor.scatter %rows into %x[%at] scatter_dims([0]) unique
        : (tensor<3x1x8xf32>, tensor<9x8xf32>, tensor<3x1xi64>) -> tensor<9x8xf32>
    becomes
      scf.for %i = %c0 to %c3 step %c1 {
        %p = tensor.extract %at[%i, %c0] : tensor<3x1xi64>
        %position = arith.index_cast %p : i64 to index
        %inside = arith.cmpi ult, %position, %c9 : index           // false for a negative position, too
        cf.assert %inside, "an index into tensor<9x8xf32> is outside of dimension 0"
      }
      %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%y = %x) -> tensor<9x8xf32> {
        ...
        %row = tensor.extract_slice %rows[%i, 0, 0] [1, 1, 8] [1, 1, 1]
        %z = tensor.insert_slice %row into %y[%position, 0] [1, 8] [1, 1]
        scf.yield %z
      }
    """
    for op in walk(module, SCATTER):
        with op.location, ir.InsertionPoint(op):
            op.results[0].replace_all_uses_with(_written(*op.operands))
        op.erase()


def _written(rows: Value, x: Value, positions: Value) -> Value:
    shape = list(x.type.shape)
    row_type = ir.RankedTensorType.get([1, *shape[1:]], x.type.element_type)

    def require_inside(number: Value) -> None:
        inside = compared("ult", _position(positions, number), as_index(shape[0]))
        message = f"an index into {x.type} is outside of dimension 0"
        create("cf.assert", (), [inside], msg=ir.StringAttr.get(message))

    def write_row(number: Value, written: Value) -> list[Value]:
        row = _sliced("tensor.extract_slice", row_type, [rows], number, list(rows.type.shape))
        return [_sliced("tensor.insert_slice", x.type, [row, written], _position(positions, number), shape)]

    count = positions.type.shape[0]
    for_each(0, count, require_inside)
    return loop(0, count, write_row, [x])[0]


def _position(positions: Value, number: Value) -> Value:
    position = value("tensor.extract", positions.type.element_type, positions, number, index(0))
    if isinstance(position.type, ir.IndexType):
        return position
    return value("arith.index_cast", ir.IndexType.get(), position)


def _sliced(name: str, type_: ir.Type, tensors: list[Value], position: Value, shape: list[int]) -> Value:
    """Creates a slice of one row, at ``position``, of a tensor with ``shape``."""
    rank = len(shape)
    segments = [*[1] * len(tensors), 1, 0, 0]
    return value(
        name,
        type_,
        *[*tensors, position],
        static_offsets=ir.DenseI64ArrayAttr.get([DYNAMIC, *[0] * (rank - 1)]),
        static_sizes=ir.DenseI64ArrayAttr.get([1, *shape[1:]]),
        static_strides=ir.DenseI64ArrayAttr.get([1] * rank),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get(segments),
    )
