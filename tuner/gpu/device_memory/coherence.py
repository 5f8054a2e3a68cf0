"""The copies between host and device memory that a function needs: found by data flow, then inserted.

Calls the methods of ``AbstractActions`` in the order of execution; a state is where each alias set is valid
(``Valid``). Loops and branches are walked with a recorder first, to choose the state at their start and end,
then with the actions. ``host_to_device_memory`` rejects unstructured control flow and asynchronous work.

    gpu.launch_func @m::@write ... args(%a : memref<4xf32>)
    %v = memref.load %a[%c0] : memref<4xf32>
  calls, for an argument %a of the caller
    fetch(%a on the device, before launch), launch, touch_on_host(%a), fetch(%a on the host, before load)
"""

import abc
from collections.abc import Collection, Iterable

from tuner.core.errors import CandidateError, Stage
from tuner.gpu.device_memory.buffers import (
    ALLOCATIONS,
    BufferKind,
    Location,
    MirroredBuffer,
    Side,
    Valid,
    after_branches,
    at_loop,
    written,
)
from tuner.gpu.device_memory.device_views import DeviceViews
from tuner.mlir.bindings import Block, Op, Value, ir
from tuner.mlir.effects.aliases import STRUCTURED, AliasSets, described, is_buffer, last_of, terminator_of
from tuner.mlir.effects.memory_effects import EffectInstance, KernelEffects, host_effects, is_filled
from tuner.mlir.effects.op_effects import ANYTHING
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.memrefs import is_row_major
from tuner.mlir.ir.reading import op_of, walk

ANYWHERE = (Side.HOST, Side.DEVICE)
# Where buffers that outlive the call are valid at its beginning and at its return.
OUTSIDE = {
    BufferKind.ARGUMENT: Side.HOST,
    BufferKind.DEVICE_ARGUMENT: Side.DEVICE,
    BufferKind.GLOBAL: Side.HOST,
    BufferKind.CONSTANT: Side.HOST,
}


class AbstractActions(abc.ABC):
    """The interface that ``CoherenceWalk`` calls while it walks a function, in the order of execution."""

    @abc.abstractmethod
    def fetch(self, location: Location, before: Op) -> None:
        """Makes ``location``, an alias set's memory on one side, valid before the operation ``before``."""

    @abc.abstractmethod
    def launch(self, launch: Op) -> None:
        """Makes a ``gpu.launch_func`` take its operands from device memory."""

    @abc.abstractmethod
    def copy(self, copy: Op, source: Side, target: Side) -> None:
        """Makes a ``memref.copy`` copy between memories of which one or both are the device's."""

    @abc.abstractmethod
    def touch_on_host(self, alias_set: int) -> None:
        """Records that host code uses the host memory of an alias set, given by its index."""

    @abc.abstractmethod
    def define(self, allocation: Op) -> None:
        """Called at an allocation of the program: from here on its buffer exists."""

    @abc.abstractmethod
    def release(self, deallocation: Op) -> None:
        """Called at a ``memref.dealloc`` of the program: frees the buffer's device memory as well."""

    @abc.abstractmethod
    def leave(self, block: Block) -> None:
        """Frees the device memory of buffers that go out of scope at the end of a block."""


class FetchRecorder(AbstractActions):
    """Actions that change nothing and record fetches, to look ahead in loops and branches."""

    def __init__(self) -> None:
        self.fetched: set[Location] = set()

    def fetch(self, location: Location, before: Op) -> None:
        """Adds ``location`` to ``fetched``: (index of an alias set, host or device memory)."""
        self.fetched.add(location)

    def launch(self, launch: Op) -> None:
        pass

    def copy(self, copy: Op, source: Side, target: Side) -> None:
        pass

    def touch_on_host(self, alias_set: int) -> None:
        pass

    def define(self, allocation: Op) -> None:
        pass

    def release(self, deallocation: Op) -> None:
        pass

    def leave(self, block: Block) -> None:
        pass


