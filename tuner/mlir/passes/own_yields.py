"""Gives the tensors that loops and branches yield a place of their own, before bufferization.

A loop whose turns each make a new tensor would otherwise not bufferize, and a branch would hand on memory
that it allocated, which has no place on a device. With this a turn or a branch ends in a copy.
"""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.building import create, index, value
from tuner.mlir.ops.dialect import walk
from tuner.mlir.passes.buffer_roots import VIEWS
from tuner.mlir.passes.carried_values import last_of

LOOP, WHILE, BRANCH = "scf.for", "scf.while", "scf.if"
ALLOCATIONS = ("memref.alloc", "memref.alloca")


def yields_own_memory(function: Any) -> bool:
    """Tells whether a loop or branch on buffers yields memory that it allocated."""
    yields = [
        last_of(block) for name in (LOOP, BRANCH) for op in walk(function, name) for block in _blocks(op)
    ]
    return any(_is_allocated_in(each, operand) for each in yields for operand in each.operands)


def copy_yields(function: Any) -> None:
    """Rewrites in place: into a loop's own arguments, and into a tensor in front of a branch.

    Results of branches of dynamic shape stay as they are: nothing in front of them tells their size.
    """
    for loop in walk(function, LOOP):
        block = _blocks(loop)[0]
        _copy_turn(last_of(block), list(block.arguments)[1:], 0)
    for loop in walk(function, WHILE):
        condition, body = _blocks(loop)
        _copy_turn(last_of(condition), list(condition.arguments), 1)  # behind the truth
        _copy_turn(last_of(body), list(body.arguments), 0)
    for branch in walk(function, BRANCH):
        with branch.location, ir.InsertionPoint(branch):
            places = [_empty(result.type) for result in branch.results]
        for block in _blocks(branch):
            _copy_into(last_of(block), places)


def _copy_turn(end: Any, arguments: list[Any], first: int) -> None:
    """Lets a terminator yield a block's own arguments, from its operand of number ``first`` on."""
    yielded = list(end.operands)[first:]
    fits = [
        _is_tensor(place) and place.type == each.type for place, each in zip(arguments, yielded, strict=False)
    ]
    places = [place if is_fit else None for place, is_fit in zip(arguments, fits, strict=False)]
    inner = [
        each for each, is_fit in zip(yielded, fits, strict=False) if is_fit and _is_of_control_flow(each)
    ]
    if sum(fits) > 1 or inner:  # one may be yielded as another, or lie in its place: copy all away first
        with end.location, ir.InsertionPoint(end):
            spare = [None if place is None else _empty_like(place) for place in places]
        _copy_into(end, spare, first)
    _copy_into(end, places, first)


def _copy_into(end: Any, places: list[Any], first: int = 0) -> None:
    for number, place in enumerate(places, first):
        yielded = end.operands[number]
        if place is None or yielded == place:
            continue
        with end.location, ir.InsertionPoint(end):
            copy = create("bufferization.materialize_in_destination", [place.type], [yielded, place])
        end.operands[number] = copy.results[0]


def _empty(kind: Any) -> Any:
    is_known = isinstance(kind, ir.RankedTensorType) and kind.has_static_shape
    return create("tensor.empty", [kind]).results[0] if is_known else None


def _empty_like(tensor: Any) -> Any:
    kind = ir.RankedTensorType(tensor.type)
    dynamic = [axis for axis in range(kind.rank) if kind.is_dynamic_dim(axis)]
    sizes = [value("tensor.dim", ir.IndexType.get(), tensor, index(axis)) for axis in dynamic]
    return value("tensor.empty", kind, *sizes)


def _is_of_control_flow(each: Any) -> bool:
    return not isinstance(each.owner, ir.Block) and each.owner.name in (LOOP, WHILE, BRANCH)


def _is_tensor(each: Any) -> bool:
    return isinstance(each.type, ir.RankedTensorType)


def _is_allocated_in(end: Any, operand: Any) -> bool:
    """Tells whether a value is memory that its block allocated, or a view of that."""
    owner = operand.owner
    while not isinstance(owner, ir.Block) and owner.name in VIEWS:
        owner = owner.operands[0].owner
    return (
        not isinstance(owner, ir.Block) and owner.name in ALLOCATIONS and owner.operation.block == end.block
    )


def _blocks(op: Any) -> list[Any]:
    return [block for region in op.regions for block in region.blocks]
