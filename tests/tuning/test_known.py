import dataclasses

from tests.fakes import FakeTarget
from tests.tuning import fakes
from tuner.chips import CHIPS
from tuner.db.store import Store
from tuner.kernel import KernelProgram, Resources
from tuner.machine import gpu_machine
from tuner.problem import Matmul, Problem
from tuner.record import Record, Verdict
from tuner.runs import RunSettings
from tuner.space import Candidate
from tuner.tuning.known import known_resources

GPU = gpu_machine("simulator", CHIPS["sm_90"], "simulated")
PROBLEM = Matmul(64, 64, 64, "f16")


def kernel(registers: int, shared_bytes: int) -> Resources:
    return Resources("k", registers, 0, 0, 0, shared_bytes, 0, 0.5, 4)


def gpu_settings(problem: Problem = PROBLEM) -> RunSettings:
    return fakes.settings(problem=problem, target="simulator:sm_90")


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
        target="simulator:sm_90",
        outcome=Verdict(0.1, 4),
        artifact_sha256=f"hash {x}",
        resources=kernels,
        program=program,
    )
    store.record(trial, record, "")
    return candidate


def test_of_compiled_candidates_the_kernel_that_multiplies_is_known(store: Store) -> None:
    candidate = compiled(store, Matmul(32, 32, 32, "f16"), 1, "sm_90", kernel(200, 0), kernel(128, 49152))
    assert known_resources(gpu_settings(), GPU, store) == {candidate: kernel(128, 49152)}


def test_other_chips_types_and_layouts_tell_nothing(store: Store) -> None:
    compiled(store, PROBLEM, 1, "sm_80", kernel(128, 0))
    compiled(store, Matmul(64, 64, 64, "bf16"), 2, "sm_90", kernel(128, 0))
    compiled(store, Matmul(64, 64, 64, "f16", "nt"), 3, "sm_90", kernel(128, 0))
    assert known_resources(gpu_settings(), GPU, store) == {}
    assert known_resources(fakes.settings(), fakes.MACHINE, store) == {}
