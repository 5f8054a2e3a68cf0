"""What operations on memrefs and vectors read and write: which buffer, and which places of it.

    vector.transfer_write %v, %out[%i, %j] : vector<16xf32>, memref<128x1024xf32>
  is a write of %out, of 1 x 16 elements from (%i, %j) on.

Places are known of buffers that are accessed directly. Through a view, all of the buffer may be accessed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.definitions import source_of
from tuner.mlir.rewrite.walking import walk_where

ALLOCATIONS = ("memref.alloc", "memref.alloca")
VIEWS = (
    "memref.subview",
    "memref.cast",
    "memref.reinterpret_cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.view",
    "memref.extract_strided_metadata",
)
# operation -> which operand is the buffer, and which value has the shape of what is accessed: an operand, or
# the result (None)
READS: dict[str, tuple[int, int | None]] = {
    "memref.load": (0, None),
    "vector.load": (0, None),
    "vector.transfer_read": (0, None),
    "vector.maskedload": (0, None),
}
WRITES: dict[str, tuple[int, int | None]] = {
    "memref.store": (1, 0),
    "vector.store": (1, 0),
    "vector.transfer_write": (1, 0),
    "vector.maskedstore": (0, -1),
}
WHOLE_READS = {"vector.gather": (0,), "amx.tile_load": (0,), "memref.copy": (0,)}  # operands
WHOLE_WRITES = {"vector.scatter": (0,), "amx.tile_store": (0,), "memref.copy": (1,)}
NO_ACCESS = (*ALLOCATIONS, *VIEWS, "memref.dealloc", "memref.dim", "memref.prefetch")
PURE_DIALECTS = ("arith.", "math.", "vector.", "index.", "ub.", "x86.", "amx.", "complex.")
INTRINSIC, NAME = "llvm.call_intrinsic", "intrin"  # operation and its attribute
PURE_INTRINSICS = ("llvm.x86.avx512.vpdpbusd.",)  # beginnings of names
STRUCTURE = ("scf.for", "scf.if", "scf.yield")
MAP = "permutation_map"


@dataclass(frozen=True)
class PlacedAccess:
    """One read or write of a buffer."""

    buffer: Value  # an argument of a function, or the result of an allocation
    is_write: bool
    starts: tuple[Value, ...]  # the first index of each dimension; (): anywhere
    extents: tuple[int, ...]  # elements from there on, for each dimension


def accesses_in(root: Op) -> tuple[PlacedAccess, ...] | None:
    """Returns what an operation and all in it access; None where something else happens in it, as in a call.

    What a loop or branch hands on as a buffer is not followed: None, too.
    """
    found: list[PlacedAccess] = []
    for op in walk_where(root, lambda _: True):
        accesses = _accesses(op)
        if accesses is None:
            return None
        found += accesses
    return tuple(found)


def is_computing(op: Op) -> bool:
    """Returns whether an operation is of a kind that only computes values, unless it is a read or a write."""
    if op.name == INTRINSIC:
        return bool(ir.StringAttr(op.attributes[NAME]).value.startswith(PURE_INTRINSICS))
    return bool(op.name.startswith(PURE_DIALECTS))


def is_local(buffer: Value) -> bool:
    """Returns whether a buffer is memory that the function itself allocates."""
    return not isinstance(buffer.owner, ir.Block)


def _accesses(op: Op) -> list[PlacedAccess] | None:
    name = op.name
    if name in STRUCTURE or name in NO_ACCESS:
        return None if name in STRUCTURE and _has_buffers(op) else []
    if name in READS or name in WRITES:
        is_write = name in WRITES
        place, shaped = (WRITES if is_write else READS)[name]
        return _placed(
            op, op.operands[place], op.results[0] if shaped is None else op.operands[shaped], is_write
        )
    if name in WHOLE_READS or name in WHOLE_WRITES:
        pairs = [(at, False) for at in WHOLE_READS.get(name, ())]
        pairs += [(at, True) for at in WHOLE_WRITES.get(name, ())]
        bases = [(_base(op.operands[at]), is_write) for at, is_write in pairs]
        return (
            [PlacedAccess(base, is_write, (), ()) for base, is_write in bases if base is not None]
            if all(base is not None for base, _ in bases)
            else None
        )
    is_pure = is_computing(op) and not op.regions and not _has_buffers(op)
    return [] if is_pure else None


def _placed(op: Op, buffer: Value, accessed: Value, is_write: bool) -> list[PlacedAccess] | None:
    base = _base(buffer)
    if base is None:
        return None
    if base != buffer:
        return [PlacedAccess(base, is_write, (), ())]
    rank = ir.MemRefType(buffer.type).rank
    first = next(at for at, each in enumerate(op.operands) if each == buffer) + 1
    starts = tuple(list(op.operands)[first : first + rank])
    extents = [1] * rank
    if isinstance(accessed.type, ir.VectorType):
        shape = list(ir.VectorType(accessed.type).shape)
        for dimension, extent in zip(_dimensions(op, rank, len(shape)), shape, strict=True):
            if dimension is not None:
                extents[dimension] = extent
    return [PlacedAccess(base, is_write, starts, tuple(extents))]


def _dimensions(op: Op, rank: int, vector_rank: int) -> list[int | None]:
    """Returns the dimension of the buffer that each dimension of a vector runs along; None: a broadcast."""
    if MAP not in op.attributes:
        return list(range(rank - vector_rank, rank))
    results = ir.AffineMapAttr(op.attributes[MAP]).value.results
    return [each.position if isinstance(each, ir.AffineDimExpr) else None for each in results]


def _base(buffer: Value) -> Value | None:
    """Returns the argument or allocation that a buffer is a view of; None for others, as a loop's result."""
    base = source_of(buffer, VIEWS)
    owner = base.owner
    if isinstance(owner, ir.Block):
        return base if owner.owner.operation.name == "func.func" else None
    return base if owner.operation.name in ALLOCATIONS else None


def _has_buffers(op: Op) -> bool:
    return any(_is_buffer(each) for each in _values(op))


def _values(op: Op) -> Iterator[Value]:
    yield from op.operands
    yield from op.results


def _is_buffer(value: Value) -> bool:
    return isinstance(value.type, ir.MemRefType | ir.UnrankedMemRefType)
