"""The transform op ``tuner.pad_views``."""

import math
from dataclasses import dataclass, field

from tuner.core.errors import Refusal
from tuner.gpu.ir.padded_views import BOUNDS
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp, integer_list
from tuner.mlir.ir.memrefs import (
    argument_attributes,
    is_row_major,
    set_argument_attribute,
    sync_function_type,
)
from tuner.mlir.ir.reading import is_zero, maps_in, op_of, ops_in

LINALG = "linalg."
FILL = "linalg.fill"
COPY = "linalg.copy"
EMPTY = "tensor.empty"
PAD = "tensor.pad"
PART = "memref.subview"
READ = "bufferization.to_tensor"
WRITE = "bufferization.materialize_in_destination"
SIZE_LIMIT = 2**31 - 1  # the largest size of a problem, see tuner.core.problem

Sizes = tuple[int, ...]


class PadViewsOp(InPlaceOp, name="pad_views"):
    """``tuner.pad_views``: arguments and tensors get sizes that tiles divide; a script's first step.

    Takes a function on tensors whose types are the true sizes of memory: memref arguments, or their first
    parts, are read by ``bufferization.to_tensor``, linalg ops compute, and
    ``bufferization.materialize_in_destination`` names the output. Gives padded views
    (``tuner.gpu.ir.padded_views``), with the true sizes in ``tuner.bounds``. ``tuner.bound_loads`` and
    ``tuner.finish_stores`` then keep accesses inside of these. Not handled: dynamic sizes, other ops.

        func.func @f(%a: memref<50x60xf32> ..., %b: memref<60x40xf32> ..., %c: ...) {
          %A = bufferization.to_tensor %a restrict : memref<50x60xf32> to tensor<50x60xf32>
          %product = linalg.matmul ins(%A, %B : tensor<50x60xf32>, tensor<60x40xf32>) ...
      with sizes = array<i64: 64, 48, 96>, (m, n, k) of the matmul, becomes
        func.func @f(%a: memref<64x96xf32, strided<[60, 1]>> {tuner.bounds = array<i64: 50, 60>, ...) {
          %A = bufferization.to_tensor %a restrict : memref<64x96xf32, strided<[60, 1]>> to tensor<64x96xf32>
          %product = linalg.matmul ins(%A, %B : tensor<64x96xf32>, tensor<96x48xf32>) ...

    Attribute ``sizes`` (array<i64>): the padded size of each loop of the function's first linalg op that is
    not a fill: of a matmul m, n and k. Indexing maps say which dimension of which tensor has which size,
    also for the linalg ops around it, such as an epilogue. Where a tensor is a part of an argument, from its
    first element on (``memref.subview``), the bounds are the argument's own sizes: what is next to the part
    is read and written too, and must be zeros where a sum reads it. A ``tensor.pad`` of an argument by zeros
    is removed: guarded reads give zeros. The handle (a func.func) stays valid. Silenceable failure: sizes
    that are not one for each loop, below the true ones or above 2**31 - 1; tensors of dynamic sizes or of
    two padded sizes; arguments with gaps between rows or that are padded already; other ops on tensors.
    """

    def change(self, function: Op) -> Refusal | None:
        try:
            padding = _padding_of(function, integer_list(self, "sizes"))
        except _PaddingError as error:
            return Refusal(str(error))
        for op in padding.needless:
            padding.tensors.pop(op.results[0], None)
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
        for tensor, sizes in padding.tensors.items():
            tensor.set_type(ir.RankedTensorType.get(sizes, tensor.type.element_type))
        for argument, sizes in padding.arguments.items():
            memory = ir.MemRefType(argument.type)
            strides, _ = memory.get_strides_and_offset()
            is_dense = strides == [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
            layout = None if is_dense else ir.StridedLayoutAttr.get(0, strides)
            padded = ir.MemRefType.get(
                sizes, memory.element_type, layout=layout, memory_space=memory.memory_space
            )
            if padded != memory:
                argument.set_type(padded)
                bounds = ir.DenseI64ArrayAttr.get(memory.shape)
                set_argument_attribute(function, ir.BlockArgument(argument).arg_number, BOUNDS, bounds)
        sync_function_type(function)
        return None


class _PaddingError(Exception):
    """Why a function cannot be padded."""


@dataclass(frozen=True)
class _Padding:
    """What to change in a function: the sizes of values, and ops that padded views make needless."""

    tensors: dict[Value, Sizes] = field(default_factory=dict)
    arguments: dict[Value, Sizes] = field(default_factory=dict)
    needless: list[Op] = field(default_factory=list)  # their first operand takes their place


def _padding_of(function: Op, sizes: Sizes) -> _Padding:
    """Returns the padding that follows from ``sizes``, of the loops of the function's first linalg op.

    Fills do not count as the first op. Raises _PaddingError.
    """
    ops: list[Op] = []
    for region in function.regions:
        for block in region.blocks:
            ops += ops_in(block)
    waiting = [op for op in ops if op.name.startswith(LINALG) and len(op.results)]
    first = next((op for op in waiting if op.name != FILL), None)
    if first is None:
        raise _PaddingError("expected a linalg op on tensors other than linalg.fill, got none")
    _require_sizes(first, sizes)
    padding = _Padding()
    _set_tensors(first, sizes, padding)
    waiting.remove(first)
    while waiting:
        # Sizes spread both ways: to the fill that a product starts from, and to the epilogue of its sums.
        op = next(
            (
                candidate
                for candidate in waiting
                if any(tensor in padding.tensors for tensor, _ in _indexed(candidate))
            ),
            None,
        )
        if op is None:
            raise _PaddingError(f"expected linalg ops on one another's tensors, got {waiting[0].name} apart")
        _set_tensors(op, _loop_sizes(op, padding), padding)
        waiting.remove(op)
    for op in reversed(ops):  # users first: a pad gives its operand sizes, which go on to the argument
        _follow(op, padding)
    return padding


def _require_sizes(op: Op, sizes: Sizes) -> None:
    count = _maps(op)[0].n_dims
    if len(sizes) != count:
        raise _PaddingError(f"sizes: expected {count}, one for each loop of {op.name}, got {len(sizes)}")
    for tensor, loops in _indexed(op):
        if not tensor.type.has_static_shape:
            raise _PaddingError(f"expected static sizes, got {tensor.type}")
        for loop, true in zip(loops, tensor.type.shape, strict=True):
            if not true <= sizes[loop] <= SIZE_LIMIT:
                raise _PaddingError(f"sizes[{loop}]: expected {true}..{SIZE_LIMIT}, got {sizes[loop]}")


def _loop_sizes(op: Op, padding: _Padding) -> Sizes:
    sizes: dict[int, int] = {}
    for tensor, loops in sorted(_indexed(op), key=lambda pair: pair[0] not in padding.tensors):
        for loop, size in zip(loops, padding.tensors.get(tensor, tensor.type.shape), strict=True):
            sizes.setdefault(loop, size)
    return tuple(sizes[loop] for loop in sorted(sizes))


def _set_tensors(op: Op, sizes: Sizes, padding: _Padding) -> None:
    for tensor, loops in _indexed(op):
        _set(padding.tensors, tensor, tuple(sizes[loop] for loop in loops))


def _set(values: dict[Value, Sizes], tensor_or_argument: Value, sizes: Sizes) -> None:
    known = values.setdefault(tensor_or_argument, sizes)
    if known != sizes:
        raise _PaddingError(
            f"{tensor_or_argument.type}: expected one padded size, got {list(known)} and {list(sizes)}"
        )


def _indexed(op: Op) -> list[tuple[Value, list[int]]]:
    """Returns the tensors of a linalg op, its results last, each with the loop along each dimension."""
    maps = _maps(op)
    outputs = maps[len(maps) - len(op.results) :]
    pairs = zip([*op.operands, *op.results], [*maps, *outputs], strict=True)
    return [(operand, _loops(indices)) for operand, indices in pairs if _is_tensor(operand)]


def _maps(op: Op) -> list[ir.AffineMap]:
    if "indexing_maps" in op.attributes:
        return maps_in(op)
    if op.name not in (FILL, COPY):
        raise _PaddingError(f"expected linalg ops with indexing maps, got {op.name}")
    return [ir.AffineMap.get_identity(op.results[0].type.rank)] * len(op.operands)


def _loops(indices: ir.AffineMap) -> list[int]:
    if not all(isinstance(result, ir.AffineDimExpr) for result in indices.results):
        raise _PaddingError(f"expected loops as indices, got {indices}")
    return [ir.AffineDimExpr(result).position for result in indices.results]


def _is_tensor(operand: Value) -> bool:
    return isinstance(operand.type, ir.RankedTensorType)


def _follow(op: Op, padding: _Padding) -> None:
    if op.name == PAD and op.results[0] in padding.tensors:
        _require_zeros(op)
        # the operand gets the padded shape itself
        _set(padding.tensors, op.operands[0], padding.tensors[op.results[0]])
        padding.needless.append(op)
    elif op.name == READ and op.results[0] in padding.tensors:
        _set_argument(op.operands[0], padding.tensors[op.results[0]], padding)
    elif op.name == WRITE and op.operands[0] in padding.tensors:
        _set_argument(op.operands[1], padding.tensors[op.operands[0]], padding)
    elif (
        op.name not in (EMPTY, READ)
        and not op.name.startswith(LINALG)
        and any(map(_is_tensor, (*op.operands, *op.results)))
    ):
        raise _PaddingError(f"expected linalg ops on tensors of arguments, got {op.name}")


def _require_zeros(pad: Op) -> None:
    read = op_of(pad.operands[0], READ)
    is_whole = read is not None and isinstance(read.operands[0].owner, ir.Block)
    is_at_ends = not any(ir.DenseI64ArrayAttr(pad.attributes["static_low"]))
    last = list(pad.regions[0].blocks[0].operations)[-1]
    if not (is_whole and is_at_ends and is_zero(last.operands[0])):
        raise _PaddingError("expected a tensor.pad of an argument by zeros at its ends, got another")


def _set_argument(memory: Value, sizes: Sizes, padding: _Padding) -> None:
    """Records the padded sizes of an argument, which is ``memory`` or has ``memory`` as its first part.

    Raises _PaddingError for other memory, padded arguments and gaps between rows.
    """
    part = op_of(memory, PART)
    argument = memory if part is None else part.operands[0]
    if not isinstance(argument.owner, ir.Block) or not (part is None or _is_first(part)):
        raise _PaddingError("expected tensors of arguments or of their first elements, got other memory")
    number = ir.BlockArgument(argument).arg_number
    if BOUNDS in argument_attributes(argument.owner.owner.operation, number):
        raise _PaddingError(f"expected true sizes, got {BOUNDS} of argument {number}")
    if not (is_row_major(argument.type) and argument.type.has_static_shape):
        raise _PaddingError(f"argument {number}: expected rows without gaps, got {argument.type}")
    _set(padding.arguments, argument, sizes)
    if part is not None and part not in padding.needless:
        padding.needless.append(part)


def _is_first(part: Op) -> bool:
    """Returns whether a ``memref.subview`` begins at the first element and has no gaps between elements."""
    offsets, steps = (
        ir.DenseI64ArrayAttr(part.attributes[f"static_{name}"]) for name in ("offsets", "strides")
    )
    return not any(offsets) and all(step == 1 for step in steps)
