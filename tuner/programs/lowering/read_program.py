"""Reads a user's program for lowering: calls inlined, tensors converted to memrefs, indices checked.

It also adds deallocations, and can replace explicit device memory by host memory.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.accesses import DESCRIPTOR, SHARED, host_accesses
from tuner.mlir.effects.aliases import is_buffer, is_token, roots_of
from tuner.mlir.gpu.device_functions import inline_device_functions
from tuner.mlir.gpu.kernel_memory import declare_launch_memory
from tuner.mlir.ir.building import compared, create, for_each_element, index, store, value
from tuner.mlir.ir.memory_spaces import name_memory_spaces
from tuner.mlir.ir.memrefs import copy_buffer, is_workgroup
from tuner.mlir.ir.reading import callee_of, constant_of, location_of, op_of, unsupported, walk
from tuner.mlir.miscompiled import avoid_miscompilations
from tuner.mlir.passes import run_passes
from tuner.programs.lowering.bufferize import bufferized, has_tensors
from tuner.programs.lowering.composed_math import expand_composed_math
from tuner.programs.lowering.deallocation import free_memory
from tuner.programs.lowering.entry import (
    WHOLE_LIMIT,
    entry_of,
    function_named,
    hide_others,
    reject_calls,
    require_default_memory,
    require_few_operations,
    require_names,
    require_resources,
)
from tuner.programs.lowering.packing import decompose_packing
from tuner.programs.streams.async_ops import inline_async_regions
from tuner.programs.streams.gpux import take_stream_from_caller
from tuner.programs.streams.gpux_ops import inline_stream_functions, parse_with_gpux

EXTRACT = "tensor.extract"
LOOPS = ("scf.for", "scf.forall", "scf.parallel")  # whose first block arguments are iteration numbers
SET_DEVICE = "mgpuSetDefaultDevice"
# Functions on an unranked memref, with the names of CudaRuntimeWrappers.cpp until 2021.
REGISTRATIONS = frozenset({"mgpuMemHostRegisterFloat", "mgpuMemHostRegisterInt32"})
UNUSED = "builtin.module(symbol-dce)"
INLINE = "builtin.module(inline,symbol-dce)"
ALLOCATIONS = ("gpu.alloc", "gpux.alloc")
# Operations of gpu, gpux and nvgpu whose operands must be in device memory.
DEVICE_WORK = frozenset({"launch_func", "memset", "tma.create.descriptor"})
EXPLICIT = ("gpu.alloc", "gpu.dealloc", "gpu.memcpy", "gpu.memset")


def assert_indirect_indices(function: Op) -> None:
    """Inserts a ``cf.assert`` before each ``tensor.extract`` with an index that is data, in place.

    An index is data if it depends on a tensor's elements or on an argument, such as an index of a gather. A
    wrong one is an error of the call, on the host and in kernels, as in PyTorch.
          %i = arith.index_cast %row : i64 to index
          %x = tensor.extract %table[%i] : tensor<9xf32>
      becomes
          %i = arith.index_cast %row : i64 to index
          %inside = arith.cmpi ult, %i, %c9 : index          // false for a negative index, too
          cf.assert %inside, "an index into tensor<9xf32> is outside of dimension 0"
          %x = tensor.extract %table[%i] : tensor<9xf32>
    """
    for access in walk(function, EXTRACT):
        tensor = access.operands[0]
        for dimension, number in enumerate(list(access.operands)[1:]):
            if not _is_data(number):
                continue
            with access.location, ir.InsertionPoint(access):
                if tensor.type.is_dynamic_dim(dimension):
                    size = value("tensor.dim", ir.IndexType.get(), tensor, index(dimension))
                else:
                    size = index(tensor.type.shape[dimension])
                inside = compared("ult", number, size)
                message = f"an index into {tensor.type} is outside of dimension {dimension}"
                create("cf.assert", (), [inside], msg=ir.StringAttr.get(message))


def _is_data(number: Value) -> bool:
    """Returns whether an index depends on an argument or on elements of a tensor."""
    waiting = [number]
    seen = set[Value]()
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        if isinstance(each.owner, ir.Block):
            if not _is_iteration(each):
                return True
            continue
        op = each.owner.operation
        if op.name == EXTRACT or op.regions:
            return True
        waiting += list(op.operands) if op.name != "tensor.dim" else []
    return False


def _is_iteration(argument: Value) -> bool:
    loop = argument.owner.owner.operation
    is_first = loop.name != LOOPS[0] or argument.arg_number == 0
    return loop.name in LOOPS and isinstance(argument.type, ir.IndexType) and is_first


def replace_runtime_calls(module: ir.Module) -> None:
    """Replaces calls of MLIR's runtime that register memory, removes calls that select a device; in place.

    Raises CandidateError(BIND) for a call that selects another device than 0: a program runs on one given
    device.
        call @mgpuSetDefaultDevice(%c0_i32) : (i32) -> ()
        call @mgpuMemHostRegisterFloat(%a) : (memref<*xf32>) -> ()
      becomes
        gpu.host_register %a : memref<*xf32>
    """
    calls = [call for call in walk(module, "func.call") if callee_of(call) in {SET_DEVICE, *REGISTRATIONS}]
    for call in calls:
        if callee_of(call) == SET_DEVICE:
            if constant_of(call.operands[0]) != 0:
                where = f"@{SET_DEVICE} ({location_of(call)})"
                raise CandidateError(Stage.BIND, f"payload: {where}: a program runs on one device, number 0")
        else:
            with call.location, ir.InsertionPoint(call):
                create("gpu.host_register", [], [call.operands[0]])
    for call in reversed(calls):
        call.erase()


@dataclass(frozen=True)
class ProgramPayload:
    """A user's program: an MLIR module in the current context, with a function ``entry`` on memrefs."""

    module: ir.Module
    entry: str

    @property
    def function(self) -> Op:
        """Returns the ``func.func`` of the program's entry."""
        return function_named(self.module, self.entry)


