"""Times a tuned program and its baselines interleaved, so that all find the same caches."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from tuner.analysis.paired_ratio import median_interval, paired_ratio
from tuner.core.program_result import ProgramBaseline
from tuner.programs.torch_models.baseline_calls import RUNTIMES, Example, NotRun, made
from tuner.runtime.interleaved_slices import before_slice_of, interleaved_times

SECONDS = 3.0  # of rounds; each has a slice of 2 ms of each
OURS = "tuner"


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
        times_s = interleaved_times({OURS: ours, **running}, seconds, before_slice=before_slice_of(threads))
    return tuple(
        ProgramBaseline(name, reason=call.reason)
        if isinstance(call, NotRun)
        else ProgramBaseline(name, median_interval(times_s[name]), paired_ratio(times_s[name], times_s[OURS]))
        for name, call in calls.items()
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
