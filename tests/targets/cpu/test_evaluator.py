"""Small problems on the CPU: panels, artifacts, verdicts and times."""

import itertools
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fuzzing.cpu_points import CpuPoint, CpuPoints, KernelKind
from tests.targets.cpu.dishonest_kernels import dishonest_code
from tuner.core.errors import CandidateError, Stage
from tuner.core.interfaces import Artifact, Effort, Partition, Script
from tuner.core.problem import EPILOGUES, LAYOUTS, Matmul, Problem
from tuner.core.records import Measurement, Verdict
from tuner.core.round_quality import SHARE_LIMIT, round_quality
from tuner.payload.cpu import ENTRY, partition
from tuner.runtime.cpu.host import describe_machine, processors
from tuner.targets.cpu import evaluator as cpu_evaluator
from tuner.targets.cpu.baseline import LEAD_CALLS, InterleavedBaseline, InterleavedBaselineService
from tuner.targets.cpu.blas import CompiledLibraryMatmul
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator, LoadedKernel
from tuner.tuning.run_steps import noise_of

pytestmark = pytest.mark.mlir

POINTS = CpuPoints(describe_machine())
QUICK = Effort(budget_s=0.005, min_samples=3, max_samples=6)
CPU = CpuEvaluator(3)
COMPILER = CpuCompiler()


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def point_of(problem: Problem, threads: int = 1, split: str = "none") -> CpuPoint:
    """Returns some allowed point of the packed strategy that splits C as asked."""
    kind = KernelKind("matmul_cpu_packed", problem.dtype, problem.layout, problem.epilogue, threads)
    source = rng()
    for _ in range(200):
        candidate = POINTS.draw_again(kind, problem, source)
        if dict(candidate.choices)["split"] == split:
            return CpuPoint(problem, threads, candidate)
    raise LookupError(f"no point splits {problem.key} by {split}")


def artifact_of(problem: Problem, threads: int = 1, split: str = "none") -> Artifact:
    return COMPILER.compile(problem, POINTS.bind(point_of(problem, threads, split)))


# Each split with each layout and with each epilogue: random points meet the rest.
@pytest.mark.drawn(1)
@pytest.mark.parametrize(("layout", "epilogue"), [*zip(LAYOUTS, itertools.cycle(EPILOGUES))])
@pytest.mark.parametrize(("split", "threads"), [("m", 2), ("n", 3)])
def test_panels_of_several_threads_make_up_the_whole(
    layout: str, epilogue: str, split: str, threads: int
) -> None:
    problem = Problem("matmul", (67, 331, 23), "f32", layout, epilogue)
    artifact = artifact_of(problem, threads, split)
    assert len(artifact.partitions) == threads
    loaded = CPU.load(problem, artifact)
    for _ in range(3):
        assert CPU.verify(problem, loaded, rng()).elements == 67 * 331


@pytest.mark.drawn(2)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_panel_in_the_wrong_place_is_seen(layout: str) -> None:
    problem = Problem("matmul", (64, 384, 23), "f32", layout)
    artifact = artifact_of(problem, 2, "n")
    first, second = artifact.partitions
    assert first.entry == second.entry  # so that places can be swapped without leaving C
    loaded = CPU.load(problem, artifact)
    assert isinstance(loaded, LoadedKernel)
    once_more = replace(loaded, partitions=(first, first))
    with pytest.raises(CandidateError, match=r"of 24576 elements are wrong; .*found nan") as caught:
        CPU.verify(problem, once_more, rng())
    assert caught.value.stage == Stage.VERIFY


def test_a_kernel_above_the_probed_peak_is_verified_and_timed_again_and_not_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem, target, verified = Matmul(64, 64, 64), CpuEvaluator(1), []
    verify = CpuEvaluator.verify

    def recorded(
        evaluator: CpuEvaluator, problem: Problem, loaded: object, rng: np.random.Generator
    ) -> Verdict:
        verified.append(verify(evaluator, problem, loaded, rng))
        return verified[-1]

    monkeypatch.setattr(CpuEvaluator, "verify", recorded)
    monkeypatch.setattr(cpu_evaluator, "flop_per_s", lambda *_: 1.0)  # a probe that found almost nothing
    measurement = target.measure(problem, target.load(problem, artifact_of(problem)), QUICK, rng())
    assert [each.elements for each in verified] == [64 * 64]
    assert measurement.median_s > 0


