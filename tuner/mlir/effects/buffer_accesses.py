"""Which elements of buffers an op of a host function reads and writes: on the device, and on the host.

Takes a host function whose copies and device memory are explicit (``gpu.memcpy``, ``gpu.alloc``). Decides
whether two ops are dependent (read after write, write after read, write after write); independent ops may
run at the same time. Pointers other than descriptors of memrefs may point to any memory.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value
from tuner.mlir.effects.address_flow import buffers_behind, is_buffer, is_from_elsewhere
from tuner.mlir.effects.buffer_regions import BufferPart, region_of
from tuner.mlir.effects.buffer_roots import SOURCES, VIEWS, roots_of
from tuner.mlir.effects.kernel_effects import KernelEffects, effect_of_use
from tuner.mlir.effects.op_effects import ANYTHING, READS, WRITES, Effect
from tuner.mlir.rewrite.definitions import op_of, source_of

DEVICE_OPS = frozenset({"gpu.alloc", "gpu.dealloc", "gpu.memcpy", "gpu.memset", "gpu.launch_func"})
SHARED = "hostShared"  # attribute of gpu.alloc: pinned memory
THROUGH_POINTERS = ("llvm.load", "llvm.store", "llvm.atomicrmw", "llvm.cmpxchg", "llvm.call", "llvm.intr.mem")
DESCRIPTOR = "nvgpu.tma.create.descriptor"  # a kernel's view of the memref that is its first operand
# Ops that forward memrefs or make views of memrefs, and access no memory.
FORWARDING = frozenset(
    {
        *VIEWS,
        *SOURCES,
        *("scf.for", "scf.while", "scf.if", "scf.yield", "scf.condition", "arith.select"),
        *("func.return", "memref.extract_aligned_pointer_as_index", DESCRIPTOR),
    }
)


@dataclass(frozen=True)
class Accesses:
    """The parts of buffers that an op, or a sequence of ops, reads and writes.

    With ``is_unknown``, any buffer may be accessed in addition. As a bool, False where nothing is accessed.
    """

    reads: frozenset[BufferPart] = frozenset()
    writes: frozenset[BufferPart] = frozenset()
    is_unknown: bool = False  # any buffer may be accessed

    def __bool__(self) -> bool:
        """Returns whether any memory is accessed."""
        return bool(self.reads or self.writes or self.is_unknown)

    def conflicts_with(self, other: "Accesses") -> bool:
        """Returns whether one of the two may write what the other reads or writes (Bernstein 1966).

        Two conflicting ops must run in order. An unknown access conflicts with every access that is not
        empty.
        """
        if self.is_unknown or other.is_unknown:
            return bool(self) and bool(other)
        return (
            _overlap(self.writes, other.writes)
            or _overlap(self.writes, other.reads)
            or _overlap(self.reads, other.writes)
        )


NONE = Accesses()
WRITES_WHOLE = Effect(reads=False, writes=True, is_bounded=False)


def union(parts: Iterable[Accesses]) -> Accesses:
    """Returns all reads and writes of ``parts`` as one ``Accesses``; unknown where one part is unknown."""
    reads: set[BufferPart] = set()
    writes: set[BufferPart] = set()
    is_unknown = False
    for part in parts:
        reads |= part.reads
        writes |= part.writes
        is_unknown = is_unknown or part.is_unknown
    return Accesses(frozenset(reads), frozenset(writes), is_unknown)


def is_device_work(op: Op) -> bool:
    """Returns whether the GPU executes ``op``: a kernel launch, a copy, a fill, an allocation or a free.

    False for any other op, and for a ``gpu.alloc`` of pinned memory (``host_shared``), which the host
    executes.
    """
    return op.name in DEVICE_OPS and SHARED not in op.attributes


def has_device_work(op: Op) -> bool:
    """Returns whether the GPU executes ``op`` or an op nested in its regions (see ``is_device_work``)."""
    return any(map(is_device_work, inside(op)))


def device_accesses(op: Op, effects: KernelEffects) -> Accesses:
    """Returns what the GPU reads and writes when it executes ``op`` and the ops nested in its regions.

    ``effects`` describes the kernels of the module, for launches. An allocation or a free counts as a write.
    Raises CandidateError(COMPILE) for a memref of unknown origin.
    """
    return union(_of_device_op(inner, effects) for inner in inside(op) if is_device_work(inner))


def accesses_without_atomics(launch: Op, effects: KernelEffects) -> Accesses:
    """Returns a launch's ``device_accesses``, but for memory that its kernel only uses atomically."""
    if effects.goes_anywhere(launch):
        return Accesses(is_unknown=True)
    return union(_access(value, effect) for value, effect in effects.of_launch_without_atomics(launch))


def host_accesses(op: Op) -> Accesses:
    """Returns what the host reads and writes when it executes ``op`` and the ops nested in its regions.

    Ops that the GPU executes are left out. Raises CandidateError(COMPILE) for a memref of unknown origin.
    """
    hosts = (inner for inner in inside(op) if inner.name not in DEVICE_OPS | FORWARDING)
    return union(_of_host_op(inner) for inner in hosts)


def inside(op: Op) -> Iterator[Op]:
    """Yields the op, then all ops nested in its regions, in pre-order."""
    yield op
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from inside(inner.operation)


def _overlap(some: frozenset[BufferPart], others: frozenset[BufferPart]) -> bool:
    return any(one.overlaps(other) for one in some for other in others)


def _of_device_op(op: Op, effects: KernelEffects) -> Accesses:
    if op.name == "gpu.alloc":
        return _access(op.results[0], WRITES_WHOLE)
    buffers = [operand for operand in op.operands if is_buffer(operand.type)]
    if op.name == "gpu.memcpy":
        return union((_access(buffers[0], WRITES), _access(buffers[1], READS)))
    if op.name in ("gpu.dealloc", "gpu.memset"):
        return _access(buffers[0], WRITES if op.name == "gpu.memset" else WRITES_WHOLE)
    if effects.goes_anywhere(op):
        return Accesses(is_unknown=True)
    return union(_access(value, effect) for value, effect in effects.of_launch(op))


def _of_host_op(op: Op) -> Accesses:
    pairs = ((operand, effect_of_use(op, number)) for number, operand in enumerate(op.operands))
    through_pointers = map(_through_host_pointer, op.operands) if op.name.startswith(THROUGH_POINTERS) else ()
    accesses = (_access(operand, effect) for operand, effect in pairs if is_buffer(operand.type))
    return union((*accesses, *through_pointers))


def _through_host_pointer(value: Value) -> Accesses:
    """Returns the accesses of an op that reads and writes through ``value``, if that is a pointer."""
    if not str(value.type).startswith("!llvm.ptr"):
        return NONE
    if is_from_elsewhere(value):
        return Accesses(is_unknown=True)
    return union(_access(each, ANYTHING) for each in buffers_behind(value))


def _access(value: Value, effect: Effect) -> Accesses:
    if not (effect.reads or effect.writes):
        return NONE
    if not is_buffer(value.type):
        return _through_pointer(value, effect)
    region = region_of(value) if effect.is_bounded else None
    parts = frozenset(BufferPart(root, region) for root in roots_of(value))
    return Accesses(parts if effect.reads else frozenset(), parts if effect.writes else frozenset())


def _through_pointer(value: Value, effect: Effect) -> Accesses:
    """Returns the accesses through a memref's descriptor; any other pointer may point to any memory."""
    descriptor = op_of(source_of(value, ("builtin.unrealized_conversion_cast",)), DESCRIPTOR)
    return Accesses(is_unknown=True) if descriptor is None else _access(descriptor.operands[0], effect)
