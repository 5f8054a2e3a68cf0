"""The CUDA target on a real GPU."""

import pytest

from tests.mlir.gpu_matmul import gpu_script
from tests.targets.evaluation import fails, rng
from tuner.core.errors import CandidateError, DeviceError, Stage, TunerError
from tuner.core.gpu import chip_of
from tuner.core.interfaces import Artifact, Effort, Script
from tuner.core.matmul import Matmul
from tuner.gpu.driver.cublas_files import find_cublas
from tuner.gpu.driver.probe import GpuHere, describe_gpu
from tuner.gpu.driver.roofline import copied_bytes_per_s
from tuner.gpu.target.compiler import GpuCompiler
from tuner.gpu.target.evaluator import GpuEvaluator, evaluator_here, open_gpu, time_cublas
from tuner.gpu.target.event_timing import COLD_SAMPLES
from tuner.tuning.remeasurement import noise_of

pytestmark = [pytest.mark.mlir, pytest.mark.cuda]
PROBLEM = Matmul(1024, 1024, 1024)


@pytest.fixture(scope="module")
def here() -> GpuHere:
    try:
        return describe_gpu()
    except DeviceError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def compiler(here: GpuHere) -> GpuCompiler:
    return GpuCompiler(chip_of(here.facts.chip))


@pytest.fixture(scope="module")
def evaluator(here: GpuHere) -> GpuEvaluator:
    return GpuEvaluator(here.facts.chip)


@pytest.fixture(scope="module")
def artifact(compiler: GpuCompiler) -> Artifact:
    return compiler.compile(PROBLEM, Script.of(gpu_script()))


def test_a_right_program_is_verified_and_timed(evaluator: GpuEvaluator, artifact: Artifact) -> None:
    loaded = evaluator.load(PROBLEM, artifact)
    assert evaluator.verify(PROBLEM, loaded, rng()).elements == 1024 * 1024
    found = evaluator.measure(PROBLEM, loaded, Effort(), rng())
    assert found.cold_median_s is not None
    assert 1e-6 < found.median_s <= 1.1 * found.cold_median_s
    assert 0.0 < PROBLEM.flop / found.median_s < 1e15


def test_two_timings_of_the_same_code_agree(evaluator: GpuEvaluator, artifact: Artifact) -> None:
    loaded = evaluator.load(PROBLEM, artifact)
    one, other = evaluator.measure_together(PROBLEM, (loaded, loaded), Effort(budget_s=0.2), rng())
    assert noise_of(one, other) < 0.05


def test_cublas_are_interleaved_with_programs(evaluator: GpuEvaluator, artifact: Artifact) -> None:
    try:
        (library,) = evaluator.load_baselines(PROBLEM, rng())
    except CandidateError:
        raise
    except TunerError as error:
        pytest.skip(str(error))
    loaded = evaluator.load(PROBLEM, artifact)
    found = evaluator.measure_together(PROBLEM, (loaded, library.work), Effort(budget_s=0.2), rng())
    assert library.name.startswith("cuBLAS ")
    assert len({len(each.samples_s) for each in found}) == 1
    assert all(each.cold_median_s is not None for each in found)
    for conditions in {each.conditions for each in found if each.conditions is not None}:
        assert conditions.between is not None
        assert conditions.between.readings == len(found[0].samples_s) + COLD_SAMPLES


def test_a_early_stopped_program_stops_early(evaluator: GpuEvaluator, artifact: Artifact) -> None:
    loaded = evaluator.load(PROBLEM, artifact)
    assert not evaluator.measure(PROBLEM, loaded, Effort(stop_above_s=1e-9), rng()).is_complete


def test_a_wrong_program_has_no_time(compiler: GpuCompiler, evaluator: GpuEvaluator) -> None:
    wrong = Matmul(1024, 1024, 512)
    half = compiler.compile(wrong, Script.of(gpu_script()))  # adds up half of K
    with fails(Stage.VERIFY, match="elements are wrong"):
        evaluator.verify(PROBLEM, evaluator.load(PROBLEM, half), rng())


def test_copies_reach_what_a_gpu_has(here: GpuHere) -> None:
    assert 5e10 < copied_bytes_per_s(open_gpu(here).device, here.facts.memory_bytes) < 2e13


@pytest.mark.parametrize("dtype", ["f16", "bf16", "tf32", "f32", "f64"])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_cublas_is_right_and_timed(here: GpuHere, dtype: str, layout: str) -> None:
    try:
        find_cublas()
    except TunerError as error:
        pytest.skip(str(error))
    baseline = time_cublas(evaluator_here(), Matmul(1024, 512, 256, dtype, layout), Effort(), 0)
    assert baseline.name.startswith("cuBLAS ")
    assert baseline.measurement.median_s > 0
