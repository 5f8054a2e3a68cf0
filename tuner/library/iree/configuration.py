"""Configurations of IREE's CPU pipeline for a problem: from an entry's knobs, and known good ones.

Tiles do not carry over: a register tile of 12 x 32 that wins in tuner's code was 3 times slower than IREE's
default, 8 x 32 was the fastest (decision 64). So an entry's knobs are one proposal of several, and times in
IREE's runtime decide.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from tuner.core.candidate import Value
from tuner.core.problem import Problem
from tuner.library.entry import LibraryEntry

ROWS, COLUMNS = 8, 32  # of the register tile that was the fastest
BLOCKS = (
    (64, 64),
    (128, 128),
    (128, 256),
    (64, 512),
)  # rows and columns of C that a thread computes at a time
STEPS = (1, 4, 16)  # of k, in one iteration of the innermost loop
MOST = 12  # configurations of one problem: each is compiled in one to two seconds


@dataclass(frozen=True)
class IreeConfiguration:
    """Tile sizes of IREE's pipeline DoubleTilingExpert for one contraction."""

    distribution: tuple[int, int]  # rows and columns of C of one work group
    tile: tuple[int, int]  # rows and columns of C in registers
    step: int  # of k

    def attribute(self, problem: Problem) -> str:
        """Returns ``#iree_codegen.compilation_info<...>`` for a problem; a batch is done one by one."""
        lead = [1] * len(problem.lead)
        lists = (
            ("distribution", [*lead, *self.distribution, 0]),
            ("vector_common_parallel", [*lead, *self.tile, 0]),
            ("vector_reduction", [*(0 for _ in lead), 0, 0, self.step]),
        )
        sizes = ", ".join(f"{name} = {values}" for name, values in lists)
        pipeline = "#iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>>"
        lowering = f"#iree_cpu.lowering_config<{sizes}>"
        return f"#iree_codegen.compilation_info<lowering_config = {lowering}, translation_info = {pipeline}>"


def configurations_for(entry: LibraryEntry) -> tuple[IreeConfiguration, ...]:
    """Returns the configurations to time for an entry's problem, that of its knobs first; at most 12.

    Block sizes become IREE's distribution, the register tile its vector tile, the unrolling of k its step.
    """
    m, n, k = entry.problem.sizes
    proposals = (*_of_knobs(entry), *_known())
    fitting = (
        IreeConfiguration(
            (min(each.distribution[0], m), min(each.distribution[1], n)),
            (min(each.tile[0], m), min(each.tile[1], n)),
            min(each.step, k),
        )
        for each in proposals
    )
    return tuple(itertools.islice(dict.fromkeys(fitting), MOST))


def _of_knobs(entry: LibraryEntry) -> Iterator[IreeConfiguration]:
    """Yields the configuration of an entry's own tiles, then that with the usual tile and its blocks."""
    m, n, _ = entry.problem.sizes
    knobs = dict(entry.candidate.choices)
    blocks = (_size(knobs, "block_m") or m, _size(knobs, "block_n") or n)
    rows, columns = _size(knobs, "tile_m"), _size(knobs, "tile_n")
    step = _size(knobs, "unroll_k") or 1
    if rows and columns:
        yield IreeConfiguration(blocks, (rows, columns), step)
    yield IreeConfiguration(blocks, (ROWS, COLUMNS), step)


def _known() -> Iterator[IreeConfiguration]:
    for step, blocks in itertools.product(STEPS, BLOCKS):
        yield IreeConfiguration(blocks, (ROWS, COLUMNS), step)


def _size(knobs: dict[str, Value], name: str) -> int:
    """Returns a knob that is a number; 0 where the strategy has no such knob."""
    value = knobs.get(name, 0)
    return value if isinstance(value, int) else 0
