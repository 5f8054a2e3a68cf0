"""Times work on a GPU by CUDA events: warm as a graph of many runs, cold as single runs after a cache flush.

Reasons: docs/decisions/measurement.md.
"""

import abc
import contextlib
import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import final

import numpy as np

from tuner.core.device import AbstractDevice
from tuner.core.errors import DeviceError
from tuner.core.interfaces import Effort
from tuner.core.records import Measurement
from tuner.runtime import timing

MIN_SAMPLES = 20  # of a complete measurement; an early-stopped one has fewer
COLD_SAMPLES = 20
WARM_UP_S = 0.01  # of untimed runs: an idle GPU takes milliseconds to raise its clocks
LEAD_BELOW_S = 0.01  # a shorter sample follows an equal, untimed one: else some 5 us of launching would count
FLUSHED_CACHES = 2  # L2 sizes that a flush overwrites: one might leave lines of the work in the L2
UNKNOWN_CACHE_BYTES = 128 * 2**20  # larger than the L2 of any GPU up to the B200's 126 MiB

Enqueue = Callable[[int], None]  # puts one run of the work on a stream


class AbstractSampleWatch(abc.ABC):
    """Callbacks before and after each timed sample of GPU work; what the callbacks do is not timed.

    ``restores``: the runs of a sample are timed one by one, and ``restore`` is called before each: for
    work that reads what it has written.
    """

    restores: bool

    @abc.abstractmethod
    def before(self, stream: int) -> None:
        """Called before each sample; may enqueue untimed work on ``stream``."""

    @abc.abstractmethod
    def restore(self, stream: int) -> None:
        """Enqueues untimed work on ``stream`` that restores the data that a run reads and overwrites."""

    @abc.abstractmethod
    def after(self, stream: int) -> None:
        """Called when the GPU has finished a sample, which ran on ``stream``."""


