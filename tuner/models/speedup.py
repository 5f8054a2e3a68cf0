"""The speedup of a program by tuning: the program and its fusions, tuned and untuned, timed interleaved."""

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from tuner.analysis.ratios import Comparable, NotComparable, comparison, joint_comparison
from tuner.analysis.selected_result import slowdown
from tuner.core.device_programs import DeviceProgram
from tuner.core.errors import UsageError
from tuner.core.interfaces import FINAL_EFFORT, Effort
from tuner.core.programs import ExplainedFusion
from tuner.core.records import Measurement, MedianInterval
from tuner.core.reliability import Reliability, reliability_of_all
from tuner.core.round_quality import Evidence, reliability_in_round
from tuner.models.compiler import CompiledProgram
from tuner.models.execution import copies, repeat
from tuner.models.fusion_times import interleaved_fusions, with_shares
from tuner.models.request import ProgramOptions
from tuner.models.run.fused_program import FusedFunction
from tuner.models.run.host_function import HostFunction
from tuner.models.watched_times import evidence_of, host_watch, interleaved
from tuner.runtime.cpu.host import describe_machine
from tuner.runtime.programs.devices import device_runtime
from tuner.runtime.programs.runner_functions import discard
from tuner.tuning.remeasurement import noise_of

if TYPE_CHECKING:
    from tuner.core.device import AbstractDevice

SLOWER = 1.03  # ratio of the times of one fusion; what is below is noise of so short a timing
FUSION_EFFORT = Effort(budget_s=0.02, min_samples=6, max_samples=15)  # of each fusion, per program


@dataclass(frozen=True)
class TimedPair:
    """Interleaved times of calls of a tuned program (``bound``) and of the untuned program (``plain``)."""

    bound: Measurement  # with scripts, or with the schedules of the database
    plain: Measurement  # as loops, or with initial configurations
    bound_again: Measurement  # the same code a second time, which shows the noise floor

    def gain(self, spare_cores: int) -> Comparable | NotComparable:
        """Returns the time of a tuned call divided by that of an untuned one: 0.5 is half of the time.

        Returns NotComparable, with the reason, for example for noisy measurements. ``spare_cores``: how many
        cores have no timed thread, whether other processes use these cores or not.
        """
        return comparison(self.bound, self.plain, self._evidence(spare_cores))

    def reliability(self, spare_cores: int) -> Reliability:
        """Returns how reliable the tuned program's time is; ``spare_cores``: cores without a timed thread."""
        return reliability_in_round((self.bound,), self._evidence(spare_cores))

    @property
    def ratio(self) -> float:
        """Returns the time of a tuned call divided by that of an untuned one, reliable or not."""
        return self.bound.median_s / self.plain.median_s

    @property
    def is_faster(self) -> bool:
        """True if a tuned call takes less time than an untuned one, by more than noise.

        That is: the interval of the difference lies below 0, and its median exceeds the difference of two
        timings of the tuned program. Other programs slow both calls alike, as calls are interleaved: the
        times themselves may be unreliable.
        """
        difference = slowdown(self.bound, self.plain)
        noise = noise_of(self.bound, self.bound_again)
        return difference.interval[1] < 0 and -difference.median > noise

    def _evidence(self, spare_cores: int) -> Evidence:
        # on a GPU only the program itself shows a drift
        reference = None if self.bound.host else self.plain
        return evidence_of(self.bound, self.bound_again, reference, spare_cores)


@dataclass(frozen=True)
class TimedProcesses:
    """Interleaved times of a tuned and an untuned program in several processes, at least one.

    Each process places code, weights and arrays elsewhere in memory, which changes times by some percent.
    """

    pairs: tuple[TimedPair, ...]

    @property
    def is_faster(self) -> bool:
        """True if the tuned program is faster in each process (``TimedPair.is_faster``)."""
        return all(map(attrgetter("is_faster"), self.pairs))

    def gain(self, spare_cores: int) -> Comparable | NotComparable:
        """Returns the time of a tuned call divided by that of an untuned one, in all processes.

        Returns NotComparable with the reason as ``TimedPair.gain`` does. ``spare_cores``: cores without a
        timed thread.
        """
        return joint_comparison(list(map(methodcaller("gain", spare_cores), self.pairs)))

    def reliability(self, spare_cores: int) -> Reliability:
        """Returns how reliable the times are; ``spare_cores``: cores without a timed thread."""
        return reliability_of_all(list(map(methodcaller("reliability", spare_cores), self.pairs)))

    @property
    def tuned_s(self) -> MedianInterval:
        """Returns the seconds of a tuned call, with an interval that covers that of each process."""
        return _over_processes(map(attrgetter("bound"), self.pairs))

    @property
    def untuned_s(self) -> MedianInterval:
        """Returns the seconds of an untuned call, with an interval that covers that of each process."""
        return _over_processes(map(attrgetter("plain"), self.pairs))


