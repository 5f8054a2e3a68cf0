"""Gives what control flow hands on a companion: a second value that goes the same ways.

The companions start as copies of the values; who asked for them puts other values into the slots.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.passes.carried_values import BRANCHES, FOR_BOUNDS, terminator_of


@dataclass(frozen=True)
class Slot:
    """An operand through which a companion flows."""

    op: Any
    number: int


@dataclass(frozen=True)
class Companions:
    """What was added to one operation."""

    pairs: tuple[tuple[Any, Any], ...]  # a value that is handed on, and its companion
    slots: tuple[Slot, ...]  # each holds the value whose companion belongs there


@dataclass(frozen=True)
class _Ports:
    """Which values of an operation are handed on: numbers of operands, arguments and results."""

    operands: list[int]
    arguments: list[list[int]]  # of the block of each region
    yielded: list[list[int]]  # operands of the terminator of each region
    results: list[int]


def add_companions(op: Any, is_wanted: Callable[[Any], bool]) -> Companions:
    """Replaces an operation by one that hands on wanted values twice."""
    ports = _ports(op, is_wanted)
    if not any((ports.operands, ports.results, *ports.arguments)):
        return Companions((), ())
    count = len(op.results)
    kinds = [result.type for result in op.results]
    values = list(op.operands)
    with op.location, ir.InsertionPoint(op):
        new = ir.Operation.create(
            op.name,
            results=kinds + [kinds[number] for number in ports.results],
            operands=values + [values[number] for number in ports.operands],
            attributes={name: op.attributes[name] for name in op.attributes},
            regions=len(op.regions),
        )
    pairs: list[tuple[Any, Any]] = []
    slots = [Slot(new, len(values) + place) for place in range(len(ports.operands))]
    for number in range(len(op.regions)):
        if len(op.regions[number].blocks):
            pairs += _move(op, new, number, ports.arguments[number])
            slots += _yield_more(new, number, ports.yielded[number])
    for number, result in enumerate(op.results):
        result.replace_all_uses_with(new.results[number])
    pairs += [(new.results[number], new.results[count + k]) for k, number in enumerate(ports.results)]
    op.erase()
    return Companions(tuple(pairs), tuple(slots))


def _ports(op: Any, is_wanted: Callable[[Any], bool]) -> _Ports:
    results = [number for number, result in enumerate(op.results) if is_wanted(result)]
    if op.name in BRANCHES:
        regions = len(op.regions)
        return _Ports([], [[]] * regions, [results] * regions, results)
    if op.name == "scf.for":
        initial = [FOR_BOUNDS + number for number in results]
        return _Ports(initial, [[1 + number for number in results]], [results], results)
    arguments = op.regions[0].blocks[0].arguments
    first = [number for number, argument in enumerate(arguments) if is_wanted(argument)]
    return _Ports(first, [first, results], [[1 + number for number in results], first], results)


def _move(op: Any, new: Any, region: int, doubled: list[int]) -> list[tuple[Any, Any]]:
    old = op.regions[region].blocks[0]
    kinds = [argument.type for argument in old.arguments]
    kinds += [kinds[number] for number in doubled]
    block = new.regions[region].blocks.append(*kinds, arg_locs=[op.location] * len(kinds))
    for each in list(old.operations):
        block.append(each)
    count = len(old.arguments)
    for number in range(count):
        old.arguments[number].replace_all_uses_with(block.arguments[number])
    return [(block.arguments[number], block.arguments[count + k]) for k, number in enumerate(doubled)]


def _yield_more(op: Any, region: int, doubled: list[int]) -> list[Slot]:
    old = terminator_of(op, region)
    values = list(old.operands)
    with old.location, ir.InsertionPoint(old):
        new = ir.Operation.create(old.name, operands=values + [values[number] for number in doubled])
    old.erase()
    return [Slot(new, len(values) + place) for place in range(len(doubled))]
