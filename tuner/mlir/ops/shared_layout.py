"""``tuner.shared_layout``: rows of shared memory that banks do not collide on."""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.building import affine, create, symbol, value
from tuner.mlir.ops.dialect import InPlaceOp, attribute, walk
from tuner.mlir.types import element_bytes, is_workgroup

VECTOR_BYTES = 16  # one row of an ldmatrix tile, one cp.async
BANKS_BYTES = 128  # all 32 banks
READS_AND_COPIES = frozenset({"nvgpu.ldmatrix", "nvgpu.device_async_copy", "vector.store"})
BY_INDEX = READS_AND_COPIES | {"vector.load", "memref.load", "memref.store"}


class SharedLayoutOp(InPlaceOp, name="shared_layout"):
    """Rearranges every ``memref.alloc`` in shared memory; all accesses must be by index.

    With ``swizzle = 1`` (i64, 0 unless given) a tile that only ``nvgpu.ldmatrix`` reads gets its 16-byte
    columns exclusive-or'd with the row; without, rows longer by 16 bytes, which does as well and takes more
    memory. Every other tile gets rows longer by ``pad_bytes`` (i64, a multiple of 16, 16 unless given). 0
    leaves rows as long as they are. Run last of what looks at shared memory. The handle (a func.func)
    stays valid. Silenceable failure: a use that is not by index, or other ``pad_bytes``.
    """

    def change(self, function: Any) -> str | None:
        """Changes one function."""
        pad_bytes = attribute(self, "pad_bytes", VECTOR_BYTES)
        if pad_bytes < 0 or pad_bytes % VECTOR_BYTES:
            return f"pad_bytes: found {pad_bytes}, allowed a multiple of {VECTOR_BYTES}"
        tiles = [each for each in walk(function, "memref.alloc") if _is_shared(each)]
        strange = next((name for tile in tiles for name in _names(tile) - BY_INDEX), None)
        if strange is not None:
            return f"found {strange} of shared memory, allowed {', '.join(sorted(BY_INDEX))}"
        for tile in tiles:
            _rearrange(tile, pad_bytes, attribute(self, "swizzle", 0) == 1)
        return None


def _is_shared(alloc: Any) -> bool:
    return is_workgroup(ir.MemRefType(alloc.results[0].type))


def _uses(alloc: Any) -> list[tuple[Any, int]]:
    """Returns (op, number of the operand that is the tile)."""
    uses = [(use.owner.operation, use.operand_number) for use in alloc.results[0].uses]
    return [(op, number) for op, number in uses if op.name != "memref.dealloc"]


def _names(alloc: Any) -> set[str]:
    return {op.name for op, _ in _uses(alloc)}


def _rearrange(alloc: Any, pad_bytes: int, is_swizzled: bool) -> None:
    names = _names(alloc)
    is_of_tiles = "nvgpu.ldmatrix" in names and names <= READS_AND_COPIES
    if is_swizzled and is_of_tiles:
        _swizzle(alloc)
    elif pad_bytes:
        _pad(alloc, VECTOR_BYTES if is_of_tiles else pad_bytes)


def _pad(alloc: Any, pad_bytes: int) -> None:
    old = ir.MemRefType(alloc.results[0].type)
    *outer, row = old.shape
    longer = [*outer, row + pad_bytes // element_bytes(old.element_type)]
    kind = ir.MemRefType.get(longer, old.element_type, memory_space=old.memory_space)
    with alloc.location, ir.InsertionPoint(alloc):
        attributes = {each: alloc.attributes[each] for each in alloc.attributes}
        new = create("memref.alloc", [kind], [], **attributes)
    alloc.results[0].replace_all_uses_with(new.results[0])
    alloc.erase()


def _swizzle(alloc: Any) -> None:
    """Moves column vector c of row r to c xor (r / rows of 128 bytes) mod columns: 8 rows, 8 bank groups."""
    memref = ir.MemRefType(alloc.results[0].type)
    size = element_bytes(memref.element_type)
    row_bytes = memref.shape[-1] * size
    rows_of_banks = max(1, BANKS_BYTES // row_bytes)
    columns = min(BANKS_BYTES // VECTOR_BYTES, _power_of_two_in(row_bytes // VECTOR_BYTES))
    shift = ir.AffineExpr.get_mod(ir.AffineExpr.get_floor_div(symbol(0), rows_of_banks), columns)
    for op, number in _uses(alloc):
        last = number + memref.rank
        with op.location, ir.InsertionPoint(op):
            distance = affine(shift * (VECTOR_BYTES // size), op.operands[last - 1])
            op.operands[last] = value("arith.xori", ir.IndexType.get(), op.operands[last], distance)


def _power_of_two_in(number: int) -> int:
    """Returns the largest power of two that divides: what is exclusive-or'd stays within the row."""
    return number & -number
