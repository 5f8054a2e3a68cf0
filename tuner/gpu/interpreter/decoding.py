"""Decodes functions to steps on frames of lanes, with bodies of one block or of several.

``decode_function`` gives SSA values slots of a ``LaneFrame`` and has ``Decoders`` convert each operation
to a step; a body runs the steps in the active lanes. In all modules of this package a decoder raises
CandidateError(COMPILE) for a form of its operation that the interpreter lacks, and a step raises
CandidateError(RUN) for what is a fault on a device: an access out of bounds, lanes that miss a collective.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol, TypeAlias

import numpy as np

from tuner.core.errors import CandidateError, Stage
from tuner.gpu.interpreter import lanes
from tuner.gpu.interpreter.lanes import LaneGrid
from tuner.mlir.bindings import Block, Op, Type, Value, ir
from tuner.mlir.ir.reading import location_of, ops_in, unsupported

ALL: lanes.Array = np.ones((1, 1), bool)
ELEMENTS_AT_ONCE = 256  # lanes in which an operation takes about as long as in one
HOLDERS = ir.MemRefType | ir.UnrankedMemRefType | ir.RankedTensorType  # types whose elements count
# Iterations of one execution of a loop, and seconds of the processor; above: an endless loop.
ITERATIONS_LIMIT = 20_000_000
SECONDS_LIMIT = 300.0  # 'tuner run' ends a program after 600 s
CHECKED = 1 << 14  # iterations between two looks at the limits
DONE = np.iinfo(np.int64).max  # block number of a lane that has left the region
# Decoders take an operation, and the scope that maps its function's SSA values to frame slots.
Decode: TypeAlias = "Callable[[Op, FunctionScope], Step]"
Branches: TypeAlias = "Callable[[Op, FunctionScope], Callable[[LaneFrame], Sequence[Any]]]"


class TooMuchWorkError(Exception):
    """A program executes more operations than its limit allows."""


@dataclass(eq=False)
class WorkLimit:
    """The number of operations that a program may still execute.

    An operation that runs in fewer than 256 lanes counts once, in more lanes several times.
    """

    operations: int

    def spend(self, operations: int, lanes: int = 1) -> None:
        """Counts ``operations`` executed in ``lanes`` lanes. Raises TooMuchWorkError beyond the limit."""
        self.operations -= operations * (1 + lanes // ELEMENTS_AT_ONCE)
        if self.operations < 0:
            raise TooMuchWorkError


@dataclass(eq=False)
class BlockMemory:
    """The globals and the dynamic shared memory of the blocks that run together, allocated at first use."""

    dynamic_bytes: int  # size of each block's dynamic shared memory
    limit: WorkLimit | None = None  # of the whole program; None: no limit
    # symbol -> buffer; dynamic shared memory has the name ""
    made: dict[str, lanes.BufferView] = field(default_factory=dict)


@dataclass(eq=False)
class LaneFrame:
    """The state of one function call in all GPU threads (lanes) that run together: one slot per SSA value.

    ``mask`` selects the lanes that execute the next step.
    """

    values: list[Any]  # by slot: arrays of shape (blocks, threads, *vector), or BufferView
    grid: LaneGrid
    memory: BlockMemory
    write: Callable[[str], object]  # receives the text that a kernel prints
    mask: lanes.Array = field(default_factory=ALL.copy)
    live: lanes.Array = field(default_factory=ALL.copy)  # lanes that have not returned

    def call(self, slots: int) -> "LaneFrame":
        """Returns a frame with ``slots`` empty slots, for a function that the active lanes call."""
        return LaneFrame([None] * slots, self.grid, self.memory, self.write, self.mask, self.live)

    def over(self, lanes: int) -> "LaneFrame":
        """Returns a frame of ``lanes`` on the same list of values, to run a region of many elements."""
        grid = LaneGrid((1, 1, 1), (lanes, 1, 1), np.zeros(1, np.int64))
        return LaneFrame(self.values, grid, self.memory, self.write)

    def spend(self, operations: int) -> None:
        """Counts executed operations. Raises TooMuchWorkError beyond the program's limit."""
        if self.memory.limit is not None:
            self.memory.limit.spend(operations, self.grid.count * self.grid.threads)

    def take(self, slots: Sequence[int]) -> list[Any]:
        """Returns the values in the frame slots ``slots``, in their order."""
        return [self.values[slot] for slot in slots]

    def put(self, slots: Sequence[int], values: Sequence[Any]) -> None:
        """Stores ``values`` in the frame slots ``slots``, one value per slot."""
        for slot, value in zip(slots, values, strict=True):
            self.values[slot] = value

    def active(self, shape: tuple[int, ...]) -> lanes.Array:
        """Returns whether each element of an array of shape (blocks, threads, ...) belongs to an active lane.

        An element that several lanes share, along an axis of size 1, does if one of these lanes is active.
        """
        mask = self.mask
        for axis in range(2):
            if shape[axis] == 1 and mask.shape[axis] > 1:
                mask = np.any(mask, axis=axis, keepdims=True)
        return np.broadcast_to(lanes.with_trailing_axes(mask, len(shape) - 2), shape)


