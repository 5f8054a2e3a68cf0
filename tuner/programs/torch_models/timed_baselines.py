"""Times a tuned program and its baselines interleaved, so that all find the same caches."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from tuner.analysis.comparison import Comparable, NotComparable, paired_comparison
from tuner.analysis.paired_ratio import measurement_of, median_interval
from tuner.core.median_interval import MedianInterval
from tuner.core.program_result import ProgramBaseline
from tuner.core.round_quality import Evidence, reliability_in_round, round_quality
from tuner.programs.torch_models.baseline_calls import RUNTIMES, Example, NotRun, made
from tuner.runtime.interleaved_slices import Call, before_slice_of, interleaved_times
from tuner.tuning.remeasurement import noise_of

SECONDS = 3.0  # of rounds; each has a slice of 2 ms of each
OURS, AGAIN = "tuner", "tuner again"


def timed_baselines(
    program: Callable[..., Any],
    example: Example,
    names: tuple[str, ...],
    threads: int = 1,
    seconds: float = SECONDS,
) -> tuple[ProgramBaseline, ...]:
    """Compiles a module by each baseline, and times all and the tuned program, interleaved in this process.

    A baseline that cannot run the module has the reason in place of times. The number of torch's threads is
    ``threads`` meanwhile. () for no names.
    """
    if not names:
        return ()
    with _threads(threads), torch.no_grad():
        calls = {name: made(partial(RUNTIMES[name], example, threads)) for name in names}
        running = {name: call for name, call in calls.items() if not isinstance(call, NotRun)}
        ours = partial(program, *example.arguments, **example.keywords)
        # the program is timed twice: the difference is the noise floor
        timed: dict[str, Call] = {OURS: ours, **running, AGAIN: ours}
        times_s = interleaved_times(timed, seconds, before_slice=before_slice_of(threads))
    return tuple(
        ProgramBaseline(name, reason=call.reason)
        if isinstance(call, NotRun)
        else compared_baseline(name, times_s[name], times_s[OURS], times_s[AGAIN])
        for name, call in calls.items()
    )


def compared_baseline(
    name: str, theirs_s: Sequence[float], ours_s: Sequence[float], again_s: Sequence[float]
) -> ProgramBaseline:
    """Returns the times of a baseline and their ratio to the program's, or why no ratio may be printed.

    ``theirs_s`` are the times of its slices, ``ours_s`` those of the program in the same rounds, ``again_s``
    those of the program a second time.
    """
    theirs, ours, again = map(measurement_of, (theirs_s, ours_s, again_s))
    quality = round_quality(noise_of(ours, again), theirs, None, quietest_anchor_s=None, spare_cores=0)
    evidence = Evidence(is_interleaved=True, noise=quality.noise, unreliable=quality.unreliable)
    compared = paired_comparison(ours_s, theirs_s, evidence)
    return ProgramBaseline(
        name,
        median_interval(theirs_s),
        MedianInterval(compared.speed, *compared.speed_interval)
        if isinstance(compared, Comparable)
        else None,
        compared.reason if isinstance(compared, NotComparable) else "",
        reliability_in_round(theirs, evidence),
    )


@contextlib.contextmanager
def _threads(count: int) -> Iterator[None]:
    """Context manager: torch works in ``count`` threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
