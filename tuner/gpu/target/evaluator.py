"""Verifies and times programs, and the baseline cuBLAS, on the GPU of this machine; needs no compiler.

``GpuEvaluator`` implements the evaluator's port on a ``LocalGpu``; ``WatchedRuns`` checks results while it
times, ``LoadedCublas`` is the library that it compares with.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, final

import numpy as np

from tuner.core.device import AbstractDevice
from tuner.core.dtypes import FLOAT8S, INTEGER_DTYPES, SUM_DTYPES
from tuner.core.errors import CandidateError, DeviceError, Stage, TunerError, failing_as_member
from tuner.core.gpu import chip_of
from tuner.core.interfaces import (
    AbstractBaselineSource,
    AbstractEvaluator,
    Artifact,
    Effort,
    LoadedLibrary,
    fastest_baseline,
)
from tuner.core.problem import Problem
from tuner.core.records import Conditions, GpuState, Measurement, Span, Verdict
from tuner.core.runs import Baseline
from tuner.gpu.driver import probe
from tuner.gpu.driver.cublas import Cublas
from tuner.gpu.driver.cublas_files import find_cublas, library_next_to
from tuner.gpu.driver.cublas_lt import CublasLt, LtMatmul, require_supported
from tuner.gpu.driver.driver import CudaFacts
from tuner.gpu.driver.roofline import documented_flop_per_s
from tuner.gpu.driver.sensors import GpuSensors, SensorsError
from tuner.gpu.target.arrays import GpuProblemArrays, LoadedKernels, failing_as
from tuner.gpu.target.event_timing import MIN_SAMPLES, AbstractSampleWatch, GpuTimer, GraphStopwatch, warm_up
from tuner.payload.comparison import compare
from tuner.targets.arrays import Compare

PEAK_ERROR = 0.1  # relative, of the peak at the highest clock: error of events and of reported clocks
# Types that are verified with NaN, infinity and extreme bytes: computed by IEEE 754 or exactly. PTX leaves
# open how tensor cores round and overflow products of other types.
WITH_SPECIAL_NUMBERS = (*SUM_DTYPES, *INTEGER_DTYPES)
ALGORITHM_RUNS = 5  # of each algorithm of cuBLASLt, to find the fastest


class Sensors(Protocol):
    """A source of a GPU's clocks and temperatures, such as ``GpuSensors``."""

    def read(self) -> GpuState | None:
        """Returns a reading of clocks and temperatures; None if reading fails."""


@dataclass(frozen=True, eq=False)
class LocalGpu:
    """An opened GPU of this machine: the device, the size of its L2 cache, its sensors if readable."""

    device: AbstractDevice
    cache_bytes: int  # of the L2; 0: unknown
    sensors: Sensors | None = None

    def read_sensors(self) -> GpuState | None:
        """Returns a reading of clocks and temperatures; None without sensors, or if reading fails."""
        if self.sensors is None:
            return None
        return self.sensors.read()

    def conditions_since(
        self, before: GpuState | None, between: Sequence[GpuState] = ()
    ) -> Conditions | None:
        """Returns the Conditions of a timing: sensor readings ``before``, in between (their range) and now.

        None if the reading before or now is missing.
        """
        after = self.read_sensors()
        if before is None or after is None:
            return None
        return Conditions(before, after, Span.of(between) if between else None)


def open_gpu(here: probe.GpuHere) -> LocalGpu:
    """Opens this machine's first GPU with its primary context, which PyTorch shares; returns it.

    ``here``: the description of that GPU. Without readable sensors the GPU is opened without them. Raises
    DeviceError if there is no driver or GPU, or if it cannot be opened.
    """
    sensors: Sensors | None = None
    device = probe.open_device()
    with contextlib.suppress(SensorsError):
        sensors = GpuSensors(here.bus)
    return LocalGpu(device, here.facts.l2_bytes, sensors)


