"""Random feasible points of every GPU strategy, over all dtypes, layouts, epilogues and outputs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.gpu_check.points import gpu_strategies, is_allowed
from tests.support.gpu_point import GpuPoint, feasible_set
from tuner.core.candidate import Candidate
from tuner.core.dtypes import narrow_output, output_names
from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.core.problem import (
    BATCH_MATMUL,
    Problem,
    epilogues_of,
)
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.entries import StrategyEntry

CHIPS = ("sm_80", "sm_90", "sm_90a")
LARGEST = 120  # of a random problem's sides
LARGEST_BLOCK = 128 * 256  # sums of a block: larger ones take seconds to simulate
MULTIPLES = (1, 8, 16)  # that all three sides are rounded up to
DEEP, DEEP_SHARE = 4, 0.15  # k is so many times as long in a share of the problems: parts of it
BATCH_SHARE = 0.25  # of the problems are batches
BATCH_LIMIT = 4  # matrices, not included
SHAPES_TRIED = 200  # until the strategy has anything for one
ROWS_TRIED = 200  # until a block is small enough
Knobs = tuple[tuple[str, str], ...]  # (name, text)


@dataclass(frozen=True)
class GpuKernelKind:
    """A kind of kernel of one strategy: everything of a problem but its size."""

    strategy: str
    chip: str
    dtype: str
    layout: str
    epilogue: str
    output: str  # "" for the natural one

    def problem(self, sizes: tuple[int, int, int]) -> Problem:
        """Returns the problem of the given sizes (m, n, k)."""
        return Matmul(*sizes, self.dtype, self.layout, self.epilogue, self.output)


def kinds(strategy: str) -> tuple[GpuKernelKind, ...]:
    """Returns all kinds of kernels of a strategy, on each chip that the strategy supports."""
    entry = _entry(strategy)
    return tuple(
        kind
        for chip in CHIPS
        for kind in _kinds_of(entry, chip)
        if is_allowed(entry, kind.problem((64, 64, 64)), chip)
    )


def draw(
    kind: GpuKernelKind, rng: np.random.Generator, knobs: Knobs = (), *, is_preferred: bool = False
) -> GpuPoint:
    """Returns a random feasible point with the given values of knobs.

    With ``is_preferred`` it breaks no preference.

    Raises LookupError for a kind that no random size allows.
    """
    entry = _entry(kind.strategy)
    for _ in range(SHAPES_TRIED):
        multiple = int(rng.choice(MULTIPLES))
        m, n, k = (-(-int(size) // multiple) * multiple for size in rng.integers(1, LARGEST, 3))
        if rng.random() < DEEP_SHARE:
            k *= DEEP
        problem = kind.problem((m, n, k))
        if rng.random() < BATCH_SHARE:
            problem = replace(problem, operation=BATCH_MATMUL, batch=int(rng.integers(1, BATCH_LIMIT)))
        if not is_allowed(entry, problem, kind.chip):
            continue
        try:
            allowed = feasible_set(problem, kind.strategy, kind.chip)
        except UsageError:
            continue
        if is_preferred:
            allowed = allowed.part(allowed.is_preferred)
        candidate = _small_enough(allowed, rng, dict(knobs))
        if candidate is not None:
            return GpuPoint(problem, candidate, kind.chip)
    found = " ".join(f"{name}={text}" for name, text in knobs) or "no knobs"
    raise LookupError(f"found {found}, allowed what {kind} has on any of {SHAPES_TRIED} random shapes")


def _entry(strategy: str) -> StrategyEntry:
    (entry,) = (each for each in gpu_strategies() if each.name == strategy)
    return entry


def _kinds_of(entry: StrategyEntry, chip: str) -> Iterator[GpuKernelKind]:
    for dtype in entry.dtypes:
        for output in output_names(dtype):
            for layout in entry.layouts:
                for epilogue in (name for name in epilogues_of(dtype) if name in entry.epilogues):
                    narrow = narrow_output(dtype, output)
                    yield GpuKernelKind(entry.name, chip, dtype, layout, epilogue, narrow)


def _small_enough(allowed: FeasibleSet, rng: np.random.Generator, wanted: dict[str, str]) -> Candidate | None:
    for _ in range(ROWS_TRIED if allowed.rows else 0):
        candidate = allowed.candidate(int(rng.integers(allowed.rows)))
        knobs = {name: str(value) for name, value in candidate.choices}
        is_small = int(knobs.get("block_m", 1)) * int(knobs.get("block_n", 1)) <= LARGEST_BLOCK
        if is_small and wanted.items() <= knobs.items():
            return candidate
    return None
