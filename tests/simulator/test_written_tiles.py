"""Which tiles were written: whole ones are found, anything else is a failure that names an element."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import CandidateError, Stage
from tuner.simulator.ptx.geometry import whole_clusters
from tuner.targets.gpu.block_sample import Block, Mask, sample, written_tiles

GRIDS = st.tuples(st.integers(1, 9), st.integers(1, 9))
TILES = st.tuples(st.integers(1, 20), st.integers(1, 20))


def mask_of(shape: tuple[int, int], tile: tuple[int, int], blocks: tuple[Block, ...]) -> Mask:
    """Returns what blocks write whose columns run along x."""
    mask = np.zeros(shape, bool)
    for x, y, _ in blocks:
        mask[y * tile[0] : (y + 1) * tile[0], x * tile[1] : (x + 1) * tile[1]] = True
    return mask


@given(GRIDS, TILES, st.data(), st.booleans())
def test_sampled_tiles_are_found_whatever_their_size(
    grid: tuple[int, int], tile: tuple[int, int], data: st.DataObject, is_turned: bool
) -> None:
    (x, y), (height, width) = grid, tile
    shape = tuple(
        data.draw(st.integers((count - 1) * extent + 1, count * extent))
        for count, extent in ((y, height), (x, width))
    )
    blocks = sample((x, y, 1), 17)
    mask = mask_of((shape[0], shape[1]), tile, blocks)
    found = written_tiles(mask, len(blocks), grid[::-1] if is_turned else grid)
    again = np.zeros_like(mask)
    for each in found:
        assert not again[each.rows, each.columns].any()
        again[each.rows, each.columns] = True
    assert len(found) == len(blocks)
    assert np.array_equal(again, mask)


@given(GRIDS, TILES, st.data(), st.sampled_from(((1, 2), (2, 1))), st.booleans())
def test_tiles_of_whole_clusters_may_lie_beyond_c(
    grid: tuple[int, int],
    tile: tuple[int, int],
    data: st.DataObject,
    cluster: tuple[int, int],
    is_turned: bool,
) -> None:
    """The grid is rounded up to clusters, and with each sampled block the others of its cluster ran."""
    (x, y), (height, width), (i, j) = grid, tile, cluster
    shape = tuple(
        data.draw(st.integers((count - 1) * extent + 1, count * extent))
        for count, extent in ((y, height), (x, width))
    )
    rounded = -(-x // i) * i, -(-y // j) * j
    blocks = whole_clusters(sample((*rounded, 1), 17), (i, j, 1))
    mask = mask_of((shape[0], shape[1]), tile, blocks)
    turned = (rounded[::-1], cluster[::-1]) if is_turned else (rounded, cluster)
    found = written_tiles(mask, len(blocks), *turned)
    again = np.zeros_like(mask)
    for each in found:
        assert not again[each.rows, each.columns].any()
        again[each.rows, each.columns] = True
    assert np.array_equal(again, mask)


@given(
    st.tuples(st.integers(4, 9), st.integers(4, 9)),
    st.tuples(st.integers(2, 12), st.integers(2, 12)),
    st.data(),
)
def test_one_element_more_or_less_is_a_failure(
    grid: tuple[int, int], tile: tuple[int, int], data: st.DataObject
) -> None:
    shape = (grid[1] * tile[0], grid[0] * tile[1])
    blocks = sample((*grid, 1), 9)
    mask = mask_of(shape, tile, blocks)
    place = tuple(data.draw(st.integers(0, extent - 1)) for extent in shape)
    mask[place] = not mask[place]
    with pytest.raises(
        CandidateError, match=r"were not written, first|were written, first|tiles wrote"
    ) as caught:
        written_tiles(mask, len(blocks), grid)
    assert caught.value.stage is Stage.VERIFY


@given(st.tuples(st.integers(4, 9), st.integers(4, 9)), st.tuples(st.integers(3, 12), st.integers(3, 12)))
def test_tiles_that_all_lack_their_last_row_are_a_failure(
    grid: tuple[int, int], tile: tuple[int, int]
) -> None:
    blocks = sample((*grid, 1), 17)
    mask = mask_of((grid[1] * tile[0], grid[0] * tile[1]), tile, blocks)
    mask[tile[0] - 1 :: tile[0]] = False
    with pytest.raises(CandidateError, match=r"were not written|wrote"):
        written_tiles(mask, len(blocks), grid)


def test_messages_name_the_element() -> None:
    blocks = ((0, 0, 0), (3, 3, 0), (1, 1, 0))
    mask = mask_of((64, 64), (16, 16), blocks)
    hole, stray = mask.copy(), mask.copy()
    hole[17, 20] = False
    stray[3, 50] = True
    with pytest.raises(
        CandidateError, match=r"^1 of 256 elements of a tile were not written, first \[17, 20\]$"
    ):
        written_tiles(hole, 3, (4, 4))
    with pytest.raises(
        CandidateError, match=r"^1 elements outside of the tiles .* were written, first \[3, 50\]$"
    ):
        written_tiles(stray, 3, (4, 4))
    with pytest.raises(CandidateError, match=r"^blocks of 3 tiles wrote 0 of "):
        written_tiles(np.zeros((64, 64), bool), 3, (4, 4))
    with pytest.raises(CandidateError, match=r"^blocks of 4 tiles wrote 3 of 16 x 16 elements of C$"):
        written_tiles(mask, 4, (4, 4))
