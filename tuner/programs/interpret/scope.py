"""Decodes a function: assigns frame slots to its SSA values, and converts its operations to steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tuner.core.errors import CandidateError
from tuner.mlir.bindings import Block, Op, Type, Value, ir
from tuner.mlir.rewrite.located_error import location_of, unsupported
from tuner.programs.interpret.body import AbstractBody, BodyBlock, BranchingBody, Jump, StraightBody
from tuner.programs.interpret.element_types import ElementType, UnknownTypeError, element_type
from tuner.programs.interpret.frame import LaneFrame, Step

Decode: TypeAlias = "Callable[[Op, FunctionScope], Step]"
Branches: TypeAlias = "Callable[[Op, FunctionScope], Callable[[LaneFrame], Sequence[Any]]]"


@dataclass(frozen=True, eq=False)
class LaneFunction:
    """A function decoded for the interpreter: its body and the number of slots that a frame needs."""

    body: AbstractBody
    slots: int

    def run(self, frame: LaneFrame, arguments: Sequence[Any]) -> list[Any]:
        """Runs the function in the active lanes of ``frame``, which must be new; returns its results."""
        return self.body.run(frame, arguments)


@dataclass(frozen=True, eq=False)
class Decoders:
    """The operations that the interpreter supports: per name, the function that decodes it to a step."""

    steps: Mapping[str, Decode]
    choices: Mapping[str, Branches]  # terminators with several successors
    nothing: frozenset[str]  # operations without an effect that a lane can observe
    ends: frozenset[str]  # terminators that leave a region with their operands


class FunctionScope:
    """The frame slots of one function's SSA values while it is decoded, and the module's symbols."""

    def __init__(
        self, decoders: Decoders, symbols: Mapping[str, Op], callers: frozenset[str] = frozenset()
    ) -> None:
        self.symbols = symbols
        self._decoders = decoders
        self._callers = callers
        self._slots: dict[Value, int] = {}

    @property
    def size(self) -> int:
        """Returns the number of frame slots assigned so far."""
        return len(self._slots)

    def slot(self, value: Value) -> int:
        """Returns the frame slot of an SSA value; assigns the next free slot at first use."""
        return self._slots.setdefault(value, len(self._slots))

    def slots(self, values: Sequence[Value]) -> tuple[int, ...]:
        """Returns the frame slot of each SSA value, in order; assigns the next free slots at first use."""
        return tuple(map(self.slot, values))

    def element(self, op: Op, kind: Type) -> ElementType:
        """Returns the numpy form of a number or vector type or, for a memref type, of its elements.

        Raises CandidateError(COMPILE), with the location of ``op``, for a type that the interpreter lacks.
        """
        shown = kind.element_type if isinstance(kind, ir.MemRefType | ir.UnrankedMemRefType) else kind
        try:
            return element_type(shown)
        except UnknownTypeError as error:
            raise unsupported(op, str(error), "numbers of 1 to 64 bits and vectors of them") from None

    def function(self, name: str, op: Op) -> LaneFunction:
        """Decodes the function ``name`` that ``op`` calls.

        Raises CandidateError(COMPILE), with the location of ``op``, for a missing body, for recursion, and
        for unsupported operations.
        """
        if name not in self.symbols or not self.symbols[name].regions[0].blocks:
            raise unsupported(op, f"@{name}, which has no body", "functions of the kernel's module")
        if name in self._callers:
            raise unsupported(op, f"@{name}, which calls itself", "functions that do not")
        return decode_function(self.symbols[name], self._decoders, self.symbols, self._callers | {name})

    def body(self, region: ir.Region, *, is_kernel: bool = False) -> AbstractBody:
        """Decodes a region to a body that can be run.

        Raises CandidateError(COMPILE) for unsupported operations. ``is_kernel``: lanes that leave the region
        have ended.
        """
        blocks = list(region.blocks)
        if len(blocks) != 1:
            return BranchingBody(self._basic_blocks(_reverse_post_order(blocks[0])), is_kernel)
        ops = [op.operation for op in blocks[0].operations]
        if ops and ops[-1].name not in self._decoders.ends:
            raise self.unknown(ops[-1])
        arguments = self.slots(blocks[0].arguments)
        return StraightBody(arguments, self._steps(ops[:-1]), self.slots(ops[-1].operands) if ops else ())

    def unknown(self, op: Op) -> CandidateError:
        """Returns, does not raise, the CandidateError(COMPILE) for an unsupported operation."""
        dialect = op.name.partition(".")[0]
        known = sorted(name for name in self._decoders.steps if name.startswith(f"{dialect}."))
        allowed = f"another op: of {dialect}, {', '.join(known)}" if known else "ops that are not of a target"
        return unsupported(op, "no meaning on the host", allowed)

    def _basic_blocks(self, blocks: list[Block]) -> tuple[BodyBlock, ...]:
        numbers = {block: number for number, block in enumerate(blocks)}
        return tuple(self._basic_block(block, numbers) for block in blocks)

    def _basic_block(self, block: Block, numbers: dict[Block, int]) -> BodyBlock:
        ops = [op.operation for op in block.operations]
        last = ops[-1]
        made = self.slots([result for op in ops[:-1] for result in op.results])
        common = (self.slots(block.arguments), self._steps(ops[:-1]), made)
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

    def _steps(self, ops: Sequence[Op]) -> tuple[Step, ...]:
        known = [op for op in ops if op.name not in self._decoders.nothing]
        return tuple(self._step(op) for op in known)

    def _step(self, op: Op) -> Step:
        if op.name not in self._decoders.steps:
            raise self.unknown(op)
        return self._decoders.steps[op.name](op, self)


def decode_function(
    function: Op, decoders: Decoders, symbols: Mapping[str, Op], callers: frozenset[str] = frozenset()
) -> LaneFunction:
    """Decodes a ``func.func`` or ``gpu.func`` for the interpreter.

    Args:
        function: the operation.
        decoders: the supported operations.
        symbols: the operations of the module by symbol name, for calls and globals.
        callers: names of the functions that are being decoded around this one, to find recursion.

    Raises CandidateError(COMPILE) for unsupported operations and for recursion.
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
    """Returns blocks in an order where each block follows its predecessors, ignoring back edges."""
    done: list[Block] = []
    seen, stack = {entry}, [(entry, iter(_successors(entry)))]
    while stack:
        block, rest = stack[-1]
        following = next((each for each in rest if each not in seen), None)
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
