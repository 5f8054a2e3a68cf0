"""The GPU check, fifth part: whether measured times are plausible.

The same code timed twice, interleaved, must give equal times, events must agree with the host's clock, no
kernel may be faster than the chip's documented peak, and cuBLAS is timed interleaved with a strategy's first
point.
"""

import functools
import math
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.gpu_check.checks import Check, CheckOutcome, evaluated, passed, skipped
from benchmarks.gpu_check.device_under_test import Bed
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import TunerError
from tuner.core.interfaces import FINAL_EFFORT, Effort
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.records import Measurement
from tuner.gpu.driver.cublas import Cublas
from tuner.gpu.driver.cublas_files import find_cublas
from tuner.gpu.target.arrays import GpuProblemArrays
from tuner.gpu.target.evaluator import LoadedCublas
from tuner.gpu.target.event_timing import Enqueue, GpuTimer, GraphStopwatch
from tuner.tuning.remeasurement import noise_of

if TYPE_CHECKING:
    from benchmarks.gpu_check.triton_matmul import TritonMatmul
    from tuner.gpu.target.evaluator import LocalGpu

SIZE = 2048
NOISE_LIMIT = 0.05  # of two timings of the same code
HOST_S = 0.2  # of work that both clocks time: launching it does not count there
RUNS_LIMIT = 4000  # nodes of a graph
HOST_RATIO = (0.97, 1.05)  # host over events; the host sees the launch as well
PEAK_SHARE = 1.02  # the highest clock is reported in whole MHz
IDLE_S, LEADS_S, IDLE_SAMPLES = (0.0, 0.01, 0.1), (0.0, 0.01, 0.05), 9
STRATEGIES = {"f16": "matmul_gpu_mma_sync", "f32": "matmul_gpu_simt"}


def checks(bed: Bed) -> tuple[Check, ...]:
    """Returns the checks of times; a skipped check where nothing can be timed."""
    if not bed.is_hardware:
        return (Check("clock", lambda: skipped(f"no clock on the {bed.device}")),)
    found = []
    for dtype in STRATEGIES:
        for name, ask in (
            ("A/A", twice),
            ("host against events", host_against_events),
            ("against cuBLAS", baseline),
        ):
            found.append(Check(f"{name}, {dtype}", functools.partial(ask, bed, dtype)))
    found.append(Check("after idleness, f16", functools.partial(after_idleness, bed)))
    return tuple(found)


def twice(bed: Bed, dtype: str) -> CheckOutcome:
    """Times one program twice, interleaved, and compares it with the peak. Raises TunerError."""
    gpu, problem = bed.gpu(), Matmul(SIZE, SIZE, SIZE, dtype)
    bench = Bench(gpu, problem, first_program(bed, problem))
    with closing(GpuTimer(gpu.device, gpu.cache_bytes)) as timer:
        one, again = timer.measure_together((bench.work, bench.work), FINAL_EFFORT, np.random.default_rng(0))
    peak = peak_of(bed, dtype)
    return same(one, again, problem.flop, peak)


def same(one: Measurement, again: Measurement, flop: float, peak_flop_per_s: float | None) -> CheckOutcome:
    """Compares two timings of the same code."""
    noise, speed = noise_of(one, again), flop / min(one.median_s, again.median_s)
    text = f"{one.median_s * 1e6:.1f} and {again.median_s * 1e6:.1f} us, noise {100 * noise:.2f} %"
    facts: dict[str, Any] = {"median_s": [one.median_s, again.median_s], "noise": noise, "flop_per_s": speed}
    if peak_flop_per_s is not None:
        facts["peak_share"] = speed / peak_flop_per_s
        if speed > PEAK_SHARE * peak_flop_per_s:
            impossible = f"{speed / 1e12:.1f} TFLOP/s, documented {peak_flop_per_s / 1e12:.1f}"
            return evaluated(False, f"faster than the chip: {impossible}", **facts)
    return evaluated(noise <= NOISE_LIMIT, text, **facts)


