"""The operations of a payload: what they read and compute, and which kind of fusion each can be in."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tuner.core.fusions import CONTRACTION, CONVOLUTION, ELEMENTWISE, LOOPS, QUANTIZED, ROWS
from tuner.core.quantization import QUANTIZATION
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.convolutions import LAYOUTS
from tuner.mlir.ir.linalg import GENERALIZE
from tuner.mlir.ir.reading import maps_in, ops_in, walk_where
from tuner.mlir.passes import run_passes
from tuner.mlir.programs.row_writes import SCATTER

MATMULS = ("linalg.matmul", "linalg.batch_matmul")
CONVOLUTIONS = tuple(LAYOUTS)
CONTRACTIONS = (*MATMULS, *CONVOLUTIONS)
FILL = "linalg.fill"
EMPTY = "tensor.empty"
CONSTANT = "arith.constant"
GENERIC = "linalg.generic"
FREE = (CONSTANT, EMPTY, FILL)  # each fusion that reads one gets a copy of it
EXPAND = "tensor.expand_shape"
COLLAPSE = "tensor.collapse_shape"
SLICE = "tensor.extract_slice"
VIEWS = (EXPAND, COLLAPSE, SLICE)  # the same memory in another shape
PAD = "tensor.pad"
CONCAT = "tensor.concat"
INSERT = "tensor.insert_slice"
PARALLEL = "#linalg.iterator_type<parallel>"
SCHEDULED_ELEMENTS = ("f32", "f64", "f16", "bf16", "i1", "i8", "i16", "i32", "i64")
COMPUTING = ("arith.", "math.", "linalg.yield")  # dialects of the bodies that become vectors


def is_tensor(value: Value) -> bool:
    """Returns whether a value is a tensor."""
    return isinstance(value.type, ir.RankedTensorType)


def defining(value: Value) -> Op | None:
    """Returns the operation that defines a value; None for a block argument."""
    if isinstance(value.owner, ir.Block):
        return None
    return value.owner.operation


def is_free(value: Value) -> bool:
    """Returns whether a value is a constant, an empty or filled tensor, or a number computed from these only.

    Each fusion that reads such a value gets its own copy of the operations that make it.
    """
    waiting = [value]
    seen = {value}
    while waiting:
        op = defining(waiting.pop())
        if op is None or not (op.name in FREE or is_scalar_op(op)):
            return False
        if op.name not in FREE:
            read = [operand for operand in read_by(op) if operand not in seen]
            seen.update(read)
            waiting += read
    return True


def is_scalar_op(op: Op) -> bool:
    """Returns whether an operation has results, and none of them is a tensor."""
    return bool(list(op.results)) and not any(map(is_tensor, op.results))


def read_by(op: Op) -> list[Value]:
    """Returns the distinct values from outside that an operation and its regions use, in order."""
    values = dict.fromkeys(op.operands)
    if len(op.regions) and op.name != FILL:
        inner = walk_where(op, lambda nested: nested != op)
        owned = {nested.operation for nested in inner}
        for nested in inner:
            for value in nested.operands:
                if isinstance(value.owner, ir.Block):
                    is_captured = not _is_inside(value.owner, op)
                else:
                    is_captured = value.owner.operation not in owned
                if is_captured:
                    values[value] = None
    return list(values)


def _is_inside(block: ir.Block, op: Op) -> bool:
    return any(block == inner for region in op.regions for inner in region.blocks) or (
        block.owner.operation != op
        and block.owner.operation.name not in ("func.func", "builtin.module")
        and _is_inside(block.owner.operation.block, op)
    )


def users(value: Value) -> list[Op]:
    """Returns the distinct operations of the function's block that use a value.

    A use inside of a region counts for the operation of the function's block that contains the region.
    """
    readers: dict[Op, None] = {}
    for use in value.uses:
        op = use.owner.operation
        while op.parent is not None and op.parent.operation.name != "func.func":
            op = op.parent.operation
        readers[op] = None
    return list(readers)


def needed_ops(ops: Collection[Op], left_out: Collection[Op] = ()) -> set[Op]:
    """Returns ``ops`` and all their direct and indirect producers.

    Producers in ``left_out``, and what only they need, are not in it.
    """
    needed: set[Op] = set()
    waiting = list(ops)
    while waiting:
        op = waiting.pop()
        if op in needed or op in left_out:
            continue
        needed.add(op)
        waiting += [producer for value in read_by(op) if (producer := defining(value)) is not None]
    return needed


def use_values(op: Op, values: Mapping[Value, Value]) -> None:
    """Replaces operands of an operation, also inside its regions: each key of ``values`` by its value."""
    for user in (op, *walk_where(op, lambda inner: inner != op)):
        for index, value in enumerate(user.operands):
            if value in values:
                user.operands[index] = values[value]


def clone_into(op: Op, values: dict[Value, Value]) -> None:
    """Clones ``op`` at the insertion point with operands replaced by ``values``: old to new value.

    Adds the results of ``op`` and of the clone to ``values``.
    """
    copy = op.clone()
    use_values(copy, values)
    values.update(zip(op.results, copy.results, strict=True))


def dimensions(mapping: ir.AffineMap) -> tuple[int, ...] | None:
    """Returns, per result of an indexing map, the number of its loop.

    None if a result is another expression than a loop, or two results are the same loop.
    """
    loops = []
    for result in mapping.results:
        if not isinstance(result, ir.AffineDimExpr):
            return None
        loops.append(ir.AffineDimExpr(result).position)
    if len(set(loops)) == len(loops):
        return tuple(loops)
    return None


def is_straight(op: Op) -> bool:
    """Returns whether no operand of a generic is transposed: its loops are in ascending order.

    Operands with other indices than distinct loops are not looked at.
    """
    return all(
        list(loops) == sorted(loops) for mapping in maps_in(op) if (loops := dimensions(mapping)) is not None
    )


def is_identity(mapping: ir.AffineMap) -> bool:
    """Returns whether the results of a map are its dimensions, in order."""
    return dimensions(mapping) == tuple(range(mapping.n_dims))


def is_parallel(op: Op) -> tuple[bool, ...]:
    """Returns, per loop of a ``linalg.generic``, whether it is parallel."""
    return tuple(str(iterator) == PARALLEL for iterator in ir.ArrayAttr(op.attributes["iterator_types"]))


def inits_of(op: Op) -> list[Value]:
    """Returns the ``outs`` of a linalg operation: its last operands, one for each result."""
    return list(op.operands)[len(op.operands) - len(op.results) :]


def inputs_of(op: Op) -> list[Value]:
    """Returns the ``ins`` of a linalg operation."""
    return list(op.operands)[: len(op.operands) - len(op.results)]


def body_of(op: Op) -> list[Op]:
    """Returns the operations of a ``linalg.generic``'s body, the yield last."""
    return ops_in(op.regions[0].blocks[0])