def read_program(text: str, entry: str | None = None, *, limit: int | None = WHOLE_LIMIT) -> ProgramPayload:
    """Parses a user's program, inlines its calls, converts tensors to memrefs, and adds deallocations.

    ``entry``: name of the function; None: ``main``, or the only public function. ``limit``: the most linalg
    and elementwise operations; None: no limit. Raises CandidateError: BIND for text that is not a valid
    program, COMPILE for an unsupported program.
    """
    module = parse_with_gpux(text, "payload")
    if limit is not None:
        require_few_operations(module)
        require_few_operations(module, limit, is_whole=True)
    require_resources(module, text)
    avoid_miscompilations(module)
    decompose_packing(module)
    expand_composed_math(module)
    name_memory_spaces(module)
    inline_device_functions(module)
    declare_launch_memory(module)
    name = entry_of(module, entry)
    take_stream_from_caller(function_named(module, name))
    hide_others(module, name)
    replace_runtime_calls(module)
    run_passes(module, UNUSED)
    reject_calls(module)
    inline_stream_functions(module)
    run_passes(module, UNUSED)
    run_passes(module, INLINE)
    gather_globals(function_named(module, name))
    inline_async_regions(function_named(module, name))
    require_names(module)
    require_default_memory(function_named(module, name))
    if has_tensors(module):
        assert_indirect_indices(function_named(module, name))
        module = bufferized(module, name)
    else:
        module = free_memory(module, name)
    return ProgramPayload(module, name)


def gather_globals(function: Op) -> None:
    """Moves one ``memref.get_global`` per global to the start of a function, removes the others; in place.

    Kernels then take the global as an argument, in place of a copy in their own module. Each global is one
    value.
    """
    first: dict[str, Op] = {}
    for op in walk(function, "memref.get_global"):
        if is_workgroup(op.results[0].type):
            continue
        known = first.setdefault(str(op.attributes["name"]), op)
        if known != op:
            op.results[0].replace_all_uses_with(known.results[0])
            op.erase()
    start = function.regions[0].blocks[0].operations[0]
    for op in first.values():
        if op != start.operation:
            op.move_before(start)


# Explicit device memory: whether a program mixes it with host memory, and the program without it.
#
# A program that allocates device memory itself may still pass host memory to a kernel, or load on the host
# from device memory, which no GPU runs as written. It is rewritten to host memory only, so that
# ``host_to_device_memory`` inserts device buffers and copies again. ``gpu.alloc host_shared``, and registered
# memory, which both sides can access, are left unchanged.
#
#     %0 = gpu.alloc () : memref<4xf32>
#     gpu.memcpy %0, %a : memref<4xf32>, memref<4xf32>
#     gpu.dealloc %0 : memref<4xf32>
#   becomes
#     %0 = memref.alloc() : memref<4xf32>
#     memref.copy %a, %0 : memref<4xf32> to memref<4xf32>
#     memref.dealloc %0 : memref<4xf32>


