"""The evaluator of CUDA programs and cuBLAS, on a simulated GPU and on a stand-in for the driver."""

import ctypes
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.default_suite import ALL
from tests.gpu.driver.stub_cublas import stub_cublas
from tests.gpu.target.simulated_cuda import COOL, FACTS, HERE, Reading, device_with_a_clock
from tests.support.stub_driver import StubDriver
from tests.targets.evaluation import fails
from tests.texts import filled, text_beside
from tuner.core.compiled_code import KernelBuffer, KernelCode, Launch, buffers_of
from tuner.core.device import AbstractDevice
from tuner.core.errors import CandidateError, DeviceError, Stage, TunerError, UsageError
from tuner.core.interfaces import Artifact, Effort
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.problem import LAYOUTS, Problem
from tuner.core.records import Conditions, Measurement, Span, Verdict
from tuner.core.runs import Baseline
from tuner.gpu.driver import cublas, cublas_files
from tuner.gpu.driver.probe import GpuHere
from tuner.gpu.target import evaluator as gpu_evaluator
from tuner.gpu.target import event_timing
from tuner.gpu.target.evaluator import GpuEvaluator, LocalGpu, time_cublas
from tuner.payload.reference import Array, Inputs

PROBLEM = Matmul(4, 4, 4)
NOTHING = ".visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 calls) { ret; }"


def artifact_of(kernel: str, name: str) -> Artifact:
    ptx = f"//\n.version 8.0\n.target sm_90\n.address_size 64\n{kernel}\n"
    launch = Launch(name, (1, 1, 1), (16, 1, 1), 0, ("a", "b", "c", "calls"))
    buffers = (*buffers_of(PROBLEM), KernelBuffer("calls", 64, "scratch"))
    return Artifact(KernelCode("sm_90", ptx, b"", (launch,), buffers), "")


def small_kernel(before: str = "", after: str = "") -> Artifact:
    """Returns the kernel ``small(a, b, c, calls)``: 4x4x4 in f32, one of 16 threads for each element of C.

    ``before`` is PTX that runs once %element and %call are known, the addresses of the thread's element of C
    and of its word of ``calls``, scratch memory of 64 bytes; it may jump to DONE. ``after`` runs behind all.
    """
    step = "ld.global.f32 %x, [%row + {}]; ld.global.f32 %y, [%column + {}]; fma.rn.f32 %sum, %x, %y, %sum;"
    products = "\n".join(step.format(4 * k, 16 * k) for k in range(4))
    return artifact_of(filled(__file__, "SMALL", before=before, products=products, after=after), "small")


ARTIFACT, RIGHT = artifact_of(NOTHING, "nothing"), small_kernel()


