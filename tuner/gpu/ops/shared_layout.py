"""The transform op ``tuner.shared_layout``."""

import math

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, ir
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.ir.building import affine, create, symbol, value
from tuner.mlir.ir.memrefs import element_bytes, is_workgroup
from tuner.mlir.ir.reading import attributes_of, uses_of, walk

VECTOR_BYTES = 16  # one row of an ldmatrix tile, one cp.async
BANKS_BYTES = 128  # all 32 banks
# For 1-byte elements each lane gathers bytes from four rows, the next lanes from the four rows after: with a
# gap after every row of 128 bytes, lanes eight rows apart would access the same bank.
GATHERED_ROWS = 2
READS_AND_COPIES = frozenset({"nvgpu.ldmatrix", "nvgpu.device_async_copy", "vector.store"})
BY_INDEX = READS_AND_COPIES | {"vector.load", "memref.load", "memref.store"}


class SharedLayoutOp(InPlaceOp, name="shared_layout"):
    """``tuner.shared_layout``: layouts of shared memory without bank conflicts: xor swizzle or padding.

    Takes a function whose shared memory is ``memref.alloc`` and accessed by index only. With ``swizzle`` = 1
    a tile that only ``nvgpu.ldmatrix`` reads gets its 16-byte columns xor'd with the row (as CUTLASS's
    ``Swizzle``). Any other tile is padded after each row, or as many rows as span all banks, so that copies
    cross no gap within 128 bytes. Run this op after every op that reads these indices.

        %tile = memref.alloc() : memref<16x32xf16, #gpu.address_space<workgroup>>
        %x = nvgpu.ldmatrix %tile[%i, %j] {numTiles = 4 : i32, transpose = false} : ...
      with swizzle = 1 becomes
        %tile = memref.alloc() : memref<16x32xf16, #gpu.address_space<workgroup>>
        %shift = affine.apply affine_map<()[s0] -> (((s0 floordiv 2) mod 4) * 8)>()[%i]
        %k = arith.xori %j, %shift : index
        %x = nvgpu.ldmatrix %tile[%i, %k] {numTiles = 4 : i32, transpose = false} : ...
      and tiles that are not swizzled, of rows of 64 bytes, with pad_bytes = 16
        %other = memref.alloc() {alignment = 64 : i64} : memref<8x72xf16, #gpu.address_space<workgroup>>
        %row = affine.apply affine_map<()[s0] -> (s0 floordiv 2)>()[%i]
        %column = affine.apply affine_map<()[s0, s1] -> ((s0 mod 2) * 32 + s1)>()[%i, %j]

    Attributes, both i64: with ``swizzle`` = 0 (default) a tile that only ``nvgpu.ldmatrix`` reads is padded
    by 16 bytes instead, which avoids bank conflicts too but takes more memory. Every other tile is padded by
    ``pad_bytes`` (a multiple of 16, default 16; 0: no tile is padded). The handle (a func.func) stays valid.
    Silenceable failure, with nothing changed: a use that is not by index, such as a view, or ``pad_bytes``
    below 0 or not a multiple of 16.
    """

    def change(self, function: Op) -> Refusal | None:
        pad_bytes = attribute(self, "pad_bytes", VECTOR_BYTES)
        if pad_bytes < 0 or pad_bytes % VECTOR_BYTES:
            return Refusal(f"pad_bytes: found {pad_bytes}, allowed a multiple of {VECTOR_BYTES}")
        tiles = [
            op for op in walk(function, "memref.alloc") if is_workgroup(ir.MemRefType(op.results[0].type))
        ]
        unhandled = next((name for tile in tiles for name in _names(tile) - BY_INDEX), None)
        if unhandled is not None:
            return Refusal(f"found {unhandled} of shared memory, allowed {', '.join(sorted(BY_INDEX))}")
        for tile in tiles:
            is_swizzled = attribute(self, "swizzle", 0) == 1
            names = _names(tile)
            is_of_tiles = "nvgpu.ldmatrix" in names and names <= READS_AND_COPIES
            if is_swizzled and is_of_tiles:
                _swizzle(tile)
            elif pad_bytes:
                _pad(tile, VECTOR_BYTES if is_of_tiles else pad_bytes)
        return None


def _names(alloc: Op) -> set[str]:
    return {op.name for op, _ in _uses(alloc)}


def _uses(alloc: Op) -> list[tuple[Op, int]]:
    """Returns (op, index of its operand that is the tile) of all uses except deallocations."""
    uses = uses_of(alloc.results[0])
    return [(op, number) for op, number in uses if op.name != "memref.dealloc"]


def _pad(alloc: Op, pad_bytes: int) -> None:
    old = ir.MemRefType(alloc.results[0].type)
    *outer, rows, columns = old.shape
    together = _rows_of_banks(old)
    if element_bytes(old.element_type) == 1 and "nvgpu.ldmatrix" not in _names(alloc):
        together = max(together, GATHERED_ROWS)
    if rows % together:
        together = 1
    # rows that fill the banks once lie side by side, and padding follows them
    longer = [*outer, rows // together, together * columns + pad_bytes // element_bytes(old.element_type)]
    type_ = ir.MemRefType.get(longer, old.element_type, memory_space=old.memory_space)
    with alloc.location, ir.InsertionPoint(alloc):
        attributes = attributes_of(alloc)
        new = create("memref.alloc", [type_], [], **attributes)
    if together > 1:
        _put_rows_together(alloc, together, columns)
    alloc.results[0].replace_all_uses_with(new.results[0])
    alloc.erase()


def _rows_of_banks(memref: ir.MemRefType) -> int:
    """Returns the fewest rows that together are a multiple of 128 bytes, the span of all banks."""
    row_bytes = memref.shape[-1] * element_bytes(memref.element_type)
    return BANKS_BYTES // math.gcd(BANKS_BYTES, row_bytes)


def _put_rows_together(alloc: Op, together: int, columns: int) -> None:
    row = symbol(0)
    column = symbol(1)
    group = ir.AffineExpr.get_floor_div(row, together)
    within = ir.AffineExpr.get_mod(row, together)
    for op, number in _uses(alloc):
        last = number + ir.MemRefType(alloc.results[0].type).rank
        old = list(op.operands)[last - 1 : last + 1]
        with op.location, ir.InsertionPoint(op):
            op.operands[last - 1] = affine(group, old[0])
            op.operands[last] = affine(within * columns + column, *old)


def _swizzle(alloc: Op) -> None:
    """Moves 16-byte column c of row r to c xor ((r / rows per multiple of 128 bytes) mod columns).

    Then the 8 rows of an ldmatrix tile are in different groups of 4 banks; odd columns need no swizzle.
    """
    memref = ir.MemRefType(alloc.results[0].type)
    size = element_bytes(memref.element_type)
    row_bytes = memref.shape[-1] * size
    vectors = row_bytes // VECTOR_BYTES
    columns = min(BANKS_BYTES // VECTOR_BYTES, vectors & -vectors)  # a power of two: xor stays in the row
    shift = ir.AffineExpr.get_mod(ir.AffineExpr.get_floor_div(symbol(0), _rows_of_banks(memref)), columns)
    for op, number in _uses(alloc):
        last = number + memref.rank
        with op.location, ir.InsertionPoint(op):
            distance = affine(shift * (VECTOR_BYTES // size), op.operands[last - 1])
            op.operands[last] = value("arith.xori", ir.IndexType.get(), op.operands[last], distance)
