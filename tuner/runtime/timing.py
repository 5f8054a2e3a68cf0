"""Times repeatable actions: warm-up, adaptive repeats, interleaving, medians with confidence intervals.

A stopwatch is a function (number of calls) -> seconds per call. ``measure_by`` times one,
``measure_together_by`` several interleaved; ``summarize`` makes a Measurement of samples.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from tuner.core.interfaces import Effort
from tuner.core.records import Measurement

# Interleaved slices: each program runs for about two milliseconds, then the next one, round after round.
#
# So each finds the caches as the others have left them. A loop of one program alone keeps its weights in the
# cache, which flatters a large model by 10 to 15 percent. A program that is timed twice, for the noise,
# would follow itself and be 6 percent faster: another one is called in between.
#
# Programs of several threads need more. The threads of a runtime wait in a loop for milliseconds after its
# last call, on processors that the next program needs. So before each slice nothing runs until they sleep,
# and some calls that are not timed wake the next program's own threads.

SLICE_S = 2e-3
LEAST_ROUNDS = 7
REST_S = 0.02  # libgomp's threads wait in a loop for some 6 ms, those of the other runtimes for less
WAKING_CALLS = 3
Call = Callable[[], object]
Clock = Callable[[], float]
SAMPLE_S = 1e-3  # least duration of a sample; the overhead of clock and call is negligible
EARLY_SAMPLES = 3  # all above the limit: early-stopped; fewer samples must be above twice the limit
LONG_SAMPLE_S = 0.02  # of a sample, against which another process' time slice (Linux: some 4 ms) is small
RESAMPLES = 500  # of the bootstrap
COLD_S = 0.02  # duration of a call; filling the caches takes little of it
LIMIT_S = 1.0  # of one action's calls in an interleaved timing, or FEW_SAMPLES and OTHER_CALLS if longer
FEW_SAMPLES = 6
OTHER_CALLS = 4  # two to verify, two to warm up
Repeat = Callable[[int], None]  # runs the action so many times
Stopwatch = Callable[[int], float]  # runs the action so many times in a row; returns the seconds per call


def interleaved_times(
    calls: Mapping[str, Call],
    seconds: float,
    clock: Clock = time.perf_counter,
    before_slice: Callable[[Call], object] | None = None,
) -> dict[str, tuple[float, ...]]:
    """Returns name -> seconds per call in each round.

    Calls are timed interleaved, for about ``seconds`` in all. There are 7 or more rounds; the name that comes
    first changes from round to round. Where a call would follow itself, as one with two names may, another is
    called in between, untimed. ``before_slice`` is called, untimed, with a call before its slice of a
    round.
    """
    prepared = before_slice or _nothing
    counts = {}  # of calls that take about ``SLICE_S``, by the faster of two after a first one
    for name, call in calls.items():
        call()
        once = min(_slice(call, 1, clock) for _ in range(2))
        counts[name] = max(1, round(SLICE_S / once)) if once > 0 else 1
    times: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    end = clock() + seconds
    rounds = 0
    latest = calls[order[-1]]
    while rounds < LEAST_ROUNDS or clock() < end:
        first = rounds % len(order)
        for name in (*order[first:], *order[:first]):
            call = calls[name]
            if call is latest:
                _call_another(call, calls.values())
            prepared(call)
            times[name].append(_slice(call, counts[name], clock))
            latest = call
        rounds += 1
    return {name: tuple(taken) for name, taken in times.items()}


def _call_another(call: Call, calls: Iterable[Call]) -> None:
    """Calls the first of ``calls`` that is not ``call``; nothing without one."""
    different = [program for program in calls if program is not call]
    if different:
        different[0]()


def before_slice_of(threads: int) -> Callable[[Call], object]:
    """Returns the function ``before_slice`` of ``interleaved_times`` for calls that use ``threads`` threads.

    For one thread it does nothing. For several it sleeps 20 ms, so that other runtimes' threads stop waiting
    in loops, then wakes the call's own threads by 3 untimed calls.
    """
    if threads == 1:
        return _nothing
    return _awake_after_a_rest


def _nothing(_: Call) -> None:
    """Does nothing before a slice: calls on one thread need no rest for other threads."""


def _awake_after_a_rest(call: Call) -> None:
    time.sleep(REST_S)
    for _ in range(WAKING_CALLS):
        call()


def _slice(call: Call, count: int, clock: Clock) -> float:
    start = clock()
    for _ in range(count):
        call()
    return (clock() - start) / count


def measure(
    repeat: Repeat, effort: Effort, rng: np.random.Generator, clock: Clock = time.perf_counter
) -> Measurement:
    """Times ``repeat(n)``, which runs an action n times, until ``effort`` is spent.

    Returns median and 95 % interval of the seconds per call. Stops early (``is_complete`` False) if the first
    samples all lie above ``effort.stop_above_s``.
    """
    return measure_by(stopwatch_of(repeat, clock), effort, rng)


def measure_together(
    repeats: tuple[Repeat, ...], effort: Effort, rng: np.random.Generator, clock: Clock = time.perf_counter
) -> tuple[Measurement, ...]:
    """Times several ``repeat(n)`` functions, which run an action n times, interleaved in random order.

    Returns their measurements in the order of ``repeats``.
    """
    return measure_together_by(tuple(stopwatch_of(repeat, clock) for repeat in repeats), effort, rng)


def stopwatch_of(repeat: Repeat, clock: Clock = time.perf_counter) -> Stopwatch:
    """Returns a function that runs ``repeat(n)`` and returns the seconds per call."""
    return lambda inner: sample(repeat, inner, clock)


def stopwatch_of_cold_calls(
    evict: Callable[[], None], prepare: Callable[[], Callable[[], object]], clock: Clock = time.perf_counter
) -> Stopwatch:
    """Returns a stopwatch of single calls with cold caches: ``evict()`` runs untimed before each call.

    ``prepare()``, also untimed, returns the function to call.
    """

    def taken(inner: int) -> float:
        spent = 0.0
        for _ in range(inner):
            run = prepare()
            evict()
            start = clock()
            run()
            spent += clock() - start
        return spent / inner

    return taken


def with_untimed_calls(take: Stopwatch, calls: int = 1) -> Stopwatch:
    """Returns a stopwatch that makes ``calls`` untimed calls before those of ``take``, to warm the caches.

    Before a single call there are none if the last call took 20 ms or more, or if it is the first call.
    """
    last_s: list[float] = []

    def taken(inner: int) -> float:
        if inner > 1 or (last_s and last_s[-1] < COLD_S):
            take(calls)
        last_s[:] = [take(inner)]
        return last_s[0]

    return taken


def measure_by(take: Stopwatch, effort: Effort, rng: np.random.Generator) -> Measurement:
    """Times by ``take(n)``, which returns seconds per call of n calls, until ``effort`` is spent.

    Returns median and 95 % interval. Stops early (``is_complete`` False) if the first samples all lie above
    ``effort.stop_above_s``.
    """
    inner, calibrating_s = _calibrated(take, effort)
    samples: list[float] = []
    spent = 0.0
    while len(samples) < effort.max_samples:
        samples.append(take(inner))
        spent += sample_s(samples[-1], inner)
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
    clock: Clock = time.perf_counter,
) -> tuple[Measurement, ...]:
    """Times actions interleaved, one sample each per round, in random order, so that drift affects all alike.

    Returns their measurements in order, all of equally many samples. Besides the limits of ``effort``, there
    are at most as many samples as fit, less 4, into 1 s (LIMIT_S) of the slowest action, but 6 (FEW_SAMPLES)
    or more; and only 6 if ``effort.within_s`` seconds are over. ``after_round`` is called, untimed, after
    each round.
    """
    end_s = math.inf if effort.within_s is None else clock() + effort.within_s
    inners = [calibrate(take, effort) for take in stopwatches]
    samples: list[list[float]] = [[] for _ in stopwatches]
    spent = 0.0
    while len(samples[0]) < effort.max_samples:
        for index in rng.permutation(len(stopwatches)):
            call_s = stopwatches[index](inners[index])
            samples[index].append(call_s)
            spent += sample_s(call_s, inners[index])
        after_round()
        slowest_s = max(1e-9, *map(sample_s, map(min, samples), inners))  # without pauses of the process
        most = max(FEW_SAMPLES, int(LIMIT_S / slowest_s) - OTHER_CALLS)
        is_spent = spent >= effort.budget_s * len(stopwatches) and len(samples[0]) >= effort.min_samples
        is_late = clock() >= end_s and len(samples[0]) >= FEW_SAMPLES
        if is_spent or is_late or len(samples[0]) >= most:
            break
    return tuple(summarize(taken, inner, rng) for taken, inner in zip(samples, inners, strict=True))


def calibrate(take: Stopwatch, effort: Effort) -> int:
    """Warms up ``take``; returns how many calls make a sample of SAMPLE_S (1 ms), or use up the budget."""
    return _calibrated(take, effort)[0]


def _calibrated(take: Stopwatch, effort: Effort) -> tuple[int, float]:
    take(1)
    inner = 1
    per_call = take(1)
    while per_call * inner < SAMPLE_S and per_call * inner < effort.budget_s:
        inner = max(inner + 1, min(inner * 10, math.ceil(1.2 * SAMPLE_S / max(per_call, 1e-9))))
        per_call = take(inner)
    return inner, per_call


def sample(repeat: Repeat, inner: int, clock: Clock = time.perf_counter) -> float:
    """Returns the seconds per call of an action that ``repeat`` runs ``inner`` times in a row."""
    start = clock()
    repeat(inner)
    return (clock() - start) / inner


def summarize(
    samples: list[float], inner: int, rng: np.random.Generator, is_complete: bool = True
) -> Measurement:
    """Returns a Measurement of samples: their median and its 95 % bootstrap interval (Efron 1979).

    ``samples``: seconds per call; ``inner``: calls per sample.
    """
    taken = np.array(samples)
    medians = np.median(rng.choice(taken, size=(RESAMPLES, len(taken))), axis=1)
    low, high = np.percentile(medians, (2.5, 97.5))
    return Measurement(
        tuple(samples), inner, statistics.median(samples), (float(low), float(high)), is_complete
    )


def sample_s(call_s: float, inner: int) -> float:
    """Returns the seconds of a sample of ``inner`` calls, with the untimed call before short ones."""
    return call_s * (inner + (call_s < COLD_S))


def _is_early_stopped(samples: list[float], inner: int, effort: Effort, calibrating_s: float) -> bool:
    """Returns whether all samples exceed ``effort.stop_above_s``: the timing may stop.

    With fewer than 3 samples, they and the calls of the calibration (``calibrating_s``) must exceed twice the
    limit, and a single sample counts only if it lasted LONG_SAMPLE_S.
    """
    if effort.stop_above_s is None:
        return False
    if len(samples) >= EARLY_SAMPLES:
        return min(samples) > effort.stop_above_s
    is_known = len(samples) > 1 or samples[0] * inner >= LONG_SAMPLE_S
    return is_known and min(calibrating_s, *samples) > 2 * effort.stop_above_s