def opened(here: GpuHere) -> LocalGpu:
    return LocalGpu(device_with_a_clock(), FACTS.l2_bytes)


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two warm samples and two cold ones, none of which is compared with what C should be."""
    monkeypatch.setattr(event_timing, "MIN_SAMPLES", 2)
    monkeypatch.setattr(event_timing, "COLD_SAMPLES", 2)
    monkeypatch.setattr(gpu_evaluator, "MIN_SAMPLES", 10**6)


def test_nothing_is_opened_before_the_first_program_and_code_for_another_chip_is_not_loaded() -> None:
    def refused(here: GpuHere) -> LocalGpu:
        raise AssertionError("opened")

    assert GpuEvaluator("sm_90", lambda: HERE, refused).usable() == HERE
    evaluator = GpuEvaluator("sm_80", lambda: HERE, opened)
    message = r"^compiled only: code is for sm_80, the GPU here is Simulated GPU, sm_90; verify with"
    with fails(Stage.LOAD, match=message):
        evaluator.load(PROBLEM, ARTIFACT)
    with pytest.raises(DeviceError, match="code is for sm_80"):
        evaluator.usable()
    with pytest.raises(UsageError, match=r"^chip: found 'sm_1', allowed sm_80"):
        GpuEvaluator("sm_1")


def test_clocks_held_down_between_the_rounds_mark_the_times(brief: None) -> None:
    hot = replace(COOL, sm_clock_hz=1.2e9, slowdowns=("power cap",))
    states = iter([COOL, COOL, hot, COOL, COOL, COOL])  # before, two warm rounds, two cold ones, after
    gpu = LocalGpu(device_with_a_clock(), FACTS.l2_bytes, Reading(lambda: next(states)))
    evaluator = GpuEvaluator("sm_90", lambda: HERE, lambda here: gpu)
    loaded = (evaluator.load(PROBLEM, RIGHT), evaluator.load(PROBLEM, RIGHT))
    times = evaluator.measure_together(PROBLEM, loaded, Effort(0.0, 2), np.random.default_rng(0))
    expected = Conditions(COOL, COOL, Span(4, 1.2e9, COOL.sm_clock_hz, ("power cap",)))
    assert [each.conditions for each in times] == [expected] * 2
    assert expected.slowdowns == ("power cap",)


def stub_opened(_here: GpuHere) -> LocalGpu:
    device = StubDriver().open()
    setattr(device, "elapsed_s", lambda start, stop: 0.02)  # noqa: B010 - never kept
    return LocalGpu(device, 4096, Reading(lambda: COOL))


def stub_variable(name: str, kind: Any = ctypes.c_int) -> Any:
    return kind.in_dll(ctypes.CDLL(stub_cublas()), f"stub_{name}")


def library_evaluator(find: Callable[[], str] = stub_cublas) -> GpuEvaluator:
    return GpuEvaluator("sm_90", lambda: HERE, stub_opened, find_library=find)


@pytest.mark.parametrize("epilogue", ["none", "bias_relu"])
@pytest.mark.usefixtures("brief")
def test_cublas_are_interleaved_on_the_stream_and_the_arrays_of_the_programs(epilogue: str) -> None:
    problem = Matmul(4, 4, 4, epilogue=epilogue)
    evaluator, rng = library_evaluator(), np.random.default_rng(0)
    (library,) = evaluator.load_baselines(problem, rng)
    assert library.name == "cuBLAS 13.1.2"
    calls, stream = stub_variable("calls"), stub_variable("stream", ctypes.c_void_p)
    checked, calls.value = calls.value, 0
    assert checked >= 1
    assert not stream.value
    loaded = evaluator.load(problem, ARTIFACT)
    times = evaluator.measure_together(problem, (loaded, library.work), Effort(0.0, 2), rng)
    assert [len(each.samples_s) for each in times] == [2, 2]
    assert [each.cold_median_s for each in times] == [0.02, 0.02]
    assert calls.value == 1 + 2  # captured once, run cold twice
    assert stream.value  # the timer's


def test_cublas_multiplies_all_matrices_of_a_batch_by_one_call() -> None:
    calls = stub_variable("calls")
    for layout in LAYOUTS:
        calls.value = 0
        library_evaluator().load_baselines(BatchMatmul(3, 4, 5, 6, layout=layout), np.random.default_rng(0))
        assert calls.value == 3  # of the stand-in, by itself


@contextmanager
def refusing(call: str, result: int) -> Iterator[None]:
    given = stub_variable(f"{call}_result")
    given.value = result
    yield
    given.value = 0


def test_cublas_that_refuses_is_reported_by_its_words() -> None:
    words = pytest.raises(TunerError, match=r"^cuBLAS: cublasGemmEx: not supported$")
    with refusing("multiply", 15), words:
        library_evaluator().load_baselines(PROBLEM, np.random.default_rng(0))
    with refusing("create", 1), pytest.raises(TunerError, match=r"^cuBLAS: cublasCreate_v2: not initialized"):
        timed(Matmul(*SIZES))


def seen_by_evaluation(problem: Problem) -> list[tuple[Array, Array]]:
    """Returns A and C in each comparison of a kernel that leaves C as it finds it; the last is untimed."""
    seen: list[tuple[Array, Array]] = []

    def watched(inputs: Inputs, result: Array) -> tuple[Verdict, str]:
        seen.append((inputs.a.copy(), result.copy()))
        return Verdict(0.0, 16), ""

    evaluator, rng = GpuEvaluator("sm_90", lambda: HERE, opened, watched), np.random.default_rng(0)
    loaded = evaluator.load(problem, ARTIFACT)
    assert evaluator.verify(problem, loaded, rng) == Verdict(0.0, 16)
    evaluator.measure(problem, loaded, Effort(0.0, 2), rng)
    return seen


@pytest.mark.usefixtures("brief")
def test_a_program_is_evaluated_with_every_sign_turned_and_again_on_inputs_that_were_not_timed() -> None:
    (first, was), (second, now), *_, (last, c) = seen_by_evaluation(Matmul(4, 4, 4, "tf32"))
    assert np.array_equal(second, -first)
    assert np.isnan(was).all()
    assert (now == 1).all()
    assert not np.array_equal(last, second)
    assert np.isnan(c).all()


@pytest.mark.usefixtures("brief")
def test_of_f32_special_numbers_come_first_and_programs_are_timed_on_usual_ones() -> None:
    *special, (usual, was), (_, _), (last, c) = seen_by_evaluation(PROBLEM)
    assert not all(np.isfinite(a).all() for a, _ in special)
    assert all((ones == 1).all() for _, ones in special)
    assert np.isfinite(usual).all()
    assert np.isnan(was).all()
    assert not np.array_equal(last, usual)
    assert np.isnan(c).all()


@pytest.mark.parametrize(
    "cheat",
    [
        "testp.notanumber.f32 %p, %sum; @%p mov.f32 %sum, 0f00000000;",
        "min.NaN.f32 %sum, %sum, 0f7F7FFFFF;",  # the largest number
        "max.NaN.f32 %sum, %sum, 0fFF7FFFFF;",
        "min.NaN.f32 %sum, %sum, 0f7E967699;",  # 1e38
    ],
    ids=["NaN", "infinity", "minus infinity", "large numbers"],
)
def test_special_numbers_show_a_kernel_that_cheats(cheat: str) -> None:
    evaluator = GpuEvaluator("sm_90", lambda: HERE, opened)
    text = RIGHT.code.text.replace("st.global.f32 [%element]", f"{cheat} st.global.f32 [%element]")
    loaded = evaluator.load(PROBLEM, replace(RIGHT, code=replace(RIGHT.code, text=text)))
    with fails(Stage.VERIFY, match="elements are wrong"):
        evaluator.verify(PROBLEM, loaded, np.random.default_rng(0))
    right = evaluator.load(PROBLEM, RIGHT)
    assert evaluator.verify(PROBLEM, right, np.random.default_rng(0)).max_error <= 1.0


# cuBLAS beside our kernels, by stand-ins for it and for libcuda that compute on host memory.
SIZES = (5, 7, 3)  # nothing fits by chance


def timed(problem: Problem, find: Callable[[], str] = stub_cublas) -> Baseline:
    return time_cublas(library_evaluator(find), problem, Effort(budget_s=0.0, min_samples=1), 0)


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("dtype", "output", "compute"),
    [
        *((dtype, output, cublas.COMPUTE_32F) for dtype in ("f16", "bf16") for output in ("", dtype)),
        ("f32", "", cublas.COMPUTE_32F),
        ("tf32", "", cublas.COMPUTE_32F_FAST_TF32),
        ("f64", "", cublas.COMPUTE_64F),
    ],
)
def test_answers_are_right_by_tf32_only_if_asked(dtype: str, output: str, compute: int, layout: str) -> None:
    timed(Matmul(*SIZES, dtype, layout, output=output))  # raises for any element that is wrong
    assert stub_variable("compute").value == compute


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_of_i8_are_summed_in_i32_where_rows_are_multiples_of_four(layout: str) -> None:
    timed(Matmul(8, 12, 20, "i8", layout))  # raises for any element that is wrong
    assert stub_variable("compute").value == cublas.COMPUTE_32I == 72
    with pytest.raises(TunerError, match=r"^cuBLAS: rows of i8 are multiples of 4, found \d+ and \d+$"):
        timed(Matmul(8, 6, 10, "i8", layout) if layout != "tn" else Matmul(6, 10, 8, "i8", layout))


def lt_variable(name: str, kind: Any = ctypes.c_int) -> Any:
    library = str(Path(stub_cublas()).with_name("libcublasLt.so"))
    return kind.in_dll(ctypes.CDLL(library), f"stub_lt_{name}")


@pytest.mark.parametrize("output", ["", "f16", "bf16"])
@pytest.mark.usefixtures("brief")
def test_float8_is_compared_with_the_fastest_algorithm_of_both_accumulations(output: str) -> None:
    problem = Matmul(32, 48, 16, "e4m3", "nt", output=output)
    calls = lt_variable("calls", ctypes.c_int * 2)
    calls[0] = calls[1] = 0
    fast, exact = library_evaluator().load_baselines(problem, np.random.default_rng(0))
    name = r"cuBLASLt 13\.1\.2 \(algorithm [13], {} accumulation\)"  # the second is refused when it is called
    assert (fast.library, exact.library) == ("cublaslt", "cublaslt-f32")
    assert re.fullmatch(name.format("fast"), fast.name)
    assert re.fullmatch(name.format("f32"), exact.name)
    assert calls[0] >= 2
    assert calls[1] >= 2
    assert lt_variable("workspace_limit", ctypes.c_uint64).value == 32 << 20


@pytest.mark.usefixtures("brief")
def test_the_baseline_of_float8_lists_both_accumulations() -> None:
    baseline = timed(Matmul(32, 48, 16, "e4m3", "nt"))
    assert {library.library for library in baseline.libraries} == {"cublaslt", "cublaslt-f32"}
    assert baseline.name.startswith("cuBLASLt 13.1.2 (algorithm ")


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (Matmul(32, 48, 16, "e4m3", "nn"), "cuBLASLt multiplies 8-bit floats in layout nt alone, found nn"),
        (Matmul(32, 40, 16, "e4m3", "nt"), "sizes of 8-bit floats are multiples of 16, found 32x40x16"),
        (Matmul(32, 48, 16, "e5m2", "nt"), "cuBLASLt has no e5m2 x e5m2"),
        (BatchMatmul(2, 32, 48, 16, "e4m3", "nt"), "batches of 8-bit floats are not compared"),
    ],
)
def test_float8_that_cublaslt_does_not_multiply_is_said(problem: Problem, reason: str) -> None:
    with pytest.raises(TunerError, match=reason):
        timed(problem)


def test_cublaslt_that_refuses_or_has_no_algorithm_is_reported() -> None:
    problem = Matmul(32, 48, 16, "e4m3", "nt")
    for name, value, words in (
        ("result", 1, r"^cuBLASLt: cublasLtCreate: not initialized$"),
        ("found", 0, r"^cuBLASLt 13\.1\.2: the heuristic has no algorithm for matmul 32x48x16 e4m3 nt"),
    ):
        variable = lt_variable(name)
        before = variable.value
        variable.value = value
        with pytest.raises(TunerError, match=words):
            timed(problem)
        variable.value = before


def test_the_library_is_timed_as_kernels_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_timing, "MIN_SAMPLES", 3)
    baseline = timed(Matmul(*SIZES, "f16", epilogue="bias_relu"))
    assert (baseline.name, baseline.threads) == ("cuBLAS 13.1.2", 0)
    assert (baseline.measurement.median_s, baseline.measurement.cold_median_s) == (0.02, 0.02)
    assert len(baseline.measurement.samples_s) == 3
    assert baseline.measurement.conditions == Conditions(COOL, COOL)


def test_a_library_that_is_wrong_is_no_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cublas, "OP_T", cublas.OP_N)  # what our call would ask for if it were wrong
    with pytest.raises(TunerError, match=r"^cuBLAS 13\.1\.2: \d+ of 15 elements are wrong"):
        timed(Matmul(5, 3, 5, layout="nt"))


def test_a_library_that_does_not_load_or_is_missing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TunerError, match=r"^cuBLAS: libcublas-of-nobody\.so: cannot open"):
        timed(Matmul(*SIZES), find=lambda: "libcublas-of-nobody.so")
    pathfinder = pytest.importorskip("cuda.pathfinder")

    def nothing(name: str) -> None:
        raise pathfinder.DynamicLibNotFoundError(name)

    monkeypatch.setattr(pathfinder, "load_nvidia_dynamic_lib", nothing)
    with pytest.raises(TunerError, match=r"no cuBLAS found \(pip install nvidia-cublas\)"):
        cublas_files.find_cublas()


# Wherever a timing on a GPU ends, right programs keep their time and those that spare work get none.
DEVICES: dict[str, Callable[[], AbstractDevice]] = {"simulated": device_with_a_clock}
DEVICES |= {"driver": lambda: StubDriver().open()}
COLD_RUNS = 2
UNTIMED = 1 + 1 + 2  # runs before the first sample: the graph's first, to raise clocks, to calibrate
COUNTED = "ld.global.u32 %n, [%call]; add.u32 %n, %n, 1; st.global.u32 [%call], %n;"  # the first run: 0
REMEMBERS = text_beside(__file__, "REMEMBERS")
KEEPS = "st.global.f32 [%call + 4], %sum;"


@dataclass(frozen=True)
class End:
    effort: Effort
    sample_s: float
    samples: int
    is_complete: bool = True

    @property
    def runs(self) -> int:
        return UNTIMED + self.samples + COLD_RUNS * self.is_complete


ENDS = {
    "stopped at 1": End(Effort(stop_above_s=0.005), 0.02, 1, is_complete=False),
    "stopped at 2": End(Effort(stop_above_s=0.005), 0.015, 2, is_complete=False),
    "stopped at 3": End(Effort(stop_above_s=0.01), 0.015, 3, is_complete=False),
    "out of time at once": End(Effort(budget_s=0.0, min_samples=1), 0.02, 1),
    "least samples": End(Effort(budget_s=0.0, min_samples=4), 0.02, 4),
    "out of time at 3": End(Effort(budget_s=0.05, min_samples=1), 0.02, 3),
    "most samples": End(Effort(budget_s=9.0, min_samples=1, max_samples=2), 0.02, 2),
}


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> AbstractDevice:
    return DEVICES[request.param]()


@pytest.fixture
def few_cold_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_timing, "COLD_SAMPLES", COLD_RUNS)


@pytest.fixture
def few_samples(monkeypatch: pytest.MonkeyPatch, few_cold_samples: None) -> None:
    monkeypatch.setattr(event_timing, "MIN_SAMPLES", 1)


def timed_until(
    device: AbstractDevice,
    end: End,
    artifact: Artifact,
    seed: int = 0,
    *,
    is_finalist: bool = False,
    problem: Problem = PROBLEM,
) -> Measurement:
    """Verifies and times a kernel as a candidate is, on a clock by which every sample takes the same."""
    setattr(device, "elapsed_s", lambda start, stop: end.sample_s)  # noqa: B010 - mypy: methods are not assigned
    evaluator = GpuEvaluator("sm_90", lambda: HERE, lambda here: LocalGpu(device, FACTS.l2_bytes))
    rng = np.random.default_rng(seed)
    loaded = evaluator.load(problem, artifact)
    evaluator.verify(problem, loaded, rng)
    if is_finalist:
        (final_times,) = evaluator.measure_together(problem, (loaded,), end.effort, rng)
        assert len(final_times.samples_s) >= event_timing.MIN_SAMPLES
    return evaluator.measure(problem, loaded, end.effort, rng)


def lazy(first: int, last: int) -> Artifact:
    """Returns a kernel that leaves C as it finds it in some of the runs since it was verified, from 1 on."""
    is_lazy = f"setp.lt.u32 %p, %n, {first}; @%p bra WORK; setp.le.u32 %p, %n, {last}; @%p bra DONE;"
    return small_kernel(f"{COUNTED} {is_lazy} WORK:")


def lazy_where_filled() -> Artifact:
    """Returns a kernel that after nine runs works only where C is NaN."""
    after_nine = "setp.le.u32 %p, %n, 8; @%p bra WORK;"
    where_filled = "ld.global.f32 %x, [%element]; setp.num.f32 %p, %x, %x; @%p bra DONE;"
    return small_kernel(f"{COUNTED} {after_nine} {where_filled} WORK:")


def remembering() -> Artifact:
    """Returns a kernel that writes a row as in the last run where the first number of A's row is the same."""
    artifact = small_kernel(REMEMBERS, KEEPS)
    *operands, _ = artifact.code.buffers
    buffers = (*operands, KernelBuffer("calls", 16 * 12, "scratch"))
    return replace(artifact, code=replace(artifact.code, buffers=buffers))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", ENDS)
