"""The tiles of C that some blocks wrote: found in what they wrote, whole or not at all."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.errors import CandidateError, Stage

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class Tile:
    """A rectangle of C."""

    rows: slice
    columns: slice


def written_tiles(written: Mask, blocks: int, grid: tuple[int, int]) -> tuple[Tile, ...]:
    """Returns the tiles that ``blocks`` blocks of a ``grid`` (x, y) wrote.

    Equal tiles cover C, cut off at its ends, as many as the grid has blocks. Raises CandidateError(VERIFY)
    where what was written is not ``blocks`` whole tiles: something was left out, or another block's tile
    was touched.
    """
    for x_count, y_count in (grid, grid[::-1]):  # columns run along x as a rule
        height = _extent(_cuts(written, 0), written.shape[0], y_count)
        width = _extent(_cuts(written, 1), written.shape[1], x_count)
        if height is not None and width is not None:
            return _whole_tiles(written, height, width, blocks)
    raise CandidateError(
        Stage.VERIFY,
        f"{blocks} blocks of {grid[0]} x {grid[1]} wrote {np.count_nonzero(written)} elements of C "
        f"that are no whole tiles; {_first_edge(written)}",
    )


def _cuts(written: Mask, axis: int) -> npt.NDArray[np.int64]:
    """Returns where rows (axis 0) or columns (1) differ from those before them."""
    lines = written if axis == 0 else written.T
    return np.flatnonzero((lines[1:] != lines[:-1]).any(axis=1)) + 1


def _extent(cuts: npt.NDArray[np.int64], size: int, count: int) -> int | None:
    """Returns the extent of ``count`` equal tiles of ``size`` that end at every cut; None for no such one."""
    least = -(-size // count)
    most = size if count == 1 else -(-size // (count - 1)) - 1
    step = math.gcd(*cuts.tolist()) or most
    fitting = [extent for extent in range(least, most + 1) if step % extent == 0]
    return max(fitting, default=None)


def _whole_tiles(written: Mask, height: int, width: int, blocks: int) -> tuple[Tile, ...]:
    tiles = []
    for top in range(0, written.shape[0], height):
        for left in range(0, written.shape[1], width):
            tile = Tile(slice(top, top + height), slice(left, left + width))
            part = written[tile.rows, tile.columns]
            if part.any():
                _require_whole(part, top, left)
                tiles.append(tile)
    if len(tiles) != blocks:
        raise CandidateError(
            Stage.VERIFY, f"{blocks} blocks wrote {len(tiles)} tiles of {height} x {width} elements of C"
        )
    return tuple(tiles)


def _require_whole(part: Mask, top: int, left: int) -> None:
    if part.all():
        return
    row, column = np.argwhere(~part)[0]
    missing = int(np.count_nonzero(~part))
    raise CandidateError(
        Stage.VERIFY,
        f"{missing} of {part.size} elements of a tile were not written, first [{top + row}, {left + column}]",
    )


def _first_edge(written: Mask) -> str:
    if not written.any():
        return "nothing was written"
    row, column = np.argwhere(written)[0]
    return f"first [{row}, {column}]"