@final
class WatchedRuns(AbstractSampleWatch):
    """A sample watch: before a sample it overwrites C and flips a sign; after some it verifies rows of C.

    The verified samples are drawn at random, with fewer than MIN_SAMPLES samples between two of them.
    """

    def __init__(self, arrays: GpuProblemArrays, rng: np.random.Generator, index: int = 0) -> None:
        """``arrays``: that the program works on; ``index``: of the program among those timed together."""
        self._index = index
        self._arrays = arrays
        self._rng = rng
        self.restores = arrays.problem.after_product.reads_output
        self._unverified = int(rng.integers(MIN_SAMPLES))  # samples to skip before the next verified one

    def before(self, stream: int) -> None:
        self._arrays.prepare_sample(self._rng, stream)

    def restore(self, stream: int) -> None:
        self._arrays.restore_output(stream)

    def after(self, stream: int) -> None:
        is_evaluated = not self._unverified
        with failing_as_member(self._index):
            self._arrays.end_sample(self._rng, stream, is_evaluated=is_evaluated)
        if is_evaluated:
            self._unverified = int(self._rng.integers(MIN_SAMPLES))
        else:
            self._unverified = self._unverified - 1


@final
@dataclass(frozen=True, eq=False)
class LoadedCublas:
    """A cuBLAS matmul of one problem, run as a program's kernels are (``work`` as of LoadedKernels)."""

    name: str  # of the library, with its version
    multiply: Callable[[int, int, int, int], None]  # addresses of A, B and C, stream

    @classmethod
    def of(cls, library: Cublas, problem: Problem) -> "LoadedCublas":
        """Returns cuBLAS's matmul of a problem, to be timed."""
        return cls(library.name, partial(library.multiply, problem))

    def work(self, addresses: Mapping[str, int]) -> Callable[[int], None]:
        """Returns a function that enqueues one matmul on a stream.

        ``addresses``: device addresses of "a", "b" and "c".
        """
        a, b, c = (addresses[name] for name in "abc")
        return lambda stream: self.multiply(a, b, c, stream)