@pytest.mark.usefixtures("few_samples")
def test_a_right_kernel_is_timed_wherever_the_timing_ends(device: AbstractDevice, name: str) -> None:
    end = ENDS[name]
    for seed in range(2):
        found = timed_until(device, end, small_kernel(), seed)
        assert (len(found.samples_s), found.is_complete) == (end.samples, end.is_complete)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", ENDS)
@pytest.mark.usefixtures("few_samples")
def test_a_kernel_that_has_grown_lazy_by_then_gets_no_time(device: AbstractDevice, name: str) -> None:
    end = ENDS[name]
    for worked in (end.runs // 2, end.runs):
        with fails(Stage.VERIFY, match=r"elements (looked at )?are wrong|are NaN or"):
            timed_until(device, end, lazy(worked + 1, 99))
    assert timed_until(device, end, lazy(end.runs + 2, 99)).samples_s  # it ran once more than it was timed


@pytest.mark.drawn(2)
@pytest.mark.parametrize("seed", range(3))
def test_a_kernel_that_is_lazy_in_cold_samples_only_or_remembers_its_inputs_gets_no_time(seed: int) -> None:
    end = End(Effort(budget_s=0.0), 0.02, event_timing.MIN_SAMPLES)
    first = UNTIMED + end.samples + 1
    artifact = lazy(first, first + event_timing.COLD_SAMPLES - 1)
    with pytest.raises(CandidateError, match=r"elements looked at are wrong|are NaN or"):
        timed_until(device_with_a_clock(), end, artifact, seed)
    with pytest.raises(CandidateError, match=r"elements looked at are wrong"):
        timed_until(device_with_a_clock(), end, remembering(), seed)


BOTH = End(Effort(0.0, 2), 0.02, event_timing.MIN_SAMPLES)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("seed", range(5))
def test_an_honest_top_trial_is_timed(seed: int, few_cold_samples: None) -> None:
    assert timed_until(device_with_a_clock(), BOTH, small_kernel(), seed, is_finalist=True).is_complete


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("artifact", [lazy(9, 10**6), lazy_where_filled()], ids=["lazy", "where-filled"])
@pytest.mark.usefixtures("few_cold_samples")
def test_a_top_trial_that_spares_itself_work_gets_no_time(artifact: Artifact, seed: int) -> None:
    with fails(Stage.VERIFY, match=r"elements looked at are wrong|are NaN or infinite"):
        timed_until(device_with_a_clock(), BOTH, artifact, seed, is_finalist=True)


@pytest.mark.usefixtures("few_cold_samples")
def test_a_time_below_the_roofline_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_timing, "WARM_UP_S", 0.0)  # which takes a thousand calls of such a time
    with fails(Stage.VERIFY, match=r"^faster than Simulated GPU: found .* TFLOP/s, allowed 2\.23"):
        timed_until(device_with_a_clock(), replace(BOTH, sample_s=1e-12), small_kernel(), is_finalist=True)


