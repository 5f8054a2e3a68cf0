"""Ratios of models, and what they must reach."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.model_zoo import LARGE, RARER, SMALL
from tuner.core.records import MedianInterval

LARGE_OVER_EAGER, LARGE_OVER_COMPILE, SMALL_OVER_EAGER = 1.25, 1.15, 2.0  # least geometric means of f32
RARER_OVER_EAGER, RARER_OVER_COMPILE = 0.95, 0.9  # least ratios of each block of rarer operators


@dataclass(frozen=True)
class ModelRatios:
    """How much faster a model runs than by others: above 1, tuner is faster. None: nothing to compare."""

    model: str
    category: str
    eager: MedianInterval | None
    compile: MedianInterval | None  # the best of torch.compile


@dataclass(frozen=True)
class Summary:
    """Geometric means of the medians over the models of each category, and the least ratio of all."""

    large_over_eager: float | None
    large_over_compile: float | None
    small_over_eager: float | None
    small_over_compile: float | None
    rarer_over_eager: float | None
    rarer_over_compile: float | None
    worst: float | None
    worst_of: str  # "resnet_big / compile"
    slower: tuple[str, ...]  # whose interval lies below 1.0, or below the least ratio of rarer operators


def summary(rows: Iterable[ModelRatios]) -> Summary:
    """Returns the figures over all models."""
    rows = tuple(rows)
    named = [
        (f"{row.model} / {other}", found, least if row.category == RARER else 1.0)
        for row in rows
        for other, found, least in (
            ("eager", row.eager, RARER_OVER_EAGER),
            ("compile", row.compile, RARER_OVER_COMPILE),
        )
        if found is not None
    ]
    worst_of, worst, _ = min(named, key=lambda each: each[1].median, default=("", None, 1.0))
    chosen = [[row for row in rows if row.category == category] for category in (LARGE, SMALL, RARER)]
    large, small, rarer = (
        (_mean(row.eager for row in each), _mean(row.compile for row in each)) for each in chosen
    )
    return Summary(
        *large,
        *small,
        *rarer,
        None if worst is None else worst.median,
        worst_of,
        tuple(name for name, found, least in named if found.high < least),
    )


def missed(found: Summary, dtype: str) -> tuple[str, ...]:
    """Returns a line for each figure that is demanded and not reached; of bf16, only of single models.

    A mean over no models is not demanded.
    """
    demands = (
        ("large models, geometric mean over eager", found.large_over_eager, LARGE_OVER_EAGER),
        ("large models, geometric mean over torch.compile", found.large_over_compile, LARGE_OVER_COMPILE),
        ("small models, geometric mean over eager", found.small_over_eager, SMALL_OVER_EAGER),
    )
    lines = [
        f"{what}: {number:.2f}, demanded {least}"
        for what, number, least in demands
        if dtype == "f32" and number is not None and number < least
    ]
    return (*lines, *(f"{name}: slower, the interval lies below what is demanded" for name in found.slower))


def _mean(ratios: Iterable[MedianInterval | None]) -> float | None:
    medians = [each.median for each in ratios if each is not None]
    return statistics.geometric_mean(medians) if medians else None
