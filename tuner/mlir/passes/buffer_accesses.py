"""Which parts of buffers an operation of a host function reads and writes: by the device, and by the host."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.passes.buffer_regions import Part, region_of
from tuner.mlir.passes.buffer_roots import SOURCES, VIEWS, is_buffer, roots_of
from tuner.mlir.passes.kernel_effects import READS, WRITES, Effect, KernelEffects, effect_of_use

DEVICE_OPS = frozenset({"gpu.alloc", "gpu.dealloc", "gpu.memcpy", "gpu.memset", "gpu.launch_func"})
SHARED = "hostShared"  # of gpu.alloc: pinned memory
DESCRIPTOR = "nvgpu.tma.create.descriptor"  # a kernel's view of a memref, its first operand
# Hand memrefs on, or make views of them, and look at no memory.
BYSTANDERS = frozenset(
    {
        *VIEWS,
        *SOURCES,
        *("scf.for", "scf.while", "scf.if", "scf.yield", "scf.condition", "arith.select"),
        *("func.return", "memref.extract_aligned_pointer_as_index", DESCRIPTOR),
    }
)


@dataclass(frozen=True)
class Accesses:
    """Parts of buffers that something reads and writes."""

    reads: frozenset[Part] = frozenset()
    writes: frozenset[Part] = frozenset()
    is_unknown: bool = False  # it may touch any buffer

    def __bool__(self) -> bool:
        """Tells whether there is any."""
        return bool(self.reads or self.writes or self.is_unknown)

    def conflicts_with(self, other: "Accesses") -> bool:
        """Tells whether the order of the two matters."""
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
    """Returns all accesses of the parts."""
    reads: set[Part] = set()
    writes: set[Part] = set()
    is_unknown = False
    for part in parts:
        reads |= part.reads
        writes |= part.writes
        is_unknown = is_unknown or part.is_unknown
    return Accesses(frozenset(reads), frozenset(writes), is_unknown)


def is_device_work(op: Any) -> bool:
    """Tells whether the op is work for the device; memory that the host shares is allocated by the host."""
    return op.name in DEVICE_OPS and SHARED not in op.attributes


def has_device_work(op: Any) -> bool:
    """Tells whether the op, or one inside of it, is work for the device."""
    return any(map(is_device_work, inside(op)))


def device_accesses(op: Any, effects: KernelEffects) -> Accesses:
    """Returns what the device does for this op and those inside of it."""
    return union(_of_device_op(inner, effects) for inner in inside(op) if is_device_work(inner))


def host_accesses(op: Any) -> Accesses:
    """Returns what the host itself does for this op and those inside of it."""
    hosts = (inner for inner in inside(op) if inner.name not in DEVICE_OPS | BYSTANDERS)
    return union(_of_host_op(inner) for inner in hosts)


def inside(op: Any) -> Iterator[Any]:
    """Yields the op, then those in its regions, in order."""
    yield op
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from inside(inner.operation)


def _overlap(some: frozenset[Part], others: frozenset[Part]) -> bool:
    return any(one.overlaps(other) for one in some for other in others)


def _of_device_op(op: Any, effects: KernelEffects) -> Accesses:
    if op.name == "gpu.alloc":
        return _access(op.results[0], WRITES_WHOLE)
    buffers = [operand for operand in op.operands if is_buffer(operand.type)]
    if op.name == "gpu.memcpy":
        return union((_access(buffers[0], WRITES), _access(buffers[1], READS)))
    if op.name in ("gpu.dealloc", "gpu.memset"):
        return _access(buffers[0], WRITES if op.name == "gpu.memset" else WRITES_WHOLE)
    return union(_access(value, effect) for value, effect in effects.of_launch(op))


def _of_host_op(op: Any) -> Accesses:
    pairs = ((operand, effect_of_use(op, number)) for number, operand in enumerate(op.operands))
    return union(_access(operand, effect) for operand, effect in pairs if is_buffer(operand.type))


def _access(value: Any, effect: Effect) -> Accesses:
    if not (effect.reads or effect.writes):
        return NONE
    if not is_buffer(value.type):
        return _through_pointer(value, effect)
    region = region_of(value) if effect.is_bounded else None
    parts = frozenset(Part(root, region) for root in roots_of(value))
    return Accesses(parts if effect.reads else frozenset(), parts if effect.writes else frozenset())


def _through_pointer(value: Any, effect: Effect) -> Accesses:
    """Returns the accesses by a descriptor of a memref; any other pointer may lead anywhere."""
    owner = value.owner
    if not isinstance(owner, ir.Block) and owner.operation.name == DESCRIPTOR:
        return _access(owner.operation.operands[0], effect)
    return Accesses(is_unknown=True)
