"""A sample of a large grouped_matmul: few rows in few groups, and some columns of blocks.

A kernel reads at run time which rows are of which group, so a part of the problem is a whole one for it: of
all groups at most three have rows, anywhere among all rows. Blocks beyond the last tile have nothing to do.
"""

from dataclasses import replace

import numpy as np

from tuner.core.compiled_code import Launch
from tuner.core.errors import CandidateError, Stage
from tuner.core.numpy_types import is_nan
from tuner.core.problem import Problem
from tuner.core.records import Verdict
from tuner.gpu.target.block_sample import Block
from tuner.payload.comparison import compare_parts
from tuner.payload.drawing import draw, draw_base
from tuner.payload.group_offsets import NO_GROUP, few_rows, groups_of_rows
from tuner.payload.reference import Array, Inputs

ROWS = 96  # of the sample: with one row, a part of a tile and most of one in groups
LEAST_BLOCK = 32  # rows of a block, at least, of all strategies
BEYOND = 2  # blocks simulated after those that may have rows


def draw_few_rows(problem: Problem, rng: np.random.Generator) -> Inputs:
    """Returns inputs of which at most ROWS (96) rows are in groups."""
    offsets = few_rows(problem.groups, problem.rows, ROWS, rng)
    base = replace(draw_base(problem, rng), offsets=(offsets,))
    return draw(problem, base, rng)


def blocks_with_rows(launch: Launch, inputs: Inputs) -> tuple[Block, ...]:
    """Returns the blocks to simulate, as (x, y, 0): in the first, a middle and the last column of blocks.

    In a column these are the blocks that may have rows, BEYOND (2) more, and the last one.
    """
    columns, rows, _ = launch.grid
    tiles = int(np.sum(-(-np.diff(inputs.base.offsets[0]) // LEAST_BLOCK)))
    along_rows = sorted({*range(min(tiles + BEYOND, rows)), rows - 1})
    along_columns = sorted({0, columns // 2, columns - 1})
    return tuple((x, y, 0) for x in along_columns for y in along_rows)


def verdict_of_columns(inputs: Inputs, c: Array, launch: Launch) -> Verdict:
    """Compares what the blocks of ``blocks_with_rows`` wrote; C began as NaN.

    Raises CandidateError(VERIFY) for a wrong element, for columns that blocks left out, and for rows outside
    of all groups that were written.
    """
    numbers = np.arange(len(c))
    in_groups = groups_of_rows(inputs.base.offsets[0], numbers) != NO_GROUP
    written = ~is_nan(c)
    outside = int(np.count_nonzero(written[~in_groups]))
    if outside:
        raise CandidateError(Stage.VERIFY, f"wrote {outside} elements of rows that are in no group")
    is_column = written[in_groups].any(axis=0)
    spans = _spans(is_column)
    expected = _expected_spans(launch.grid[0], c.shape[1], spans)
    if spans != expected:
        raise CandidateError(Stage.VERIFY, f"wrote columns {spans}, expected {expected}")
    rows = numbers[in_groups]
    note = f"C: {len(rows)} rows in groups, {np.count_nonzero(is_column)} columns compared"
    return compare_parts(inputs, c, [(rows, slice(first, end)) for first, end in spans], note)


def _spans(is_column: Array) -> list[tuple[int, int]]:
    """Returns the ranges (first, end) of columns that are True in ``is_column``: the columns written."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], is_column, [False])).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _expected_spans(blocks: int, n: int, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the ranges (first, end) of columns that the chosen columns of blocks should write.

    Each block is taken to be as wide as the narrowest range that covers the ``n`` columns of C with
    ``blocks`` blocks.
    """
    chosen = sorted({0, blocks // 2, blocks - 1})
    if blocks <= len(chosen):
        return [(0, n)]
    width = spans[0][1] if spans else 0
    if -(-n // max(width, 1)) != blocks:  # of the first two columns of blocks, or incomplete
        width = -(-n // blocks)
    written = np.zeros(n, bool)
    for x in chosen:
        written[x * width : (x + 1) * width] = True
    return _spans(written)
