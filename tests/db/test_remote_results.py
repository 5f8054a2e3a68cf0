from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.db.values import COMPILER, SETTINGS, sha256
from tests.elsewhere.bundle.values import GPU, PROBLEM, PROVENANCE, SCRIPT, WRONG, program, result, timed
from tuner.core.candidate import Candidate, TargetName
from tuner.core.compiled_code import KernelCode, code_sha256
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.gpu import chip_of
from tuner.core.machine import Machine, gpu_machine
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.queries import Imported, TaskQuery, TrialQuery
from tuner.core.records import Measurement, Record, Verdict
from tuner.core.remote_results import (
    BINARY,
    TEXT,
    BaselineTime,
    FinalTime,
    MeasuredTrial,
    NoiseFloor,
    Origin,
    PendingTrial,
    RemoteResults,
)
from tuner.core.runs import Baseline, RemoteMeasurement
from tuner.core.trials import StoredTrial
from tuner.db.pending_trials import pending_trials
from tuner.db.remote_results import import_results
from tuner.db.store import Store

CUBIN_CODE = b"\x7fELF"
UNKNOWN = Origin("0b6b4d1e-6c4e-4c1f-9a53-000000000000", 40)


def exported(store: Store, count: int = 2) -> tuple[PendingTrial, ...]:
    run = run_of(store)
    for number in range(count):
        add(store, run, number, script=f"// {number}\n")
    return pending_trials(store.database, TrialQuery())


def results(*trials: MeasuredTrial) -> RemoteResults:
    return RemoteResults(PROVENANCE, trials)


def on_gpu(store: Store) -> tuple[StoredTrial, ...]:
    return store.trials(TrialQuery(TaskQuery(target="cuda")))


def test_results_are_trials_of_the_machine_that_found_them_out_and_their_run_says_so(store: Store) -> None:
    one, two = exported(store)
    found = import_results(store.database, results(result(one, timed()), result(two, WRONG)))
    assert found == Imported(runs=1, trials=2, known=0)
    first, second = store.trials(TrialQuery(TaskQuery(target="cuda"), sort="number"))
    assert first.machine == GPU
    assert (first.record.target, first.record.outcome) == (TargetName("cuda", "sm_90"), timed())
    assert first.record.verdict == Verdict(0.5, 128)
    assert (first.script_text, first.number, first.row) == ("// 0\n", 0, 10)
    assert (first.record.candidate, second.record.outcome) == (one.candidate, WRONG)
    assert store.code(first.id) == one.program
    run = store.run(first.run)
    source = (PROVENANCE.session, PROVENANCE.bundle, "0.1.0", "13.0", one.origin.run)
    assert (run.elsewhere, run.created) == (RemoteMeasurement(*source), PROVENANCE.started)
    assert run.status == "done"
    assert (run.settings.target, run.compiler) == (TargetName("cuda", "sm_90"), store.run(1).compiler)
    there = replace(PROVENANCE, session="another", machine=replace(GPU, name="Other GPU"))
    import_results(store.database, RemoteResults(there, (result(one, timed(2e-3)),)))
    assert {trial.machine.name for trial in on_gpu(store)} == {"Stub GPU", "Other GPU"}


def test_a_second_import_adds_nothing(store: Store) -> None:
    one, two = exported(store)
    whole = replace(
        results(result(one, timed()), result(two, WRONG)),
        final_times=(FinalTime(one.origin, one.problem, timed(2e-3)),),
        baselines=(BaselineTime(one.problem, Baseline("cuBLAS", 0, timed(3e-3))),),
    )
    import_results(store.database, whole)
    before = (store.trials(TrialQuery()), store.runs())
    assert import_results(store.database, whole) == Imported(runs=0, trials=0, known=2)
    assert (store.trials(TrialQuery()), store.runs()) == before


def test_a_longer_file_of_the_same_measuring_adds_what_is_new(store: Store) -> None:
    one, two = exported(store)
    import_results(store.database, results(result(one, timed())))
    longer = replace(
        results(result(one, timed()), result(two, timed(5e-3))),
        final_times=(FinalTime(two.origin, two.problem, timed(4e-3)),),
    )
    assert import_results(store.database, longer) == Imported(runs=0, trials=1, known=1)
    assert [trial.best_s for trial in on_gpu(store)] == [1e-3, 4e-3]


