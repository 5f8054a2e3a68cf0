"""Interleaved slices: each program runs for about two milliseconds, then the next one, round after round.

So each finds the caches as the others have left them. A loop of one program alone keeps its weights in the
cache, which flatters a large model by 10 to 15 percent.

Programs of several threads need more. The threads of a runtime wait in a loop for milliseconds after its last
call, on processors that the next program needs. So before each slice nothing runs until they sleep, and some
calls that are not timed wake the next program's own threads.
"""

import time
from collections.abc import Callable, Mapping, Sequence

SLICE_S = 2e-3
LEAST_ROUNDS = 7
REST_S = 0.02  # libgomp's threads wait in a loop for some 6 ms, those of the other runtimes for less
WAKING_CALLS = 3
Call = Callable[[], object]
Clock = Callable[[], float]


def interleaved_times(
    calls: Mapping[str, Call],
    seconds: float,
    clock: Clock = time.perf_counter,
    before_slice: Callable[[Call], object] | None = None,
) -> dict[str, tuple[float, ...]]:
    """Returns seconds per call for each name: a number for each round.

    Runs rounds until ``seconds`` are over, at least ``LEAST_ROUNDS``. Each round begins with another name
    than the last one, so that nobody always comes after the same neighbour's start of the round.

    Args:
        calls: What is timed, by name.
        seconds: How long rounds are run.
        clock: Returns the time in seconds.
        before_slice: Is given the call of each slice before its time begins: ``before_slice_of(threads)``.
    """
    prepared = before_slice or _nothing
    counts = {name: _calls_of_a_slice(call, clock) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    end = clock() + seconds
    rounds = 0
    while rounds < LEAST_ROUNDS or clock() < end:
        for name in _rotated(order, rounds):
            prepared(calls[name])
            times[name].append(_slice(calls[name], counts[name], clock))
        rounds += 1
    return {name: tuple(found) for name, found in times.items()}


def before_slice_of(threads: int) -> Callable[[Call], object]:
    """Returns what precedes each slice of calls that run on so many threads."""
    return _nothing if threads == 1 else _awake_after_a_rest


def _nothing(_: Call) -> None:
    """Leaves the caches as they are: no other thread runs."""


def _awake_after_a_rest(call: Call) -> None:
    time.sleep(REST_S)
    for _ in range(WAKING_CALLS):
        call()


def _calls_of_a_slice(call: Call, clock: Clock) -> int:
    """Returns how many calls take about ``SLICE_S``, by the faster of two after a first one."""
    call()
    once = min(_slice(call, 1, clock) for _ in range(2))
    return max(1, round(SLICE_S / once)) if once > 0 else 1


def _slice(call: Call, count: int, clock: Clock) -> float:
    start = clock()
    for _ in range(count):
        call()
    return (clock() - start) / count


def _rotated(names: Sequence[str], by: int) -> list[str]:
    first = by % len(names)
    return [*names[first:], *names[:first]]
