"""Small problems on the CPU: panels, artifacts, verdicts and times."""

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.epilogues import EPILOGUES
from tests.fakes import state_of
from tests.support.fuzzing.cpu_points import CpuPoint, CpuPoints, KernelKind
from tests.support.llvm_tools import NEEDS_MLIR_OPT, apply_by_stock
from tests.targets.cpu.dishonest_kernels import KERNELS, dishonest_artifact
from tests.targets.evaluation import fails, rng
from tests.texts import text_beside
from tests.tuning.fakes import present
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import CandidateError, Stage
from tuner.core.interfaces import Artifact, Effort, Partition, Script
from tuner.core.machine import Machine
from tuner.core.matmul import Matmul
from tuner.core.problem import LAYOUTS, Problem
from tuner.core.problem_classes import MatmulProblem
from tuner.core.records import Measurement, Verdict
from tuner.core.round_quality import SHARE_LIMIT, round_quality
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu import lowering
from tuner.mlir.cpu.batch_loops import with_batch_loops
from tuner.payload.cpu import ENTRY, matrix_bytes, payload_mlir
from tuner.payload.partitions import partitions_in
from tuner.runtime.cpu.host import describe_machine, processors
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.runtime.workers.services import evaluate
from tuner.space.scripts.header import custom_ops
from tuner.targets.arrays import ProblemArrays
from tuner.targets.cpu import evaluator as cpu_evaluator
from tuner.targets.cpu.baseline import LEAD_CALLS, InterleavedBaseline, InterleavedBaselineService
from tuner.targets.cpu.blas import CompiledLibraryMatmul
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator
from tuner.targets.cpu.loaded_kernel import LoadedKernel
from tuner.targets.cpu.timing_checks import TimingChecks
from tuner.tuning.remeasurement import noise_of

pytestmark = pytest.mark.mlir

POINTS = CpuPoints(describe_machine())
QUICK = Effort(budget_s=0.005, min_samples=3, max_samples=6)
TIMED = Matmul(64, 64, 64)
CPU = CpuEvaluator(3)
COMPILER = CpuCompiler()


def point_of(problem: Problem, threads: int = 1, split: str = "none") -> CpuPoint:
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
def test_panels_of_threads_make_up_the_whole(layout: str, epilogue: str, split: str, threads: int) -> None:
    problem = MatmulProblem("matmul", (67, 331, 23), "f32", layout, epilogue)
    artifact = artifact_of(problem, threads, split)
    assert len(artifact.partitions) == threads
    loaded = CPU.load(problem, artifact)
    for _ in range(3):
        assert CPU.verify(problem, loaded, rng()).elements == 67 * 331


@pytest.mark.drawn(2)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_panel_in_the_wrong_place_is_seen(layout: str) -> None:
    problem = MatmulProblem("matmul", (64, 384, 23), "f32", layout)
    artifact = artifact_of(problem, 2, "n")
    first, second = artifact.partitions
    assert first.entry == second.entry  # so that places can be swapped without leaving C
    loaded = CPU.load(problem, artifact)
    assert isinstance(loaded, LoadedKernel)
    once_more = replace(loaded, parts=(loaded.parts[0], loaded.parts[0]))
    with fails(Stage.VERIFY, match=r"of 24576 elements are wrong; .*found nan"):
        CPU.verify(problem, once_more, rng())


def test_a_kernel_above_the_probed_peak_is_verified_and_timed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    target, verified, verify = CpuEvaluator(1), list[Verdict](), CpuEvaluator.verify

    def recorded(*arguments: Any) -> Verdict:
        verified.append(verify(*arguments))
        return verified[-1]

    monkeypatch.setattr(CpuEvaluator, "verify", recorded)
    monkeypatch.setattr(cpu_evaluator, "flop_per_s", lambda *_: 1.0)  # a probe that found almost nothing
    measurement = target.measure(TIMED, target.load(TIMED, artifact_of(TIMED)), QUICK, rng())
    assert [each.elements for each in verified] == [64 * 64]
    assert measurement.median_s > 0