def mixes_memory(function: Op, *, device_arguments: bool = False) -> bool:
    """Returns whether a function mixes host and device memory.

    It does if kernels or fills take host memory, or if host code accesses or returns device memory. With
    ``device_arguments``, buffers that the function takes count as device memory for kernels and fills;
    accesses to these buffers by host code are not found.
    """
    ops = list(_outside_of_kernels(function))
    registered: set[Value] = set()
    for op in ops:
        if op.name == "gpu.host_register":
            registered.update(roots_of(op.operands[0]))

    def is_for_device(root: Value) -> bool:
        is_argument = isinstance(root.owner, ir.Block)
        return root in registered or (device_arguments if is_argument else _is_explicit(root))

    for op in ops:
        dialect, _, name = op.name.partition(".")
        if dialect in ("gpu", "gpux") or op.name == DESCRIPTOR:
            operands = op.operands if name in DEVICE_WORK else []
            if not all(map(is_for_device, _roots(operands))):
                return True
        elif any(_is_explicit(root) and not _is_shared(root) for root in _of_host(op)):
            return True
    return False


def reject_tensor_maps(function: Op) -> None:
    """Raises CandidateError(COMPILE) for a tensor map, whose memory the compiler cannot place again."""
    for op in walk(function, DESCRIPTOR):
        actual = f"{op.operands[0].type} in a program that leaves memory of the device to the compiler"
        allowed = "tensors in gpu.alloc, where the program itself copies all that its kernels take"
        raise unsupported(op, actual, allowed)


def without_explicit_memory(function: Op) -> None:
    """Replaces a function's synchronous device memory by host memory, in place.

    Memory that host and device share (``gpu.alloc host_shared``) stays.
    """
    dead = []
    for op in list(_outside_of_kernels(function)):
        if op.name in EXPLICIT and not _is_of_shared(op):
            use_host_memory(op)
            dead.append(op)
    for op in reversed(dead):
        op.erase()


def use_host_memory(op: Op) -> None:
    """Creates the host equivalent of a gpu.alloc, gpu.dealloc, gpu.memcpy or gpu.memset before ``op``.

    The caller erases ``op``.
    """
    kept = [operand for operand in op.operands if not is_token(operand)]
    kinds = [result.type for result in op.results if not is_token(result)]
    with op.location, ir.InsertionPoint(op):
        if op.name == "gpu.memcpy":
            copy_buffer(*kept)
        elif op.name == "gpu.memset":
            for_each_element(kept[0], lambda indices: store(kept[1], kept[0], indices))
        elif op.name == "gpu.dealloc":
            create("memref.dealloc", [], kept)
        elif op.name == "gpu.alloc":
            segments = ir.DenseI32ArrayAttr.get([len(kept), 0])
            new = create("memref.alloc", kinds, kept, operandSegmentSizes=segments)
            op.results[0].replace_all_uses_with(new.results[0])


def _outside_of_kernels(op: Op) -> Iterator[Op]:
    """Yields an operation and its nested operations in pre-order, without the bodies of gpu.launch."""
    yield op
    if op.name == "gpu.launch":
        return
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _outside_of_kernels(inner.operation)


def _of_host(op: Op) -> set[Value]:
    """Returns the buffers that a host operation, without its nested operations, accesses or returns."""
    if op.name == "func.return":
        return _roots(op.operands)
    if list(op.regions) and not op.name.startswith("linalg."):
        return set()
    accesses = host_accesses(op)
    return {part.root for part in accesses.reads | accesses.writes}


def _roots(values: Iterable[Value]) -> set[Value]:
    buffers = [operand for operand in values if is_buffer(operand.type)]
    return set(chain.from_iterable(map(roots_of, buffers)))


def _is_explicit(root: Value) -> bool:
    return op_of(root, *ALLOCATIONS) is not None


def _is_shared(root: Value) -> bool:
    return SHARED in root.owner.operation.attributes


def _is_of_shared(op: Op) -> bool:
    if op.name == "gpu.alloc":
        return SHARED in op.attributes
    roots = _roots(op.operands) if op.name == "gpu.dealloc" else set()
    return any(_is_explicit(root) and _is_shared(root) for root in roots)