def loop_sizes(op: Op) -> tuple[int, ...]:
    """Returns the number of iterations of each loop of a ``linalg.generic``.

    It is 0 for a loop that no dimension of an operand has alone as its index.
    """
    sizes = [0] * maps_in(op)[0].n_dims
    for value, mapping in zip(op.operands, maps_in(op), strict=True):
        if not is_tensor(value):
            continue
        for size, result in zip(value.type.shape, mapping.results, strict=True):
            if isinstance(result, ir.AffineDimExpr):
                sizes[ir.AffineDimExpr(result).position] = size
    return tuple(sizes)


def arithmetic_of(module: ir.Module) -> int:
    """Returns how many scalar operations the tensor operations of a module execute.

    Makes named operations generic, in place. Constants, fills, views and copies of rows count 0; another
    operation that is not of linalg counts the elements of its results.
    """
    run_passes(module, GENERALIZE)
    ops = walk_where(module, lambda op: any(map(is_tensor, op.results)))
    return sum(map(_arithmetic, ops))


def _arithmetic(op: Op) -> int:
    if op.name in (*FREE, *VIEWS, SCATTER, "bufferization.to_tensor"):
        return 0
    if op.name != GENERIC:
        return sum(math.prod(result.type.shape) for result in op.results)
    computing = sum(inner.name not in (CONSTANT, "linalg.index", "linalg.yield") for inner in body_of(op))
    if not computing and not any(map(is_tensor, inputs_of(op))):  # was a fill
        return 0
    return math.prod(max(size, 1) for size in loop_sizes(op)) * max(computing, 1)


