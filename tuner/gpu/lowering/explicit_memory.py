"""Explicit device memory: whether a program mixes it with host memory, and the program without it.

A program that allocates device memory itself may still pass host memory to a kernel, or load on the host
from device memory, which no GPU runs as written. It is rewritten to host memory only, so that
``host_to_device_memory`` inserts device buffers and copies again. ``gpu.alloc host_shared``, and registered
memory, which both sides can access, are left unchanged.

    %0 = gpu.alloc () : memref<4xf32>
    gpu.memcpy %0, %a : memref<4xf32>, memref<4xf32>
    gpu.dealloc %0 : memref<4xf32>
  becomes
    %0 = memref.alloc() : memref<4xf32>
    memref.copy %a, %0 : memref<4xf32> to memref<4xf32>
    memref.dealloc %0 : memref<4xf32>
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.accesses import DESCRIPTOR, SHARED, host_accesses
from tuner.mlir.effects.aliases import is_buffer, is_token, roots_of
from tuner.mlir.ir.building import create, for_each_element, store
from tuner.mlir.ir.memrefs import copy_buffer
from tuner.mlir.ir.reading import op_of, unsupported, walk

ALLOCATIONS = ("gpu.alloc", "gpux.alloc")
# Operations of gpu, gpux and nvgpu whose operands must be in device memory.
DEVICE_WORK = frozenset({"launch_func", "memset", "tma.create.descriptor"})
EXPLICIT = ("gpu.alloc", "gpu.dealloc", "gpu.memcpy", "gpu.memset")


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