Step: TypeAlias = Callable[[LaneFrame], None]  # executes an operation in all active lanes of a frame


def require(
    holds: lanes.Array, frame: LaneFrame, where: str, message: str | Callable[[tuple[int, ...]], str]
) -> None:
    """Raises CandidateError(RUN) if ``holds`` is false in an active lane; the error names one such lane.

    ``holds``: an array of shape (blocks, threads), or with further axes. ``where`` names the operation.
    ``message``: a text, or a function that returns the text for the index of the lane in ``holds``.
    """
    if holds.all():
        return
    bad = frame.active(holds.shape) & ~holds
    if bad.any():
        index = tuple(map(int, np.argwhere(bad)[0]))
        on = np.argwhere(np.broadcast_to(frame.mask, frame.grid.shape))
        same = [axis for axis in range(2) if holds.shape[axis] > 1]
        lane = next(
            index_of_lane for index_of_lane in on if all(index_of_lane[axis] == index[axis] for axis in same)
        )
        said = message if isinstance(message, str) else message(index)
        fault(where, f"{said} in {frame.grid.describe(*map(int, lane))}")


def fault(where: str, message: str) -> None:
    """Always raises CandidateError(RUN): ``where``, the name of an operation, followed by ``message``."""
    raise CandidateError(Stage.RUN, f"{where}: {message}")


class LoopLimit:
    """A limit on the iterations and on the processor seconds of one execution of a loop.

    A loop that does not end becomes an error.
    """

    def __init__(self, where: str) -> None:
        """``where`` names the loop in the error."""
        self._where = where
        self._start_s = time.thread_time()
        self._count = 0

    def count(self) -> None:
        """Counts an iteration; each 16,384th raises CandidateError(RUN) if a limit has been reached."""
        self._count += 1
        if self._count % CHECKED:
            return
        if self._count >= ITERATIONS_LIMIT:
            exceeded = f"{ITERATIONS_LIMIT} iterations"
        elif time.thread_time() - self._start_s >= SECONDS_LIMIT:
            exceeded = f"{SECONDS_LIMIT:g} s"
        else:
            return
        fault(
            self._where, f"endless: found more than {exceeded}; on the host launches run one after the other"
        )


class AbstractBody(Protocol):
    """A region of MLIR operations, decoded so that it can be run for many GPU threads (lanes) at once."""

    def run(self, frame: LaneFrame, arguments: Sequence[Any] = ()) -> list[Any]:
        """Runs the region in the active lanes with its block arguments; returns its terminator's operands."""


@dataclass(frozen=True, eq=False)
class StraightBody:
    """A decoded region of one block, whose steps run in order."""

    arguments: tuple[int, ...]  # slots of the block arguments
    steps: tuple[Step, ...]
    yields: tuple[int, ...]  # slots of the yielded values

    def run(self, frame: LaneFrame, arguments: Sequence[Any] = ()) -> list[Any]:
        for slot, value in zip(self.arguments, arguments, strict=True):
            frame.values[slot] = value
        frame.spend(len(self.steps))
        for step in self.steps:
            step(frame)
        return frame.take(self.yields)


@dataclass(frozen=True)
class Jump:
    """A branch from one block of a decoded region to another.

    ``values``: the frame slots of the operands that become the block's arguments.
    """

    target: int  # number of a block
    values: tuple[int, ...]  # slots of the branch operands


# Evaluates the conditional jumps of a block: one condition per jump, in the lanes of the frame.
Choose = Callable[[LaneFrame], Sequence[lanes.Array]]


@dataclass(eq=False)
class BodyBlock:
    """One block of a decoded region of several blocks: its steps, and where lanes go after them."""

    arguments: tuple[int, ...]  # slots of the block arguments
    steps: tuple[Step, ...]
    defined: tuple[int, ...]  # slots that the steps define
    jumps: tuple[Jump, ...] = ()
    choose: Choose | None = None  # None: all lanes take the first jump
    yields: tuple[int, ...] = ()  # slots of the yielded values, of a block that leaves the region


