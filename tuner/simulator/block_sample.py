"""A sample of the thread blocks of a large grid: corners, edges and interior."""

import itertools

Block = tuple[int, int, int]  # x, y, z
LEAST = 9  # the corners of C under each block order, and one in the middle
BANDS = (4, 8)  # rows of blocks per band of a swizzled block order, see tuner/mlir/ops/swizzle_blocks.py


def sample(grid: Block, limit: int, least: int = LEAST) -> tuple[Block, ...]:
    """Returns the thread blocks (x, y, z) of a matmul's grid to simulate: all of a small grid, else a sample.

    A column is all blocks along z at one (x, y): with split K the blocks of a column share a tile of the
    output C, which is complete only when all of them have run. A grid of at most ``limit`` columns is
    returned whole. Of a larger grid the result has up to ``limit`` columns, or up to ``least`` if that is
    more, and never more than about 20: first the corners of C, then the middle, edges and interior.
    """
    x_count, y_count, z_count = grid
    if x_count * y_count <= limit:
        columns = list(itertools.product(range(x_count), range(y_count)))
    else:
        columns = list(dict.fromkeys(_columns(x_count, y_count)))[: max(limit, least)]
    return tuple((x, y, z) for x, y in columns for z in range(z_count))


def _band_corners(x_count: int, y_count: int, rows: int) -> list[tuple[int, int]]:
    """Returns the columns of the other two corners of C where each band of rows is swept along y first.

    The first and the last block of the grid compute the same tiles in either block order.
    """
    first_height = min(rows, y_count)
    last_start = (y_count - 1) // rows * rows
    last_height = y_count - last_start
    numbers = ((x_count - 1) * first_height, last_start * x_count + last_height - 1)
    return [(number % x_count, number // x_count) for number in numbers]


def _second(count: int) -> tuple[int, int]:
    """Returns the second index from each end of ``count`` indices, clamped to the valid range."""
    return min(1, count - 1), max(count - 2, 0)


def _columns(x_count: int, y_count: int) -> list[tuple[int, int]]:
    """Returns the columns (x, y) to sample in descending order of priority; may contain duplicates."""
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
        *itertools.product(_second(x_count), _second(y_count)),  # diagonal neighbours of the corners
    ]