def _over_processes(times: Iterable[Measurement]) -> MedianInterval:
    medians_s = []
    ends_s: list[float] = []
    for time in times:
        medians_s.append(time.median_s)
        ends_s += time.interval_s
    return MedianInterval(statistics.median(medians_s), min(ends_s), max(ends_s))


def timed_on_host(
    functions: "Sequence[HostFunction] | Sequence[FusedFunction]", arguments: tuple[Any, ...], seed: int
) -> TimedPair:
    """Times three functions on this processor: the tuned program, the untuned one, the tuned one once more.

    ``functions``: in this order. Calls are interleaved with calls of a reference kernel, which shows changes
    of the machine's speed. Each function works on its own copy of ``arguments``. ``seed``: of the order of
    the calls.
    """
    loaded: Sequence[Any] = functions  # each takes the calls that it prepares
    repeats = tuple(
        functools.partial(function.repeat, function.prepare(*copies(arguments))) for function in loaded
    )
    return TimedPair(*interleaved(repeats, FINAL_EFFORT, np.random.default_rng(seed), host_watch()))


def timed_on_device(
    device: "AbstractDevice",
    bound: DeviceProgram,
    plain: DeviceProgram,
    arguments: tuple[Any, ...],
    seed: int,
) -> TimedPair:
    """Times two programs on a device, with scripts (``bound``) and without, on ``arguments`` themselves.

    Calls are interleaved in an order by ``seed``; each is timed from the host's call to its return. Raises
    DeviceError where the device refuses.
    """
    with ExitStack() as opened:
        repeats: list[Callable[[int], None]] = []
        for code in (bound, plain, bound):
            program = opened.enter_context(closing(device_runtime().function(code, device, discard)))
            repeats.append(functools.partial(repeat, program, arguments))
        return TimedPair(*interleaved(tuple(repeats), FINAL_EFFORT, np.random.default_rng(seed), None))


@dataclass(frozen=True)
class TimedFusions:
    """Times of a tuned and an untuned program of the same fusions, and of each of their fusions."""

    pair: TimedPair  # of whole calls; ``bound``: with the schedules of the database
    fusions: tuple[ExplainedFusion, ...]  # of the tuned program, in the order in which they run
    changed: frozenset[int] = frozenset()  # numbers of those with another schedule than untuned

    @property
    def slower(self) -> frozenset[int]:
        """Returns the indices of fusions that reliably take longer than untuned, by more than the noise."""
        slower = set()
        for number in self.changed:
            fusion = self.fusions[number]
            is_slower = (fusion.time_s or 0.0) > SLOWER * (fusion.before_s or math.inf)
            if is_slower and fusion.reliability.is_reliable:
                slower.add(number)
        return frozenset(slower)


def timed_next_to_untuned(
    tuned: CompiledProgram, untuned: CompiledProgram, arguments: tuple[Any, ...], options: ProgramOptions
) -> TimedFusions:
    """Times two programs of the same fusions on this processor, and each of their fusions, interleaved.

    Raises UsageError if one of the programs was compiled as a whole.
    """
    if tuned.image is None or untuned.image is None:
        raise UsageError(f"no fusions: {tuned.why_no_fusions or untuned.why_no_fusions}")
    images = (tuned.image, untuned.image, tuned.image)
    functions = tuple(FusedFunction(image.code, image.weights) for image in images)
    pair = timed_on_host(functions, arguments, options.seed)
    rng = np.random.default_rng(options.seed)
    watch = host_watch()
    machine = describe_machine()
    spare_cores = machine.physical_cores - options.threads
    both = [(function, function.prepare(*copies(arguments))) for function in functions[:2]]
    fusions = interleaved_fusions(both, FUSION_EFFORT, rng, watch, spare_cores)
    changed = set()
    for index, ours in enumerate(tuned.image.code.fusions):
        if not ours.is_computed_as(untuned.image.code.fusions[index]):
            changed.add(index)
    return TimedFusions(pair, with_shares(fusions, machine, pair.bound.median_s), frozenset(changed))
