import dataclasses

import pytest

from tests.fakes import FakeTarget
from tests.tuning import fakes
from tuner.core.candidate import Candidate, TargetName
from tuner.core.gpu import CHIPS
from tuner.core.gpu_code import KernelProgram, Resources
from tuner.core.machine import gpu_machine
from tuner.core.problem import Matmul, Problem
from tuner.core.records import Record, Verdict
from tuner.core.runs import Run, RunSettings
from tuner.db.store import Store
from tuner.tuning.earlier_results import EarlierRuns

GPU = gpu_machine("simulator", CHIPS["sm_90"], "simulated")
PROBLEM = Matmul(64, 64, 64, "f16")


def kernel(registers: int, shared_bytes: int) -> Resources:
    return Resources("k", registers, 0, 0, 0, shared_bytes, 0, 0.5, 4)


def gpu_settings(problem: Problem = PROBLEM) -> RunSettings:
    return fakes.settings(problem=problem, target=TargetName("simulator", "sm_90"))


def compiled(store: Store, problem: Problem, x: int, chip: str, *kernels: Resources) -> Candidate:
    """Stores a verified trial of a run of its own, with what ptxas told of it."""
    machine = dataclasses.replace(GPU, chip=chip)
    run = store.begin_run(gpu_settings(problem), machine, FakeTarget().compiler(), "0.1.0", None)
    candidate = Candidate.of("fake", {"x": x})
    trial = store.propose(run, 0, x, candidate)
    program = KernelProgram(chip, f"code {x}", b"elf", (), (), kernels)
    record = Record(
        problem=problem,
        candidate=candidate,
        target=TargetName("simulator", "sm_90"),
        outcome=Verdict(0.1, 4),
        artifact_sha256=f"hash {x}",
        resources=kernels,
        program=program,
    )
    store.record(trial, record, "")
    return candidate


def test_of_compiled_candidates_the_kernel_that_multiplies_is_known(store: Store) -> None:
    candidate = compiled(store, Matmul(32, 32, 32, "f16"), 1, "sm_90", kernel(200, 0), kernel(128, 49152))
    assert EarlierRuns(store).known_resources(gpu_settings(), GPU) == {candidate: kernel(128, 49152)}


def test_other_chips_types_and_layouts_report_nothing(store: Store) -> None:
    compiled(store, PROBLEM, 1, "sm_80", kernel(128, 0))
    compiled(store, Matmul(64, 64, 64, "bf16"), 2, "sm_90", kernel(128, 0))
    compiled(store, Matmul(64, 64, 64, "f16", "nt"), 3, "sm_90", kernel(128, 0))
    assert EarlierRuns(store).known_resources(gpu_settings(), GPU) == {}
    assert EarlierRuns(store).known_resources(fakes.settings(), fakes.MACHINE) == {}


def test_runs_are_read_once_and_only_when_somebody_asks(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(store, PROBLEM, 1, "sm_90", kernel(128, 0))
    reads, runs = [], store.runs

    def read() -> tuple[Run, ...]:
        reads.append(1)
        return runs()

    monkeypatch.setattr(store, "runs", read)
    cold = dataclasses.replace(gpu_settings(), warm_start=False)
    earlier = EarlierRuns(store)
    assert earlier.known_tasks(cold, fakes.MACHINE) == ()
    assert earlier.known_resources(cold, fakes.MACHINE) == {}
    assert reads == []
    earlier.known_tasks(dataclasses.replace(cold, warm_start=True), GPU)
    assert earlier.known_resources(cold, GPU) != {}
    assert reads == [1]
