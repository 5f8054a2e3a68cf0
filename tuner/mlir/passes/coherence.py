"""Follows a function's buffers through both memories, and says which copies its operations need.

The walk is the same whether it only asks (of a loop or a branch that comes next) or acts.
"""

import abc
from collections.abc import Callable, Collection
from typing import Any

from tuner.mlir.ops.dialect import walk
from tuner.mlir.passes.buffer_families import STRUCTURED, Families
from tuner.mlir.passes.buffer_roots import is_buffer
from tuner.mlir.passes.carried_values import last_of, terminator_of
from tuner.mlir.passes.device_buffers import ALLOCATIONS, Buffer, Kind
from tuner.mlir.passes.host_accesses import host_accesses, is_overwritten
from tuner.mlir.passes.kernel_effects import ANYTHING, Access, KernelEffects
from tuner.mlir.passes.validity import Place, Side, Valid, after_branches, at_loop, written
from tuner.mlir.types import is_row_major

ANYWHERE = (Side.HOST, Side.DEVICE)
# Where buffers are valid that were there before the function, and are there after it.
OUTSIDE = {
    Kind.ARGUMENT: Side.HOST,
    Kind.NATIVE: Side.DEVICE,
    Kind.GLOBAL: Side.HOST,
    Kind.CONSTANT: Side.HOST,
}


class AbstractActions(abc.ABC):
    """What is done about what the walk finds, in its order."""

    @abc.abstractmethod
    def fetch(self, place: Place, before: Any) -> None:
        """Makes a family valid on one side, in front of an operation."""

    @abc.abstractmethod
    def launch(self, launch: Any) -> None:
        """Takes the operands of a launch from device memory."""

    @abc.abstractmethod
    def copy(self, copy: Any, source: Side, target: Side) -> None:
        """Lets a ``memref.copy`` copy between these memories, one of which is the device's."""

    @abc.abstractmethod
    def touch_on_host(self, family: int) -> None:
        """Notes that host memory of a family is used."""

    @abc.abstractmethod
    def define(self, allocation: Any) -> None:
        """Notes that a buffer begins to exist."""

    @abc.abstractmethod
    def release(self, deallocation: Any) -> None:
        """Frees a buffer where the program does."""

    @abc.abstractmethod
    def leave(self, block: Any) -> None:
        """Frees what goes out of scope at the end of a block."""


class Question(AbstractActions):
    """Does nothing, and remembers which copies would be made."""

    def __init__(self) -> None:
        self.copied: set[Place] = set()

    def fetch(self, place: Place, before: Any) -> None:
        self.copied.add(place)

    def launch(self, launch: Any) -> None:
        return

    def copy(self, copy: Any, source: Side, target: Side) -> None:
        return

    def touch_on_host(self, family: int) -> None:
        return

    def define(self, allocation: Any) -> None:
        return

    def release(self, deallocation: Any) -> None:
        return

    def leave(self, block: Any) -> None:
        return