def test_remeasurement_the_noise_and_the_baseline_are_stored_next_to_it(store: Store) -> None:
    (one,) = exported(store, 1)
    baseline = Baseline("cuBLAS 13.1.0", 0, timed(3e-3))
    baselines = [BaselineTime(one.problem, each) for each in (Baseline("cuBLAS", 0, timed(9e-3)), baseline)]
    final_times, noises = (FinalTime(one.origin, one.problem, timed(2e-3)),), (NoiseFloor(one.problem, 0.02),)
    first = RemoteResults(PROVENANCE, (result(one, timed()),), final_times, noises, tuple(baselines))
    import_results(store.database, first)
    (trial,) = on_gpu(store)
    run = store.run(trial.run)
    assert (trial.final, run.baseline, run.noise) == (timed(2e-3), baseline, 0.02)


def test_what_was_imported_is_no_longer_pending(store: Store) -> None:
    one, two, three = exported(store, 3)
    lost = Failure(Stage.RUN, "timed out after 9 s")
    import_results(store.database, results(result(one, timed()), result(two, WRONG), result(three, lost)))
    assert numbers(store) == [2]


def test_where_the_driver_compiled_the_ptx_the_trial_names_that_code(store: Store) -> None:
    run = run_of(store)
    of_chip = program("//\n.version 8.0 // ptx beside", binary=CUBIN_CODE)
    add(store, run, 5, code=of_chip, script="// cubin\n")
    with_cubin = next(trial for trial in pending_trials(store.database, TrialQuery()) if trial.program.binary)
    import_results(store.database, results(result(with_cubin, timed(), TEXT)))
    (trial,) = on_gpu(store)
    bare = replace(of_chip, binary=b"", resources=())
    assert trial.record.artifact_sha256 == code_sha256(bare) != with_cubin.artifact_sha256
    assert store.code(trial.id) == bare


def test_where_machine_code_ran_the_trial_names_it(store: Store) -> None:
    (one,) = exported(store, 1)
    import_results(store.database, results(result(one, timed(), BINARY)))
    (trial,) = on_gpu(store)
    assert trial.record.artifact_sha256 == one.artifact_sha256


def test_results_of_a_run_that_is_not_here_are_matched_by_their_code(store: Store) -> None:
    (one,) = exported(store, 1)
    elsewhere = replace(result(one, timed()), origin=UNKNOWN)
    assert import_results(store.database, results(elsewhere)) == Imported(1, 1, 0)
    (trial,) = on_gpu(store)
    assert (trial.number, trial.script_text) == (40, "// 0\n")


def test_results_that_match_nothing_here_are_refused_and_nothing_is_stored(store: Store) -> None:
    one, two = exported(store)
    untrusted = replace(result(two, timed()), origin=UNKNOWN, script_sha256="77" * 32)
    message = r"^trial 2 \(run 0b6b.*, number 40\): found a trial that is not in this .*, nor its script 7"
    with pytest.raises(UsageError, match=message):
        import_results(store.database, results(result(one, timed()), untrusted))
    with pytest.raises(UsageError, match=r"number 1\): found another candidate under this number"):
        import_results(store.database, results(replace(result(one, timed()), origin=two.origin)))
    with pytest.raises(UsageError, match="trial 0: timed again, found no first time of it"):
        import_results(
            store.database, replace(results(), final_times=(FinalTime(one.origin, one.problem, timed()),))
        )
    assert on_gpu(store) == ()


def test_a_database_that_is_merged_brings_where_its_times_come_from(store: Store, tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "other.db")) as other:
        (one,) = exported(other, 1)
        import_results(other.database, results(result(one, timed())))
    assert store.merge(str(tmp_path / "other.db")) == (2, 2)
    (trial,) = on_gpu(store)
    assert store.run(trial.run).elsewhere is not None
    assert import_results(store.database, results(result(one, timed()))) == Imported(0, 0, 1)


SM_90 = "simulator:sm_90"
SIMULATOR = gpu_machine("simulator", chip_of("sm_90"), "PTX simulator")
NO_GPU = gpu_machine("cuda", chip_of("sm_90"), "NVIDIA GPU")
RIGHT = Verdict(0.5, 128, ("whole",))
SAME = program("//\n.version 8.0 // 0")
TIMED = Measurement((1e-3,), 1, 1e-3, (1e-3, 1e-3))


