"""Rebuilds generics without the results that nothing reads, so that nothing computes or stores them."""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.operations import GENERIC, body_of, defining
from tuner.mlir.ir.building import create, recreated
from tuner.mlir.ir.reading import maps_in
from tuner.models.fusions.generics import maps_attribute
from tuner.models.fusions.payload import TensorPayload


def drop_unused_results(payload: TensorPayload) -> None:
    """Rebuilds each ``linalg.generic`` without results that nothing reads, in place.

    Not changed: a generic of which nothing is read, and one whose body needs an unused result for another
    one.
    """
    for op in payload.ops:
        if op.name == GENERIC and len(op.results) > 1:
            kept = [index for index, result in enumerate(op.results) if list(result.uses)]
            if 0 < len(kept) < len(op.results) and _can_keep(op, kept):
                _rebuild(op, kept)


def _can_keep(op: Op, kept: list[int]) -> bool:
    """Returns whether the kept results, and what has effects, are computed without the dropped ones."""
    end = body_of(op)[-1]
    inputs = len(op.operands) - len(op.results)
    arguments = op.regions[0].blocks[0].arguments
    dropped = [arguments[inputs + number] for number in range(len(op.results)) if number not in kept]
    effects: list[Value] = []
    for inner in body_of(op)[:-1]:
        if not len(inner.results):
            effects += inner.operands
    needed: set[Value] = set()
    waiting = [*(end.operands[number] for number in kept), *effects]
    while waiting:
        value = waiting.pop()
        if value not in needed:
            needed.add(value)
            producer = defining(value)
            waiting += [] if producer is None else list(producer.operands)
    return not any(value in needed for value in dropped)


def _rebuild(op: Op, kept: list[int]) -> None:
    count = len(op.operands) - len(op.results)
    places = [*range(count), *(count + number for number in kept)]
    with ir.InsertionPoint(op), op.location:
        new = recreated(
            op,
            [op.results[number].type for number in kept],
            [op.operands[number] for number in places],
            indexing_maps=maps_attribute([maps_in(op)[number] for number in places]),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([count, len(kept)]),
        )
    for number, result in zip(kept, new.results, strict=True):
        op.results[number].replace_all_uses_with(result)
    op.regions[0].blocks[0].append_to(new.regions[0])
    op.erase()
    block = new.regions[0].blocks[0]
    end = body_of(new)[-1]
    values = [end.operands[number] for number in kept]
    end.erase()
    with ir.InsertionPoint(block), ir.Location.unknown():
        create("linalg.yield", [], values)
    # what only the dropped results needed
    for inner in reversed(body_of(new)[:-1]):
        if len(inner.results) and not any(list(result.uses) for result in inner.results):
            inner.erase()
    for number in reversed(range(len(block.arguments) - count)):
        if number not in kept:
            block.erase_argument(count + number)