@dataclass(frozen=True, eq=False)
class BranchingBody:
    """A decoded region of several blocks, in reverse post-order, in which each lane branches individually.

    Lanes that are ahead wait: the first block that any lane has reached runs next.
    """

    blocks: tuple[BodyBlock, ...]
    is_kernel: bool  # lanes that leave the region have ended

    def run(self, frame: LaneFrame, arguments: Sequence[Any] = ()) -> list[Any]:
        outside = frame.mask
        results = [None] * max(len(block.yields) for block in self.blocks)
        # per lane, the number of the block that it runs next
        at = np.where(np.broadcast_to(outside, frame.grid.shape), 0, DONE)
        for slot, value in zip(self.blocks[0].arguments, arguments, strict=True):
            frame.values[slot] = value
        limit = LoopLimit("its blocks")
        while (first := int(at.min())) != DONE:
            limit.count()
            block = self.blocks[first]
            here = at == first
            frame.mask = here
            self._run_steps(block, frame)
            if block.jumps:
                self._jump(block, frame, here, at)
                continue
            at[here] = DONE
            for index, slot in enumerate(block.yields):
                results[index] = lanes.merged(here, frame.values[slot], results[index])
            if self.is_kernel:
                frame.live = frame.live & ~here
        frame.mask = outside
        return results

    def _run_steps(self, block: BodyBlock, frame: LaneFrame) -> None:
        frame.spend(1 + len(block.steps))
        before = frame.take(block.defined)  # values of other lanes, which the steps overwrite
        for step in block.steps:
            step(frame)
        for slot, old in zip(block.defined, before, strict=True):
            frame.values[slot] = lanes.merged(frame.mask, frame.values[slot], old)

    def _jump(self, block: BodyBlock, frame: LaneFrame, here: lanes.Array, at: lanes.Array) -> None:
        conditions = [here] if block.choose is None else block.choose(frame)
        carried = [frame.take(jump.values) for jump in block.jumps]
        for jump, condition, values in zip(block.jumps, conditions, carried, strict=True):
            taken = here & condition
            at[taken] = jump.target
            for slot, value in zip(self.blocks[jump.target].arguments, values, strict=True):
                frame.values[slot] = lanes.merged(taken, value, frame.values[slot])


@dataclass(frozen=True, eq=False)
class LaneFunction:
    """A function decoded for the interpreter: its body and the number of slots that a frame needs."""

    body: AbstractBody
    slots: int


@dataclass(frozen=True, eq=False)
class Decoders:
    """The operations that an interpreter supports, with the functions that decode them to steps."""

    steps: Mapping[str, Decode]
    choices: Mapping[str, Branches]  # terminators with several successors
    nothing: frozenset[str]  # operations without an effect that a lane can observe
    ends: frozenset[str]  # terminators that leave a region with their operands
    dialects: Mapping[str, Decode] = field(default_factory=dict)  # for all other operations of a dialect
    # the array of a constant whose data follow the module; takes the attribute; None for another attribute
    resource: Callable[[ir.Attribute], lanes.Array | None] = lambda _: None

    def of(self, op: Op) -> "Decode | None":
        """Returns the decoder of an operation; None where there is none."""
        return self.steps.get(op.name) or self.dialects.get(op.name.partition(".")[0])


