"""What the checks of one child process share: the GPU, its timer, operands and the baseline of a problem."""

import functools
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.gpu_check.device_under_test import Bed
from benchmarks.gpu_visit.clock_samples import sampled_clocks
from benchmarks.gpu_visit.code_folder import COMPARISON, CodeEntry, CodeFolder
from benchmarks.gpu_visit.operands import DeviceOperands, sized_for
from tuner.core.compiled_code import KernelCode
from tuner.core.dtypes import FLOAT8S
from tuner.core.errors import Refusal, TunerError
from tuner.core.interfaces import Effort
from tuner.core.problem import Problem
from tuner.core.records import Measurement
from tuner.gpu.driver.cublas import Cublas
from tuner.gpu.driver.cublas_files import find_cublas, library_next_to
from tuner.gpu.driver.cublas_lt import CublasLt, LtMatmul
from tuner.gpu.target.arrays import LoadedKernels
from tuner.gpu.target.evaluator import ALGORITHM_RUNS, LoadedCublas, LocalGpu
from tuner.gpu.target.event_timing import Enqueue, GpuTimer, GraphStopwatch, warm_up

EFFORT = Effort(budget_s=0.1, min_samples=5, max_samples=30)  # of a candidate
STAND_IN_SAMPLE_S = 0.02  # on a stand-in for a GPU, which has no clock: never kept
STAND_IN_SIZE = 64  # of each dimension there: nothing is computed
CACHE_BYTES = 4096


@dataclass(frozen=True, eq=False)
class LoadedBaseline:
    """A library's matmul of one problem, and its time where it was timed alone."""

    name: str
    enqueue: Enqueue
    median_s: float


class Workbench:
    """The GPU of a child process; everything is opened or computed when a check first needs it."""

    def __init__(self, bed: Bed, code: CodeFolder, find: Callable[[], str] = find_cublas) -> None:
        """Takes the device, the folder of code, and what finds cuBLAS."""
        self.bed = bed
        self.code = code
        self._find = find
        self._operands: DeviceOperands | None = None
        self._key = ""  # of the problem whose operands there are
        self._baseline: LoadedBaseline | Refusal | None = None

    @functools.cached_property
    def gpu(self) -> LocalGpu:
        """The GPU. Raises DeviceError."""
        if self.bed.is_hardware:
            return self.bed.gpu()
        device = self.bed.open()
        setattr(device, "elapsed_s", lambda *_: STAND_IN_SAMPLE_S)  # noqa: B010 - see its comment
        return LocalGpu(device, CACHE_BYTES)

    @functools.cached_property
    def timer(self) -> GpuTimer:
        """The timer of the GPU."""
        return GpuTimer(self.gpu.device, self.gpu.cache_bytes)

    def load(self, program: KernelCode) -> LoadedKernels:
        """Loads a program; its scratch memory is NaN. Raises DeviceError, CandidateError."""
        loaded = LoadedKernels(self.gpu.device, program)
        loaded.poison()
        return loaded

    def operands(self, problem: Problem) -> DeviceOperands:
        """Returns the operands of a problem; those of the one before are freed. Raises DeviceError."""
        if self._operands is None or self._key != problem.key:
            if self._operands is not None:
                self._operands.close()
            self._operands = None
            self._baseline = None
            drawn = problem if self.bed.is_hardware else sized_for(problem, STAND_IN_SIZE)
            comparison = self.code.program(self.code.named(COMPARISON, problem.result_dtype))
            self._operands = DeviceOperands(self.gpu, drawn, comparison, self._find)
            self._key = problem.key
        return self._operands

    def baseline(self, problem: Problem) -> LoadedBaseline | Refusal:
        """Returns the library's matmul of a problem, timed alone; where it has none, the reason."""
        operands = self.operands(problem)
        if self._baseline is None:
            try:
                self._baseline = self._timed_baseline(operands)
            except TunerError as error:
                self._baseline = Refusal(str(error))
        return self._baseline

    def algorithms(self, problem: Problem, *, fast_accumulation: bool) -> dict[str, float]:
        """Returns the seconds of each algorithm that cuBLASLt's heuristic names. Raises TunerError."""
        operands = self.operands(problem)
        matmuls = self._lt.matmuls(operands.problem, fast_accumulation=fast_accumulation)
        return {matmul.name: seconds for matmul, seconds in self._times(matmuls, operands)}

    def measure(self, work: Enqueue, effort: Effort = EFFORT) -> tuple[Measurement, dict[str, Any]]:
        """Times work alone; returns the measurement and the GPU's clocks meanwhile. Raises DeviceError."""
        with sampled_clocks(self.gpu.read_sensors) as clocks:
            measurement = self.timer.measure(work, effort, np.random.default_rng(0))
        return measurement, clocks.facts

    def measure_with(
        self, work: Enqueue, baseline: LoadedBaseline
    ) -> tuple[Measurement, Measurement, dict[str, Any]]:
        """Times work and the baseline interleaved; returns both and the clocks. Raises DeviceError."""
        with sampled_clocks(self.gpu.read_sensors) as clocks:
            works = (work, baseline.enqueue)
            own, theirs = self.timer.measure_together(works, EFFORT, np.random.default_rng(0))
        return own, theirs, clocks.facts

    @functools.cached_property
    def _library(self) -> Cublas:
        return Cublas(self.gpu.device, self._find())

    @functools.cached_property
    def _lt(self) -> CublasLt:
        return CublasLt(self.gpu.device, library_next_to(self._find()))

    def _timed_baseline(self, operands: DeviceOperands) -> LoadedBaseline:
        problem = operands.problem
        if problem.dtype in FLOAT8S:
            matmuls = self._lt.matmuls(problem, fast_accumulation=True)
            times = sorted(self._times(matmuls, operands), key=lambda pair: pair[1])
            if not times:
                raise TunerError(f"{self._lt.name}: no algorithm ran")
            loaded = LoadedCublas(times[0][0].name, times[0][0].multiply)
        else:
            loaded = LoadedCublas.of(self._library, problem)
        work = loaded.work(operands.addresses)
        work(self.timer.stream)  # what the library refuses is refused here, and not in a capture
        return LoadedBaseline(loaded.name, work, self.measure(work)[0].median_s)

    def _times(self, matmuls: tuple[LtMatmul, ...], operands: DeviceOperands) -> list[tuple[LtMatmul, float]]:
        times = []
        for matmul in matmuls:
            work = LoadedCublas(matmul.name, matmul.multiply).work(operands.addresses)
            try:
                work(self.timer.stream)
            except TunerError:
                continue
            with closing(GraphStopwatch(self.timer, work)) as take:
                warm_up(take)
                times.append((matmul, take(ALGORITHM_RUNS)))
        return times


def entry_facts(entry: CodeEntry) -> dict[str, Any]:
    """Returns what is known of a program before it runs: its knobs stand next to predictions and times."""
    facts: dict[str, Any] = {"ptx_sha256": entry.ptx_sha256}
    if entry.problem is not None and entry.candidate is not None:
        facts |= {"problem": entry.problem.key, "strategy": entry.candidate.strategy}
        facts |= {"knobs": dict(entry.candidate.choices)}
    facts |= {"by_knobs": entry.by_knobs, "by_machine_code": entry.by_machine_code}
    for resources in entry.resources[:1]:
        facts |= {"registers": resources.registers, "spilled_bytes": resources.spilled_bytes}
    return facts
