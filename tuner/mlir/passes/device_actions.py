"""Changes a function so that its buffers have the copies that the walk asks for."""

from typing import Any

from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir
from tuner.mlir.building import create
from tuner.mlir.passes.buffer_families import Families
from tuner.mlir.passes.buffer_roots import described
from tuner.mlir.passes.carried_values import last_of
from tuner.mlir.passes.coherence import AbstractActions
from tuner.mlir.passes.device_buffers import Buffer, Kind
from tuner.mlir.passes.device_twins import Twins
from tuner.mlir.passes.validity import Place, Side


class Rewrite(AbstractActions):
    """Inserts copies, takes kernels' operands from the device, frees device memory."""

    def __init__(self, families: Families, buffers: dict[Any, Buffer], twins: Twins) -> None:
        """Starts where the function does: what it allocates does not exist yet."""
        self._families, self._buffers, self._twins = families, buffers, twins
        self._alive = [buffer for buffer in buffers.values() if buffer.kind is not Kind.ALLOCATION]
        self._dead: list[Any] = []
        self.used_on_host: set[int] = set()

    def fetch(self, place: Place, before: Any) -> None:
        family, side = place
        self.used_on_host.add(family)
        with before.location, ir.InsertionPoint(before):
            for buffer in self._alive:
                if buffer.family == family:
                    buffer.copy_to(side)

    def launch(self, launch: Any) -> None:
        for number, operand in enumerate(launch.operands):
            launch.operands[number] = self._twins.of(operand)

    def copy(self, copy: Any, source: Side, target: Side) -> None:
        old, new = copy.operands
        old = self._twins.of(old) if source is Side.DEVICE else old
        new = self._twins.of(new) if target is Side.DEVICE else new
        with copy.location, ir.InsertionPoint(copy):
            create("gpu.memcpy", [], [new, old])
        self._dead.append(copy)

    def touch_on_host(self, family: int) -> None:
        self.used_on_host.add(family)

    def define(self, allocation: Any) -> None:
        self._alive.append(self._buffers[allocation.results[0]])

    def release(self, deallocation: Any) -> None:
        roots = self._families.roots_of(deallocation.operands[0])
        buffer = self._buffers[roots[0]]
        if len(roots) > 1 or buffer.kind is not Kind.ALLOCATION:
            found = " or ".join(described(root) for root in roots)
            raise CandidateError(Stage.COMPILE, f"memref.dealloc: found {found}, allowed one allocation")
        if buffer not in self._alive:
            found = f"found {described(buffer.host)}, which is freed before"
            raise CandidateError(Stage.COMPILE, f"memref.dealloc: {found}, allowed buffers in use")
        if deallocation.block != buffer.block:
            self._release_late(deallocation, buffer)
            return
        with deallocation.location, ir.InsertionPoint(deallocation):
            buffer.free()
        buffer.deallocations.append(deallocation)
        self._alive.remove(buffer)

    def leave(self, block: Any) -> None:
        end = last_of(block)
        leaving = [buffer for buffer in self._alive if buffer.block == block]
        with end.location, ir.InsertionPoint(end):
            for buffer in leaving:
                buffer.free()
                self._alive.remove(buffer)

    def finish(self) -> None:
        """Erases what was replaced."""
        for op in reversed(self._dead):
            op.erase()

    def _release_late(self, deallocation: Any, buffer: Buffer) -> None:
        """A buffer that is freed in some turns or branches only lives to the end of its block."""
        if buffer.is_returned:
            found = f"found {described(buffer.host)}, which is returned as well"
            raise CandidateError(
                Stage.COMPILE, f"memref.dealloc in an inner block: {found}, allowed one of both"
            )
        buffer.is_freed_late = True
        self._dead.append(deallocation)
