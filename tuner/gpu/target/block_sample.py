"""A sample of the thread blocks of a large grid, and the tiles of C that the sampled blocks wrote."""

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.core.errors import CandidateError, Stage

Block = tuple[int, int, int]  # x, y, z
LEAST = 9  # the corners of C by rows and in bands of rows, and one in the middle
BANDS = (4, 8)  # rows of blocks per band of a swizzled block order, see tuner/gpu/ops/grid.py
Mask = npt.NDArray[np.bool_]


def sample(grid: Block, limit: int, least: int = LEAST) -> tuple[Block, ...]:
    """Returns the blocks (x, y, z) of a grid to simulate: all, or those of some columns of blocks.

    A column is all blocks of one (x, y), which are slices of the sum (split K). More than ``limit`` columns
    are reduced to ``limit``, at least ``least`` and at most about 20: those at the corners of C first.
    """
    x_count, y_count, z_count = grid
    if x_count * y_count <= limit:
        columns = list(itertools.product(range(x_count), range(y_count)))
    else:
        x_ends = (0, x_count - 1)
        y_ends = (0, y_count - 1)
        x_middle = x_count // 2
        y_middle = y_count // 2
        x_next = min(x_middle + 1, x_count - 1)
        y_next = min(y_middle + 1, y_count - 1)
        by_priority = [
            *itertools.product(x_ends, y_ends),  # corners
            (x_middle, y_middle),
            *itertools.chain.from_iterable(_band_corners(x_count, y_count, rows) for rows in BANDS),
            *((x, y_middle) for x in x_ends),  # edges
            *((x_middle, y) for y in y_ends),
            *itertools.product((x_middle, x_next), (y_middle, y_next)),  # neighbours in the interior
            *itertools.product(_second(x_count), _second(y_count)),  # diagonal neighbours of the corners
        ]
        columns = list(dict.fromkeys(by_priority))[: max(limit, least)]
    return tuple((x, y, z) for x, y in columns for z in range(z_count))


def _band_corners(x_count: int, y_count: int, rows: int) -> list[tuple[int, int]]:
    # the blocks of the top right and bottom left corner of C, where blocks are numbered by bands of ``rows``
    # rows, column by column
    first_height = min(rows, y_count)
    last_start = (y_count - 1) // rows * rows
    last_height = y_count - last_start
    numbers = ((x_count - 1) * first_height, last_start * x_count + last_height - 1)
    return [(number % x_count, number // x_count) for number in numbers]


def _second(count: int) -> tuple[int, int]:
    return min(1, count - 1), max(count - 2, 0)


@dataclass(frozen=True)
class Tile:
    """A rectangle of elements of the matrix C: half-open ranges of rows and of columns."""

    rows: slice
    columns: slice


def written_tiles(
    written: Mask, count: int, grid: tuple[int, int], cluster: tuple[int, int] = (1, 1)
) -> tuple[Tile, ...]:
    """Returns the tiles of C that ``count`` sampled blocks wrote, inferred from ``written``.

    ``written``: mask of the elements of C that were written; ``grid`` and ``cluster``: blocks along x and y.
    Tiles have one size, but are cut at the ends of C; whole clusters may have tiles beyond C. Raises
    CandidateError(VERIFY) for an incomplete tile, or for elements of a block outside of the sample.
    """
    complaint = None
    orders = ((grid, cluster), (grid[::-1], cluster[::-1]))  # columns usually run along x
    for (x_count, y_count), (x_blocks, y_blocks) in orders:
        height = _extent(written, y_count, y_blocks)
        width = _extent(written.T, x_count, x_blocks)
        rows = -(-written.shape[0] // height)
        columns = -(-written.shape[1] // width)
        is_exact = (columns, rows) == (x_count, y_count)
        least = count if is_exact else -(-count // (x_blocks * y_blocks))
        try:
            return _whole_tiles(written, height, width, range(least, count + 1))
        except CandidateError as error:
            complaint = complaint or error
    assert complaint is not None
    raise complaint


def corners(tiles: tuple[Tile, ...], shape: tuple[int, ...]) -> int:
    """Returns how many of the corner elements of a matrix of ``shape`` (rows, columns) lie in the tiles."""
    elements = set[tuple[int, int]]()
    for tile in tiles:
        rows = {0, shape[0] - 1} & set(range(tile.rows.start, tile.rows.stop))
        columns = {0, shape[1] - 1} & set(range(tile.columns.start, tile.columns.stop))
        elements.update(itertools.product(rows, columns))
    return len(elements)


def _extent(written: Mask, count: int, cluster: int) -> int:
    # The tile height: of the heights at which ``count`` tiles cover the rows (up to ``cluster - 1`` tiles are
    # beyond C), the one that divides most borders of written rows; the largest of equals.
    size = written.shape[0]
    least = -(-size // count)
    fewest = count - cluster + 1
    most = size if fewest <= 1 else -(-size // (fewest - 1)) - 1
    cuts = np.flatnonzero((written[1:] != written[:-1]).any(axis=1)) + 1
    # largest first: max() returns the first of equal extents
    return max(
        range(most, least - 1, -1),
        key=lambda extent: int(np.count_nonzero(cuts % extent == 0)),
        default=least,
    )


def _whole_tiles(written: Mask, height: int, width: int, counts: range) -> tuple[Tile, ...]:
    tiles = []
    for top in range(0, written.shape[0], height):
        for left in range(0, written.shape[1], width):
            part = written[top : top + height, left : left + width]
            if part.any():
                _require_whole(part, top, left)
                rows, columns = part.shape
                tiles.append(Tile(slice(top, top + rows), slice(left, left + columns)))
    if len(tiles) not in counts:
        found = f"wrote {len(tiles)} of {height} x {width} elements of C"
        raise CandidateError(Stage.VERIFY, f"blocks of {counts[-1]} tiles {found}")
    return tuple(tiles)


def _require_whole(part: Mask, top: int, left: int) -> None:
    missing = int(np.count_nonzero(~part))
    if missing == 0:
        return
    is_stray = 2 * missing > part.size  # another block's tile, in which a few elements were written
    row, column = np.argwhere(part if is_stray else ~part)[0]
    line = f"{missing} of {part.size} elements of a tile were not written"
    if is_stray:
        line = f"{part.size - missing} elements outside of the tiles of these blocks were written"
    raise CandidateError(Stage.VERIFY, f"{line}, first [{top + row}, {left + column}]")