def test_an_artifact_reports_its_panels_its_stages_and_its_hash() -> None:
    problem = Matmul(16, 64, 8)
    script = POINTS.bind(point_of(problem))
    one, again = COMPILER.compile(problem, script), CpuCompiler().compile(problem, script)
    assert one.sha256 == again.sha256
    assert one.partitions == (Partition(ENTRY, 0, 0, 16, 64),)
    assert [stage for stage, _ in one.stage_s] == ["transform", "lower"]
    assert all(seconds > 0 for _, seconds in one.stage_s)
    other = COMPILER.compile(replace(problem, sizes=(16, 64, 9)), POINTS.bind(point_of(Matmul(16, 64, 9))))
    assert other.sha256 != one.sha256


def test_a_script_for_more_threads_than_there_are_is_not_loaded() -> None:
    problem = Matmul(67, 331, 23)
    artifact = artifact_of(problem, 3, "n")
    with pytest.raises(CandidateError, match=r"^script wants 3 threads, allowed 2$") as caught:
        CpuEvaluator(2).load(problem, artifact)
    assert caught.value.stage == Stage.LOAD


def test_panels_that_reach_outside_are_refused_before_anything_is_compiled() -> None:
    script = Script.of("// panels: matmul 0 0 999 999\nmodule {}\n")
    with pytest.raises(CandidateError, match=r"allowed within C, 16 x 64") as caught:
        COMPILER.compile(Matmul(16, 64, 8), script)
    assert caught.value.stage == Stage.BIND


def test_a_vector_as_wide_as_the_matrix_is_refused_before_it_is_loaded() -> None:
    script = """module attributes {transform.with_named_sequence} {
      transform.named_sequence @__transform_main(%root: !transform.any_op) {
        %product = transform.structured.match ops{["linalg.matmul"]} in %root
          : (!transform.any_op) -> !transform.any_op
        transform.structured.vectorize %product : !transform.any_op
        %func = transform.structured.match ops{["func.func"]} in %root
          : (!transform.any_op) -> !transform.any_op
        %buffers = transform.bufferization.one_shot_bufferize %func
          : (!transform.any_op) -> !transform.any_op
        transform.yield
      }
    }"""
    reason = r"^vector<(1400|700)xf32> is (5600|2800) bytes wide, allowed 2048$"
    with pytest.raises(CandidateError, match=reason) as caught:
        COMPILER.compile(Matmul(1, 700, 2), Script.of(script))
    assert caught.value.stage == Stage.RESOURCES


def test_what_is_measured_is_a_time_of_this_machine() -> None:
    problem = Matmul(64, 64, 64)
    loaded = CPU.load(problem, artifact_of(problem))
    result = CPU.measure(problem, loaded, QUICK, rng())
    assert isinstance(result, Measurement)
    assert problem.flop / 2e12 < result.median_s < 1e-2  # no core does 2 TFLOP/s
    assert result.interval_s[0] <= result.median_s <= result.interval_s[1]


def test_kernels_timed_together_keep_their_order() -> None:
    problem = Matmul(128, 128, 128)
    quick = CPU.load(problem, artifact_of(problem))
    loops = Artifact(dishonest_code("honest", problem), "loops", partition(problem, 1, "none", 1))
    slow = CPU.load(problem, loops)
    times = CPU.measure_together(problem, (slow, quick, slow), QUICK, rng())
    assert len(times) == 3
    assert times[1].median_s < min(times[0].median_s, times[2].median_s)