def host_against_events(bed: Bed, dtype: str) -> CheckOutcome:
    """Times the same work by events and by the host. Raises TunerError."""
    gpu, problem = bed.gpu(), Matmul(SIZE, SIZE, SIZE, dtype)
    bench = Bench(gpu, problem, first_program(bed, problem))
    with closing(GpuTimer(gpu.device, gpu.cache_bytes)) as timer:
        return clocks_agree(timer, bench.work)


def clocks_agree(
    timer: GpuTimer, work: Enqueue, clock: Callable[[], float] = time.perf_counter
) -> CheckOutcome:
    """Runs a graph of the work long enough for both clocks, and compares them."""
    with closing(GraphStopwatch(timer, work)) as take:
        take(1)
        runs = max(1, min(RUNS_LIMIT, math.ceil(HOST_S / take(1))))
        take(runs)  # builds the graph, and raises the clocks
        start_s = clock()
        by_events_s = take(runs) * runs
        by_host_s = clock() - start_s
    ratio = by_host_s / by_events_s
    text = f"{runs} runs: {by_host_s * 1e3:.2f} ms by the host, {by_events_s * 1e3:.2f} by events"
    low, high = HOST_RATIO
    return evaluated(low <= ratio <= high, text, ratio=ratio, host_s=by_host_s, events_s=by_events_s)


def baseline(bed: Bed, dtype: str) -> CheckOutcome:
    """Times cuBLAS interleaved with a strategy's initial configuration. Raises TunerError."""
    problem = Matmul(SIZE, SIZE, SIZE, dtype)
    return versus(bed.gpu(), problem, first_program(bed, problem))


def after_idleness(bed: Bed) -> CheckOutcome:
    """Times cuBLAS after pauses of the GPU, each followed by untimed runs: how long its clocks remember."""
    gpu, problem = bed.gpu(), Matmul(2 * SIZE, 2 * SIZE, 2 * SIZE, "f16")
    arrays = GpuProblemArrays(gpu.device, problem, np.random.default_rng(0))
    with (
        closing(Cublas(gpu.device, find_cublas())) as library,
        closing(arrays),
        closing(GpuTimer(gpu.device, gpu.cache_bytes)) as timer,
    ):
        work = LoadedCublas.of(library, problem).work(arrays.addresses)
        with closing(GraphStopwatch(timer, work)) as take:
            run_s = take(1)
        found = {
            f"{1e3 * idle_s:g} ms idle, {1e3 * lead_s:g} ms untimed": timed_after(
                timer, work, idle_s, math.ceil(lead_s / run_s)
            )
            for idle_s in IDLE_S
            for lead_s in LEADS_S
        }
    text = ", ".join(f"{name}: {1e6 * median_s:.1f} us" for name, median_s in found.items())
    return passed(text, median_s=found)


def timed_after(timer: GpuTimer, work: Enqueue, idle_s: float, untimed_runs: int) -> float:
    """Returns the median seconds of single runs, each after a pause and untimed runs."""
    taken = []
    for _ in range(IDLE_SAMPLES):
        timer.device.synchronize_stream(timer.stream)
        time.sleep(idle_s)
        for _ in range(untimed_runs):
            work(timer.stream)
        timer.device.record_event(timer.start, timer.stream)
        work(timer.stream)
        taken.append(timer.stopped_s())
    return statistics.median(taken)


def versus(
    gpu: "LocalGpu",
    problem: Problem,
    program: KernelCode,
    find: Callable[[], str] = find_cublas,
    effort: Effort = FINAL_EFFORT,
    *,
    with_triton: bool = False,
) -> CheckOutcome:
    """Times a program and cuBLAS interleaved on the same arrays, both verified first. Raises TunerError.

    ``with_triton``: also a matmul in Triton, on arrays of its own, or the reason why not.
    """
    bench, rng = Bench(gpu, problem, program), np.random.default_rng(0)
    before = gpu.read_sensors()
    with closing(GpuTimer(gpu.device, gpu.cache_bytes)) as timer:
        try:
            library = Cublas(gpu.device, find())
        except TunerError as error:
            own = timer.measure(bench.work, effort, rng)
            facts = times_document(problem, own, None, "")
            return passed(f"{holder_text(facts)}; {error}", **facts)
        by_library = bench.checked(lambda stream: bench.multiply(library, stream))
        triton, reason = triton_matmul(problem) if with_triton else (None, "")
        works = (bench.work, by_library) if triton is None else (bench.work, by_library, triton.enqueue)
        own, theirs, *others = timer.measure_together(works, effort, rng)
    library.close()
    conditions = gpu.conditions_since(before)
    facts = times_document(problem, own, theirs, library.name)
    if triton is not None:
        facts["triton"] = {
            "name": triton.name,
            "configuration": asdict(triton.configuration),
            "median_s": others[0].median_s,
            "ratio": others[0].median_s / own.median_s,
        }
    elif with_triton:
        facts["triton"] = reason
    facts["slowdowns"] = [] if conditions is None else list(conditions.slowdowns)
    return passed(holder_text(facts), **facts)