class CoherenceWalk:
    """The data-flow analysis that tracks on which side each alias set is valid, and requests copies."""

    def __init__(
        self, alias_sets: AliasSets, buffers: dict[Value, MirroredBuffer], effects: KernelEffects
    ) -> None:
        """``buffers``: the mirrored buffers by their host memrefs; all other memory stays on the host."""
        self._alias_sets = alias_sets
        self._buffers = buffers
        self._effects = effects
        self._managed = {buffer.alias_set for buffer in buffers.values()}
        # (loop, state before the loop) -> state at the start of an iteration
        self._starts: dict[tuple[Op, Valid], Valid] = {}
        self._globals = {buffer.alias_set for buffer in buffers.values() if buffer.kind is BufferKind.GLOBAL}

    def function(self, function: Op, actions: AbstractActions) -> None:
        """Walks a host function in the order of execution and calls ``actions``.

        At the return, it requests that arguments and globals are valid in the memory that they came from, and
        results in host memory.
        """
        block = function.regions[0].blocks[0]
        valid = self._outside(OUTSIDE.keys())
        valid = self._inside(block, valid, actions)
        end = terminator_of(function, 0)
        wanted = set(self._outside(OUTSIDE.keys() - {BufferKind.CONSTANT}))  # nothing writes constants
        for operand in self._mirrored(end.operands):
            actions.touch_on_host(self._alias_sets.of(operand))
            wanted.add((self._alias_sets.of(operand), Side.HOST))
        self._settle(valid, frozenset(wanted), end, actions)
        actions.leave(block)

    def _outside(self, kinds: Collection[BufferKind]) -> Valid:
        outer = [buffer for buffer in self._buffers.values() if buffer.kind in kinds]
        return frozenset((buffer.alias_set, OUTSIDE[buffer.kind]) for buffer in outer)

    def _inside(self, block: Block, valid: Valid, actions: AbstractActions) -> Valid:
        for op in list(block.operations)[:-1]:
            valid = self._operation(op.operation, valid, actions)
        return valid

    def _until(self, block: Block, valid: Valid, wanted: Valid, actions: AbstractActions) -> None:
        valid = self._inside(block, valid, actions)
        self._settle(valid, wanted, last_of(block), actions)
        actions.leave(block)

    def _settle(self, valid: Valid, wanted: Valid, before: Op, actions: AbstractActions) -> None:
        for location in sorted(wanted - valid, key=lambda location: (location[0], location[1].value)):
            actions.fetch(location, before)

    # Transfer functions: each returns the state after an operation, and calls the actions that the operation
    # needs.

    def _operation(self, op: Op, valid: Valid, actions: AbstractActions) -> Valid:
        if op.name == "gpu.launch_func":
            return self._launch(op, valid, actions)
        if op.name in STRUCTURED:
            return self._control(op, valid, actions)
        buffer = self._buffers.get(op.results[0]) if op.name in ALLOCATIONS else None
        if buffer is not None and buffer.kind is BufferKind.ALLOCATION:
            return self._define(op, valid, actions)
        if op.name == "memref.copy" and self._mirrored(op.operands):
            return self._copy(op, valid, actions)
        if op.name == "memref.dealloc" and self._mirrored(op.operands):
            actions.release(op)
            return valid
        return self._on_host(op, valid, actions)

    def _launch(self, op: Op, valid: Valid, actions: AbstractActions) -> Valid:
        accesses = [access for access in self._effects.of_launch(op) if self._mirrored([access.value])]
        for access in accesses:
            is_touched = access.effect.reads or access.effect.writes
            is_whole = self._is_all_of_alias_set(access.value) and self._effects.overwrites_unread(
                op, access.value
            )
            if is_touched and not is_whole:
                valid = self._need(access.value, Side.DEVICE, valid, op, actions)
        actions.launch(op)
        return self._write(accesses, Side.DEVICE, valid)

    def _on_host(self, op: Op, valid: Valid, actions: AbstractActions) -> Valid:
        accesses = [access for access in host_effects(op) if self._mirrored([access.value])]
        for access in accesses:
            actions.touch_on_host(self._alias_sets.of(access.value))
            if not (self._is_all_of_alias_set(access.value) and is_filled(op, access.value)):
                valid = self._need(access.value, Side.HOST, valid, op, actions)
        valid = self._write(accesses, Side.HOST, valid)
        # a callee may access globals
        if not walk(op, "func.call"):
            return valid
        for alias_set in sorted(self._globals):
            actions.touch_on_host(alias_set)
            if (alias_set, Side.HOST) not in valid:
                actions.fetch((alias_set, Side.HOST), op)
            valid = written(valid, alias_set, Side.HOST)
        return valid

    def _copy(self, op: Op, valid: Valid, actions: AbstractActions) -> Valid:
        source, target = op.operands
        is_direct = is_row_major(source.type) and is_row_major(target.type)
        sides = self._sides_of_copy(source, target, valid) if is_direct else (Side.HOST, Side.HOST)
        if sides == (Side.HOST, Side.HOST):
            return self._copy_on_host(op, valid, actions)
        if not self._is_all_of_alias_set(target):
            valid = self._need(target, sides[1], valid, op, actions)
        for operand, side in ((source, sides[0]), (target, sides[1])):
            if side is Side.HOST and self._mirrored([operand]):
                actions.touch_on_host(self._alias_sets.of(operand))
        actions.copy(op, *sides)
        return self._write(self._any_access(target), sides[1], valid)

    def _copy_on_host(self, op: Op, valid: Valid, actions: AbstractActions) -> Valid:
        source, target = op.operands
        for operand in self._mirrored([source, target]):
            actions.touch_on_host(self._alias_sets.of(operand))
            if operand == source or not self._is_all_of_alias_set(operand):
                valid = self._need(operand, Side.HOST, valid, op, actions)
        return self._write(self._any_access(target), Side.HOST, valid)

    def _any_access(self, target: Value) -> list[EffectInstance]:
        return [EffectInstance(value, ANYTHING) for value in self._mirrored([target])]

    def _sides_of_copy(self, source: Value, target: Value, valid: Valid) -> tuple[Side, Side]:
        """Returns the sides (source, target) on which to copy; the source is valid on its side.

        The target's side is the device, except for a target in host memory alone, and where the source is
        valid on the host alone and the target not on the device.
        """
        sources = [side for side in (Side.DEVICE, Side.HOST) if self._is_valid(source, side, valid)]
        if not self._mirrored([target]):
            if Side.HOST in sources:
                return Side.HOST, Side.HOST
            return Side.DEVICE, Side.HOST
        is_there = self._is_all_of_alias_set(target) or self._is_valid(target, Side.DEVICE, valid)
        if sources == [Side.HOST] and not is_there:
            return Side.HOST, Side.HOST
        return sources[0], Side.DEVICE

    def _control(self, op: Op, valid: Valid, actions: AbstractActions) -> Valid:
        if op.name in ("scf.for", "scf.while"):
            return self._loop(op, valid, actions)
        blocks = [region.blocks[0] for region in op.regions if len(region.blocks)]
        paths = [self._inside(block, valid, FetchRecorder()) for block in blocks]
        if len(blocks) < len(op.regions):
            paths.append(valid)  # the path without an "else"
        wanted = after_branches(valid, paths)
        for block in blocks:
            self._until(block, valid, wanted, actions)
        return wanted

    def _loop(self, op: Op, valid: Valid, actions: AbstractActions) -> Valid:
        *conditions, body = (region.blocks[0] for region in op.regions)

        def iteration(state: Valid) -> tuple[Valid, Valid]:
            recorder = FetchRecorder()
            for block in (*conditions, body):
                state = self._inside(block, state, recorder)
            return state, frozenset(recorder.fetched)

        if (op, valid) not in self._starts:  # an outer loop asks repeatedly
            self._starts[op, valid] = at_loop(valid, iteration)
        start = after = self._starts[op, valid]
        self._settle(valid, start, op, actions)
        for condition in conditions:
            after = self._inside(condition, after, actions)
            actions.leave(condition)
        self._until(body, after, start, actions)
        return after

    def _define(self, op: Op, valid: Valid, actions: AbstractActions) -> Valid:
        """Marks new memory valid on both sides, as its contents are undefined.

        An alias set shared with other, known buffers keeps its state.
        """
        actions.define(op)
        alias_set = self._buffers[op.results[0]].alias_set
        is_known = any(number == alias_set for number, _ in valid)
        if is_known and not self._alias_sets.is_singleton(op.results[0]):
            return valid
        return valid | {(alias_set, side) for side in ANYWHERE}

    def _need(self, value: Value, side: Side, valid: Valid, before: Op, actions: AbstractActions) -> Valid:
        location = (self._alias_sets.of(value), side)
        if location not in valid:
            actions.fetch(location, before)
        return valid | {location}

    def _write(self, accesses: list[EffectInstance], side: Side, valid: Valid) -> Valid:
        for access in accesses:
            if access.effect.writes:
                valid = written(valid, self._alias_sets.of(access.value), side)
        return valid

    def _mirrored(self, values: Iterable[Value]) -> list[Value]:
        known = [value for value in values if is_buffer(value.type) and self._alias_sets.knows(value)]
        return [value for value in known if self._alias_sets.of(value) in self._managed]

    def _is_valid(self, value: Value, side: Side, valid: Valid) -> bool:
        if not self._mirrored([value]):
            return side is Side.HOST
        return (self._alias_sets.of(value), side) in valid

    def _is_all_of_alias_set(self, value: Value) -> bool:
        """Returns whether a memref is a whole buffer, and the only buffer of its alias set."""
        return value in self._buffers and self._alias_sets.is_singleton(value)