def test_an_artifact_reports_its_panels_its_stages_and_its_hash() -> None:
    problem = Matmul(16, 64, 8)
    script = POINTS.bind(point_of(problem))
    one, again = COMPILER.compile(problem, script), CpuCompiler().compile(problem, script)
    assert (one.sha256, one.partitions) == (again.sha256, (Partition(ENTRY, 0, 0, 16, 64),))
    assert [stage for stage, _ in one.stage_s] == ["transform", "lower"]
    assert all(seconds > 0 for _, seconds in one.stage_s)
    other = COMPILER.compile(replace(problem, sizes=(16, 64, 9)), POINTS.bind(point_of(Matmul(16, 64, 9))))
    assert other.sha256 != one.sha256


def test_panels_outside_of_c_too_wide_vectors_and_too_many_threads_fail_before_anything_runs() -> None:
    script = Script.of("// panels: matmul 0 0 999 999\nmodule {}\n")
    with fails(Stage.BIND, match=r"allowed within C, 16 x 64"):
        COMPILER.compile(Matmul(16, 64, 8), script)
    problem = Matmul(67, 331, 23)
    artifact = artifact_of(problem, 3, "n")
    with fails(Stage.LOAD, match=r"^script wants 3 threads, allowed 2$"):
        CpuEvaluator(2).load(problem, artifact)
    with fails(Stage.RESOURCES, match=r"^vector<(1400|700)xf32> is (5600|2800) bytes wide, allowed 2048$"):
        COMPILER.compile(Matmul(1, 700, 2), Script.of(text_beside(__file__, "WHOLE_ROWS")))


def test_a_time_is_one_of_this_machine_and_reports_what_the_machine_did_meanwhile() -> None:
    loaded = CPU.load(TIMED, artifact_of(TIMED))
    alone = CPU.measure(TIMED, loaded, QUICK, rng())
    together = CPU.measure_together(TIMED, (loaded, loaded), QUICK, rng())
    assert TIMED.flop / 2e12 < alone.median_s < 1e-2  # no core does 2 TFLOP/s
    assert alone.interval_s[0] <= alone.median_s <= alone.interval_s[1]
    assert together[0].host == together[1].host
    for host in (present(each.host) for each in (alone, *together)):
        assert 0 < host.reference_s < 1
        assert host.reference_drift >= 0
    stopped = CPU.measure(TIMED, loaded, replace(QUICK, stop_above_s=1e-9), rng())
    assert not stopped.is_complete
    assert len(stopped.samples_s) <= 2  # one, if that was long


def test_kernels_timed_together_keep_their_order() -> None:
    problem = Matmul(128, 128, 128)
    quick = CPU.load(problem, artifact_of(problem))
    slow = CPU.load(problem, dishonest_artifact("honest", problem))
    times = CPU.measure_together(problem, (slow, quick, slow), QUICK, rng())
    assert len(times) == 3
    assert times[1].median_s < min(times[0].median_s, times[2].median_s)


def interleaved(target: CpuEvaluator) -> InterleavedBaseline:
    """Returns the baseline of TIMED, which ``target`` keeps for the next time."""
    (library,) = target.load_baselines(TIMED, rng())
    assert "openblas" in library.name.lower()
    assert isinstance(library.work, InterleavedBaseline)
    return library.work


def test_the_baseline_are_interleaved_in_a_process_that_stands_still_between() -> None:
    target = CpuEvaluator(1)
    loaded, baseline = target.load(TIMED, artifact_of(TIMED)), interleaved(target)
    kernel_time, baseline_time = target.measure_together(TIMED, (loaded, baseline), QUICK, rng())
    assert target.baseline_threads == 1
    assert baseline_time.median_s > 0
    assert baseline_time.samples_s != kernel_time.samples_s
    assert state_of(baseline.process) == "T"
    assert interleaved(target) is baseline
    baseline.close()


def test_calls_of_the_same_request_lead_a_sample_of_the_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
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
    target = CpuEvaluator(1)
    loaded, baseline = target.load(TIMED, artifact_of(TIMED)), interleaved(target)
    monkeypatch.setattr("tuner.targets.cpu.baseline.thread_waited_s", lambda: next(seconds))
    times = target.measure_together(TIMED, (loaded, baseline), QUICK, rng())
    assert baseline.waited_s >= 1e4
    assert present(times[0].host).waited_share == 0.0
    baseline.close()