def triton_matmul(problem: Problem) -> "tuple[TritonMatmul | None, str]":
    """Returns Triton's matmul for a problem; without Triton, or where it fails, None and the reason."""
    try:
        from benchmarks.gpu_check.triton_matmul import fastest

        return fastest(problem), ""
    except Exception as error:  # noqa: BLE001  # a peer of any kind of failure, which is not a failure of the check
        return None, f"{type(error).__name__}: {error}"


class Bench:
    """One problem's arrays on the GPU, and one program that was verified there."""

    def __init__(self, gpu: "LocalGpu", problem: Problem, program: KernelCode) -> None:
        """Draws, uploads, runs once and compares. Raises CandidateError, DeviceError."""
        self._gpu, self._problem = gpu, problem
        self._arrays = GpuProblemArrays(gpu.device, problem, np.random.default_rng(0))
        self.work = self.of(program)

    def of(self, program: KernelCode) -> Enqueue:
        """Returns a program's work on the arrays, once found right. Raises CandidateError, DeviceError."""
        from tuner.gpu.target.arrays import LoadedKernels

        self._loaded = LoadedKernels(self._gpu.device, program)
        self._loaded.poison()
        return self.checked(self._loaded.work(self._arrays.addresses))

    def checked(self, work: Enqueue) -> Enqueue:
        """Returns the work, once it has computed the right C. Raises CandidateError."""
        self._arrays.fill(np.random.default_rng(1))
        work(0)
        self._arrays.evaluate()
        return work

    def multiply(self, library: Cublas, stream: int) -> None:
        """Lets the baseline multiply the same arrays."""
        at = self._arrays.addresses
        library.multiply(self._problem, at["a"], at["b"], at["c"], stream)


def times_document(
    problem: Problem, own: Measurement, theirs: Measurement | None, name: str
) -> dict[str, Any]:
    """Returns both times; ``ratio`` above 1 means that the tuner's kernel is faster."""
    facts: dict[str, Any] = {
        "problem": problem.key,
        "median_s": own.median_s,
        "cold_median_s": own.cold_median_s,
        "interval_s": list(own.interval_s),
        "tflop_per_s": problem.flop / own.median_s / 1e12,
    }
    if theirs is None:
        return facts
    found = {"name": name, "median_s": theirs.median_s, "cold_median_s": theirs.cold_median_s}
    return facts | {"baseline": found, "ratio": theirs.median_s / own.median_s}


def holder_text(facts: dict[str, Any]) -> str:
    """Returns times for a line."""
    text = f"{facts['median_s'] * 1e6:.1f} us, {facts['tflop_per_s']:.1f} TFLOP/s"
    if "ratio" in facts:
        text += f", {facts['baseline']['name']} / ours {facts['ratio']:.3f}"
    if isinstance(triton := facts.get("triton"), dict):  # else the reason why there is none
        text += f", {triton['name']} / ours {triton['ratio']:.3f}"
    return text


def first_program(bed: Bed, problem: Problem) -> KernelCode:
    """Compiles the point that a search would try first. Raises TunerError."""
    from benchmarks.gpu_check.points import Case, first_built

    return first_built(Case(STRATEGIES[problem.dtype], problem), bed.target)[1]


def peak_of(bed: Bed, dtype: str) -> float | None:
    """Returns the documented peak; None for chips without one."""
    from tuner.gpu.driver.roofline import documented_flop_per_s

    here = bed.here()
    assert here is not None
    try:
        return documented_flop_per_s(here.facts, dtype)
    except TunerError:
        return None
