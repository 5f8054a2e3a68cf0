"""How compiled code of a fusion takes its weights: packings, and the comment lines of code that list them.

``WeightPacking`` says how one weight is packed, ``FusionCode`` has one for each input of a fusion. Compiled
code lists them in its first line, which ``packings_comment`` writes and ``packings_in`` reads.
"""

from dataclasses import dataclass
from math import prod
from types import MappingProxyType

PACKINGS_COMMENT = "// packings: "
THREADS_COMMENT = "// threads: "
UNSIGNED_SUFFIX = "u"  # of the sizes of a packing of unsigned bytes: 64x4x64u
RUN_MARK = "/"  # before the rows of a run: 32x2x2/3
NIBBLE_MARK = "="  # before the order of nibbles: 64x8=fours
# Eight rows of K are the eight nibbles of 32 bits: the order lists the row of each, from the lowest bits on.
#   fours: the low nibbles of four bytes are four adjacent rows, the high ones the next four. One mask of
#          32 bits gives four bytes for a dot product of bytes.
#   pairs: shifted by 4 i, the low nibbles of both halves are rows 2 i and 2 i + 1. One mask gives two
#          adjacent rows as 16-bit numbers.
#   rows:  row by row.
NIBBLES = MappingProxyType(
    {"fours": (0, 4, 1, 5, 2, 6, 3, 7), "pairs": (0, 2, 4, 6, 1, 3, 5, 7), "rows": tuple(range(8))}
)
NIBBLE_ROWS = 8


@dataclass(frozen=True)
class WeightPacking:
    """How a script reads a weight of k x n elements: as panels of ``columns`` columns, one after the other.

    A panel has k x columns elements, row by row; the last one is padded with zeros. With ``interleave`` 2,
    two rows of k lie next to each other for each column, as the dot products of bf16 take them. With
    ``depth`` 32, k is padded with zeros to a multiple of 32. With ``unsigned``, of i8, 128 is added to each
    element, which flips its sign bit: dot products of bytes take one of their factors as unsigned.

    With ``nibbles``, integers from -8 to 7 with 8 added, two in a byte: the interleaved rows of a column in
    the order of ``NIBBLES[nibbles]``, the first in the lowest bits.

    With ``run`` 3, rows come in runs of 3, each of which is padded to a multiple of ``depth``: the channels
    of a convolution for each element of its window. k must be a multiple of ``run``.

    A weight of other than two dimensions, or a transposed one, is a matrix by ``order``: its dimensions in
    the order in which rows go through all but the last, and columns through the last. ``(2, 3, 1, 0)`` of
    filters x channels x height x width: a row for each element of the window and channel, a column for each
    filter.
    """

    columns: int
    interleave: int = 1
    order: tuple[int, ...] = ()  # (): rows and columns of a matrix as they are
    depth: int = 1
    unsigned: bool = False
    run: int = 0  # 0: all of k
    nibbles: str = ""  # one of NIBBLES; "": a whole element each

    def matrix_shape(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Returns (rows, columns) of the matrix that a weight of ``shape`` is, by ``order``."""
        *rows, columns = [shape[dimension] for dimension in self.order or range(len(shape))]
        return prod(rows), columns

    def padded_rows(self, rows: int) -> int:
        """Returns how many rows the panels have for a matrix of ``rows`` rows, rows of zeros included."""
        run = self.run or rows
        if run:
            return rows // run * (-(-run // self.depth) * self.depth)
        return 0


Packings = tuple[WeightPacking | None, ...]  # one for each input; None: as it lies in memory


@dataclass(frozen=True)
class FusionCode:
    """A fusion, compiled: LLVM dialect, and for each input how it must be packed before calls, if at all."""

    llvm_text: str  # its function takes bare pointers: one for each input, then one for each output
    packings: tuple[WeightPacking | None, ...]  # one for each input; None: as it lies in the view
    # its function takes two integers more, a thread's number and the number of threads, and computes that
    # thread's share
    is_divided: bool = False
    asserts: bool = False  # its function returns the address of the text of an assertion that failed, or 0


def packings_comment(packings: tuple[WeightPacking | None, ...]) -> str:
    """Returns a comment line that lists the packings of a fusion's inputs: ``// packings: - 48x1 -``."""
    return PACKINGS_COMMENT + " ".join(map(_packing_text, packings)) + "\n"


def packings_in(code: str) -> tuple[WeightPacking | None, ...]:
    """Returns the packings that the first line of a fusion's code lists; () without such a line."""
    line = code.partition("\n")[0]
    if not line.startswith(PACKINGS_COMMENT):
        return ()
    return tuple(map(_packing, line.removeprefix(PACKINGS_COMMENT).split()))


def threads_comment(threads: int) -> str:
    """Returns a comment line for a fusion's script or code that is divided among threads; "" for 1 thread."""
    if threads > 1:
        return f"{THREADS_COMMENT}{threads}\n"
    return ""


def threads_in(text: str) -> int:
    """Returns the number of threads that a line of a fusion's script or code names; 1 without such a line."""
    lines = (line for line in text.split("\n") if line.startswith(THREADS_COMMENT))
    numbers = [line.removeprefix(THREADS_COMMENT) for line in lines]
    return next((int(number) for number in numbers if number.isdecimal()), 1)


def _packing_text(packing: WeightPacking | None) -> str:
    if packing is None:
        return "-"
    text = f"{packing.columns}x{packing.interleave}"
    if packing.depth > 1:
        text += f"x{packing.depth}"
    if packing.unsigned:
        text += UNSIGNED_SUFFIX
    if packing.run:
        text += f"{RUN_MARK}{packing.run}"
    if packing.nibbles:
        text += f"{NIBBLE_MARK}{packing.nibbles}"
    return text + "".join(f":{dimension}" for dimension in packing.order)


def _packing(text: str) -> WeightPacking | None:
    if text == "-":
        return None
    sizes, *order = text.split(":")
    sizes, _, nibbles = sizes.partition(NIBBLE_MARK)
    sizes, _, run = sizes.partition(RUN_MARK)
    columns, interleave, *depths = map(int, sizes.removesuffix(UNSIGNED_SUFFIX).split("x"))
    depth = 1
    if depths:
        depth = depths[0]
    return WeightPacking(
        columns,
        interleave,
        tuple(map(int, order)),
        depth=depth,
        unsigned=sizes.endswith(UNSIGNED_SUFFIX),
        run=int(run or 0),
        nibbles=nibbles,
    )