def run_of(
    store: Store, target: str = SM_90, machine: Machine = SIMULATOR, problem: Problem = PROBLEM
) -> int:
    settings = replace(SETTINGS, target=TargetName.parse(target), problem=problem)
    return store.begin_run(settings, machine, COMPILER, "0.1.0", None)


def add(
    store: Store,
    run: int,
    number: int,
    outcome: Verdict | Failure | Measurement = RIGHT,
    code: KernelCode | None = None,
    script: str = SCRIPT,
) -> int:
    settings = store.run(run).settings
    made = program(f"//\n.version 8.0 // {number}") if code is None else code
    candidate = Candidate.of("by_hand", {"number": number})
    trial = store.propose(run, number, 10 + number, candidate)
    plain = Record(settings.problem, candidate, settings.target, outcome, sha256(script), code_sha256(made))
    store.record(trial, replace(plain, kernel_code=made), script)
    return trial


def numbers(store: Store, query: TrialQuery = TrialQuery()) -> list[int]:  # noqa: B008 - frozen
    return [trial.origin.number for trial in pending_trials(store.database, query)]


def test_what_was_verified_is_pending_before_what_was_only_compiled(store: Store) -> None:
    trial = add(store, run_of(store), 3)
    (found,) = pending_trials(store.database, TrialQuery())
    assert (found.id, found.origin.number, found.verdict) == (trial, 3, RIGHT)
    assert (found.problem, found.target, found.script_text) == (PROBLEM, "simulator:sm_90", SCRIPT)
    assert found.program == program("//\n.version 8.0 // 3")
    assert code_sha256(found.program) == found.artifact_sha256
    add(store, run_of(store, "cuda:sm_90", NO_GPU), 0, Failure(Stage.LOAD, "compiled only: no GPU"))
    add(store, run_of(store), 1)
    pending = [
        (each.origin.number, each.verdict is None) for each in pending_trials(store.database, TrialQuery())
    ]
    assert pending == [(3, False), (1, False), (0, True)]


def test_nothing_else_is_pending(store: Store) -> None:
    for number, target, machine, outcome in (
        (0, SM_90, SIMULATOR, Failure(Stage.VERIFY, "wrong")),
        (1, "cuda:sm_90", NO_GPU, Failure(Stage.RESOURCES, "too many registers")),
        (2, "cuda:sm_90", GPU, Failure(Stage.LOAD, "no image")),
        (3, "cuda:sm_90", GPU, TIMED),
    ):
        add(store, run_of(store, target, machine), number, outcome, script=f"// {number}\n")
    assert numbers(store) == []


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("target", "problem", "outcome", "code", "is_pending"),
    [
        ("cuda:sm_90", PROBLEM, TIMED, SAME, False),
        ("cuda:sm_90", PROBLEM, Failure(Stage.VERIFY, "wrong"), SAME, False),
        ("cuda:sm_90", PROBLEM, Failure(Stage.RUN, "timed out"), SAME, True),  # may have been the machine's
        ("cuda:sm_80", PROBLEM, TIMED, SAME, True),
        ("cuda:sm_90", Matmul(32, 8, 8), TIMED, SAME, True),
        ("cuda:sm_90", PROBLEM, TIMED, program("other"), False),  # of this script: the driver compiled PTX
    ],
)
def test_what_a_gpu_has_evaluated_is_no_longer_pending(
    store: Store, target: str, problem: Problem, outcome: Any, code: KernelCode, is_pending: bool
) -> None:
    add(store, run_of(store), 0)
    add(store, run_of(store, target, GPU, problem), 5, outcome, code)
    assert numbers(store) == [0] * is_pending


def test_equal_code_is_pending_once_and_a_limit_counts_what_is_returned(store: Store) -> None:
    run, other = run_of(store), run_of(store, problem=Matmul(32, 8, 8))
    same = program("//\n.version 8.0 // same")
    for number in range(3):
        add(store, run, number, code=same)
    add(store, run, 3)
    add(store, other, 7, code=same)
    assert (numbers(store), numbers(store, TrialQuery(run=run))) == ([0, 3, 7], [0, 3])
    assert numbers(store, TrialQuery(TaskQuery(shape="32x8x8"))) == [7]
    assert numbers(store, TrialQuery(limit=2)) == [0, 3]
