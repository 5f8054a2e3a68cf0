"""Two processes timed interleaved on one problem: the tuned kernel in one, the baseline in the other.

Separate processes, because the library's threads spin after a call; interleaved, because clock rates drift.
"""

import os
import statistics
from dataclasses import dataclass

import numpy as np

from tuner.core.errors import CandidateError, Stage, TunerError
from tuner.core.interfaces import Effort, Script
from tuner.core.problem import Problem
from tuner.core.records import Measurement
from tuner.payload.reference import reference_bytes
from tuner.runtime.cpu.host import processors
from tuner.runtime.workers.protocol import Factory, ServiceSpec
from tuner.runtime.workers.services import Environment, library_environment
from tuner.runtime.workers.worker import Worker
from tuner.targets.cpu.baseline import BaselineService
from tuner.targets.cpu.baseline_libraries import baseline_environment
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator

TURN = Effort(budget_s=0.04, min_samples=3, max_samples=40)
ROUNDS = 15
TIMEOUT_S = 300.0
MEMORY_BYTES = 6 << 30  # in addition to the arrays


@dataclass(frozen=True)
class Contest:
    """Medians over all rounds, and the median of the ratios of neighbouring samples."""

    kernel_s: float
    baseline_s: float
    ratio: float  # baseline time / kernel time: above 1 the kernel is faster
    low: float  # quartiles of the ratios: the interval of `benchmarks.ratios.coverage`
    high: float
    rounds: int


class KernelRival:
    """Serves samples of one kernel, in a child process."""

    def __init__(self, problem: Problem, script: str, threads: int, pin_to: tuple[int, ...]) -> None:
        self._problem = problem
        self._evaluator = CpuEvaluator(threads, pin_to)
        self._loaded = self._evaluator.load(problem, CpuCompiler().compile(problem, Script.of(script)))
        self._rng = np.random.default_rng(0)
        self._evaluator.verify(problem, self._loaded, self._rng)

    def sample(self, effort: Effort) -> Measurement:
        """Times one sample."""
        return self._evaluator.measure(self._problem, self._loaded, effort, self._rng)


class BaselineRival:
    """Serves samples of the baseline, in a child process."""

    def __init__(self, problem: Problem, threads: int, library: str) -> None:
        self._service = BaselineService(problem, threads, 0, library)

    def sample(self, effort: Effort) -> Measurement:
        """Times one sample."""
        return self._service.sample(effort)


def contest(problem: Problem, script: str, threads: int, library: str) -> Contest:
    """Times kernel and library, interleaved. Raises TunerError when one of them cannot run.

    ``library`` is a key of ``baseline_libraries.LIBRARIES``.
    """
    baseline = Factory("benchmarks.paired_timing:BaselineRival", (problem, threads, library))
    return contest_with(problem, script, threads, baseline, baseline_environment(library, threads))


def contest_with(
    problem: Problem, script: str, threads: int, baseline: Factory, environment: Environment
) -> Contest:
    """Times a kernel and ``baseline``, which makes an object with ``sample``; raises as ``contest``."""
    kernel = Factory("benchmarks.paired_timing:KernelRival", (problem, script, threads, processors(threads)))
    limit = MEMORY_BYTES + 2 * reference_bytes(problem)
    # the kernel's process wants the library for its reference only: no threads that spin next to the kernel
    specs = (
        ServiceSpec("kernel", kernel, library_environment(1)),
        ServiceSpec("baseline", baseline, environment),
    )
    workers = [Worker(spec, limit) for spec in specs]
    try:
        turns = [tuple(_turn(worker, workers) for worker in workers) for _ in range(ROUNDS)]
    finally:
        for worker in workers:
            worker.kill()
    ratios = [baseline_s / kernel_s for kernel_s, baseline_s in turns]
    low, middle, high = statistics.quantiles(ratios, n=4)
    kernel_s, baseline_s = (statistics.median(column) for column in zip(*turns, strict=True))
    return Contest(kernel_s, baseline_s, middle, low, high, len(ratios))


def load() -> float:
    """Returns the load average of the last minute: timings with two threads are useless on a busy machine."""
    return os.getloadavg()[0]


def _turn(worker: Worker, workers: list[Worker]) -> float:
    """Takes one sample from a process while the others are stopped: a library's threads spin after a call."""
    others = [other for other in workers if other is not worker]
    for other in others:
        other.pause()
    median_s = _sample(worker).median_s
    for other in others:
        other.resume()
    return median_s


def _sample(worker: Worker) -> Measurement:
    try:
        sampled: Measurement = worker.call("sample", TURN, stage=Stage.MEASURE, timeout_s=TIMEOUT_S)
    except CandidateError as error:
        raise TunerError(f"{error.stage.value}: {error.reason}") from error
    return sampled