@pytest.mark.slow
def test_the_baseline_are_interleaved_in_a_process_that_stands_still_between() -> None:
    problem = Matmul(64, 64, 64)
    target = CpuEvaluator(1)
    loaded = target.load(problem, artifact_of(problem))
    (library,) = target.load_baselines(problem, rng())
    baseline = library.work
    assert isinstance(baseline, InterleavedBaseline)
    kernel_time, baseline_time = target.measure_together(problem, (loaded, baseline), QUICK, rng())
    assert "openblas" in library.name.lower()
    assert target.baseline_threads == 1
    assert baseline_time.median_s > 0
    assert baseline_time.samples_s != kernel_time.samples_s
    assert Path(f"/proc/{baseline.process}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    assert target.load_baselines(problem, rng())[0].work is baseline  # it stays for the next time
    baseline.close()


def test_a_sample_of_the_baseline_is_led_by_calls_of_the_same_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []
    compute = CompiledLibraryMatmul.repeat

    def repeat(library: CompiledLibraryMatmul, times: int) -> None:
        calls.append(times)
        compute(library, times)

    monkeypatch.setattr(CompiledLibraryMatmul, "repeat", repeat)
    service = InterleavedBaselineService(Matmul(16, 16, 16), 1, 0)
    calls.clear()
    service.sample(5)
    assert calls == [LEAD_CALLS, 5]


@pytest.mark.slow
def test_what_the_caller_waits_for_its_baseline_is_no_disturbance(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count(0.0, 1e4)  # of a thread that waits more than three hours in each turn
    problem, target = Matmul(64, 64, 64), CpuEvaluator(1)
    loaded = target.load(problem, artifact_of(problem))
    baseline = target.load_baselines(problem, rng())[0].work
    assert isinstance(baseline, InterleavedBaseline)
    monkeypatch.setattr("tuner.targets.cpu.baseline.thread_waited_s", lambda: next(seconds))
    times = target.measure_together(problem, (loaded, baseline), QUICK, rng())
    assert baseline.waited_s >= 1e4
    assert times[0].host is not None
    assert times[0].host.waited_share == 0.0
    baseline.close()


@pytest.mark.slow
def test_a_baseline_that_dies_fails_the_turns() -> None:
    target = CpuEvaluator(1)
    problem = Matmul(64, 64, 64)
    baseline = target.load_baselines(problem, rng())[0].work
    assert isinstance(baseline, InterleavedBaseline)
    os.kill(baseline.process, signal.SIGKILL)
    while not baseline.has_ended:
        time.sleep(0.001)
    with pytest.raises(CandidateError, match="baseline: its process has ended"):
        baseline.take(1)
    with pytest.raises(CandidateError, match="baseline: its process has ended"):
        target.measure_together(problem, (baseline,), QUICK, rng())
    assert target.load_baselines(problem, rng())[0].work is not baseline


def test_a_time_reports_what_the_machine_did_meanwhile() -> None:
    problem = Matmul(64, 64, 64)
    loaded = CPU.load(problem, artifact_of(problem))
    CPU.verify(problem, loaded, rng())
    alone = CPU.measure(problem, loaded, QUICK, rng())
    together = CPU.measure_together(problem, (loaded, loaded), QUICK, rng())
    assert together[0].host == together[1].host
    for each in (alone, *together):
        assert each.host is not None
        assert 0 < each.host.anchor_s < 1
        assert each.host.anchor_drift >= 0


SPIN = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); print(flush=True)\nwhile True: pass"


@pytest.mark.slow
def test_times_next_to_a_busy_loop_on_the_same_processor_are_unreliable() -> None:
    problem = Matmul(64, 64, 64)
    (processor,) = processors(1)
    allowed = os.sched_getaffinity(0)
    loop = subprocess.Popen([sys.executable, "-c", SPIN, str(processor)], stdout=subprocess.PIPE)
    assert loop.stdout is not None
    loop.stdout.readline()
    try:
        target = CpuEvaluator(1, (processor,))
        loaded = target.load(problem, artifact_of(problem))
        effort = Effort(budget_s=0.2, min_samples=15, max_samples=200)
        first, again = target.measure_together(problem, (loaded, loaded), effort, rng())
    finally:
        loop.kill()
        loop.communicate()
        os.sched_setaffinity(0, allowed)
    assert first.host is not None
    assert first.host.waited_share > SHARE_LIMIT
    host = replace(first.host, stolen_share=0.0)  # what the hypervisor takes of a virtual machine comes first
    found = round_quality(noise_of(first, again), None, host, quietest_anchor_s=None, spare_cores=64)
    assert ": load, other programs kept " in found.unreliable


def test_a_early_stopped_kernel_is_given_up_early() -> None:
    problem = Matmul(64, 64, 64)
    loaded = CPU.load(problem, artifact_of(problem))
    result = CPU.measure(problem, loaded, replace(QUICK, stop_above_s=1e-9), rng())
    assert not result.is_complete
    assert len(result.samples_s) <= 2  # one, if that was long


@pytest.mark.slow
def test_problems_may_are_interleaved_on_one_evaluator() -> None:
    for problem in (
        Matmul(16, 64, 8),
        Matmul(8, 32, 8, "f64"),
        Matmul(16, 64, 8),
        Matmul(16, 64, 8, "f32", "nt"),
    ):
        loaded = CPU.load(problem, artifact_of(problem))
        assert CPU.verify(problem, loaded, rng()).max_error <= 1.0
