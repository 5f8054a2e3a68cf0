"""Inserts the copies and deallocations that ``CoherenceWalk`` requests, and page-locks host memory."""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Block, Op, Value, ir
from tuner.mlir.effects.aliases import AliasSets, described, last_of
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.memrefs import is_row_major
from tuner.mlir.ir.reading import op_of, walk
from tuner.programs.device_memory.buffers import BufferKind, DeviceViews, Location, MirroredBuffer, Side
from tuner.programs.device_memory.coherence import AbstractActions


class CopyInsertion(AbstractActions):
    """Actions of a ``CoherenceWalk`` that insert copies and deallocations; call ``finish`` after the walk."""

    def __init__(
        self, alias_sets: AliasSets, buffers: dict[Value, MirroredBuffer], device_views: DeviceViews
    ) -> None:
        """Starts at the function's entry, where no buffer that the function allocates exists yet."""
        self._alias_sets, self._buffers, self._device_views = alias_sets, buffers, device_views
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
        for number, operand in enumerate(launch.operands):
            launch.operands[number] = self._device_views.of(operand)

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
            found = " or ".join(described(root) for root in roots)
            raise CandidateError(Stage.COMPILE, f"memref.dealloc: found {found}, allowed one allocation")
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
    """Allocates the host memory of buffers as page-locked memory, in place.

    Left unchanged are results, arguments on the host, globals, stack memory, and non-contiguous memrefs.
    """
    for buffer in buffers:
        if buffer.is_returned or buffer.kind not in (BufferKind.ALLOCATION, BufferKind.DEVICE_ARGUMENT):
            continue
        old = buffer.host.owner.operation
        if old.name != "memref.alloc" or not is_row_major(buffer.host.type):
            continue
        sizes, shared = list(old.operands), {"hostShared": ir.UnitAttr.get()}
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
    """Erases gpu.host_register and gpu.host_unregister, which do not affect copies, and their casts."""
    for name in ("gpu.host_register", "gpu.host_unregister"):
        for op in walk(function, name):
            cast = op_of(op.operands[0], "memref.cast")
            op.erase()
            if cast is not None and not list(cast.results[0].uses):
                cast.erase()
