"""Times programs interleaved, on the host next to a reference kernel, and says how reliable the times are."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tuner.core.interfaces import Effort
from tuner.core.records import Measurement
from tuner.core.reliability import Reliability
from tuner.core.round_quality import Evidence, reliability_in_round, round_quality
from tuner.runtime import timing
from tuner.tuning.remeasurement import noise_of

if TYPE_CHECKING:
    from tuner.runtime.cpu.timing_conditions import HostWatch


def evidence_of(
    first: Measurement, again: Measurement, reference: Measurement | None, spare_cores: int
) -> Evidence:
    """Returns the noise between two interleaved timings of the same code, and what disturbed the machine.

    ``reference``: times of other code, whose drift shows a disturbance; None on the host, where
    ``first.host`` shows it. ``spare_cores``: number of cores without a timed thread.
    """
    quality = round_quality(
        noise_of(first, again), reference, first.host, quietest_reference_s=None, spare_cores=spare_cores
    )
    return Evidence(True, quality.noise, quality.reliability)


def reliability_of(
    first: Measurement, again: Measurement, reference: Measurement | None, spare_cores: int
) -> Reliability:
    """Returns how reliable the time ``first`` is; ``again`` is a second, interleaved timing of the same code.

    ``reference``: times of other code, whose drift shows a disturbance; None on the host. ``spare_cores``:
    number of cores without a timed thread.
    """
    return reliability_in_round((first,), evidence_of(first, again, reference, spare_cores))


def host_watch() -> "HostWatch":
    """Returns an observer of this machine's load and clock, for timings in the calling thread."""
    from tuner.runtime.cpu.thread_team import ThreadTeam  # loads MLIR
    from tuner.runtime.cpu.timing_conditions import HostWatch  # loads MLIR

    return HostWatch(ThreadTeam(1))


def interleaved(
    repeats: tuple[Callable[[int], None], ...],
    effort: Effort,
    rng: np.random.Generator,
    watch: "HostWatch | None",
) -> tuple[Measurement, ...]:
    """Times several actions, interleaved; returns a measurement per action.

    ``repeats``: per action a function that runs the action n times. With ``watch`` (on the host) a reference
    kernel is timed among the actions, and the load of the machine is read.
    """
    if watch is None:
        return timing.measure_together(repeats, effort, rng)
    stopwatches = [timing.with_untimed_calls(timing.stopwatch_of(repeat)) for repeat in repeats]
    before = watch.read()
    *times, reference_kernel = timing.measure_together_by(
        (*stopwatches, timing.with_untimed_calls(watch.reference_kernel)), effort, rng
    )
    host = watch.conditions(before, watch.read(), reference_kernel.samples_s)
    return tuple(replace(time, host=host) for time in times)