@final
class GpuTimer:
    """Times GPU work by CUDA events on its own stream; flushes the L2 cache for cold times."""

    def __init__(self, device: AbstractDevice, cache_bytes: int) -> None:
        """``cache_bytes``: size of the device's L2 cache, 0 if unknown."""
        self.device = device
        self.stream = device.create_stream()
        self.start, self.stop = (device.create_event(is_timed=True) for _ in range(2))
        self._flush_bytes = FLUSHED_CACHES * (cache_bytes or UNKNOWN_CACHE_BYTES)
        self._flushed = 0  # address; allocated by the first cold run

    def close(self) -> None:
        """Destroys the stream and events and frees memory; errors of a lost context are ignored."""
        with contextlib.suppress(DeviceError):
            if self._flushed:
                self.device.free(self._flushed, self.stream)
            for event in (self.start, self.stop):
                self.device.destroy_event(event)
            self.device.destroy_stream(self.stream)

    def measure(
        self,
        work: Enqueue,
        effort: Effort,
        rng: np.random.Generator,
        watch: AbstractSampleWatch | None = None,
    ) -> Measurement:
        """Times work with warm caches, then with a flushed L2; returns the warm times and the cold median.

        There are no cold times if ``effort`` stopped the warm ones early. ``watch``: called around each
        sample, None: nothing is called.
        """
        with contextlib.closing(GraphStopwatch(self, work, watch)) as take:
            warm_up(take)
            warm = timing.measure_by(take, with_min_samples(effort), rng)
        if not warm.is_complete:
            return warm
        cold = [self.cold_s(work, watch) for _ in range(COLD_SAMPLES)]
        return replace(warm, cold_median_s=statistics.median(cold))

    def measure_together(
        self,
        works: tuple[Enqueue, ...],
        effort: Effort,
        rng: np.random.Generator,
        after_round: Callable[[], None] = lambda: None,
        watches: tuple[AbstractSampleWatch | None, ...] = (),  # of each work; (): of none
    ) -> tuple[Measurement, ...]:
        """Times works interleaved, first with warm caches, then with a flushed L2, in shuffled rounds.

        ``watches``: called around each sample of the work at the same position, None: nothing is called; ()
        for no watches. ``after_round`` is called after each round. Returns the measurements in the order of
        the works.
        """
        watched = tuple(zip(works, watches or (None,) * len(works), strict=True))
        with contextlib.ExitStack() as stack:
            takes = tuple(
                stack.enter_context(contextlib.closing(GraphStopwatch(self, work, watch)))
                for work, watch in watched
            )
            for take in takes:
                warm_up(take)
            warm = timing.measure_together_by(takes, with_min_samples(effort), rng, after_round)
        cold: list[list[float]] = [[] for _ in works]
        for _ in range(COLD_SAMPLES):
            for index in rng.permutation(len(works)):
                cold[index].append(self.cold_s(*watched[index]))
            after_round()
        pairs = zip(warm, cold, strict=True)
        return tuple(replace(time, cold_median_s=statistics.median(cold_s)) for time, cold_s in pairs)

    def cold_s(self, work: Enqueue, watch: AbstractSampleWatch | None = None) -> float:
        """Flushes the L2 cache, then runs ``work`` once; returns the seconds of this run."""
        device = self.device
        if watch is not None:
            watch.before(self.stream)
        if not self._flushed:
            self._flushed = device.allocate(self._flush_bytes, self.stream)
        # the fill takes longer than launching the work, so that the launch is not timed
        device.fill(self._flushed, 0, 4, self._flush_bytes // 4, self.stream)
        device.record_event(self.start, self.stream)
        work(self.stream)
        taken_s = self.stopped_s()
        if watch is not None:
            watch.after(self.stream)
        return taken_s

    def stopped_s(self) -> float:
        """Records the stop event and waits for it; returns the seconds since the start event.

        Raises DeviceError if no time has passed: the device has no clock.
        """
        self.device.record_event(self.stop, self.stream)
        self.device.synchronize_event(self.stop)
        elapsed_s = self.device.elapsed_s(self.start, self.stop)
        if not elapsed_s > 0:
            raise DeviceError(f"{self.device.name}: {elapsed_s} s between two events: it has no clock")
        return elapsed_s


@final
class GraphStopwatch:
    """Times GPU work as a CUDA graph of several runs, so that no host time counts; gives seconds per run."""

    def __init__(self, timer: GpuTimer, work: Enqueue, watch: AbstractSampleWatch | None = None) -> None:
        self._timer = timer
        self._work = work
        self._watch = watch
        self._runs = 0  # in the graph; 0: no graph
        self._graph = 0
        self._sample_s: float | None = None  # of the graph's last launch

    def __call__(self, inner: int) -> float:
        if self._watch is not None and self._watch.restores:
            return self._restoring(self._watch, inner)
        if inner != self._runs:
            self._build(inner)
        timer = self._timer
        if self._sample_s is not None and self._sample_s < LEAD_BELOW_S:
            timer.device.launch_graph(self._graph, timer.stream)
        if self._watch is not None:
            self._watch.before(timer.stream)
        timer.device.record_event(timer.start, timer.stream)
        timer.device.launch_graph(self._graph, timer.stream)
        self._sample_s = timer.stopped_s()
        if self._watch is not None:
            self._watch.after(timer.stream)
        return self._sample_s / inner

    def _restoring(self, watch: AbstractSampleWatch, inner: int) -> float:
        """Times runs one by one; returns seconds per run.

        Before each timed run, the work runs once untimed, and ``watch.restore`` is called.
        """
        if self._runs != 1:
            self._build(1)
        timer = self._timer
        taken_s = 0.0
        watch.before(timer.stream)
        for _ in range(inner):
            timer.device.launch_graph(self._graph, timer.stream)
            watch.restore(timer.stream)
            timer.device.record_event(timer.start, timer.stream)
            timer.device.launch_graph(self._graph, timer.stream)
            taken_s += timer.stopped_s()
        watch.after(timer.stream)
        return taken_s / inner

    def close(self) -> None:
        """Destroys the CUDA graph, if there is one; errors of a lost context are ignored."""
        if self._runs:
            with contextlib.suppress(DeviceError):  # of a context that is lost
                self._timer.device.destroy_graph(self._graph)
        self._runs = 0
        self._sample_s = None

    def _build(self, runs: int) -> None:
        """Captures ``runs`` runs as a graph; launches the graph once, which uploads it to the GPU."""
        self.close()
        device = self._timer.device
        stream = self._timer.stream
        device.begin_capture(stream)
        try:
            for _ in range(runs):
                self._work(stream)
        except DeviceError:
            with contextlib.suppress(DeviceError):  # a stream that goes on capturing cannot be used otherwise
                device.destroy_graph(device.end_capture(stream))
            raise
        self._graph = device.end_capture(stream)
        self._runs = runs
        device.launch_graph(self._graph, stream)
        device.synchronize_stream(stream)


def warm_up(take: timing.Stopwatch) -> None:
    """Runs a stopwatch's work for WARM_UP_S seconds, at most 1000 times, so that the GPU's clocks rise."""
    spent_s = 0.0
    calls = 0
    while spent_s < WARM_UP_S and calls < 1000:
        spent_s += take(1)
        calls += 1


def with_min_samples(effort: Effort) -> Effort:
    """Returns a copy of ``effort`` with at least MIN_SAMPLES samples."""
    least = max(effort.min_samples, MIN_SAMPLES)
    return replace(effort, min_samples=least, max_samples=max(effort.max_samples, least))
