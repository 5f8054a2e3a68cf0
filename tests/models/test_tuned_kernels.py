"""Which kernels of a program on a device a results database gives."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.support.gpu_trials import configuration, store_gpu_trial
from tests.support.program_compiler import compiler_of
from tuner.core.candidate import TargetName
from tuner.core.device_programs import DeviceOptions
from tuner.core.errors import Failure, Stage
from tuner.core.interfaces import Script
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.programs import SAME_CONTRACTION, TUNED, FusionSchedule
from tuner.core.queries import TaskQuery
from tuner.core.records import Verdict
from tuner.db.store import Store
from tuner.models.compile_work import lowered
from tuner.models.compiler import ProgramCompiler
from tuner.models.fusion_schedules import matmul_schedules
from tuner.models.request import ProgramOptions, ProgramRequest
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir
EXAMPLE = Path(__file__).parents[2] / "examples" / "async_matmul.mlir"
SEEDS_PROBLEM = Matmul(5376, 5376, 2048)
PROBLEM = Matmul(84, 84, 32)
SIMULATOR = TargetName("simulator", "sm_90")
FUSED = """
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%x: tensor<64x32xf32>, %w: tensor<32x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = linalg.matmul ins(%x, %w : tensor<64x32xf32>, tensor<32x64xf32>) outs(%f : tensor<64x64xf32>)
    -> tensor<64x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%p : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.maximumf %in, %zero : f32
    linalg.yield %r : f32
  } -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}
"""


def seeds() -> str:
    """Returns the asynchronous matmul of buddy-mlir's GPU examples, at its size."""
    text = EXAMPLE.read_text()
    return text.replace("84x32", "5376x2048").replace("32x84", "2048x5376").replace("84x84", "5376x5376")


def scheduled(store: Store, target: TargetName = SIMULATOR) -> ProgramCompiler:
    compiler = compiler_of(target)
    timed_on = TaskQuery(target="cuda:sm_90")
    return replace(compiler, schedules=partial(matmul_schedules, store, timed_on, compiler.machine))


def suggested(store: Store, problem: Problem, target: str = "cuda:sm_90") -> list[FusionSchedule]:
    timed_on = TaskQuery(target=target)
    return list(matmul_schedules(store, timed_on, compiler_of(SIMULATOR).machine, problem, 1))


def ptx(text: str, target: TargetName, database: str = "") -> str:
    request = ProgramRequest(text, target, options=ProgramOptions(DeviceOptions()), database=database)
    return lowered(request, "ptx", real_backends()).text


def test_by_math_the_program_of_5376_rows_takes_trials_of_the_mode_alone(
    store: Store, tmp_path: Path
) -> None:
    split = replace(SEEDS_PROBLEM, dtype="tf32x3")
    trials = {
        "tf32x3": store_gpu_trial(store, split, configuration(split), 1e-3),
        "ieee": store_gpu_trial(store, SEEDS_PROBLEM, configuration(SEEDS_PROBLEM, 1), 2e-3),
    }
    for math, trial in trials.items():
        options = ProgramOptions(math=math)
        request = ProgramRequest(seeds(), SIMULATOR, options=options, database=str(tmp_path / "results.db"))
        done = lowered(request, "ptx", real_backends())
        assert [kernel.schedule.trial for kernel in done.tuned] == [trial]
        assert [kernel.problem for kernel in done.tuned] == [SEEDS_PROBLEM.multiplied_as(math)]
        assert ("mma.sync" in done.text) == (math == "tf32x3")


def test_a_matmul_with_an_epilogue_multiplies_in_the_mode_too(store: Store) -> None:
    compiler = replace(compiler_of(SIMULATOR), math="tf32x3")
    compiled = compiler.compile(FUSED, as_fusions=True)
    assert compiled.problems == (Matmul(64, 64, 32, math="tf32x3"),)
    assert compiled.tuned == ()
    assert [fusion.reason for fusion in compiled.code.fusions] == [""]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("target", [SIMULATOR, TargetName("cuda", "sm_90")])