def test_a_baseline_that_dies_fails_the_turns() -> None:
    target = CpuEvaluator(1)
    baseline = interleaved(target)
    os.kill(baseline.process, signal.SIGKILL)
    while not baseline.has_ended:
        time.sleep(0.001)
    together = partial(target.measure_together, TIMED, (baseline,), QUICK, rng())
    for use in (partial(baseline.take, 1), together):
        with pytest.raises(CandidateError, match="its process has ended"):
            use()
    assert interleaved(target) is not baseline


SPIN = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); print(flush=True)\nwhile True: pass"


@pytest.mark.slow
def test_times_next_to_a_busy_loop_on_the_same_processor_are_unreliable() -> None:
    (processor,) = processors(1)
    loop = subprocess.Popen([sys.executable, "-c", SPIN, str(processor)], stdout=subprocess.PIPE)
    assert loop.stdout is not None
    loop.stdout.readline()
    try:
        target = CpuEvaluator(1, (processor,))
        loaded = target.load(TIMED, artifact_of(TIMED))
        effort = Effort(budget_s=0.2, min_samples=15, max_samples=200)
        first, again = target.measure_together(TIMED, (loaded, loaded), effort, rng())
    finally:
        loop.kill()
        loop.communicate()
    host = present(first.host)
    assert host.waited_share > SHARE_LIMIT
    host = replace(host, stolen_share=0.0)  # what the hypervisor takes of a virtual machine comes first
    found = round_quality(noise_of(first, again), None, host, quietest_reference_s=None, spare_cores=64)
    assert ": load, other programs kept " in found.reliability.unreliable


# Kernels that cheat, through the judge and wherever a timing ends: none gets a time, right ones do.
SMALL = Matmul(4, 16, 8)  # many calls a sample
LARGE = Matmul(192, 192, 192)  # one call a sample
COLD = replace(SMALL, cache="cold")
EFFORT = Effort(budget_s=0.02, min_samples=15)  # also on a loaded machine, so that each seventh call comes

# Right in the first calls, or only where inputs change within a sample: a large problem has too few calls.
OF_MANY_CALLS = ("lazy_after_20", "lazy_at_random", "packs_b_once", "wrong_from_15")
ELSEWHERE = ("honest", "small_is_zero", "starts_a_process")
CHEATS = [name for name in KERNELS if name not in ELSEWHERE]


def evaluated(name: str, problem: Problem) -> Measurement:
    reply = evaluate(CpuEvaluator(1), problem, dishonest_artifact(name, problem), EFFORT, rng())
    assert isinstance(reply.value, Measurement)
    return reply.value


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("problem", "name"),
    [(problem, name) for problem in (SMALL, COLD) for name in CHEATS]
    + [(LARGE, name) for name in CHEATS if name not in OF_MANY_CALLS],
    ids=str,
)
def test_a_kernel_that_cheats_gets_no_time(problem: Problem, name: str) -> None:
    reason = r"elements are wrong|left an element of C unwritten in \d+ of \d+ calls|started 1 threads"
    with fails(Stage.RUN if name == "starts_a_thread" else Stage.VERIFY, match=reason):
        evaluated(name, problem)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("problem", [SMALL, LARGE, COLD], ids=["small", "large", "cold"])
def test_an_honest_kernel_does(problem: Problem) -> None:
    assert evaluated("honest", problem).median_s > 0


def top_times(name: str) -> tuple[Measurement, ...]:
    target = CpuEvaluator(1)
    loaded = tuple(target.load(SMALL, dishonest_artifact(each, SMALL)) for each in (name, "honest"))
    return target.measure_together(SMALL, loaded, EFFORT, rng())