@final
class GpuEvaluator(AbstractEvaluator, AbstractBaselineSource):
    """Verifies and times programs on this machine's GPU, which is opened at first use."""

    def __init__(
        self,
        chip: str,
        describe: Callable[[], probe.GpuHere] = probe.describe_gpu,
        open_: Callable[[probe.GpuHere], LocalGpu] = open_gpu,
        compare: Compare = compare,
        find_library: Callable[[], str] = find_cublas,
    ) -> None:
        """``chip``: that programs are compiled for. The functions open the GPU, compare C and find cuBLAS.

        Raises UsageError for an unknown chip.
        """
        self._chip = chip_of(chip)
        self._describe = describe
        self._open = open_
        self._compare = compare
        self._find_library = find_library
        self._library: Cublas | None = None
        self._lt: CublasLt | None = None
        self._gpu: LocalGpu | None = None
        self._timer: GpuTimer | None = None
        self._arrays: GpuProblemArrays | None = None

    def usable(self) -> probe.GpuHere:
        """Returns the description of this machine's GPU.

        Raises DeviceError if there is no GPU, or if it has another chip than programs are compiled for.
        """
        here = self._describe()
        probe.require_chip(self._chip, here.facts)
        return here

    def load(self, problem: Problem, artifact: Artifact) -> LoadedKernels:
        with failing_as(Stage.LOAD):
            return LoadedKernels(self._opened().device, artifact.code)

    def load_baselines(self, problem: Problem, rng: np.random.Generator) -> tuple[LoadedLibrary, ...]:
        """Returns the loaded libraries to compare with, each verified on one draw of inputs.

        They are cuBLAS; for 8-bit floats cuBLASLt, once with fast accumulation and once with sums in f32.
        Raises TunerError if a library is missing, CandidateError if it is wrong.
        """
        bare = replace(problem, epilogue="none")
        if problem.groups:
            raise TunerError("cuBLAS: products of groups of rows are not compared")
        with failing_as(Stage.VERIFY):
            path = self._find_library()  # first: without the library no context is created
            if problem.dtype in FLOAT8S:
                require_supported(bare)
                matmuls = self._fastest_lt_matmuls(bare, library_next_to(path), rng)
                return tuple(self._verified(name, bare, matmul, rng) for name, matmul in matmuls)
            if self._library is None:
                self._library = Cublas(self._opened().device, path)
            return (self._verified("cublas", bare, LoadedCublas.of(self._library, bare), rng),)

    def _verified(
        self, library: str, problem: Problem, matmul: LoadedCublas, rng: np.random.Generator
    ) -> LoadedLibrary:
        arrays = self._arrays_of(problem, rng)
        arrays.fill(rng)
        matmul.work(arrays.addresses)(0)
        try:
            arrays.evaluate()
        except CandidateError as error:
            raise CandidateError(error.stage, f"{matmul.name}: {error.reason}") from error
        return LoadedLibrary(library, matmul.name, matmul)

    def _fastest_lt_matmuls(
        self, problem: Problem, path: str, rng: np.random.Generator
    ) -> tuple[tuple[str, LoadedCublas], ...]:
        """Returns cuBLASLt's fastest algorithm with fast accumulation, and its fastest with sums in f32.

        Each as (name, matmul).
        """
        gpu = self._opened()
        if self._lt is None:
            self._lt = CublasLt(gpu.device, path)
        arrays = self._arrays_of(problem, rng)
        arrays.fill(rng)
        timer = self._timer_of(gpu)
        fast = self._lt.matmuls(problem, fast_accumulation=True)
        exact = self._lt.matmuls(problem, fast_accumulation=False)
        return (
            ("cublaslt", fastest_matmul(timer, fast, arrays.addresses)),
            ("cublaslt-f32", fastest_matmul(timer, exact, arrays.addresses)),
        )

    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        """Runs a program on usual inputs and on others with known results; returns the worst verdict.

        Of types in WITH_SPECIAL_NUMBERS the others have special numbers, and come first: the program is timed
        later on the usual inputs. Of other types the others are the usual ones with flipped signs. Raises
        CandidateError for a wrong result or a device error.
        """
        assert isinstance(loaded, LoadedKernels)
        verdicts = []
        with failing_as(Stage.RUN):
            arrays = self._arrays_of(problem, rng)
            is_special = problem.dtype in WITH_SPECIAL_NUMBERS
            if is_special:
                for draw in range(arrays.special_draws):
                    arrays.use_special_numbers(rng, draw)
                    verdicts.append(self._verdict(arrays, loaded))
            arrays.fill(rng)
            verdicts.append(self._verdict(arrays, loaded))
            if not is_special:
                arrays.flip_signs()
                verdicts.append(self._verdict(arrays, loaded))
        return max(verdicts, key=lambda verdict: verdict.max_error)

    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        """Returns the time of a program, taken between two readings of the GPU's sensors.

        Then verifies one more, untimed run. A program, not cuBLAS, is also verified on new inputs: one that
        reuses earlier results fails. Raises CandidateError: VERIFY for a wrong result or an impossible speed,
        MEASURE or RUN for a device error.
        """
        assert isinstance(loaded, LoadedKernels | LoadedCublas)
        with failing_as(Stage.MEASURE):
            arrays = self._arrays_of(problem, rng)
            gpu = self._opened()
            arrays.poison()
            before = gpu.read_sensors()
            work = loaded.work(arrays.addresses)
            watch = _watch(loaded, arrays, rng)
            measurement = self._timer_of(gpu).measure(work, effort, rng, watch)
            conditions = gpu.conditions_since(before)
            arrays.verify_run(work, rng)
            if isinstance(loaded, LoadedKernels):
                arrays.fill(rng)
                self._verdict(arrays, loaded)
        require_possible(problem, measurement, self.usable().facts)
        return replace(measurement, conditions=conditions)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        """Times programs and cuBLAS interleaved; returns the measurements in the order of ``loaded``.

        Reads the GPU's sensors between rounds. Raises GroupMemberError for an impossible speed or a wrong
        result,
        CandidateError (MEASURE or RUN) for a device error.
        """
        programs = [program for program in loaded if isinstance(program, LoadedKernels | LoadedCublas)]
        with failing_as(Stage.MEASURE):
            arrays = self._arrays_of(problem, rng)
            gpu = self._opened()
            arrays.fill(rng)  # in a new process, which has verified nothing, the arrays are still empty
            works = tuple(program.work(arrays.addresses) for program in programs)
            between: list[GpuState] = []

            def read_sensors() -> None:
                between.extend(filter(None, [gpu.read_sensors()]))

            before = gpu.read_sensors()
            watches = tuple(_watch(program, arrays, rng, index) for index, program in enumerate(programs))
            measurements = self._timer_of(gpu).measure_together(works, effort, rng, read_sensors, watches)
            conditions = gpu.conditions_since(before, between)
        for index, measurement in enumerate(measurements):
            with failing_as_member(index):
                require_possible(problem, measurement, self.usable().facts)
        return tuple(replace(measurement, conditions=conditions) for measurement in measurements)

    def _verdict(self, arrays: GpuProblemArrays, loaded: LoadedKernels) -> Verdict:
        loaded.poison()
        loaded.work(arrays.addresses)(0)
        return arrays.evaluate()

    def _opened(self) -> LocalGpu:
        if self._gpu is None:
            try:
                self._gpu = self._open(self.usable())
            except DeviceError as error:
                there = f"verify with --target simulator:{self._chip.name}, time with tuner bundle export"
                raise CandidateError(Stage.LOAD, f"compiled only: {error}; {there}") from error
        return self._gpu

    def _timer_of(self, gpu: LocalGpu) -> GpuTimer:
        self._timer = self._timer or GpuTimer(gpu.device, gpu.cache_bytes)
        return self._timer

    def _arrays_of(self, problem: Problem, rng: np.random.Generator) -> GpuProblemArrays:
        if self._arrays is None or self._arrays.problem != problem:
            if self._arrays is not None:
                self._arrays.close()  # before the next is allocated
            self._arrays = None
            self._arrays = GpuProblemArrays(self._opened().device, problem, rng, self._compare)
        return self._arrays