class FunctionScope:
    """The frame slots of a function's SSA values while the function is decoded, and the module's symbols."""

    def __init__(
        self, decoders: Decoders, symbols: Mapping[str, Op], callers: frozenset[str] = frozenset()
    ) -> None:
        self.symbols = symbols
        self._decoders = decoders
        self._callers = callers
        self._slots: dict[Value, int] = {}

    @property
    def size(self) -> int:
        """Returns how many slots are assigned so far."""
        return len(self._slots)

    def slot(self, value: Value) -> int:
        """Returns the frame slot of an SSA value; assigns the next free slot at first use."""
        return self._slots.setdefault(value, len(self._slots))

    def slots(self, values: Sequence[Value]) -> tuple[int, ...]:
        """Returns the frame slots of several SSA values, as ``slot`` does of one."""
        return tuple(map(self.slot, values))

    def element(self, op: Op, type_: Type) -> lanes.ElementType:
        """Returns the numpy form of a number or vector type, or of the elements of a memref or tensor type.

        Raises CandidateError(COMPILE), with the location of ``op``, for a type that the interpreter lacks.
        """
        shown = type_.element_type if isinstance(type_, HOLDERS) else type_
        try:
            return lanes.element_type(shown)
        except lanes.UnknownTypeError as error:
            raise unsupported(op, str(error), "numbers of 1 to 64 bits and vectors of them") from None

    def function(self, name: str, op: Op) -> LaneFunction:
        """Decodes the function ``name`` that ``op`` calls.

        Raises CandidateError(COMPILE) if the function is missing, has no body, is recursive, or has an
        operation that the interpreter lacks.
        """
        if name not in self.symbols or not self.symbols[name].regions[0].blocks:
            raise unsupported(op, f"@{name}, which has no body", "functions of the kernel's module")
        if name in self._callers:
            raise unsupported(op, f"@{name}, which calls itself", "functions that do not")
        return decode_function(self.symbols[name], self._decoders, self.symbols, self._callers | {name})

    def body(self, region: ir.Region, *, is_kernel: bool = False) -> AbstractBody:
        """Decodes a region of a function.

        ``is_kernel``: it is the body of a kernel, so lanes that leave it have ended. Raises
        CandidateError(COMPILE) for an operation that the interpreter lacks.
        """
        blocks = list(region.blocks)
        if len(blocks) != 1:
            numbers = {block: index for index, block in enumerate(_reverse_post_order(blocks[0]))}
            return BranchingBody(tuple(self._basic_block(block, numbers) for block in numbers), is_kernel)
        ops = ops_in(blocks[0])
        if ops and ops[-1].name not in self._decoders.ends:
            raise self.unknown(ops[-1])
        arguments = self.slots(blocks[0].arguments)
        return StraightBody(arguments, self.steps(ops[:-1]), self.slots(ops[-1].operands) if ops else ())

    def resource(self, attribute: ir.Attribute) -> lanes.Array | None:
        """Returns the array of a ``dense_resource`` attribute.

        None for another attribute, and where the interpreter was given no data of constants.
        """
        return self._decoders.resource(attribute)

    def unknown(self, op: Op) -> CandidateError:
        """Returns (does not raise) the CandidateError(COMPILE) for an unsupported operation."""
        dialect = op.name.partition(".")[0]
        known = sorted(name for name in self._decoders.steps if name.startswith(f"{dialect}."))
        if known:
            allowed = f"another op: of {dialect}, {', '.join(known)}"
        else:
            allowed = "ops that are not of a target"
        return unsupported(op, "no meaning on the host", allowed)

    def _basic_block(self, block: Block, numbers: dict[Block, int]) -> BodyBlock:
        ops = ops_in(block)
        last = ops[-1]
        made = self.slots(list(chain.from_iterable(op.results for op in ops[:-1])))
        common = (self.slots(block.arguments), self.steps(ops[:-1]), made)
        if last.name in self._decoders.ends:
            return BodyBlock(*common, yields=self.slots(last.operands))
        if last.name == "cf.br":
            return BodyBlock(*common, jumps=(Jump(numbers[last.successors[0]], self.slots(last.operands)),))
        if last.name not in self._decoders.choices:
            raise self.unknown(last)
        taken = successor_operands(last)
        jumps = tuple(
            Jump(numbers[target], self.slots(values))
            for target, values in zip(last.successors, taken, strict=True)
        )
        return BodyBlock(*common, jumps=jumps, choose=self._decoders.choices[last.name](last, self))

    def steps(self, ops: Sequence[Op]) -> tuple[Step, ...]:
        """Decodes operations of a block, without its terminator, to steps.

        Raises CandidateError(COMPILE) for an operation that the interpreter lacks.
        """
        steps = []
        for op in ops:
            if op.name in self._decoders.nothing:
                continue
            decode = self._decoders.of(op)
            if decode is None:
                raise self.unknown(op)
            steps.append(decode(op, self))
        return tuple(steps)


def decode_function(
    function: Op, decoders: Decoders, symbols: Mapping[str, Op], callers: frozenset[str] = frozenset()
) -> LaneFunction:
    """Decodes a ``func.func`` or ``gpu.func`` to a function that runs in many lanes at once.

    ``symbols``: operations of the module by name. ``callers``: names of the functions on the path of calls to
    this one; a call of one of them is recursion. Raises CandidateError(COMPILE) for an operation that the
    interpreter lacks.
    """
    scope = FunctionScope(decoders, symbols, callers)
    body = scope.body(function.regions[0], is_kernel="kernel" in function.attributes)
    return LaneFunction(body, scope.size)


def where_of(op: Op) -> str:
    """Returns an operation's name and location for messages, such as ``memref.load at line 7:3``."""
    return f"{op.name} {location_of(op)}"


def successor_operands(op: Op) -> list[list[Value]]:
    """Returns the operands that a ``cf.cond_br`` or ``cf.switch`` passes to each of its successor blocks."""
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    values = list(op.operands)[sizes[0] :]
    if op.name == "cf.switch":
        cases = ir.DenseI32ArrayAttr(op.attributes["case_operand_segments"])
        sizes = [sizes[0], sizes[1], *cases]
    taken = []
    for size in sizes[1:]:
        taken.append(values[:size])
        values = values[size:]
    return taken


def _reverse_post_order(entry: Block) -> list[Block]:
    # each block follows its predecessors, but for back edges
    done: list[Block] = []
    seen = {entry}
    stack = [(entry, iter(_successors(entry)))]
    while stack:
        block, rest = stack[-1]
        following = next((block for block in rest if block not in seen), None)
        if following is None:
            done.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(_successors(following))))
    return done[::-1]


def _successors(block: Block) -> list[Block]:
    last = list(block.operations)[-1].operation
    # reversed, so that of two successors the first comes first in the order
    return list(last.successors)[::-1]
