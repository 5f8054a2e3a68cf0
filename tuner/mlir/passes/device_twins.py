"""Gives memrefs of the host twins in device memory: of buffers, views, and what control flow hands on."""

from collections.abc import Callable
from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.passes.buffer_families import STRUCTURED, structured_operations
from tuner.mlir.passes.buffer_roots import VIEWS, is_buffer
from tuner.mlir.passes.companions import Slot, add_companions

DERIVED = VIEWS | {"arith.select"}


class Twins:
    """The twin of each memref that has one."""

    def __init__(self, function: Any, is_wanted: Callable[[Any], bool]) -> None:
        """Lets control flow hand on twins of wanted memrefs; up to ``connect`` they are the memrefs."""
        self._block = function.regions[0].blocks[0]
        self._twins: dict[Any, Any] = {}
        self._slots: list[Slot] = []
        self._clones: list[Any] = []
        for op in list(structured_operations(self._block)):
            if op.name in STRUCTURED:
                added = add_companions(op, lambda each: is_buffer(each.type) and is_wanted(each))
                self._twins.update(added.pairs)
                self._slots += added.slots

    def set_root(self, host: Any, device: Any) -> None:
        """Says what stands for a whole buffer."""
        self._twins[host] = device

    def of(self, value: Any) -> Any:
        """Returns the twin; the value itself where it has none."""
        return self._twins.get(value, value)

    def connect(self) -> None:
        """Makes the views' twins, and puts all twins where control flow takes them from."""
        own = set(self._twins.values())
        for op in list(structured_operations(self._block)):
            if op.name in DERIVED and not own & set(op.results):
                self._derive(op)
        for slot in self._slots:
            slot.op.operands[slot.number] = self.of(slot.op.operands[slot.number])

    def erase_unused(self) -> None:
        """Erases views that nobody looks at."""
        for op in reversed(self._clones):
            if not any(list(result.uses) for result in op.results):
                op.erase()

    def _derive(self, op: Any) -> None:
        if all(self.of(operand) == operand for operand in op.operands):
            return
        with ir.InsertionPoint.after(op):
            clone = op.clone()
        for number, operand in enumerate(op.operands):
            clone.operands[number] = self.of(operand)
        for old, new in zip(op.results, clone.results, strict=True):
            if is_buffer(old.type):
                self._twins[old] = new
        self._clones += [op, clone]
