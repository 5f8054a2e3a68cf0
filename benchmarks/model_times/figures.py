"""Ratios of models, and what they must reach."""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from benchmarks.model_zoo import LARGE, NETWORK, RARER, SMALL
from tuner.core.records import MedianInterval

LARGE_OVER_EAGER, LARGE_OVER_COMPILE, SMALL_OVER_EAGER = 1.25, 1.15, 2.0  # least geometric means of f32
LEAST = {  # ratios of each model over eager and over the best of torch.compile
    LARGE: (1.0, 1.0),
    SMALL: (1.0, 1.0),
    RARER: (0.95, 0.9),
    NETWORK: (1.0, 1.0),
}


@dataclass(frozen=True)
class ModelRatios:
    """How much faster a model runs than by others: above 1, tuner is faster. None: nothing to compare."""

    model: str
    category: str
    eager: MedianInterval | None
    compile: MedianInterval | None  # the best of torch.compile
    runtimes: Mapping[str, MedianInterval] = field(default_factory=dict)  # other runtimes, by name

    @property
    def demanded(self) -> tuple[tuple[str, MedianInterval, float], ...]:
        """The rivals that are demanded, the ratios over them, and the least ratios."""
        over_eager, over_compile = LEAST[self.category]
        rivals = {"eager": (self.eager, over_eager), "compile": (self.compile, over_compile)}
        if self.category == NETWORK:
            rivals |= {name: (found, 1.0) for name, found in self.runtimes.items()}
        return tuple((name, found, least) for name, (found, least) in rivals.items() if found is not None)


@dataclass(frozen=True)
class Summary:
    """Geometric means of the medians over the models of each category, and the least ratio of all."""

    large_over_eager: float | None
    large_over_compile: float | None
    small_over_eager: float | None
    small_over_compile: float | None
    rarer_over_eager: float | None
    rarer_over_compile: float | None
    network_over_eager: float | None
    network_over_compile: float | None
    worst: float | None
    worst_of: str  # "resnet_big / compile"
    slower: tuple[str, ...]  # whose interval lies below the least ratio of its category


def summary(rows: Iterable[ModelRatios]) -> Summary:
    """Returns the figures over all models."""
    rows = tuple(rows)
    named = [(f"{row.model} / {other}", found, least) for row in rows for other, found, least in row.demanded]
    worst_of, worst, _ = min(named, key=lambda each: each[1].median, default=("", None, 1.0))
    chosen = [
        [row for row in rows if row.category == category] for category in (LARGE, SMALL, RARER, NETWORK)
    ]
    large, small, rarer, network = (
        (_mean(row.eager for row in each), _mean(row.compile for row in each)) for each in chosen
    )
    return Summary(
        *large,
        *small,
        *rarer,
        *network,
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
