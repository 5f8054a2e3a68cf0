"""Makes host programs launch their kernels on device memory.

Before: functions whose ``gpu.launch_func`` operands are host memory, after ``gpu-kernel-outlining``. After:
each buffer that a kernel takes has a place on the device, filled by ``gpu.memcpy`` where that is out of date,
and read back where the host is. Everything is synchronous yet: no tokens, no streams.

What the caller sees stays the same: arguments that kernels write, and globals, are host memory that is up to
date when the function returns, and results are host memory. Arguments must not overlap, if they are written.
"""

from dataclasses import dataclass
from typing import Any

from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import walk
from tuner.mlir.passes.buffer_families import Families, block_of, structured_operations
from tuner.mlir.passes.buffer_roots import described, is_buffer
from tuner.mlir.passes.carried_values import last_of
from tuner.mlir.passes.coherence import Walk
from tuner.mlir.passes.device_actions import Rewrite
from tuner.mlir.passes.device_buffers import ALLOCATIONS, Buffer, Kind, allocate_host_like, allocate_like
from tuner.mlir.passes.device_twins import Twins
from tuner.mlir.passes.host_accesses import refuse_device_code
from tuner.mlir.passes.kernel_effects import KernelEffects
from tuner.mlir.passes.pinned_memory import pin
from tuner.mlir.passes.view_copies import copy_views_by_loops
from tuner.mlir.symbols import function_type, name_of

DEVICE_ATTRIBUTE = "tuner.device"  # of an argument: it is device memory already


@dataclass(frozen=True)
class HostMemoryOptions:
    """What callers give, and where host memory comes from."""

    device_arguments: bool = False  # buffers that public functions take are device memory already
    pinned: bool = (
        False  # host memory that the program allocates and copies is page-locked: gpu.alloc host_shared
    )


def host_to_device_memory(module: ir.Module, options: HostMemoryOptions | None = None) -> None:
    """Rewrites every function in place. Arguments with the attribute ``tuner.device`` are device memory.

    Raises CandidateError(COMPILE) for a program whose buffers cannot be followed.
    """
    options = options or HostMemoryOptions()
    effects = KernelEffects(module)
    constants = {
        name_of(op): "constant" in op.attributes
        for op in module.body.operations
        if op.operation.name == "memref.global"
    }
    functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    native = {name_of(function): _native_arguments(function, options) for function in functions}
    _refuse_calls(module, native)
    for function in functions:
        if len(function.regions[0].blocks):
            _Function(function, options, constants).rewrite(effects, native[name_of(function)])
            copy_views_by_loops(function)


