"""Rewrites host programs so that their kernels work on device memory.

Takes functions whose ``gpu.launch_func`` operands are host memory, after ``gpu-kernel-outlining``. Allocates
a mirror in device memory for each buffer that a kernel takes; ``gpu.memcpy`` copies to the mirror where it is
out of date, and back where the host memory is out of date. Everything is synchronous: no tokens, no streams.

    func.func @main(%a: memref<4xf32>) {
      gpu.launch_func @m::@k blocks in (...) threads in (...) args(%a : memref<4xf32>)
      return
  becomes
    func.func @main(%a: memref<4xf32>) {
      %device = gpu.alloc () : memref<4xf32>
      gpu.memcpy %device, %a : memref<4xf32>, memref<4xf32>
      gpu.launch_func @m::@k blocks in (...) threads in (...) args(%device : memref<4xf32>)
      gpu.memcpy %a, %device : memref<4xf32>, memref<4xf32>
      gpu.dealloc %device : memref<4xf32>
      return

The caller sees no difference: arguments that kernels write, and globals, are host memory that is up to date
when the function returns, and results are host memory. Written arguments must not overlap other arguments.
Rejected: several blocks, device work other than plain launches, buffers of unknown origin, and memory that
escapes the iteration or branch that allocated it.
"""

from tuner.core.device_programs import DEFAULTS, DEVICE_ATTRIBUTE, DeviceOptions
from tuner.core.errors import CandidateError, Stage
from tuner.gpu.device_memory.buffers import (
    ALLOCATIONS,
    BufferKind,
    MirroredBuffer,
    allocate_host_like,
    allocate_like,
)
from tuner.gpu.device_memory.coherence import CoherenceWalk, CopyInsertion, pin
from tuner.gpu.device_memory.device_views import DeviceViews
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.aliases import (
    AliasSets,
    block_of,
    described,
    is_buffer,
    last_of,
    structured_operations,
)
from tuner.mlir.effects.memory_effects import KernelEffects, reject_device_code
from tuner.mlir.ir.memrefs import copy_views_by_loops
from tuner.mlir.ir.reading import (
    callee_of,
    function_type,
    name_of,
    op_of,
    set_operands,
    unsupported,
    uses_of,
    walk,
)

PLACEABLE = (BufferKind.ALLOCATION, BufferKind.DEVICE_ARGUMENT)  # whose host memory is the function's own


def host_to_device_memory(module: ir.Module, options: DeviceOptions = DEFAULTS) -> None:
    """Makes a module's kernels work on device memory, synchronously and in place, and inserts copies.

    Arguments with the attribute ``tuner.device`` are on the device already; with ``options.device_arguments``
    all buffers that public functions take are. Raises CandidateError(COMPILE) for buffers whose origin is
    unknown or that escape an iteration or a branch, and for a call of a function that takes device memory.
    """
    effects = KernelEffects(module)
    constants = {
        name_of(op): "constant" in op.attributes
        for op in module.body.operations
        if op.operation.name == "memref.global"
    }
    functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    device_arguments = {
        name_of(function): _take_device_arguments(function, options) for function in functions
    }
    for callee in list(map(callee_of, walk(module, "func.call"))):
        if device_arguments[callee]:
            raise CandidateError(
                Stage.COMPILE, f"host program: @{callee} takes device memory, so it cannot be called"
            )
    for function in functions:
        if len(function.regions[0].blocks):
            _FunctionRewrite(function, options, constants).rewrite(
                effects, device_arguments[name_of(function)]
            )
            copy_views_by_loops(function)