# Inserts the copies and deallocations that ``CoherenceWalk`` requests, and page-locks host memory.


class CopyInsertion(AbstractActions):
    """Actions that insert the copies and deallocations that a ``CoherenceWalk`` requests.

    Call ``finish`` after the walk.
    """

    def __init__(
        self, alias_sets: AliasSets, buffers: dict[Value, MirroredBuffer], device_views: DeviceViews
    ) -> None:
        """Starts at the function's entry: buffers that the function allocates do not exist yet."""
        self._alias_sets = alias_sets
        self._buffers = buffers
        self._device_views = device_views
        # buffers allocated and not yet freed at this point of the walk
        self._alive = [buffer for buffer in buffers.values() if buffer.kind is not BufferKind.ALLOCATION]
        self._dead: list[Op] = []
        self.used_on_host: set[int] = set()  # alias sets

    def fetch(self, location: Location, before: Op) -> None:
        alias_set, side = location
        self.used_on_host.add(alias_set)
        with before.location, ir.InsertionPoint(before):
            for buffer in self._alive:
                if buffer.alias_set == alias_set:
                    buffer.copy_to(side)

    def launch(self, launch: Op) -> None:
        for index, operand in enumerate(launch.operands):
            launch.operands[index] = self._device_views.of(operand)

    def copy(self, copy: Op, source: Side, target: Side) -> None:
        old, new = copy.operands
        old = self._device_views.of(old) if source is Side.DEVICE else old
        new = self._device_views.of(new) if target is Side.DEVICE else new
        with copy.location, ir.InsertionPoint(copy):
            create("gpu.memcpy", [], [new, old])
        self._dead.append(copy)

    def touch_on_host(self, alias_set: int) -> None:
        self.used_on_host.add(alias_set)

    def define(self, allocation: Op) -> None:
        self._alive.append(self._buffers[allocation.results[0]])

    def release(self, deallocation: Op) -> None:
        """Inserts the deallocation of device memory before the program's ``memref.dealloc``.

        A deallocation in an inner block is delayed to the end of the buffer's block. Raises
        CandidateError(COMPILE) if it frees one of several buffers or no allocation, if the buffer's block
        frees it twice, and if an inner block frees a returned buffer.
        """
        roots = self._alias_sets.roots_of(deallocation.operands[0])
        buffer = self._buffers[roots[0]]
        if len(roots) > 1 or buffer.kind is not BufferKind.ALLOCATION:
            names = " or ".join(map(described, roots))
            raise CandidateError(Stage.COMPILE, f"memref.dealloc: found {names}, allowed one allocation")
        if buffer not in self._alive:
            raise CandidateError(Stage.COMPILE, f"memref.dealloc: {described(buffer.host)} is freed twice")
        if deallocation.block != buffer.block:  # only some iterations or branches free it
            if buffer.is_returned:
                actual = f"{described(buffer.host)} is freed and returned"
                raise CandidateError(Stage.COMPILE, f"memref.dealloc in an inner block: {actual}")
            # free() at the end of the buffer's block then frees the host memory too; this dealloc is erased
            buffer.is_freed_late = True
            self._dead.append(deallocation)
            return
        with deallocation.location, ir.InsertionPoint(deallocation):
            buffer.free()
        buffer.deallocations.append(deallocation)
        self._alive.remove(buffer)

    def leave(self, block: Block) -> None:
        end = last_of(block)
        leaving = [buffer for buffer in self._alive if buffer.block == block]
        with end.location, ir.InsertionPoint(end):
            for buffer in leaving:
                buffer.free()
                self._alive.remove(buffer)

    def finish(self) -> None:
        """Erases the copies and deallocations of the program that were replaced during the walk."""
        for op in reversed(self._dead):
            op.erase()


