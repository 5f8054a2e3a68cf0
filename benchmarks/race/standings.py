"""Ratios, shares and times to a quality: what the times of a race say about each tuner."""

import re
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.race.contest import KernelTiming
from benchmarks.race.peer import PeerResult

LEAST_ROUNDS = 3  # of an interval
FOLDERS = re.compile(r"(?<!\w)(?:/[\w.+-]+)*/(?=[\w.+-])")  # of an absolute path, up to its last name
SHARES = (0.95, 0.98)  # of the speed of the best known


@dataclass(frozen=True)
class RoundRatio:
    """Time of the baseline over time of a kernel in the same round: above 1 the kernel is faster."""

    median: float
    low: float  # quartiles: with 31 rounds 95 % enclose the median, see `benchmarks.ratios.coverage`
    high: float
    rounds: int


def ratio_to(baseline: KernelTiming, timing: KernelTiming) -> RoundRatio | None:
    """Returns the ratio over the rounds that both were timed in; None where these are too few."""
    baseline_s = dict(baseline.samples_s)
    ratios = [baseline_s[number] / seconds for number, seconds in timing.samples_s if number in baseline_s]
    if len(ratios) < LEAST_ROUNDS:
        return None
    low, middle, high = statistics.quantiles(ratios, n=4)
    return RoundRatio(middle, low, high, len(ratios))


def spread_of(timing: KernelTiming) -> float | None:
    """Returns the distance of the quartiles of a kernel's times, relative to their median; None: too few."""
    seconds = [sample_s for _, sample_s in timing.samples_s]
    if len(seconds) < LEAST_ROUNDS:
        return None
    low, middle, high = statistics.quantiles(seconds, n=4)
    return (high - low) / middle


def best_known_s(timings: Iterable[KernelTiming]) -> float | None:
    """Returns the least median of all kernels, of any tuner, budget and library."""
    known = [timing.median_s for timing in timings if timing.median_s is not None]
    return min(known, default=None)


def seconds_to(share: float, entry: PeerResult, median_s: float, best_s: float) -> float | None:
    """Returns when a tuner first had a kernel with ``share`` of the best known speed; None: never.

    ``median_s``: the race's time of its last kernel; ``best_s``: of the best known kernel. The kernels in
    between have the tuner's own times only: they are scaled by what the last one takes in the race.
    """
    if entry.own_s is None:  # without a log: when its command ended
        return entry.wall_s if best_s / median_s >= share else None
    best_own_s = float("inf")
    for trial in entry.trials:
        if trial.own_s is None:
            continue
        best_own_s = min(best_own_s, trial.own_s)
        slower = max(1.0, best_own_s / entry.own_s)
        if best_s / (median_s * slower) >= share:
            return trial.elapsed_s
    return None


def improvements(entry: PeerResult) -> list[tuple[float, float]]:
    """Returns (seconds since the start, own time) of each trial that was better than all before."""
    found: list[tuple[float, float]] = []
    for trial in entry.trials:
        if trial.own_s is not None and (not found or trial.own_s < found[-1][1]):
            found.append((trial.elapsed_s, trial.own_s))
    return found


def without_folders(text: str) -> str:
    """Returns a text in which paths are file names: results say nothing about folders of a machine."""
    return FOLDERS.sub("", text)


def geometric_means(ratios: Mapping[str, Iterable[float]]) -> dict[str, float]:
    """Returns the geometric mean of each peer's ratios; peers without ratios are left out."""
    lists = {name: list(values) for name, values in ratios.items()}
    return {name: statistics.geometric_mean(values) for name, values in lists.items() if values}