@dataclass(frozen=True)
class OpKind:
    """The kind of fusion that an operation can be the root of, and the iterations of its loops."""

    kind: str  # one of tuner.core.fusions.KINDS
    domain: tuple[int, ...] = ()  # iterations of each loop; of contractions the shape of the result
    reduced: int = 0  # of ROWS: the loop that is reduced over
    reason: str = ""  # of LOOPS: why no schedule is for the operation


def kind_of(op: Op) -> OpKind:
    """Returns the kind of fusion that can compute an operation of a program.

    The kind is LOOPS, with a reason, for an operation that no schedule supports.
    """
    if op.name in MATMULS or op.name in CONVOLUTIONS:
        reason = _wrong_element(op)
        kind = CONTRACTION if op.name in MATMULS else CONVOLUTION
        if reason:
            return OpKind(LOOPS, reason=reason)
        return OpKind(kind, tuple(op.results[0].type.shape))
    if op.name == SCATTER:
        return OpKind(LOOPS, reason="rows are copied to positions")
    if op.name != GENERIC:
        return OpKind(LOOPS, reason=f"no schedule is for {op.name}")
    if is_quantized(op):
        return OpKind(QUANTIZED, tuple(op.results[0].type.shape))
    sizes = loop_sizes(op)
    reason = _wrong_element(op)
    wrong = next((inner.name for inner in body_of(op) if not inner.name.startswith(COMPUTING)), None)
    if not reason:
        reason = f"no schedule is for {wrong} in a linalg.generic" if wrong else _wrong_loops(op)
    if reason:
        return OpKind(LOOPS, sizes, reason=reason)
    parallel = is_parallel(op)
    if all(parallel):
        return OpKind(ELEMENTWISE, sizes)
    return OpKind(ROWS, sizes, parallel.index(False))


def _wrong_element(op: Op) -> str:
    elements = [str(value.type.element_type) for value in (*op.operands, *op.results) if is_tensor(value)]
    wrong = next((element for element in elements if element not in SCHEDULED_ELEMENTS), None)
    if wrong:
        return f"no schedule is for elements of type {wrong}"
    return ""


def _wrong_loops(op: Op) -> str:
    parallel = is_parallel(op)
    maps = maps_in(op)
    if any(dimensions(mapping) is None for mapping in maps):
        return "an operand is read at more than one loop's index along a dimension"
    outputs = maps[len(op.operands) - len(op.results) :]
    if all(parallel):
        is_plain = all(map(is_identity, outputs))
        if is_plain:
            return ""
        return "a result is written in another order than that of the loops"
    if parallel.count(False) > 1:
        return "reduces several dimensions that are not one loop"
    if any(dimensions(output) != all_but(parallel.index(False), len(parallel)) for output in outputs):
        return "a reduction's result is not one number for each row"
    if is_straight(op):
        return ""
    return "a reduction reads a transposed operand"


def all_but(loop: int, count: int) -> tuple[int, ...]:
    """Returns the loop numbers 0 to ``count`` - 1, in order, without ``loop``."""
    return tuple(number for number in range(count) if number != loop)


def is_quantized(op: Op) -> bool:
    """Returns whether an operation is a matmul by quantized weights: it has ``tuner.quantization``."""
    return op.name == GENERIC and QUANTIZATION in op.attributes


def is_reduction(op: Op) -> bool:
    """Returns whether an operation is a ``linalg.generic`` with a loop that is reduced over."""
    return op.name == GENERIC and not all(is_parallel(op))