@pytest.mark.slow
def test_a_top_trial_that_reads_small_numbers_as_zeros_is_found_out() -> None:
    assert evaluated("small_is_zero", SMALL).median_s > 0  # usual draws have none
    with fails(Stage.VERIFY, match="elements looked at are wrong"):
        top_times("small_is_zero")


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", ["filled_is_done", "lazy_after_20", "wrong_each_7th", "packs_b_once"])
def test_a_top_trial_that_cheats_gets_no_time(name: str) -> None:
    with pytest.raises(CandidateError, match=r"elements (looked at )?are wrong|unwritten in|NaN or infinite"):
        top_times(name)


PROBLEM = Matmul(5, 16, 8)


def watched(name: str, tick_s: float = 1.0) -> TimingChecks:
    kernel = CpuEvaluator(1).load(PROBLEM, dishonest_artifact(name, PROBLEM))
    assert isinstance(kernel, LoadedKernel)
    arrays = ProblemArrays(PROBLEM, rng())
    clock = partial(next, itertools.count(1.0, tick_s))
    return TimingChecks(ThreadTeam(1), kernel.calls(arrays.operands), arrays, rng(), clock)


def test_a_sample_is_the_time_of_its_calls_whose_number_is_not_foreseen() -> None:
    take = watched("honest")
    assert [take(1) for _ in range(30)] == [1.0] * 30
    assert len({take(1000) for _ in range(5)}) > 1


