"""The blocks that stand for a grid, and which tiles they wrote: whole ones, or a failure names an element."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import CandidateError, Stage
from tuner.gpu.ptxsim.ptx.geometry import whole_clusters
from tuner.gpu.target.block_sample import LEAST, Block, Mask, sample, written_tiles

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


def test_a_grid_within_the_limit_is_taken_whole_a_large_one_by_corners_edges_and_neighbours_inside() -> None:
    assert set(sample((3, 2, 2), 6)) == set(itertools.product(range(3), range(2), range(2)))
    places = {block[:2] for block in sample((10, 20, 1), 17)}
    edges = {(0, 10), (9, 10), (5, 0), (5, 19)}
    assert {(0, 0), (9, 0), (0, 19), (9, 19), *edges, (5, 10), (6, 10), (5, 11), (6, 11)} < places
    assert len(places) == 17


@given(EXTENT, EXTENT, st.sampled_from((4, 8)))
def test_the_corners_of_c_are_held_where_bands_are_swept_by_columns(x: int, y: int, rows: int) -> None:
    tiles = set()
    for column, row, _ in sample((x, y, 1), LEAST):
        number = row * x + column
        start = number // (rows * x) * rows
        height = min(rows, y - start)
        tiles.add(((number - start * x) // height, start + (number - start * x) % height))
    assert tiles >= set(itertools.product((0, x - 1), (0, y - 1)))


# Which tiles were written: whole ones are found, anything else is a failure that names an element.
Sizes = tuple[int, int]
GRIDS = st.tuples(st.integers(1, 9), st.integers(1, 9))
LARGER_GRIDS = st.tuples(st.integers(4, 9), st.integers(4, 9))
TILES = st.tuples(st.integers(1, 20), st.integers(1, 20))


def mask_of(shape: tuple[int, ...], tile: Sizes, blocks: tuple[Block, ...]) -> Mask:
    mask = np.zeros(shape, bool)
    for x, y, _ in blocks:
        mask[y * tile[0] : (y + 1) * tile[0], x * tile[1] : (x + 1) * tile[1]] = True
    return mask


@given(GRIDS, TILES, st.data(), st.sampled_from(((1, 1), (1, 2), (2, 1))), st.booleans())
def test_sampled_tiles_are_found_whatever_their_size(
    grid: Sizes, tile: Sizes, data: st.DataObject, cluster: Sizes, is_turned: bool
) -> None:
    """The grid is rounded up to clusters, and with each sampled block the others of its cluster ran."""
    (x, y), (height, width), (i, j) = grid, tile, cluster
    tiles = ((y, height), (x, width))
    shape = tuple(data.draw(st.integers((n - 1) * size + 1, n * size)) for n, size in tiles)
    rounded = -(-x // i) * i, -(-y // j) * j
    blocks = whole_clusters(sample((*rounded, 1), 17), (i, j, 1))
    mask = mask_of(shape, tile, blocks)
    turned = (rounded[::-1], cluster[::-1]) if is_turned else (rounded, cluster)
    found = written_tiles(mask, len(blocks), *(turned[:1] if cluster == (1, 1) else turned))
    again = np.zeros_like(mask)
    for each in found:
        assert not again[each.rows, each.columns].any()
        again[each.rows, each.columns] = True
    assert len(found) == len(blocks) or cluster != (1, 1)
    assert np.array_equal(again, mask)


@given(LARGER_GRIDS, st.tuples(st.integers(2, 12), st.integers(2, 12)), st.data())
def test_one_element_more_or_less_is_a_failure(grid: Sizes, tile: Sizes, data: st.DataObject) -> None:
    shape = (grid[1] * tile[0], grid[0] * tile[1])
    blocks = sample((*grid, 1), 9)
    mask = mask_of(shape, tile, blocks)
    place = tuple(data.draw(st.integers(0, extent - 1)) for extent in shape)
    mask[place] = not mask[place]
    with pytest.raises(CandidateError, match=r"were (not )?written, first|tiles wrote") as caught:
        written_tiles(mask, len(blocks), grid)
    assert caught.value.stage is Stage.VERIFY


@given(LARGER_GRIDS, st.tuples(st.integers(3, 12), st.integers(3, 12)))
def test_tiles_that_all_lack_their_last_row_are_a_failure(grid: Sizes, tile: Sizes) -> None:
    blocks = sample((*grid, 1), 17)
    mask = mask_of((grid[1] * tile[0], grid[0] * tile[1]), tile, blocks)
    mask[tile[0] - 1 :: tile[0]] = False
    with pytest.raises(CandidateError, match=r"were not written|wrote"):
        written_tiles(mask, len(blocks), grid)


def test_messages_name_the_element() -> None:
    blocks = ((0, 0, 0), (3, 3, 0), (1, 1, 0))
    mask = mask_of((64, 64), (16, 16), blocks)
    hole, stray = mask.copy(), mask.copy()
    hole[17, 20], stray[3, 50] = False, True
    for written, count, message in (
        (hole, 3, r"1 of 256 elements of a tile were not written, first \[17, 20\]$"),
        (stray, 3, r"1 elements outside of the tiles .* were written, first \[3, 50\]$"),
        (np.zeros((64, 64), bool), 3, "blocks of 3 tiles wrote 0 of "),
        (mask, 4, "blocks of 4 tiles wrote 3 of 16 x 16 elements of C$"),
    ):
        with pytest.raises(CandidateError, match=f"^{message}"):
            written_tiles(written, count, (4, 4))