# Copies of page-locked memory are faster and truly asynchronous. ``memref.alloc`` and its ``memref.dealloc``
# become ``gpu.alloc host_shared`` and ``gpu.dealloc``, which lower to ``mgpuMemAlloc(size, stream, 1)`` and
# ``mgpuMemFree``.


def pin(buffers: list[MirroredBuffer]) -> None:
    """Replaces the host memory of buffers by page-locked memory, whose copies are faster, in place.

    Left unchanged are results, arguments on the host, globals, stack memory, and non-contiguous memrefs.
    """
    for buffer in buffers:
        if buffer.is_returned or buffer.kind not in (BufferKind.ALLOCATION, BufferKind.DEVICE_ARGUMENT):
            continue
        old = buffer.host.owner.operation
        if old.name != "memref.alloc" or not is_row_major(buffer.host.type):
            continue
        sizes = list(old.operands)
        shared = {"hostShared": ir.UnitAttr.get()}
        segments = ir.DenseI32ArrayAttr.get([0, len(sizes), 0])
        with old.location, ir.InsertionPoint(old):
            memory = value("gpu.alloc", buffer.host.type, *sizes, operandSegmentSizes=segments, **shared)
        for deallocation in buffer.deallocations:
            with deallocation.location, ir.InsertionPoint(deallocation):
                create("gpu.dealloc", [], [deallocation.operands[0]])
            deallocation.erase()
        buffer.host.replace_all_uses_with(memory)
        old.erase()
        buffer.host = memory


def forget_registrations(function: Op) -> None:
    """Erases gpu.host_register, gpu.host_unregister and casts for them: copies do not need them."""
    for name in ("gpu.host_register", "gpu.host_unregister"):
        for op in walk(function, name):
            cast = op_of(op.operands[0], "memref.cast")
            op.erase()
            if cast is not None and not list(cast.results[0].uses):
                cast.erase()
