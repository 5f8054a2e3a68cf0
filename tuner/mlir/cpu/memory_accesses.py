"""Which buffers ops on memrefs and vectors read and write, and which elements of each.

    vector.transfer_write %v, %out[%i, %j] : vector<16xf32>, memref<128x1024xf32>
  is a write of %out, of 1 x 16 elements from (%i, %j) on.

Indices are known of buffers that are accessed directly (``tuner.mlir.cpu.index_ranges`` has the values of an
index). Through a view, all of the buffer may be accessed.
``tuner.mlir.cpu.threads`` divides loops among threads where these accesses are separate; the effects of
``tuner.mlir.effects``, which whole programs need, know no boxes of elements.
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.reading import source_of, types_of, walk_where

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
WHOLE_READS = {"vector.gather": (0,), "x86.amx.tile_load": (0,), "memref.copy": (0,)}  # operands
WHOLE_WRITES = {"vector.scatter": (0,), "x86.amx.tile_store": (0,), "memref.copy": (1,)}
NO_ACCESS = (*ALLOCATIONS, *VIEWS, "memref.dealloc", "memref.dim", "memref.prefetch")
PURE_DIALECTS = ("arith.", "math.", "vector.", "index.", "ub.", "x86.", "amx.", "complex.")
# operation and its attribute
INTRINSIC = "llvm.call_intrinsic"
NAME = "intrin"
PURE_INTRINSICS = (  # beginnings of names
    "llvm.x86.avx512.vpdpbusd.",
    "llvm.x86.avx2.pmadd.wd",
    "llvm.x86.avx2.pmadd.ub.sw",
    "llvm.x86.avx512.pmaddw.d.",
    "llvm.x86.avx512.pmaddubs.w.",
    "llvm.x86.avx512.permvar.",
    "llvm.aarch64.neon.sdot.",
    "llvm.aarch64.neon.bfdot.",
    "llvm.aarch64.neon.smmla.",
    "llvm.aarch64.neon.bfmmla",
)
STRUCTURE = ("scf.for", "scf.if", "scf.yield")
MAP = "permutation_map"


@dataclass(frozen=True)
class PlacedAccess:
    """One read or write of a buffer: a box of elements, from the indices ``starts`` on, ``extents`` wide."""

    buffer: Value  # an argument of a function, or the result of an allocation
    is_write: bool
    starts: tuple[Value, ...]  # the first index of each dimension; (): anywhere
    extents: tuple[int, ...]  # elements from there on, for each dimension


def accesses_in(root: Op, ignored: tuple[str, ...] = ()) -> tuple[PlacedAccess, ...] | None:
    """Returns all reads and writes of an op and of the ops nested in it; None if they are not all known.

    They are not known if an op has other effects, such as a call, or if a loop or branch yields a buffer.
    ``ignored``: names of ops that are left out.
    """
    accesses: list[PlacedAccess] = []
    for op in walk_where(root, lambda op: op.name not in ignored):
        accesses_of_op = _accesses(op)
        if accesses_of_op is None:
            return None
        accesses += accesses_of_op
    return tuple(accesses)


def is_computing(op: Op) -> bool:
    """Returns whether an op is one that computes values without side effects, by its dialect or intrinsic.

    Ops of these dialects that access memory, such as vector.load, count too: callers look for those first.
    """
    if op.name == INTRINSIC:
        return bool(ir.StringAttr(op.attributes[NAME]).value.startswith(PURE_INTRINSICS))
    return bool(op.name.startswith(PURE_DIALECTS))


def is_local(buffer: Value) -> bool:
    """Returns whether a buffer is not an argument: the function itself allocates its memory."""
    return not isinstance(buffer.owner, ir.Block)


def _accesses(op: Op) -> list[PlacedAccess] | None:
    name = op.name
    if name in STRUCTURE or name in NO_ACCESS:
        if name in STRUCTURE and _has_buffers(op):
            return None
        return []
    if name in READS or name in WRITES:
        is_write = name in WRITES
        buffer, shaped = (WRITES if is_write else READS)[name]
        return _placed(
            op, op.operands[buffer], op.results[0] if shaped is None else op.operands[shaped], is_write
        )
    if name in WHOLE_READS or name in WHOLE_WRITES:
        pairs = [(at, False) for at in WHOLE_READS.get(name, ())]
        pairs += [(at, True) for at in WHOLE_WRITES.get(name, ())]
        bases = [(_base(op.operands[at]), is_write) for at, is_write in pairs]
        accesses = [PlacedAccess(base, is_write, (), ()) for base, is_write in bases if base is not None]
        if len(accesses) == len(bases):
            return accesses
        return None
    is_pure = is_computing(op) and not op.regions and not _has_buffers(op)
    if is_pure:
        return []
    return None


def _placed(op: Op, buffer: Value, accessed: Value, is_write: bool) -> list[PlacedAccess] | None:
    base = _base(buffer)
    if base is None:
        return None
    if base != buffer:
        return [PlacedAccess(base, is_write, (), ())]
    rank = ir.MemRefType(buffer.type).rank
    first = next(at for at, operand in enumerate(op.operands) if operand == buffer) + 1
    starts = tuple(list(op.operands)[first : first + rank])
    extents = [1] * rank
    element = ir.MemRefType(buffer.type).element_type  # a vector in what convert-vector-to-scf makes
    if isinstance(accessed.type, ir.VectorType) and not isinstance(element, ir.VectorType):
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
    return [result.position if isinstance(result, ir.AffineDimExpr) else None for result in results]


def _base(buffer: Value) -> Value | None:
    """Returns the argument or allocation that a buffer is a view of; None for others, as a loop's result."""
    base = source_of(buffer, VIEWS)
    owner = base.owner
    if isinstance(owner, ir.Block):
        if owner.owner.operation.name == "func.func":
            return base
        return None
    if owner.operation.name in ALLOCATIONS:
        return base
    return None


def _has_buffers(op: Op) -> bool:
    types = types_of((*op.operands, *op.results))
    return any(isinstance(type_, ir.MemRefType | ir.UnrankedMemRefType) for type_ in types)
