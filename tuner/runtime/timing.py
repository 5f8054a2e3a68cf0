"""Times a repeatable action: warm-up, adaptive repeats, the median with a bootstrap confidence interval."""

import math
import statistics
import time
from collections.abc import Callable

import numpy as np

from tuner.core.record import Measurement
from tuner.core.target import Effort

SAMPLE_S = 1e-3  # least duration of a sample, beside which the clock and the call do not count
EARLY_SAMPLES = 3  # after which a hopeless action is no longer timed
TURN_S = 0.02  # duration of a sample beside which another process' turn (Linux: some 4 ms) does not count
RESAMPLES = 500  # of the bootstrap
COLD_S = 0.02  # duration of a call beside which filling the caches does not count
LIMIT_S = 1.0  # of one action's calls in finals, or FEW_SAMPLES and OTHER_CALLS if that is longer
FEW_SAMPLES = 6
OTHER_CALLS = 4  # two to verify, two to warm up

Repeat = Callable[[int], None]  # runs the action that many times
Clock = Callable[[], float]  # seconds since whenever
Stopwatch = Callable[[int], float]  # runs the action that many times in a row; returns the seconds per call


def measure(
    repeat: Repeat, effort: Effort, rng: np.random.Generator, clock: Clock = time.perf_counter
) -> Measurement:
    """Times an action by a clock of this process, see ``measure_by``."""
    return measure_by(stopwatch_of(repeat, clock), effort, rng)


def measure_together(
    repeats: tuple[Repeat, ...],
    effort: Effort,
    rng: np.random.Generator,
    clock: Clock = time.perf_counter,
) -> tuple[Measurement, ...]:
    """Times several actions by a clock of this process, see ``measure_together_by``."""
    return measure_together_by(tuple(stopwatch_of(repeat, clock) for repeat in repeats), effort, rng)


def stopwatch_of(repeat: Repeat, clock: Clock = time.perf_counter) -> Stopwatch:
    """Returns the stopwatch of an action, by a clock of this process."""
    return lambda inner: sample(repeat, inner, clock)


def led_by_calls(take: Stopwatch, calls: int = 1) -> Stopwatch:
    """Returns a stopwatch that begins a sample of short calls by some that are not timed.

    Among others that take turns it finds their arrays in the caches of a CPU.
    """
    last_s: list[float] = []

    def taken(inner: int) -> float:
        if inner > 1 or (last_s and last_s[-1] < COLD_S):
            take(calls)
        last_s[:] = [take(inner)]
        return last_s[0]

    return taken


def measure_by(take: Stopwatch, effort: Effort, rng: np.random.Generator) -> Measurement:
    """Times an action until the budget is spent; stops early where every sample is above ``stop_above_s``.

    A pause of the process within a sample makes this one long, and stops nothing.
    """
    inner, calibrating_s = _calibrated(take, effort)
    samples: list[float] = []
    spent = 0.0
    while len(samples) < effort.max_samples:
        samples.append(take(inner))
        spent += _sample_s(samples[-1], inner)
        if _is_early_stopped(samples, inner, effort, calibrating_s):
            return summarize(samples, inner, rng, is_complete=False)
        if spent >= effort.budget_s and len(samples) >= effort.min_samples:
            break
    return summarize(samples, inner, rng)


def measure_together_by(
    stopwatches: tuple[Stopwatch, ...],
    effort: Effort,
    rng: np.random.Generator,
    after_round: Callable[[], None] = lambda: None,
) -> tuple[Measurement, ...]:
    """Times several actions, one sample of each per round in a random order, so that drift affects all alike.

    Of long calls, FEW_SAMPLES or those of LIMIT_S are enough. ``after_round`` is called after each round;
    nothing is timed meanwhile.
    """
    inners = [calibrate(take, effort) for take in stopwatches]
    samples: list[list[float]] = [[] for _ in stopwatches]
    spent = 0.0
    while len(samples[0]) < effort.max_samples:
        for index in rng.permutation(len(stopwatches)):
            call_s = stopwatches[index](inners[index])
            samples[index].append(call_s)
            spent += _sample_s(call_s, inners[index])
        after_round()
        slowest_s = max(1e-9, *map(_sample_s, map(min, samples), inners))  # without pauses of the process
        most = max(FEW_SAMPLES, int(LIMIT_S / slowest_s) - OTHER_CALLS)
        is_spent = spent >= effort.budget_s * len(stopwatches) and len(samples[0]) >= effort.min_samples
        if is_spent or len(samples[0]) >= most:
            break
    return tuple(summarize(taken, inner, rng) for taken, inner in zip(samples, inners, strict=True))


def calibrate(take: Stopwatch, effort: Effort) -> int:
    """Warms up; returns the calls per sample with which a sample lasts ``SAMPLE_S``."""
    return _calibrated(take, effort)[0]


def _calibrated(take: Stopwatch, effort: Effort) -> tuple[int, float]:
    """Returns the calls per sample, and the seconds per call of the last sample that was tried."""
    take(1)
    inner, per_call = 1, take(1)
    while per_call * inner < SAMPLE_S and per_call * inner < effort.budget_s:
        inner = max(inner + 1, min(inner * 10, math.ceil(1.2 * SAMPLE_S / max(per_call, 1e-9))))
        per_call = take(inner)
    return inner, per_call


def sample(repeat: Repeat, inner: int, clock: Clock = time.perf_counter) -> float:
    """Returns the seconds per call of ``inner`` calls in a row."""
    start = clock()
    repeat(inner)
    return (clock() - start) / inner


def summarize(
    samples: list[float], inner: int, rng: np.random.Generator, is_complete: bool = True
) -> Measurement:
    """Returns the median and its 95 % confidence interval by the percentile bootstrap (Efron 1979)."""
    taken = np.array(samples)
    medians = np.median(rng.choice(taken, size=(RESAMPLES, len(taken))), axis=1)
    low, high = np.percentile(medians, (2.5, 97.5))
    return Measurement(
        tuple(samples), inner, statistics.median(samples), (float(low), float(high)), is_complete
    )


def _sample_s(call_s: float, inner: int) -> float:
    """Returns what a sample costs in seconds: one of short calls may be led by a call that is not timed."""
    return call_s * (inner + (call_s < COLD_S))


def _is_early_stopped(samples: list[float], inner: int, effort: Effort, calibrating_s: float) -> bool:
    """Returns whether to stop: three samples are above the limit, or two, or a long one, twice above it.

    One alone may hold a pause of the process: the sample that calibrated must be as slow.
    """
    if effort.stop_above_s is None:
        return False
    if len(samples) >= EARLY_SAMPLES:
        return min(samples) > effort.stop_above_s
    is_known = len(samples) > 1 or samples[0] * inner >= TURN_S
    return is_known and min(calibrating_s, *samples) > 2 * effort.stop_above_s