ADDED = Matmul(4, 4, 4, epilogue="accumulate")
STORE = "st.global.f32 [%element], %sum;"


def adding() -> Artifact:
    """Returns the small kernel, which adds its sums to what C holds."""
    artifact = small_kernel()
    text = artifact.code.text.replace(STORE, f"ld.global.f32 %x, [%element]; add.f32 %sum, %sum, %x; {STORE}")
    return replace(artifact, code=replace(artifact.code, text=text))


def calls_of(device: AbstractDevice, *names: str) -> list[str]:
    """Returns a list of the names of the methods that are called from now on."""
    calls: list[str] = []

    def recorded(name: str) -> Callable[..., Any]:
        method = getattr(device, name)

        def call(*arguments: Any) -> Any:
            calls.append(name)
            return method(*arguments)

        return call

    for name in names:
        setattr(device, name, recorded(name))
    return calls


@pytest.mark.parametrize("is_finalist", [False, True])
@pytest.mark.usefixtures("few_cold_samples")
def test_what_a_program_adds_to_is_restored_before_each_timed_run_and_not_timed(is_finalist: bool) -> None:
    device = device_with_a_clock()
    calls = calls_of(device, "copy", "record_event", "launch_graph")
    end = End(Effort(budget_s=0.0), 0.02, event_timing.MIN_SAMPLES)
    assert timed_until(device, end, adding(), is_finalist=is_finalist, problem=ADDED).is_complete
    timed = [number for number, name in enumerate(calls) if name == "record_event"]
    for start, stop in zip(timed[::2], timed[1::2], strict=True):
        assert calls[start + 1 : stop] in (["launch_graph"], [])  # a cold run is no graph
        assert "copy" in calls[max(0, start - 2) : start]


@pytest.mark.parametrize("problem", [ADDED, PROBLEM])
def test_a_program_that_does_not_add_is_wrong_where_c_is_added_to_and_one_that_adds_elsewhere(
    problem: Problem,
) -> None:
    artifact = small_kernel() if problem is ADDED else adding()
    with fails(Stage.VERIFY, match="elements are wrong"):
        timed_until(device_with_a_clock(), BOTH, artifact, problem=problem)
