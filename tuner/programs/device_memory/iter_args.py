"""Adds iter_args to structured control flow: a second value for each wanted value that is forwarded.

Takes scf.for, scf.while, scf.if or scf.index_switch. Each second value starts as a copy of the original
operand; the caller sets the operand to another value.

    %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (memref<4xf32>) {
      scf.yield %b : memref<4xf32>
    }
  becomes
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %x2 = %a) -> (memref<4xf32>, memref<4xf32>) {
      scf.yield %b, %b : memref<4xf32>, memref<4xf32>
    }
"""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.aliases import BRANCHES, FOR_BOUNDS, terminator_of
from tuner.mlir.ir.reading import attributes_of


@dataclass(frozen=True)
class IterArgOperand:
    """An added operand ``number`` of control flow or of a terminator in it; the caller sets its value."""

    op: Op
    number: int


@dataclass(frozen=True)
class AddedIterArgs:
    """The iter_args that ``add_iter_args`` added to one operation of structured control flow."""

    pairs: tuple[tuple[Value, Value], ...]  # block argument or result, and the extra value added for it
    operands: tuple[IterArgOperand, ...]  # each holds the original value, to be replaced by the second value


@dataclass(frozen=True)
class _ForwardedPositions:
    """Positions of the wanted values among an operation's operands, block arguments, yields, results."""

    operands: list[int]
    arguments: list[list[int]]  # of the block of each region
    yielded: list[list[int]]  # operands of the terminator of each region
    results: list[int]


def add_iter_args(op: Op, is_wanted: Callable[[Value], bool]) -> AddedIterArgs:
    """Adds a second iter_arg, yield operand and result for each value that ``is_wanted`` selects.

    ``is_wanted`` is asked for each result, for scf.while also for each block argument of the "before" region;
    ``op`` is erased if it is replaced. Returns the pairs (value, additional value), and the added operands.
    """
    positions = _forwarded_positions(op, is_wanted)
    if not any((positions.operands, positions.results, *positions.arguments)):
        return AddedIterArgs((), ())
    count = len(op.results)
    types = [result.type for result in op.results]
    values = list(op.operands)
    with op.location, ir.InsertionPoint(op):
        new = ir.Operation.create(
            op.name,
            results=types + [types[number] for number in positions.results],
            operands=values + [values[number] for number in positions.operands],
            attributes=attributes_of(op),
            regions=len(op.regions),
        )
    pairs: list[tuple[Value, Value]] = []
    operands = [IterArgOperand(new, len(values) + index) for index in range(len(positions.operands))]
    for number in range(len(op.regions)):
        if len(op.regions[number].blocks):
            pairs += _move_body(op, new, number, positions.arguments[number])
            operands += _yield_more(new, number, positions.yielded[number])
    for number, result in enumerate(op.results):
        result.replace_all_uses_with(new.results[number])
    pairs += [(new.results[number], new.results[count + k]) for k, number in enumerate(positions.results)]
    op.erase()
    return AddedIterArgs(tuple(pairs), tuple(operands))


def _forwarded_positions(op: Op, is_wanted: Callable[[Value], bool]) -> _ForwardedPositions:
    results = [number for number, result in enumerate(op.results) if is_wanted(result)]
    if op.name in BRANCHES:
        regions = len(op.regions)
        return _ForwardedPositions([], [[]] * regions, [results] * regions, results)
    if op.name == "scf.for":  # operands are (low, high, step, inits...), block arguments (i, iter args...)
        initial = [FOR_BOUNDS + number for number in results]
        return _ForwardedPositions(initial, [[1 + number for number in results]], [results], results)
    # scf.while: inits are the arguments of "before"; scf.condition(condition, values...) passes the values to
    # the arguments of "after" or the results; the scf.yield of "after" passes to the arguments of "before"
    arguments = op.regions[0].blocks[0].arguments
    first = [number for number, argument in enumerate(arguments) if is_wanted(argument)]
    condition = [1 + number for number in results]
    return _ForwardedPositions(first, [first, results], [condition, first], results)


def _move_body(op: Op, new: Op, region: int, doubled: list[int]) -> list[tuple[Value, Value]]:
    old = op.regions[region].blocks[0]
    types = [argument.type for argument in old.arguments]
    types += [types[number] for number in doubled]
    block = new.regions[region].blocks.append(*types, arg_locs=[op.location] * len(types))
    for each in list(old.operations):
        block.append(each)
    count = len(old.arguments)
    for number in range(count):
        old.arguments[number].replace_all_uses_with(block.arguments[number])
    return [(block.arguments[number], block.arguments[count + k]) for k, number in enumerate(doubled)]


def _yield_more(op: Op, region: int, doubled: list[int]) -> list[IterArgOperand]:
    old = terminator_of(op, region)
    values = list(old.operands)
    with old.location, ir.InsertionPoint(old):
        new = ir.Operation.create(old.name, operands=values + [values[number] for number in doubled])
    old.erase()
    return [IterArgOperand(new, len(values) + index) for index in range(len(doubled))]