def test_a_short_sample_follows_an_untimed_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing reads more than a call: with a large L3 the next call would get its operands from memory."""
    done: list[str] = []
    for owner, name in ((ProblemArrays, "evaluate"), (ThreadTeam, "repeat"), (ThreadTeam, "watch")):
        original = getattr(owner, name)

        def noted(*args: Any, name: str = name, original: Callable[..., Any] = original) -> Any:
            done.append(name)
            return original(*args)

        monkeypatch.setattr(owner, name, noted)
    take = watched("honest", tick_s=0.001)
    for _ in range(30):
        take(1)
    _, *leads = (before for before, then in itertools.pairwise(done) if then == "watch")
    assert leads == ["repeat"] * 29  # of a first sample it is not known yet whether it is short


def test_a_kernel_that_writes_nothing_or_is_wrong_late_is_seen() -> None:
    with fails(Stage.VERIFY, match=r"^left an element of C unwritten in \d+ of \d+ calls$"):
        watched("filled_is_done")(1000)
    take = watched("wrong_from_15")
    for _ in range(5):
        take(1)
    with fails(Stage.VERIFY, match=r"^1 of 80 elements are wrong"):
        take(20)


CALIBRATING = 3  # calls before the first sample: one that is compared, two that are looked at
SECOND = 1.0  # that every sample seems to take
ENDS = {
    "stopped at 1": (Effort(stop_above_s=SECOND / 3), 1),
    "stopped at 3": (Effort(stop_above_s=SECOND * 0.9), 3),
    "out of time at once": (Effort(budget_s=0.0, min_samples=1), 1),
    "least samples": (Effort(budget_s=0.0, min_samples=5), 5),
    "most samples": (Effort(budget_s=99.0, max_samples=17), 17),
    "out of time at 18": (Effort(budget_s=17.5, min_samples=1), 18),
}


def timed(name: str, end: str, monkeypatch: pytest.MonkeyPatch) -> Measurement:
    """Times a kernel, then verifies it on the same arrays."""
    ticks = partial(next, itertools.count(0.0, SECOND))
    monkeypatch.setattr(cpu_evaluator, "TimingChecks", partial(TimingChecks, clock=ticks))
    target, source = CpuEvaluator(1), rng()
    loaded = target.load(PROBLEM, dishonest_artifact(name, PROBLEM))
    found = target.measure(PROBLEM, loaded, ENDS[end][0], source)
    if name == "honest":
        target.verify(PROBLEM, loaded, source)
    return found


@pytest.mark.drawn(2)
@pytest.mark.parametrize("end", ENDS)
def test_a_right_kernel_is_timed_wherever_the_timing_ends(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = timed("honest", end, monkeypatch)
    assert len(found.samples_s) == ENDS[end][1]
    assert found.is_complete == (not end.startswith("stopped"))


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_a_kernel_that_has_grown_lazy_by_then_gets_no_time(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in (("lazy_after_2", 2), ("lazy_after_20", 20)):
        if CALIBRATING + ENDS[end][1] <= limit:  # each of its calls was a right one
            assert timed(name, end, monkeypatch).samples_s
            continue
        with fails(Stage.VERIFY, match=r"elements are wrong|unwritten in 1 of 1 calls"):
            timed(name, end, monkeypatch)


# Stock ``mlir-opt`` runs the scripts of every strategy that calls no op of this project's own.
AVX512 = Machine("any", "any", "avx512", True, 2, 2, 49152, 1 << 20, 1 << 25, 1 << 34)
ANYWHERE = CpuPoints(AVX512)
STOCK = ("matmul_cpu_packed", "matmul_cpu_direct", "matmul_cpu_dot")
FEW = 5  # of the kinds: every fifth, with two threads others than with one; what runs, in turn
TRIES = 50  # until a point calls no op of our own


def kinds_of(points: CpuPoints, strategy: str, threads: int) -> list[KernelKind]:
    return [kind for kind in points.kinds(threads) if kind.strategy == strategy]


def stock_point(points: CpuPoints, kind: KernelKind) -> tuple[CpuPoint, Script]:
    source = rng()
    for _ in range(TRIES):
        point = points.draw(kind, source)
        script = points.bind(point)
        if not custom_ops(script.text):
            return point, script
    raise LookupError(f"{kind}: every point calls an op of our own")


def stock_payload(point: CpuPoint, script: Script, folder: Path) -> str:
    payload = payload_mlir(point.problem, partitions_in(script.text, point.problem))
    done = apply_by_stock(script.text, payload, folder)
    assert done.returncode == 0, f"{point.text}\n{done.stderr}"
    return done.stdout


@NEEDS_MLIR_OPT
@pytest.mark.slow
@pytest.mark.parametrize("strategy", STOCK)
@pytest.mark.parametrize("threads", [1, 2])
def test_mlir_opt_vectorizes_kinds_of_problems(strategy: str, threads: int, tmp_path: Path) -> None:
    kinds = kinds_of(ANYWHERE, strategy, threads)
    assert kinds
    for kind in kinds[threads - 1 :: FEW]:
        text = stock_payload(*stock_point(ANYWHERE, kind), tmp_path)
        assert "linalg.matmul" not in text
        assert "vector." in text


@pytest.mark.slow
@NEEDS_MLIR_OPT
@pytest.mark.drawn(1)
@pytest.mark.skipif(not POINTS.kinds(1), reason="this processor has neither AVX-512 nor AVX2")
@pytest.mark.parametrize("strategy", STOCK)
@pytest.mark.parametrize("threads", [1, 2])
def test_what_mlir_opt_makes_is_right(strategy: str, threads: int, tmp_path: Path) -> None:
    """Lowered and run here: the other compiler's transforms give the right numbers."""
    evaluator = CpuEvaluator(threads)
    for kind in kinds_of(POINTS, strategy, threads)[FEW * (threads - 1) :: 8 * FEW]:
        point, script = stock_point(POINTS, kind)
        text = stock_payload(point, script, tmp_path)
        with transform.new_context(), ir.Location.unknown():
            code = lowering.lower_to_llvm(transform.parse(text, "mlir-opt"))
        partitions = partitions_in(script.text, point.problem)
        code = with_batch_loops(code, partitions, matrix_bytes(point.problem))
        loaded = evaluator.load(point.problem, Artifact(KernelCode.of_host(code), "stock", partitions))
        assert evaluator.verify(point.problem, loaded, rng()).max_error <= 1.0


@NEEDS_MLIR_OPT
def test_mlir_opt_does_not_know_this_projects_ops(tmp_path: Path) -> None:
    """So the header of such a script must say how to run it."""
    point = ANYWHERE.draw(KernelKind("matmul_cpu_pairs", "bf16", "nn", "none", 1), rng())
    script = ANYWHERE.bind(point)
    assert custom_ops(script.text) == ("tuner.pair_block",)
    with pytest.raises(AssertionError, match=r"tuner\.pair_block"):
        stock_payload(point, script, tmp_path)
