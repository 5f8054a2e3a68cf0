"""The configurations that a search chooses among: the whole feasible set, or a fixed sample of a larger set.

A sample is drawn level by level. Each level extends the kept partial configurations by every allowed choice
of one more knob and keeps those with the smallest hashes: each allowed configuration is equally likely to be
in the sample, and the shares that were kept estimate their number (Chen, 1992,
https://doi.org/10.1137/0221022, with equal weights). The hash is fixed, so equal spaces give equal samples on
every machine, in every session.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.core.errors import UsageError
from tuner.space import enumeration
from tuner.space.enumeration import Block, Walk, walked
from tuner.space.row_keys import Indices, Keys, RowKeys, sort_keys
from tuner.space.search_space import SearchSpace

ROWS_LIMIT = 20_000_000  # rows in memory: a byte or two per knob here, some 50 in a sampler
SAMPLE_ROWS = 1 << 20  # the best of so many is among the best millionth of the set
SAMPLE_KNOBS = 40  # a space with more has a smaller sample: each knob is a level, and makes the keys longer
PILOT_ROWS = 1 << 14  # of the sample that estimates the size of the set
GROWN_LIMIT = 1 << 23  # rows before a level of a sample is cut: bounds memory
SURE = 3.0  # times a limit: a higher estimate is accepted without enumeration


@dataclass(frozen=True, eq=False)
class Rows:
    """Allowed configurations of one strategy, all or a sample, sorted with the last knob varying fastest."""

    index: Indices
    total: int  # number of allowed configurations; estimated where ``index`` is a sample
    is_sample: bool


@dataclass(frozen=True, eq=False)
class _Sample:
    keys: Keys
    share: float  # of the allowed rows that were kept, estimated; 1: all
    visits: float  # estimated number for a whole enumeration


def rows_of(space: SearchSpace, limit: int = ROWS_LIMIT, always: Indices | None = None) -> Rows:
    """Returns every allowed configuration of a space, or a sample where there are more than ``limit``.

    A sample is also taken where the enumeration would take too long. It has up to SAMPLE_ROWS (2**20)
    configurations, whatever ``limit`` is, and fewer of a space with more than SAMPLE_KNOBS (40) knobs; for a
    space with preferences up to as many again that meet all of them; and the configurations ``always``,
    choice indices (configurations, knobs) that the constraints must allow. Raises UsageError when the search
    was too long to find any configuration.
    """
    walk = Walk(space, space.constraints)
    pilot = _sampled(walk, PILOT_ROWS)
    found = pilot.keys if pilot.share == 1 else _all(space, pilot, limit)
    if found is not None and found.shape[1] <= limit:
        index = walk.keys.decode(sort_keys(found))
        return Rows(index, len(index), is_sample=False)
    return _sampled_rows(space, walk, always)


def _all(space: SearchSpace, pilot: _Sample, limit: int) -> Keys | None:
    """Returns the keys of every allowed row; None where there are more than ``limit``, or too many visits."""
    if pilot.visits > SURE * enumeration.VISITS_LIMIT or pilot.keys.shape[1] / pilot.share > SURE * limit:
        return None
    found: list[Keys] = [RowKeys(space).root()[:, :0]]
    rows = visits = 0
    for part in walked(space, space.constraints):
        found.append(part.keys)
        rows += part.keys.shape[1]
        visits += part.visits
        if rows > limit or visits > enumeration.VISITS_LIMIT:
            return None
    return np.concatenate(found, axis=1)


def _sampled_rows(space: SearchSpace, walk: Walk, always: Indices | None) -> Rows:
    limit = _sample_rows(space)
    sample = _sampled(walk, limit)
    rows = sample.keys.shape[1]
    if rows == 0:
        raise UsageError(enumeration.too_long(space))
    wanted = [] if always is None else [walk.keys.encode(always)]
    if space.preferences:  # as many of the preferred rows again: they may be a small share
        wanted.append(_sampled(Walk(space, space.constraints + space.preferences), limit).keys)
    index = walk.keys.decode(_distinct(sort_keys(np.concatenate([sample.keys, *wanted], axis=1))))
    return Rows(index, max(round(rows / sample.share), len(index)), is_sample=sample.share < 1)


def _sample_rows(space: SearchSpace) -> int:
    """Returns how many rows a sample of a space has: SAMPLE_ROWS, or as many as are drawn in like time."""
    return int(SAMPLE_ROWS * min(1.0, SAMPLE_KNOBS / max(1, len(space.knobs))) ** 2)


def _distinct(keys: Keys) -> Keys:
    """Returns sorted keys without repetitions."""
    is_new = np.any(keys[:, 1:] != keys[:, :-1], axis=0)
    return keys[:, np.concatenate([[True], is_new])]


def _sampled(walk: Walk, limit: int) -> _Sample:
    """Draws at most ``limit`` complete rows; all rows, with a share of 1, where there are no more."""
    block = walk.root()
    share, visits = 1.0, 0.0
    if block is None:
        return _Sample(walk.keys.root()[:, :0], share, visits)
    for depth, step in enumerate(walk.steps):
        parents = _cut(block, max(1, GROWN_LIMIT // step.choices), 2 * depth)
        share *= parents.rows / max(1, block.rows)
        visits += parents.rows * step.choices / share
        grown = _joined([walk.grown(depth, part) for part in walk.parts(depth, parents)])
        if grown is None:
            return _Sample(block.keys[:, :0], share, visits)
        block = _cut(grown, limit, 2 * depth + 1)
        share *= block.rows / grown.rows
    return _Sample(block.keys, share, visits)


def _joined(blocks: list[Block]) -> Block | None:
    """Returns the rows of all blocks in one block; None for no rows."""
    filled = [block for block in blocks if block.rows]
    if not filled:
        return None
    picks = {knob: np.concatenate([block.picks[knob] for block in filled]) for knob in filled[0].picks}
    return Block(np.concatenate([block.keys for block in filled], axis=1), picks)


def _cut(block: Block, limit: int, level: int) -> Block:
    """Returns the rows with the smallest hashes, at most ``limit``: a uniform sample."""
    if block.rows <= limit:
        return block
    kept = np.argpartition(_hashes(block.keys, level), limit)[:limit]
    return block.of(np.sort(kept))


def _hashes(keys: Keys, level: int) -> npt.NDArray[np.uint64]:
    """Returns splitmix64 of the keys, a different hash at each level (Steele et al., 2014)."""
    state = np.full(keys.shape[1], level + 1, np.uint64)
    for text in keys:
        state = (state * np.uint64(0x9E3779B97F4A7C15)) ^ text
        state += np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state
