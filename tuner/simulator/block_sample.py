"""A sample of the thread blocks of a large grid: corners, edges and interior."""

import itertools

Block = tuple[int, int, int]  # x, y, z
LEAST = 9  # the corners, for each numbering of blocks, and one in the middle
BANDS = (4, 8)  # rows of blocks that run together, see tuner/mlir/ops/swizzle_blocks.py


def sample(grid: Block, limit: int, least: int = LEAST) -> tuple[Block, ...]:
    """Returns the blocks of about ``limit`` columns, all along z at one (x, y); the whole of a small grid.

    The blocks of a column share a tile of C, which is complete only with all of them. There are at least
    ``least`` columns.
    """
    x_count, y_count, z_count = grid
    if x_count * y_count <= limit:
        columns = list(itertools.product(range(x_count), range(y_count)))
    else:
        columns = list(dict.fromkeys(_columns(x_count, y_count)))[: max(limit, least)]
    return tuple((x, y, z) for x, y in columns for z in range(z_count))


def _band_corners(x_count: int, y_count: int, rows: int) -> list[tuple[int, int]]:
    """Returns the columns that compute the other two corners of C where each band is swept along y first.

    The first and the last block compute the same tiles in either order.
    """
    first_height = min(rows, y_count)
    last_start = (y_count - 1) // rows * rows
    last_height = y_count - last_start
    numbers = ((x_count - 1) * first_height, last_start * x_count + last_height - 1)
    return [(number % x_count, number // x_count) for number in numbers]


def _second(count: int) -> tuple[int, int]:
    """Returns the second index from each end, or the nearest to it."""
    return min(1, count - 1), max(count - 2, 0)


def _columns(x_count: int, y_count: int) -> list[tuple[int, int]]:
    """Returns the columns, the most informative first."""
    x_ends, y_ends = (0, x_count - 1), (0, y_count - 1)
    x_middle, y_middle = x_count // 2, y_count // 2
    x_next, y_next = min(x_middle + 1, x_count - 1), min(y_middle + 1, y_count - 1)
    return [
        *itertools.product(x_ends, y_ends),  # corners
        (x_middle, y_middle),
        *(column for rows in BANDS for column in _band_corners(x_count, y_count, rows)),
        *((x, y_middle) for x in x_ends),  # edges
        *((x_middle, y) for y in y_ends),
        *itertools.product((x_middle, x_next), (y_middle, y_next)),  # neighbours in the interior
        *itertools.product(_second(x_count), _second(y_count)),  # beside the corners
    ]
