"""The layout of one operand's tile in shared memory: boxes that the TMA copies, descriptors that wgmma reads.

A tile holds ``rows`` (along A's m or B's n) x ``depth`` (along k) elements in the 128-byte swizzle: lines of
128 bytes, eight of which are an atom. PTX ISA, "Matrix Descriptor Format" and "Strides".

K-major: a line holds k of one row. A box is all rows x one line of k; the next line of k is a box away, the
next eight rows (stride offset) an atom; the depth of one wgmma is 32 bytes within a line.
MN-major (transposed): a line holds rows of one k. A box is all of k x one line of rows; the next line of rows
(leading offset) is a box away, the next eight k (stride offset) an atom.
"""

from dataclasses import dataclass

LINE_BYTES = 128  # the swizzle's span
ATOM_LINES = 8
ATOM_BYTES = ATOM_LINES * LINE_BYTES
MMA_DEPTH_BYTES = 32  # along k, per wgmma
MMA_ROWS = 64  # rows of A per wgmma
BOX_LIMIT = 256  # elements along one dimension of a box; cuTensorMapEncodeTiled
SWIZZLE_128 = 1 << 62  # layout type of a matrix descriptor
UNIT_BYTES = 16  # unit of addresses and offsets in a matrix descriptor


@dataclass(frozen=True)
class Box:
    """One TMA copy into a tile: where it goes (byte offset), and the first row and k that it copies.

    Row and k count from the start of the tile.
    """

    offset_bytes: int  # in the tile in shared memory
    row: int
    k: int


@dataclass(frozen=True)
class OperandTile:
    """The layout in shared memory of a tile of A or B: ``rows`` (along m or n) x ``depth`` (along k).

    Both count elements, in the 128-byte swizzle; each stage of the ring holds one tile of A and one of B.
    """

    rows: int
    depth: int
    item_bytes: int
    is_k_major: bool
    parts: int = 1  # blocks of a cluster that share the tile: each copies a part of every box to all blocks

    @property
    def line(self) -> int:
        """Returns the number of elements in a line of 128 bytes, the span of the swizzle."""
        return LINE_BYTES // self.item_bytes

    @property
    def bytes(self) -> int:
        """Returns the size of the tile in shared memory, in bytes."""
        return self.rows * self.depth * self.item_bytes

    @property
    def box(self) -> tuple[int, int]:
        """Returns the shape of one TMA copy, in elements: (slower dimension, innermost dimension).

        The innermost dimension is one line of 128 bytes. Blocks that share the tile divide the slower
        dimension.
        """
        return (self.rows if self.is_k_major else self.depth) // self.parts, self.line

    @property
    def part_bytes(self) -> int:
        """Returns the bytes of one TMA copy.

        Also the distance in shared memory between the copies of two blocks that share the tile.
        """
        return self.box[0] * LINE_BYTES

    @property
    def boxes(self) -> tuple[Box, ...]:
        """Returns the TMA copies by the block of rank 0: all copies of the tile, unless blocks share it.

        The copies of another block that shares the tile are ``part_bytes`` further per rank.
        """
        along = self.depth if self.is_k_major else self.rows
        starts = range(0, along, self.line)
        size = self.parts * self.part_bytes
        return tuple(
            Box(number * size, 0 if self.is_k_major else start, start if self.is_k_major else 0)
            for number, start in enumerate(starts)
        )

    @property
    def steps(self) -> int:
        """Returns how many wgmma instructions the depth of the tile takes: each covers 32 bytes along k."""
        return self.depth * self.item_bytes // MMA_DEPTH_BYTES

    def offset_bytes(self, row: int, step: int) -> int:
        """Returns the byte offset in the tile at which the operand of one wgmma starts.

        The operand has rows from ``row`` on; ``step`` is the number of the wgmma along k. ``row`` must be a
        multiple of 8 where k is innermost, else of ``line``.
        """
        k = step * MMA_DEPTH_BYTES // self.item_bytes
        if self.is_k_major:
            return (
                row * LINE_BYTES + k // self.line * self.rows * LINE_BYTES + k % self.line * self.item_bytes
            )
        return (row // self.line * self.depth + k) * LINE_BYTES

    @property
    def descriptor(self) -> int:
        """Returns the 64-bit wgmma matrix descriptor of an operand at shared-memory address 0."""
        leading = UNIT_BYTES if self.is_k_major else self.depth * LINE_BYTES  # ignored if K-major
        return SWIZZLE_128 | ATOM_BYTES // UNIT_BYTES << 32 | leading // UNIT_BYTES << 16

    def why_not(self, name: str, rows_of_one: int) -> str | None:
        """Returns a message on why TMA and wgmma cannot handle this tile, else None.

        ``name``: the operand, "A" or "B", for the message. The tile's rows must be a multiple of
        ``rows_of_one``.
        """
        if self.depth % self.line or (not self.is_k_major and self.rows % self.line):
            return f"{name}: found {self.rows} x {self.depth}, allowed whole lines of {LINE_BYTES} bytes"
        if self.box[0] % ATOM_LINES:
            found = f"found {self.parts} parts of {self.box[0]} lines"
            return f"{name}: {found}, allowed multiples of {ATOM_LINES} lines"
        if self.box[0] > BOX_LIMIT or self.rows % rows_of_one:
            return f"{name}: found {self.rows} rows, allowed multiples of {rows_of_one} up to {BOX_LIMIT}"
        if not self.is_k_major and self.item_bytes != 2:  # PTX ISA: imm-trans only for .f16 and .bf16
            return f"{name}: found {self.item_bytes}-byte elements with k not innermost, allowed 2-byte ones"
        return None
