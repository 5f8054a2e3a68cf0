"""Creates a device view for each memref on the host: the same part of the same buffer in device memory.

Takes a function on host memrefs, and the device memory of each whole buffer; creates a device view for each
view of such a buffer, and for each memref that structured control flow forwards (as extra iter_args). Views
by operations other than ``VIEWS`` and ``arith.select`` get no device view.

    %s = memref.subview %a[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
  is followed by, for %a_device = gpu.alloc
    %t = memref.subview %a_device[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
"""

from collections.abc import Callable

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.address_flow import is_buffer
from tuner.mlir.effects.alias_sets import STRUCTURED, structured_operations
from tuner.mlir.effects.buffer_roots import VIEWS
from tuner.programs.lower.device_memory.extra_iter_args import IterArgOperand, add_iter_args

# operations whose device view is a clone of the operation with device views as operands
DERIVED = VIEWS | {"arith.select"}


class DeviceViews:
    """A mapping from a function's host memrefs to the same parts of the same buffers in device memory.

    Call ``set_root`` for all whole buffers, then ``connect``, which creates the device views of their views.
    """

    def __init__(self, function: Op, is_wanted: Callable[[Value], bool]) -> None:
        """Adds iter_args for the device views of wanted memrefs; up to ``connect`` they hold host memrefs."""
        self._block = function.regions[0].blocks[0]
        self._views: dict[Value, Value] = {}
        self._operands: list[IterArgOperand] = []
        self._clones: list[Op] = []
        for op in list(structured_operations(self._block)):
            if op.name in STRUCTURED:
                added = add_iter_args(op, lambda each: is_buffer(each.type) and is_wanted(each))
                self._views.update(added.pairs)
                self._operands += added.operands

    def set_root(self, host: Value, device: Value) -> None:
        """Records that ``device`` is the device memory of the whole buffer ``host``."""
        self._views[host] = device

    def of(self, value: Value) -> Value:
        """Returns the device view of a host memref, or ``value`` itself if it has no device view."""
        return self._views.get(value, value)

    def connect(self) -> None:
        """Clones each view of a buffer as a view of the buffer's device memory; call it after ``set_root``.

        The iter_args that the constructor added, which held host memrefs so far, then carry device views.
        """
        own = set(self._views.values())
        for op in list(structured_operations(self._block)):
            if op.name in DERIVED and not own & set(op.results):
                self._derive(op)
        for each in self._operands:
            each.op.operands[each.number] = self.of(each.op.operands[each.number])

    def erase_unused(self) -> None:
        """Erases views without users: device views that ``connect`` created, and the host views they copy."""
        for op in reversed(self._clones):
            if not any(list(result.uses) for result in op.results):
                op.erase()

    def _derive(self, op: Op) -> None:
        """Clones a view right after it, with device views as operands."""
        if all(self.of(operand) == operand for operand in op.operands):
            return
        with ir.InsertionPoint.after(op):
            clone = op.clone()
        for number, operand in enumerate(op.operands):
            clone.operands[number] = self.of(operand)
        for old, new in zip(op.results, clone.results, strict=True):
            if is_buffer(old.type):
                self._views[old] = new
        self._clones += [op, clone]
