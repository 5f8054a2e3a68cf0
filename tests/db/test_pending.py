import hashlib
from dataclasses import replace

import pytest

from tests.db.values import COMPILER, SETTINGS
from tests.library.bundle.values import GPU, PROBLEM, SCRIPT, program
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import Failure, Stage
from tuner.core.gpu import chip_of
from tuner.core.gpu_code import KernelProgram, code_sha256
from tuner.core.machine import Machine, gpu_machine
from tuner.core.problem import Matmul, Problem
from tuner.core.records import Measurement, Record, Verdict
from tuner.core.runs import TaskQuery, TrialQuery
from tuner.db.store import Store

SIMULATOR = gpu_machine("simulator", chip_of("sm_90"), "PTX simulator")
NO_GPU = gpu_machine("cuda", chip_of("sm_90"), "NVIDIA GPU")
RIGHT = Verdict(0.5, 128, ("whole",))
COMPILED_ONLY = Failure(Stage.LOAD, "compiled only: no GPU")
TIMED = Measurement((1e-3,), 1, 1e-3, (1e-3, 1e-3))


def run_of(
    store: Store, target: str = "simulator:sm_90", machine: Machine = SIMULATOR, problem: Problem = PROBLEM
) -> int:
    settings = replace(SETTINGS, target=TargetName.parse(target), problem=problem)
    return store.begin_run(settings, machine, COMPILER, "0.1.0", None)


def add(
    store: Store,
    run: int,
    number: int,
    outcome: Verdict | Failure | Measurement = RIGHT,
    code: KernelProgram | None = None,
    script: str = SCRIPT,
) -> int:
    """Stores a trial whose code is its number's."""
    settings = store.run(run).settings
    made = program(f"//\n.version 8.0 // {number}") if code is None else code
    candidate = Candidate.of("by_hand", {"number": number})
    trial = store.propose(run, number, 10 + number, candidate)
    sha256 = hashlib.sha256(script.encode()).hexdigest()
    record = Record(
        settings.problem, candidate, settings.target, outcome, sha256, code_sha256(made), program=made
    )
    store.record(trial, record, script)
    return trial


def numbers(store: Store, query: TrialQuery = TrialQuery()) -> list[int]:  # noqa: B008 - frozen
    return [trial.origin.number for trial in store.pending(query)]


def test_what_the_simulator_found_right_is_pending_with_all_that_it_needs(store: Store) -> None:
    trial = add(store, run_of(store), 3)
    (found,) = store.pending(TrialQuery())
    assert (found.id, found.origin.number, found.verdict) == (trial, 3, RIGHT)
    assert (found.problem, found.target, found.script_text) == (PROBLEM, "simulator:sm_90", SCRIPT)
    assert found.program == program("//\n.version 8.0 // 3")
    assert code_sha256(found.program) == found.artifact_sha256


def test_what_was_only_compiled_is_pending_after_what_was_verified(store: Store) -> None:
    add(store, run_of(store, "cuda:sm_90", NO_GPU), 0, COMPILED_ONLY)
    add(store, run_of(store), 1)
    found = store.pending(TrialQuery())
    assert [(trial.origin.number, trial.verdict is None) for trial in found] == [(1, False), (0, True)]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("target", "machine", "outcome"),
    [
        ("simulator:sm_90", SIMULATOR, Failure(Stage.VERIFY, "wrong")),
        ("cuda:sm_90", NO_GPU, Failure(Stage.RESOURCES, "too many registers")),
        ("cuda:sm_90", GPU, Failure(Stage.LOAD, "no image")),
        ("cuda:sm_90", GPU, TIMED),
    ],
)
def test_nothing_else_is_pending(
    store: Store, target: str, machine: Machine, outcome: Failure | Measurement
) -> None:
    add(store, run_of(store, target, machine), 0, outcome)
    assert numbers(store) == []


def test_equal_code_of_a_problem_is_pending_once(store: Store) -> None:
    run = run_of(store)
    same = program("//\n.version 8.0 // same")
    for number in range(3):
        add(store, run, number, code=same)
    add(store, run_of(store, problem=Matmul(32, 8, 8)), 7, code=same)
    assert numbers(store) == [0, 7]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("outcome", "is_pending"),
    [
        (TIMED, False),
        (Failure(Stage.VERIFY, "wrong"), False),
        (Failure(Stage.RUN, "timed out"), True),  # may have been the machine's
    ],
)
def test_what_a_gpu_has_evaluated_is_no_longer_pending(
    store: Store, outcome: Measurement | Failure, is_pending: bool
) -> None:
    add(store, run_of(store), 0)
    add(store, run_of(store, "cuda:sm_90", GPU), 5, outcome, code=program("//\n.version 8.0 // 0"))
    assert bool(numbers(store)) == is_pending


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("target", "problem"), [("cuda:sm_80", PROBLEM), ("cuda:sm_90", Matmul(32, 8, 8))])
def test_times_of_another_chip_or_problem_leave_it_pending(
    store: Store, target: str, problem: Problem
) -> None:
    add(store, run_of(store), 0)
    add(store, run_of(store, target, GPU, problem), 0, TIMED, code=program("//\n.version 8.0 // 0"))
    assert numbers(store) == [0]


def test_code_of_the_same_script_counts_as_evaluated(store: Store) -> None:
    """The driver did not take the machine code and compiled the PTX."""
    add(store, run_of(store), 0, script="// one\n")
    add(store, run_of(store, "cuda:sm_90", GPU), 5, TIMED, program("other"), "// one\n")
    assert numbers(store) == []


def test_a_query_chooses_and_its_limit_counts_what_is_returned(store: Store) -> None:
    run, other = run_of(store), run_of(store, problem=Matmul(32, 8, 8))
    same = program("//\n.version 8.0 // same")
    for number in range(3):
        add(store, run, number, code=same)
    add(store, run, 3)
    add(store, other, 4)
    assert numbers(store, TrialQuery(run=run)) == [0, 3]
    assert numbers(store, TrialQuery(TaskQuery(shape="32x8x8"))) == [4]
    assert numbers(store, TrialQuery(limit=2)) == [0, 3]
