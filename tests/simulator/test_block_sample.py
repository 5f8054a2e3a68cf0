"""The blocks that stand for a grid."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tuner.targets.gpu.block_sample import LEAST, sample

EXTENT = st.integers(1, 40)


@given(EXTENT, EXTENT, st.integers(1, 4), st.integers(1, 20))
def test_a_sample_holds_the_corners_and_every_block_along_z(x: int, y: int, z: int, limit: int) -> None:
    blocks = sample((x, y, z), limit)
    assert len(set(blocks)) == len(blocks)
    assert all(0 <= block[axis] < extent for block in blocks for axis, extent in enumerate((x, y, z)))
    places = {block[:2] for block in blocks}
    assert len(blocks) == z * len(places)
    assert places >= set(itertools.product((0, x - 1), (0, y - 1)))
    assert len(places) <= max(limit, LEAST)


def test_a_grid_within_the_limit_is_taken_whole() -> None:
    assert set(sample((3, 2, 2), 6)) == set(itertools.product(range(3), range(2), range(2)))


def test_a_large_grid_gives_corners_edges_and_neighbours_inside() -> None:
    places = {block[:2] for block in sample((10, 20, 1), 17)}
    assert {(0, 0), (9, 0), (0, 19), (9, 19)} < places
    assert {(0, 10), (9, 10), (5, 0), (5, 19)} < places
    assert {(5, 10), (6, 10), (5, 11), (6, 11)} < places
    assert len(places) == 17


@given(EXTENT, EXTENT, st.sampled_from((4, 8)))
def test_the_corners_of_c_are_held_where_bands_of_blocks_are_swept_by_columns(
    x: int, y: int, rows: int
) -> None:
    tiles = set()
    for column, row, _ in sample((x, y, 1), LEAST):
        number = row * x + column
        start = number // (rows * x) * rows
        height = min(rows, y - start)
        tiles.add(((number - start * x) // height, start + (number - start * x) % height))
    assert tiles >= set(itertools.product((0, x - 1), (0, y - 1)))