class _FunctionRewrite:
    def __init__(self, function: Op, options: DeviceOptions, constants: dict[str, bool]) -> None:
        self._function = function
        self._options = options
        self._constants = constants
        self._block = function.regions[0].blocks[0]
        # host memory that replaces an argument -> the argument
        self._device_arguments: dict[Value, Value] = {}

    def rewrite(self, effects: KernelEffects, numbers: list[int]) -> None:
        """Rewrites the function if it has launches or arguments in device memory.

        ``numbers``: the indices of these arguments.
        """
        if not walk(self._function, "gpu.launch_func") and not numbers:
            return
        count = len(self._function.regions[0].blocks)
        if count > 1:
            name = name_of(self._function)
            raise CandidateError(
                Stage.COMPILE, f"@{name}: found {count} blocks, allowed scf.for, scf.while, scf.if"
            )
        reject_device_code(self._function, set(structured_operations(self._block)))
        self._gather_globals()
        for argument in [self._block.arguments[number] for number in numbers]:
            uses = uses_of(argument)
            with self._function.location, ir.InsertionPoint.at_block_begin(self._block):
                host = allocate_host_like(argument)
            set_operands(uses, host)
            self._device_arguments[host] = argument
        before = AliasSets(self._function)
        managed = self._managed(before)
        device_views = DeviceViews(self._function, lambda value: before.of(value) in managed)
        # again: now with the device views
        alias_sets = AliasSets(self._function)
        buffers = self._buffers(alias_sets, device_views)
        device_views.connect()
        for value in filter(lambda operand: is_buffer(operand.type), last_of(self._block).operands):
            for root in alias_sets.roots_of(value):
                if root in buffers:
                    buffers[root].is_returned = True
        # the walk follows which side of each buffer is valid, and inserts copies where the other is needed
        actions = CopyInsertion(alias_sets, buffers, device_views)
        CoherenceWalk(alias_sets, buffers, effects).function(self._function, actions)
        actions.finish()
        for buffer in buffers.values():
            self._drop_unused_side(buffer, actions.used_on_host)
        device_views.erase_unused()
        if self._options.pinned:
            pin([buffer for buffer in buffers.values() if buffer.alias_set in actions.used_on_host])

    def _gather_globals(self) -> None:
        # so that each global is one value
        first: dict[str, Op] = {}
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

    def _managed(self, alias_sets: AliasSets) -> set[int]:
        """Returns the alias sets that need device memory: sets with memory that kernels cannot access."""
        values = list(self._device_arguments)
        for launch in walk(self._function, "gpu.launch_func"):
            values += launch.operands
        managed = set()
        for value in values:
            if is_buffer(value.type) and not all(map(is_shared, alias_sets.roots_of(value))):
                managed.add(alias_sets.of(value))
        return managed

    def _buffers(self, alias_sets: AliasSets, device_views: DeviceViews) -> dict[Value, MirroredBuffer]:
        managed = self._managed(alias_sets)
        roots = [root for root in alias_sets.roots() if alias_sets.of(root) in managed]
        buffers = {root: self._buffer(root, alias_sets.of(root)) for root in roots}
        for buffer in buffers.values():
            device_views.set_root(buffer.host, buffer.device)
        in_device_memory = {
            buffer.alias_set for buffer in buffers.values() if buffer.kind is BufferKind.DEVICE_ARGUMENT
        }
        for buffer in buffers.values():
            if buffer.alias_set in in_device_memory and buffer.kind not in PLACEABLE:
                actual = f"{described(buffer.host)} in host memory and arguments in device memory"
                raise CandidateError(Stage.COMPILE, f"{actual} cannot be combined in one alias set")
        for buffer in buffers.values():
            _refuse_escape(buffer, alias_sets)
        return buffers

    def _buffer(self, root: Value, alias_set: int) -> MirroredBuffer:
        if root in self._device_arguments:
            memory = self._device_arguments[root]
            return MirroredBuffer(
                BufferKind.DEVICE_ARGUMENT, alias_set, root, memory, self._block, flat=memory
            )
        is_argument = isinstance(root.owner, ir.Block)
        point = ir.InsertionPoint.at_block_begin(self._block) if is_argument else None
        with self._function.location, point or ir.InsertionPoint.after(root.owner.operation):
            flat, device = allocate_like(root)
        return MirroredBuffer(self._kind(root), alias_set, root, device, block_of(root), flat)

    def _kind(self, root: Value) -> BufferKind:
        if isinstance(root.owner, ir.Block):
            return BufferKind.ARGUMENT
        if root.owner.operation.name in ALLOCATIONS:
            return BufferKind.ALLOCATION
        if root.owner.operation.name == "memref.get_global":
            symbol = str(ir.FlatSymbolRefAttr(root.owner.attributes["name"]).value)
            if self._constants[symbol]:
                return BufferKind.CONSTANT
            return BufferKind.GLOBAL
        if is_shared(root):
            actual = "shared memory that control flow exchanges for other memory"
            raise unsupported(root.owner.operation, actual, "one of both")
        raise unsupported(
            root.owner.operation, f"the buffer {described(root)}", "arguments, allocations and globals"
        )

    def _drop_unused_side(self, buffer: MirroredBuffer, used_on_host: set[int]) -> None:
        if buffer.alias_set in used_on_host or buffer.kind not in PLACEABLE:
            return
        for op in buffer.deallocations:
            op.erase()
        allocation = buffer.host.owner.operation
        buffer.host.replace_all_uses_with(buffer.device)
        allocation.erase()


def is_shared(root: Value) -> bool:
    """Returns whether a buffer's root is a ``gpu.alloc``, here memory that host and kernels can access.

    ``host_shared`` is not checked: ``without_explicit_memory`` has replaced every ``gpu.alloc`` without it.
    """
    return op_of(root, "gpu.alloc") is not None


def _take_device_arguments(function: Op, options: DeviceOptions) -> list[int]:
    inputs = function_type(function).inputs
    buffers = [index for index, type_ in enumerate(inputs) if is_buffer(type_)]
    is_public = "private" not in str(function.attributes.get("sym_visibility", "public"))
    marked = _take_marks(function)
    return [number for number in buffers if number in marked or (options.device_arguments and is_public)]


def _take_marks(function: Op) -> set[int]:
    if "arg_attrs" not in function.attributes:
        return set()
    every = [
        {item.name: item.attr for item in ir.DictAttr(attributes)}
        for attributes in ir.ArrayAttr(function.attributes["arg_attrs"])
    ]
    marked = {
        index for index, attributes in enumerate(every) if attributes.pop(DEVICE_ATTRIBUTE, None) is not None
    }
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(list(map(ir.DictAttr.get, every)))
    return marked


def _refuse_escape(buffer: MirroredBuffer, alias_sets: AliasSets) -> None:
    """Raises CandidateError(COMPILE) for an allocation that escapes its iteration or branch.

    No code could free it.
    """
    end = last_of(buffer.block)
    if end.name == "func.return" or buffer.kind is not BufferKind.ALLOCATION:
        return
    for value in end.operands:
        if is_buffer(value.type) and buffer.host in alias_sets.roots_of(value):
            actual = f"{described(buffer.host)}, allocated in this block, cannot leave the block"
            raise CandidateError(Stage.COMPILE, f"{end.name}: {actual}")
