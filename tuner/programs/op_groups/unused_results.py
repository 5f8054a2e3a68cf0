"""Drops results of ``linalg.generic`` that nobody uses, such as the indices of torch's maximum."""

from collections.abc import Iterable

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import create
from tuner.mlir.rewrite.definitions import attributes_of
from tuner.programs.op_groups.generics import maps_attribute
from tuner.programs.op_groups.op_names import GENERIC, body_of, defining, maps_of
from tuner.programs.op_groups.payload import TensorPayload


def drop_unused_results(payload: TensorPayload) -> None:
    """Rebuilds generics without the results that nobody uses, where the others do not need them; in place."""
    for op in payload.ops:
        if op.name == GENERIC and len(op.results) > 1:
            kept = [number for number, each in enumerate(op.results) if list(each.uses)]
            if 0 < len(kept) < len(op.results) and _can_keep(op, kept):
                _rebuild(op, kept)


def _can_keep(op: Op, kept: list[int]) -> bool:
    """Returns whether the kept results, and what has effects, are computed without the dropped ones."""
    end, inputs = body_of(op)[-1], len(op.operands) - len(op.results)
    arguments = op.regions[0].blocks[0].arguments
    dropped = [arguments[inputs + number] for number in range(len(op.results)) if number not in kept]
    effects = [value for each in body_of(op)[:-1] if not len(each.results) for value in each.operands]
    needed = _needed([*(end.operands[number] for number in kept), *effects])
    return not any(value in needed for value in dropped)


def _needed(values: Iterable[Value]) -> set[Value]:
    found: set[Value] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if value in found:
            continue
        found.add(value)
        op = defining(value)
        waiting += [] if op is None else list(op.operands)
    return found


def _rebuild(op: Op, kept: list[int]) -> None:
    count = len(op.operands) - len(op.results)
    places = [*range(count), *(count + number for number in kept)]
    attributes = attributes_of(op)
    attributes["indexing_maps"] = maps_attribute([maps_of(op)[number] for number in places])
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([count, len(kept)])
    with ir.InsertionPoint(op), op.location:
        new = ir.Operation.create(
            GENERIC,
            results=[op.results[number].type for number in kept],
            operands=[op.operands[number] for number in places],
            attributes=attributes,
            regions=1,
        )
    block = op.regions[0].blocks[0]
    for number, result in zip(kept, new.results, strict=True):
        op.results[number].replace_all_uses_with(result)
    block.append_to(new.regions[0])
    op.erase()
    _cut_body(new, count, kept)


def _cut_body(new: Op, inputs: int, kept: list[int]) -> None:
    block = new.regions[0].blocks[0]
    end = body_of(new)[-1]
    values = [end.operands[number] for number in kept]
    end.erase()
    with ir.InsertionPoint(block), ir.Location.unknown():
        create("linalg.yield", [], values)
    for each in reversed(body_of(new)[:-1]):
        if len(each.results) and not any(list(result.uses) for result in each.results):
            each.erase()
    for number in reversed(range(len(block.arguments) - inputs)):
        if number not in kept:
            block.erase_argument(inputs + number)