class _Function:
    """One function on its way."""

    def __init__(self, function: Any, options: HostMemoryOptions, constants: dict[str, bool]) -> None:
        self._function, self._options, self._constants = function, options, constants
        self._block = function.regions[0].blocks[0]
        self._native: dict[Any, Any] = {}  # host memory that stands for an argument -> the argument

    def rewrite(self, effects: KernelEffects, numbers: list[int]) -> None:
        """Does it, if the function has kernels or arguments (of these numbers) in device memory."""
        if not walk(self._function, "gpu.launch_func") and not numbers:
            return
        _refuse_blocks(self._function)
        refuse_device_code(self._function, set(structured_operations(self._block)))
        self._gather_globals()
        for number in numbers:
            self._stand_in(self._block.arguments[number])
        twins = self._twins()
        families = Families(self._function)
        buffers = self._buffers(families, twins)
        twins.connect()
        self._mark_results(families, buffers)
        actions = Rewrite(families, buffers, twins)
        Walk(families, buffers, effects).function(self._function, actions)
        actions.finish()
        for buffer in buffers.values():
            self._drop_unused_side(buffer, actions.used_on_host)
        twins.erase_unused()
        if self._options.pinned:
            pin([buffer for buffer in buffers.values() if buffer.family in actions.used_on_host])

    def _gather_globals(self) -> None:
        """Names each global once, at the start, so that it is one value."""
        first: dict[str, Any] = {}
        start = self._block.operations[0].operation
        for op in walk(self._function, "memref.get_global"):
            symbol = str(op.attributes["name"])
            if symbol not in first:
                first[symbol] = op
                if op != start:
                    op.move_before(start)
            else:
                op.results[0].replace_all_uses_with(first[symbol].results[0])
                op.erase()

    def _stand_in(self, argument: Any) -> None:
        """Puts host memory in the place of an argument in device memory, until it is clear who needs it."""
        uses = [(use.owner.operation, use.operand_number) for use in argument.uses]
        with self._function.location, ir.InsertionPoint.at_block_begin(self._block):
            host = allocate_host_like(argument)
        for op, number in uses:
            op.operands[number] = host
        self._native[host] = argument

    def _twins(self) -> Twins:
        families = Families(self._function)
        managed = self._managed(families)
        return Twins(self._function, lambda value: families.of(value) in managed)

    def _managed(self, families: Families) -> set[int]:
        """Returns the families that have a place on the device."""
        launched = [value for op in walk(self._function, "gpu.launch_func") for value in op.operands]
        values = [value for value in [*launched, *self._native] if is_buffer(value.type)]
        return {families.of(value) for value in values}

    def _buffers(self, families: Families, twins: Twins) -> dict[Any, Buffer]:
        managed = self._managed(families)
        roots = [root for root in families.roots() if families.of(root) in managed]
        buffers = {root: self._buffer(root, families.of(root)) for root in roots}
        for buffer in buffers.values():
            twins.set_root(buffer.host, buffer.device)
        self._refuse_mixed(buffers)
        for buffer in buffers.values():
            _refuse_escape(buffer, families)
        return buffers

    def _buffer(self, root: Any, family: int) -> Buffer:
        if root in self._native:
            return Buffer(Kind.NATIVE, family, root, self._native[root], self._block, self._native[root])
        is_argument = isinstance(root.owner, ir.Block)
        point = ir.InsertionPoint.at_block_begin(self._block) if is_argument else None
        with self._function.location, point or ir.InsertionPoint.after(root.owner.operation):
            flat, device = allocate_like(root)
        return Buffer(self._kind(root), family, root, device, block_of(root), flat)

    def _kind(self, root: Any) -> Kind:
        if isinstance(root.owner, ir.Block):
            return Kind.ARGUMENT
        if root.owner.operation.name in ALLOCATIONS:
            return Kind.ALLOCATION
        if root.owner.operation.name == "memref.get_global":
            symbol = str(ir.FlatSymbolRefAttr(root.owner.attributes["name"]).value)
            return Kind.CONSTANT if self._constants[symbol] else Kind.GLOBAL
        found = f"found {described(root)}"
        raise CandidateError(
            Stage.COMPILE, f"host program: {found}, allowed arguments, allocations and globals"
        )

    def _refuse_mixed(self, buffers: dict[Any, Buffer]) -> None:
        native = {buffer.family for buffer in buffers.values() if buffer.kind is Kind.NATIVE}
        for buffer in buffers.values():
            if buffer.family in native and buffer.kind not in (Kind.NATIVE, Kind.ALLOCATION):
                found = f"found {described(buffer.host)} in host memory and arguments in device memory"
                raise CandidateError(
                    Stage.COMPILE, f"buffers that change places: {found}, allowed one of both"
                )

    def _mark_results(self, families: Families, buffers: dict[Any, Buffer]) -> None:
        results = last_of(self._block).operands
        for value in results:
            for root in families.roots_of(value) if is_buffer(value.type) else ():
                if root in buffers:
                    buffers[root].is_returned = True

    def _drop_unused_side(self, buffer: Buffer, used_on_host: set[int]) -> None:
        """Lets device memory stand for a buffer that the host does not look into."""
        if buffer.family in used_on_host or buffer.kind not in (Kind.ALLOCATION, Kind.NATIVE):
            return
        for op in buffer.deallocations:
            op.erase()
        allocation = buffer.host.owner.operation
        buffer.host.replace_all_uses_with(buffer.device)
        allocation.erase()


def _native_arguments(function: Any, options: HostMemoryOptions) -> list[int]:
    """Returns the numbers of the arguments in device memory, and forgets their attribute."""
    inputs = function_type(function).inputs
    buffers = [number for number, kind in enumerate(inputs) if is_buffer(kind)]
    is_public = "private" not in str(function.attributes.get("sym_visibility", "public"))
    marked = _take_marks(function)
    return [number for number in buffers if number in marked or (options.device_arguments and is_public)]


def _take_marks(function: Any) -> set[int]:
    if "arg_attrs" not in function.attributes:
        return set()
    arguments = ir.ArrayAttr(function.attributes["arg_attrs"])
    each = [{item.name: item.attr for item in ir.DictAttr(attributes)} for attributes in arguments]
    marked = {number for number, attributes in enumerate(each) if DEVICE_ATTRIBUTE in attributes}
    for attributes in each:
        attributes.pop(DEVICE_ATTRIBUTE, None)
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(attributes) for attributes in each])
    return marked


def _refuse_calls(module: ir.Module, native: dict[str, list[int]]) -> None:
    for call in walk(module, "func.call"):
        callee = str(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)
        if native[callee]:
            found = f"found a call of @{callee}, which takes device memory"
            raise CandidateError(
                Stage.COMPILE, f"host program: {found}, allowed functions that take host memory"
            )


def _refuse_blocks(function: Any) -> None:
    count = len(function.regions[0].blocks)
    if count > 1:
        found = f"found {count} blocks"
        raise CandidateError(
            Stage.COMPILE, f"@{name_of(function)}: {found}, allowed scf.for, scf.while, scf.if"
        )


def _refuse_escape(buffer: Buffer, families: Families) -> None:
    """A buffer of a turn or a branch must end with it: nothing else would know when to free it."""
    end = last_of(buffer.block)
    if end.name == "func.return" or buffer.kind is not Kind.ALLOCATION:
        return
    for value in end.operands:
        if is_buffer(value.type) and buffer.host in families.roots_of(value):
            found = f"found {described(buffer.host)}, which leaves its block"
            raise CandidateError(Stage.COMPILE, f"{end.name}: {found}, allowed buffers from outside")