class Walk:
    """The walk through one function whose buffers are known."""

    def __init__(self, families: Families, buffers: dict[Any, Buffer], effects: KernelEffects) -> None:
        """Takes the buffers by their roots; those of other families are left where they are."""
        self._families, self._buffers, self._effects = families, buffers, effects
        self._managed = {buffer.family for buffer in buffers.values()}
        self._starts: dict[tuple[Any, Valid], Valid] = {}  # loop, state in front of it -> at its start
        self._globals = {buffer.family for buffer in buffers.values() if buffer.kind is Kind.GLOBAL}

    def function(self, function: Any, actions: AbstractActions) -> None:
        """Walks through it all; at its end arguments and globals are valid where they came from."""
        block = function.regions[0].blocks[0]
        valid = self._outside(OUTSIDE.keys())
        valid = self._inside(block, valid, actions)
        end = terminator_of(function, 0)
        wanted = set(self._outside(OUTSIDE.keys() - {Kind.CONSTANT}))
        for operand in self._on_device(end.operands):
            actions.touch_on_host(self._families.of(operand))
            wanted.add((self._families.of(operand), Side.HOST))
        self._settle(valid, frozenset(wanted), end, actions)
        actions.leave(block)

    def _outside(self, kinds: Collection[Kind]) -> Valid:
        """Returns where the buffers of these kinds are valid when the function is not running."""
        outer = [buffer for buffer in self._buffers.values() if buffer.kind in kinds]
        return frozenset((buffer.family, OUTSIDE[buffer.kind]) for buffer in outer)

    def _inside(self, block: Any, valid: Valid, actions: AbstractActions) -> Valid:
        """Walks through a block up to its terminator."""
        for op in list(block.operations)[:-1]:
            valid = self._operation(op.operation, valid, actions)
        return valid

    def _until(self, block: Any, valid: Valid, wanted: Valid, actions: AbstractActions) -> None:
        """Walks through a block and makes a state true at its end."""
        valid = self._inside(block, valid, actions)
        self._settle(valid, wanted, last_of(block), actions)
        actions.leave(block)

    def _settle(self, valid: Valid, wanted: Valid, before: Any, actions: AbstractActions) -> None:
        for place in sorted(wanted - valid, key=lambda place: (place[0], place[1].value)):
            actions.fetch(place, before)

    def _operation(self, op: Any, valid: Valid, actions: AbstractActions) -> Valid:
        if op.name == "gpu.launch_func":
            return self._launch(op, valid, actions)
        if op.name in STRUCTURED:
            return self._control(op, valid, actions)
        if op.name in ALLOCATIONS and self._is_allocation(op.results[0]):
            return self._define(op, valid, actions)
        if op.name == "memref.copy" and self._on_device(op.operands):
            return self._copy(op, valid, actions)
        if op.name == "memref.dealloc" and self._on_device(op.operands):
            actions.release(op)
            return valid
        return self._on_host(op, valid, actions)

    def _launch(self, op: Any, valid: Valid, actions: AbstractActions) -> Valid:
        accesses = [access for access in self._effects.of_launch(op) if self._on_device([access.value])]
        for access in accesses:
            if access.effect.reads or access.effect.writes:  # writes may leave some elements as they are
                valid = self._need(access.value, Side.DEVICE, valid, op, actions)
        actions.launch(op)
        return self._write(accesses, Side.DEVICE, valid)

    def _on_host(self, op: Any, valid: Valid, actions: AbstractActions) -> Valid:
        accesses = [access for access in host_accesses(op) if self._on_device([access.value])]
        for access in accesses:
            actions.touch_on_host(self._families.of(access.value))
            if not (self._is_all_of_family(access.value) and is_overwritten(op, access.value)):
                valid = self._need(access.value, Side.HOST, valid, op, actions)
        valid = self._write(accesses, Side.HOST, valid)
        return self._called(op, valid, actions)

    def _called(self, op: Any, valid: Valid, actions: AbstractActions) -> Valid:
        """A function may read and write what is global."""
        if not walk(op, "func.call"):
            return valid
        for family in sorted(self._globals):
            actions.touch_on_host(family)
            if (family, Side.HOST) not in valid:
                actions.fetch((family, Side.HOST), op)
            valid = written(valid, family, Side.HOST)
        return valid

    def _copy(self, op: Any, valid: Valid, actions: AbstractActions) -> Valid:
        source, target = op.operands
        is_direct = is_row_major(source.type) and is_row_major(target.type)
        sides = self._sides_of_copy(source, target, valid) if is_direct else (Side.HOST, Side.HOST)
        if sides == (Side.HOST, Side.HOST):
            return self._copy_on_host(op, valid, actions)
        if not self._is_all_of_family(target):
            valid = self._need(target, sides[1], valid, op, actions)
        for value, side in ((source, sides[0]), (target, sides[1])):
            if side is Side.HOST and self._on_device([value]):
                actions.touch_on_host(self._families.of(value))
        actions.copy(op, *sides)
        return self._write([Access(target, ANYTHING)] if self._on_device([target]) else [], sides[1], valid)

    def _copy_on_host(self, op: Any, valid: Valid, actions: AbstractActions) -> Valid:
        source, target = op.operands
        for value in self._on_device([source, target]):
            actions.touch_on_host(self._families.of(value))
            if value == source or not self._is_all_of_family(value):
                valid = self._need(value, Side.HOST, valid, op, actions)
        return self._write([Access(target, ANYTHING)] if self._on_device([target]) else [], Side.HOST, valid)

    def _sides_of_copy(self, source: Any, target: Any, valid: Valid) -> tuple[Side, Side]:
        """Chooses the memories of a copy so that it needs no other copy; rather the device's."""
        sources = [side for side in (Side.DEVICE, Side.HOST) if self._is_valid(source, side, valid)]
        if not self._on_device([target]):
            return (Side.HOST if Side.HOST in sources else Side.DEVICE), Side.HOST
        is_there = self._is_all_of_family(target) or self._is_valid(target, Side.DEVICE, valid)
        if sources == [Side.HOST] and not is_there:
            return Side.HOST, Side.HOST
        return sources[0], Side.DEVICE

    def _control(self, op: Any, valid: Valid, actions: AbstractActions) -> Valid:
        if op.name == "scf.for":
            return self._for(op, valid, actions)
        if op.name == "scf.while":
            return self._while(op, valid, actions)
        blocks = [region.blocks[0] for region in op.regions if len(region.blocks)]
        ways = [self._inside(block, valid, Question()) for block in blocks]
        wanted = after_branches(valid, ways if len(blocks) == len(op.regions) else [*ways, valid])
        for block in blocks:
            self._until(block, valid, wanted, actions)
        return wanted

    def _for(self, op: Any, valid: Valid, actions: AbstractActions) -> Valid:
        block = op.regions[0].blocks[0]

        def turn(state: Valid) -> tuple[Valid, Valid]:
            question = Question()
            return self._inside(block, state, question), frozenset(question.copied)

        start = self._start(op, valid, turn)
        self._settle(valid, start, op, actions)
        self._until(block, start, start, actions)
        return start

    def _while(self, op: Any, valid: Valid, actions: AbstractActions) -> Valid:
        condition, body = (region.blocks[0] for region in op.regions)

        def turn(state: Valid) -> tuple[Valid, Valid]:
            question = Question()
            state = self._inside(body, self._inside(condition, state, question), question)
            return state, frozenset(question.copied)

        start = self._start(op, valid, turn)
        self._settle(valid, start, op, actions)
        after = self._inside(condition, start, actions)
        actions.leave(condition)
        self._until(body, after, start, actions)
        return after

    def _start(self, op: Any, valid: Valid, turn: Callable[[Valid], tuple[Valid, Valid]]) -> Valid:
        """Returns the state at a loop's start, found once: loops in loops are asked many times."""
        if (op, valid) not in self._starts:
            self._starts[op, valid] = at_loop(valid, turn)
        return self._starts[op, valid]

    def _define(self, op: Any, valid: Valid, actions: AbstractActions) -> Valid:
        """What is in new memory is nobody's concern: it is valid on both sides."""
        actions.define(op)
        family = self._buffers[op.results[0]].family
        is_known = any(number == family for number, _ in valid)
        if is_known and not self._families.is_alone(op.results[0]):
            return valid
        return valid | {(family, side) for side in ANYWHERE}

    def _need(self, value: Any, side: Side, valid: Valid, before: Any, actions: AbstractActions) -> Valid:
        place = (self._families.of(value), side)
        if place not in valid:
            actions.fetch(place, before)
        return valid | {place}

    def _write(self, accesses: list[Access], side: Side, valid: Valid) -> Valid:
        for access in accesses:
            if access.effect.writes:
                valid = written(valid, self._families.of(access.value), side)
        return valid

    def _on_device(self, values: Any) -> list[Any]:
        """Returns those that have a place in device memory."""
        return [value for value in values if is_buffer(value.type) and self._is_managed(value)]

    def _is_managed(self, value: Any) -> bool:
        return self._families.knows(value) and self._families.of(value) in self._managed

    def _is_valid(self, value: Any, side: Side, valid: Valid) -> bool:
        if not self._on_device([value]):
            return side is Side.HOST
        return (self._families.of(value), side) in valid

    def _is_allocation(self, value: Any) -> bool:
        return value in self._buffers and self._buffers[value].kind is Kind.ALLOCATION

    def _is_all_of_family(self, value: Any) -> bool:
        """Tells whether who overwrites the memref leaves nothing of its family."""
        return value in self._buffers and self._families.is_alone(value)