def fastest_matmul(
    timer: GpuTimer, matmuls: Sequence[LtMatmul], addresses: Mapping[str, int]
) -> LoadedCublas:
    """Times a few runs of each algorithm of cuBLASLt; returns the fastest.

    ``addresses``: device addresses of "a", "b" and "c". Raises TunerError if no algorithm runs.
    """
    times_s: dict[LoadedCublas, float] = {}
    refusal: TunerError | None = None
    for matmul in matmuls:
        loaded = LoadedCublas(matmul.name, matmul.multiply)
        work = loaded.work(addresses)
        try:
            work(timer.stream)  # an algorithm that the library refuses is refused here, and not in a capture
        except TunerError as error:
            refusal = error
            continue
        with contextlib.closing(GraphStopwatch(timer, work)) as take:
            warm_up(take)
            times_s[loaded] = take(ALGORITHM_RUNS)
    if refusal is not None and not times_s:
        raise refusal
    return min(times_s, key=lambda loaded: times_s[loaded])


def _watch(
    program: object, arrays: GpuProblemArrays, rng: np.random.Generator, index: int = 0
) -> WatchedRuns | None:
    # cuBLAS is trusted, and lacks the epilogue
    if isinstance(program, LoadedKernels):
        return WatchedRuns(arrays, rng, index)
    return None


def require_possible(problem: Problem, measurement: Measurement, facts: CudaFacts) -> None:
    """Raises CandidateError(VERIFY) for a time in which no kernel of this GPU can compute the problem.

    At the upper end of the time's interval, the flop/s are then above 1 + PEAK_ERROR times the documented
    peak. Does nothing for a GPU or type without a documented peak.
    """
    try:
        peak = documented_flop_per_s(facts, problem.dtype)
    except TunerError:
        return
    reached = problem.flop / measurement.interval_s[1]
    limit = (1 + PEAK_ERROR) * peak
    if reached > limit:
        raise CandidateError(
            Stage.VERIFY,
            f"faster than {facts.name}: found {reached / 1e12:.4g} TFLOP/s, allowed {limit / 1e12:.4g}, "
            f"its documented peak and {PEAK_ERROR:.0%}",
        )


def evaluator_here() -> GpuEvaluator:
    """Returns an evaluator for this machine's first GPU.

    Raises DeviceError without a GPU, UsageError for a chip that tuner does not know.
    """
    return GpuEvaluator(probe.describe_gpu().facts.chip)


def time_cublas(evaluator: GpuEvaluator, problem: Problem, effort: Effort, seed: int) -> Baseline:
    """Times cuBLAS, or cuBLASLt, on a problem without its epilogue; returns the fastest library's times.

    ``seed``: of the inputs. Raises TunerError if a library is missing or its result is wrong.
    """
    rng = np.random.default_rng(seed)
    bare = replace(problem, epilogue="none")
    try:
        libraries = evaluator.load_baselines(problem, rng)
        timed = [
            (library.library, Baseline(library.name, 0, evaluator.measure(bare, library.work, effort, rng)))
            for library in libraries
        ]
    except CandidateError as error:
        raise TunerError(error.reason) from error
    fastest = fastest_baseline(timed)
    assert fastest is not None
    return fastest
