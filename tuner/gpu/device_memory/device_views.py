"""Views of device memory for the memrefs of a host program, also where loops and branches forward them."""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects import aliases
from tuner.mlir.ir.building import recreated
from tuner.mlir.ir.reading import types_of

# operations whose device view is a clone of the operation with device views as operands
DERIVED = aliases.VIEWS | {"arith.select"}


class DeviceViews:
    """Creates a device view for each memref on the host: the same part of the same buffer in device memory.

    Call ``set_root`` for all whole buffers, then ``connect``. Memrefs that other operations than ``VIEWS``
    and ``arith.select`` make get no device view.
        %s = memref.subview %a[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
      is followed by, for %a_device = gpu.alloc
        %t = memref.subview %a_device[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
    """

    def __init__(self, function: Op, is_wanted: Callable[[Value], bool]) -> None:
        """Adds iter_args for the device views of the memrefs of ``function`` that ``is_wanted`` selects.

        Until ``connect`` is called, these iter_args hold host memrefs.
        """
        self._block = function.regions[0].blocks[0]
        self._views: dict[Value, Value] = {}
        self._operands: list[IterArgOperand] = []
        self._clones: list[Op] = []
        for op in list(aliases.structured_operations(self._block)):
            if op.name in aliases.STRUCTURED:
                added = add_iter_args(op, lambda value: aliases.is_buffer(value.type) and is_wanted(value))
                self._views.update(added.pairs)
                self._operands += added.operands

    def set_root(self, host: Value, device: Value) -> None:
        """Records that ``device`` is the device memory of the whole buffer ``host``."""
        self._views[host] = device

    def of(self, value: Value) -> Value:
        """Returns the device view of a host memref, or ``value`` itself if it has no device view."""
        return self._views.get(value, value)

    def connect(self) -> None:
        """Clones operations of VIEWS on device operands, and passes device views to the added iter_args.

        Call it once, after ``set_root`` for all whole buffers.
        """
        own = set(self._views.values())
        for op in list(aliases.structured_operations(self._block)):
            if op.name not in DERIVED or own & set(op.results):
                continue
            if all(self.of(operand) == operand for operand in op.operands):
                continue
            with ir.InsertionPoint.after(op):
                clone = op.clone()
            for index, operand in enumerate(op.operands):
                clone.operands[index] = self.of(operand)
            for old, new in zip(op.results, clone.results, strict=True):
                if aliases.is_buffer(old.type):
                    self._views[old] = new
            self._clones += [op, clone]
        for operand in self._operands:
            operand.op.operands[operand.number] = self.of(operand.op.operands[operand.number])

    def erase_unused(self) -> None:
        """Erases unused views: device views that ``connect`` created, and their host views."""
        for op in reversed(self._clones):
            if not any(list(result.uses) for result in op.results):
                op.erase()


# Adds iter_args to structured control flow: a second value for each wanted value that is forwarded.
#
# Takes scf.for, scf.while, scf.if or scf.index_switch. Each second value starts as a copy of the original
# operand; the caller sets the operand to another value.
#
#     %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (memref<4xf32>) {
#       scf.yield %b : memref<4xf32>
#     }
#   becomes
#     %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %x2 = %a) -> (memref<4xf32>, memref<4xf32>) {
#       scf.yield %b, %b : memref<4xf32>, memref<4xf32>
#     }


@dataclass(frozen=True)
class IterArgOperand:
    """An operand that ``add_iter_args`` added to a loop or branch, or to its terminator: operand ``number``.

    The caller sets its value.
    """

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
    """Adds a second iter_arg, yield operand and result to an op, for each value that ``is_wanted`` selects.

    ``op``: scf.for, scf.while, scf.if or scf.index_switch. ``is_wanted`` is called with each result; for
    scf.while also with each block argument of the "before" region. If any is selected, ``op`` is replaced and
    erased. Each added operand is a copy of the original operand; the caller sets it to another value.
    """
    positions = _forwarded_positions(op, is_wanted)
    if not any((positions.operands, positions.results, *positions.arguments)):
        return AddedIterArgs((), ())
    count = len(op.results)
    types = types_of(op.results)
    values = list(op.operands)
    with op.location, ir.InsertionPoint(op):
        new = recreated(
            op,
            types + [types[number] for number in positions.results],
            values + [values[number] for number in positions.operands],
        )
    pairs: list[tuple[Value, Value]] = []
    operands = [IterArgOperand(new, len(values) + index) for index in range(len(positions.operands))]
    for number in range(len(op.regions)):
        if len(op.regions[number].blocks):
            pairs += _move_body(op, new, number, positions.arguments[number])
            operands += _yield_more(new, number, positions.yielded[number])
    for result_index, result in enumerate(op.results):
        result.replace_all_uses_with(new.results[result_index])
    pairs += [(new.results[number], new.results[count + k]) for k, number in enumerate(positions.results)]
    op.erase()
    return AddedIterArgs(tuple(pairs), tuple(operands))


def _forwarded_positions(op: Op, is_wanted: Callable[[Value], bool]) -> _ForwardedPositions:
    results = [index for index, result in enumerate(op.results) if is_wanted(result)]
    if op.name in aliases.BRANCHES:
        regions = len(op.regions)
        return _ForwardedPositions([], [[]] * regions, [results] * regions, results)
    if op.name == "scf.for":  # operands are (low, high, step, inits...), block arguments (i, iter args...)
        initial = [aliases.FOR_BOUNDS + number for number in results]
        return _ForwardedPositions(initial, [[1 + number for number in results]], [results], results)
    # scf.while: inits are the arguments of "before"; scf.condition(condition, values...) passes the values to
    # the arguments of "after" or the results; the scf.yield of "after" passes to the arguments of "before"
    arguments = op.regions[0].blocks[0].arguments
    first = [index for index, argument in enumerate(arguments) if is_wanted(argument)]
    condition = [1 + number for number in results]
    return _ForwardedPositions(first, [first, results], [condition, first], results)


def _move_body(op: Op, new: Op, region: int, doubled: list[int]) -> list[tuple[Value, Value]]:
    old = op.regions[region].blocks[0]
    types = types_of(old.arguments)
    types += [types[number] for number in doubled]
    block = new.regions[region].blocks.append(*types, arg_locs=[op.location] * len(types))
    for operation in list(old.operations):
        block.append(operation)
    count = len(old.arguments)
    for number in range(count):
        old.arguments[number].replace_all_uses_with(block.arguments[number])
    return [(block.arguments[number], block.arguments[count + k]) for k, number in enumerate(doubled)]


def _yield_more(op: Op, region: int, doubled: list[int]) -> list[IterArgOperand]:
    old = aliases.terminator_of(op, region)
    values = list(old.operands)
    with old.location, ir.InsertionPoint(old):
        new = ir.Operation.create(old.name, operands=values + [values[number] for number in doubled])
    old.erase()
    return [IterArgOperand(new, len(values) + index) for index in range(len(doubled))]
