"""CUDA's ports in their processes, on a stand-in for libcuda: one lost context takes only its candidate."""

import re
from collections.abc import Iterator

import pytest

from tests.mlir.gpu_matmul import gpu_script
from tests.targets.gpu.stub_cuda import FEW, stub_factory
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import Failure, Stage
from tuner.core.interfaces import BoundRecord, Effort, Script
from tuner.core.problem import Matmul
from tuner.core.records import Measurement, Record
from tuner.runtime.workers.protocol import Limits
from tuner.runtime.workers.runner import RunnerOrder, RunnerProcesses, WorkerRunner
from tuner.runtime.workers.services import compile_spec, evaluation_spec

pytestmark = pytest.mark.mlir

PROBLEM = Matmul(16, 8, 8)
BRIEF = Effort(budget_s=0.0, min_samples=2)
CUDA = TargetName("cuda", "sm_90")
LIMITS = Limits(compile_timeout_s=60.0, evaluation_timeout_s=60.0, memory_bytes=2 << 30)


def candidate(deed: str = "", number: int = 0) -> Candidate:
    return Candidate.of("by_hand", {"deed": deed, "number": number})


def bind(chosen: Candidate) -> Script:
    knobs = dict(chosen.choices)
    deed = f"// deed: {knobs['deed']}\n" * bool(knobs["deed"])
    return Script.of(f"{deed}// number: {knobs['number']}\n{gpu_script(block=8, depth=8, tile=2)}")


def bound(record: Record) -> BoundRecord:
    return BoundRecord(record, bind(record.candidate))


@pytest.fixture(scope="module")
def runner() -> Iterator[WorkerRunner]:
    order = RunnerOrder(PROBLEM, CUDA, bind, lambda _s, _c: None)
    factory = stub_factory()
    made = WorkerRunner(order, RunnerProcesses(compile_spec(factory), evaluation_spec(factory), 1, LIMITS), 0)
    yield made
    made.close()


def run(runner: WorkerRunner, *candidates: Candidate) -> list[Record]:
    for number, chosen in enumerate(candidates):
        runner.start(number, chosen, BRIEF)
    return [runner.finish().record for _ in candidates]


@pytest.mark.slow
def test_a_right_program_is_verified_and_timed_through_the_driver(runner: WorkerRunner) -> None:
    (record,) = run(runner, candidate())
    assert isinstance(record.outcome, Measurement), record.outcome
    assert record.verdict is not None
    assert record.verdict.elements == 16 * 8
    assert record.outcome.cold_median_s is not None
    assert record.outcome.cold_median_s > 0
    assert record.resources == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        ("beyond", "CUDA_ERROR_LAUNCH_FAILED"),
        ("lost at load", "cuModuleLoadData: .*CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("lost while timed", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        # in a new process: in that of the candidates before it the problem has its memory
        (
            "no memory",
            r"^0\.00 GiB of GPU memory for matmul 16x8x8 .* are not free: CUDA_ERROR_OUT_OF_MEMORY$",
        ),
    ],
)
def test_after_a_lost_context_or_a_lack_of_memory_the_next_candidate_is_timed(
    runner: WorkerRunner, deed: str, reason: str
) -> None:
    if deed == "no memory":
        run(runner, candidate("beyond"))
    failed, honest = run(runner, candidate(deed), candidate(number=1))
    assert isinstance(failed.outcome, Failure), failed.outcome
    assert failed.outcome.stage is Stage.RUN
    assert re.search(reason, failed.outcome.reason), failed.outcome.reason
    assert isinstance(honest.outcome, Measurement), honest.outcome


@pytest.mark.slow
def test_top_trials_are_interleaved_and_a_broken_one_takes_no_other_with_it(runner: WorkerRunner) -> None:
    (right,) = run(runner, candidate(number=2))
    broken = Record(PROBLEM, candidate("beyond"), CUDA, right.outcome)
    found = runner.remeasure((bound(right), bound(broken)), BRIEF)
    assert [time is None for time in found.times] == [False, True]
    assert found.baseline is None  # it did not take part again


@pytest.mark.slow
def test_cublas_are_interleaved_with_the_top_trials(runner: WorkerRunner) -> None:
    (right,) = run(runner, candidate(number=3))
    found = runner.remeasure((bound(right), bound(right)), BRIEF)
    assert found.baseline is not None
    assert found.baseline.name == "cuBLAS 13.1.2"
    times = [*found.times, found.baseline.measurement]
    assert [time is not None and len(time.samples_s) == FEW for time in times] == [True] * 3
    assert found.baseline.measurement.cold_median_s is not None