def test_the_program_of_5376_rows_takes_the_best_timed_kernel_of_its_matmul(
    store: Store, tmp_path: Path, target: TargetName
) -> None:
    chosen = configuration(SEEDS_PROBLEM, 1)
    assert chosen != configuration(SEEDS_PROBLEM)
    store_gpu_trial(store, SEEDS_PROBLEM, configuration(SEEDS_PROBLEM), 2e-3)
    trial = store_gpu_trial(store, SEEDS_PROBLEM, chosen, 1e-3)
    request = ProgramRequest(seeds(), target, database=str(tmp_path / "results.db"))
    done = lowered(request, "ptx", real_backends())
    (kernel,) = done.tuned
    assert kernel.problem == SEEDS_PROBLEM
    assert (kernel.schedule.origin, kernel.schedule.trial) == (TUNED, trial)
    assert kernel.schedule.script == chosen[1].text
    bound = compiler_of(target).compile(seeds(), scripts={SEEDS_PROBLEM: chosen[1]})
    assert scheduled(store, target).compile(seeds()).code.llvm == bound.code.llvm
    assert done.text != ptx(seeds(), target)


def test_trials_of_tf32_of_other_chips_and_machines_and_those_without_times_are_not_taken(
    store: Store,
) -> None:
    store_gpu_trial(store, Matmul(84, 84, 32, "tf32"), configuration(Matmul(84, 84, 32, "tf32")), 1e-9)
    store_gpu_trial(store, Matmul(84, 84, 32, "tf32x3"), configuration(Matmul(84, 84, 32, "tf32x3")), 1e-9)
    chosen = configuration(PROBLEM)
    store_gpu_trial(store, PROBLEM, chosen, 1e-9, target="cuda:sm_80")
    store_gpu_trial(store, PROBLEM, chosen, Verdict(0.5, 84 * 84), target="simulator:sm_90")
    store_gpu_trial(store, PROBLEM, chosen, Failure(Stage.RUN, "timed out"))
    assert suggested(store, PROBLEM) == []
    trial = store_gpu_trial(store, PROBLEM, configuration(PROBLEM, 1), 1e-3)
    assert [schedule.trial for schedule in suggested(store, PROBLEM)] == [trial]
    elsewhere = TaskQuery(target="cuda:sm_90", machine="another GPU")
    assert list(matmul_schedules(store, elsewhere, compiler_of(SIMULATOR).machine, PROBLEM, 1)) == []


def test_a_matmul_with_an_epilogue_takes_the_configuration_of_the_one_without(store: Store) -> None:
    problem = Matmul(64, 64, 32)
    chosen = configuration(problem, 1)
    trial = store_gpu_trial(store, problem, chosen)
    compiled = scheduled(store).compile(FUSED, as_fusions=True)
    (kernel,) = compiled.tuned
    assert (kernel.problem, kernel.schedule.trial) == (problem, trial)
    assert (kernel.schedule.origin, kernel.schedule.candidate) == (SAME_CONTRACTION, chosen[0])
    assert [fusion.reason for fusion in compiled.code.fusions] == [""]
    with_epilogue = replace(problem, epilogue="bias_relu")
    own = store_gpu_trial(store, with_epilogue, configuration(with_epilogue))
    assert suggested(store, with_epilogue)[0].trial == own


@pytest.mark.slow
def test_a_script_that_fails_is_given_up_with_its_trial_and_reason(store: Store) -> None:
    candidate, _ = configuration(PROBLEM)
    broken = Script.of("module attributes {transform.with_named_sequence} {}\n")
    trial = store_gpu_trial(store, PROBLEM, (candidate, broken))
    compiled = scheduled(store).compile(EXAMPLE.read_text())
    assert compiled.tuned == ()
    assert compiled.given_up.startswith(f"trial {trial}: ")
    assert compiled.problems == (PROBLEM,)
    assert compiled.code.llvm == compiler_of(SIMULATOR).compile(EXAMPLE.read_text()).code.llvm
