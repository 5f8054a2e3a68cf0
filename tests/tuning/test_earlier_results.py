"""What a run knows of earlier ones: resources, first points, outcomes by script or code."""

import dataclasses
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.db import values as db_values
from tests.fakes import FakeTarget
from tests.space.recorded import values
from tests.statement_cache import statements
from tests.tuning import fakes
from tests.tuning.fakes import candidates_of, present, trials_of
from tuner.core.candidate import Candidate, TargetName
from tuner.core.compiled_code import KernelCode, Resources
from tuner.core.errors import REPEATABLE, TIMED_OUT, Failure, Stage, UsageError
from tuner.core.gpu import CHIPS
from tuner.core.machine import Machine, gpu_machine
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.queries import TaskQuery, TrialQuery
from tuner.core.records import Measurement, Record, Verdict
from tuner.core.runs import (
    SEED,
    SPACE_FILE,
    WARM_START,
    ChosenStrategy,
    InitialConfiguration,
    Run,
    RunSettings,
)
from tuner.db.store import Store
from tuner.space import enumeration
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace
from tuner.targets.target import Plan
from tuner.tuning.earlier_results import EarlierRuns
from tuner.tuning.events import Interruption
from tuner.tuning.known_outcomes import KnownOutcomes, OutcomesByCode, is_early_stopped, is_reusable
from tuner.tuning.request import RunLimit
from tuner.tuning.run import begin, resume
from tuner.tuning.tuned_run import TunedRun

GPU = gpu_machine("simulator", CHIPS["sm_90"], "simulated")
PROBLEM = Matmul(64, 64, 64, "f16")


def kernel(registers: int, shared_bytes: int) -> Resources:
    return Resources("k", registers, 0, 0, 0, shared_bytes, 0, 0.5, 4)


def gpu_settings(problem: Problem = PROBLEM) -> RunSettings:
    return fakes.settings(problem=problem, target=TargetName("simulator", "sm_90"))


def compiled(store: Store, problem: Problem, x: int, chip: str, *kernels: Resources) -> Candidate:
    machine = dataclasses.replace(GPU, chip=chip)
    run = store.begin_run(gpu_settings(problem), machine, FakeTarget().compiler(), "0.1.0", None)
    candidate = Candidate.of("fake", {"x": x})
    program = KernelCode(chip, f"code {x}", b"elf", (), (), kernels)
    verified = Record(problem, candidate, TargetName("simulator", "sm_90"), Verdict(0.1, 4), "", f"hash {x}")
    record = dataclasses.replace(verified, resources=kernels, kernel_code=program)
    store.record(store.propose(run, 0, x, candidate), record, "")
    return candidate


def test_the_kernel_that_multiplies_is_known_unless_chip_type_or_layout_differ(store: Store) -> None:
    compiled(store, PROBLEM, 1, "sm_80", kernel(128, 0))
    compiled(store, Matmul(64, 64, 64, "bf16"), 2, "sm_90", kernel(128, 0))
    compiled(store, Matmul(64, 64, 64, "f16", "nt"), 3, "sm_90", kernel(128, 0))
    assert EarlierRuns(store).known_resources(gpu_settings(), GPU) == {}
    candidate = compiled(store, Matmul(32, 32, 32, "f16"), 4, "sm_90", kernel(200, 0), kernel(128, 49152))
    assert EarlierRuns(store).known_resources(gpu_settings(), GPU) == {candidate: kernel(128, 49152)}
    assert EarlierRuns(store).known_resources(fakes.settings(), fakes.MACHINE) == {}


def test_runs_are_read_once_and_only_when_asked_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
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


# Where a run begins: what is known of other problems, the file's points, seeds; the same when it resumes.

OTHER = Matmul(8, 8, 16)
SPACE = SearchSpace("fake", (Knob("x", tuple(range(10))), Knob("comment", ("a", "b"))))


def warm(trials: int, **changes: object) -> RunSettings:
    return fakes.settings(trials, problem=OTHER, warm_start=True, **changes)


def tune(store: Store, settings: RunSettings, **changes: Any) -> TunedRun:
    return begin(settings, fakes.backends(**changes), store, Interruption())


def first_of(store: Store, tuned: TunedRun) -> tuple[InitialConfiguration, ...]:
    return present(store.run(tuned.run.id).settings.first)


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("searched") / "results.db"
    with Store.open(str(path)) as opened:
        tune(opened, fakes.settings(trials=None, sampler="exhaustive"))
    return path


@pytest.fixture
def searched(whole_run: Path, tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(shutil.copy(whole_run, tmp_path / "searched.db"))) as opened:
        yield opened


def test_trials_of_all_strategies_and_nearest_tasks_are_read_by_one_statement(store: Store) -> None:
    sizes = (8, 16, 32)
    for size in sizes:
        tune(store, fakes.settings(4, problem=Matmul(8, 8, size)))
    strategies = tuple(ChosenStrategy(name) for name in ("fake", *(f"other_{i}" for i in range(8))))
    settings = dataclasses.replace(warm(3), problem=Matmul(8, 8, 64), strategies=strategies)
    with statements() as asked:
        known = EarlierRuns(store).known_tasks(settings, fakes.MACHINE)
    assert [task.task.problem.sizes[2] for task in known] == [32, 16, 8]
    for task in known:
        problem = TaskQuery.of(task.task.problem)
        timed = store.trials(TrialQuery(problem, status="measured", sort="median"))
        by_code = {trial.record.code: trial.record.candidate for trial in reversed(timed)}
        assert {point for point, _ in task.points} == set(by_code.values()) != set()
    assert sum("row_number()" in statement for statement in asked) == 1
    assert len(asked) <= 10  # runs and their relations, then trials and theirs


def planned(first: tuple[int, ...] = (), seeds: tuple[int, ...] = (), space: SearchSpace = SPACE) -> Any:
    return lambda _settings, _machine: Plan(FeasibleSet.of((space,)), first, fakes.Preferring(seeds))


def test_a_run_begins_with_the_best_of_the_nearest_problem(searched: Store) -> None:
    tuned = tune(searched, warm(trials=3))
    first = first_of(searched, tuned)
    assert {(point.origin, point.source) for point in first} == {(WARM_START, "8x8x8 (run 1)")}
    assert [dict(point.candidate.choices)["x"] for point in first] == [7, 6, 8, 5, 9, 4, 3, 2]
    assert candidates_of(searched, tuned.run.id) == [point.candidate for point in first[:3]]
    assert first_of(searched, tune(searched, warm(strategies=(ChosenStrategy("other"),), trials=1))) == ()


@pytest.mark.slow
def test_without_a_warm_start_or_with_even_draws_the_sampler_begins(searched: Store) -> None:
    cold = tune(searched, fakes.settings(problem=OTHER, trials=8))
    assert first_of(searched, cold) == ()
    warmed = tune(searched, warm(trials=8))
    assert candidates_of(searched, cold.run.id) != candidates_of(searched, warmed.run.id)
    even = tune(searched, warm(trials=3, first=()), plan=planned(first=(14, 1), seeds=(0,)))
    assert first_of(searched, even) == ()
    assert [trial.row for trial in trials_of(searched, even.run.id)] != [14, 1, 0]


def test_known_points_are_interleaved_with_the_file_and_seeds_none_of_them_twice(searched: Store) -> None:
    tuned = tune(searched, warm(trials=11), plan=planned(first=(14, 1), seeds=(1, 0)))
    first = first_of(searched, tuned)
    assert [point.origin for point in first] == [WARM_START, SPACE_FILE, WARM_START, SEED] + [WARM_START] * 6
    chosen = [dict(point.candidate.choices) for point in first[1:4:2]]
    assert chosen == [{"comment": "b", "x": 0}, {"comment": "a", "x": 0}]
    assert candidates_of(searched, tuned.run.id)[:10] == [point.candidate for point in first]


def test_what_is_not_feasible_here_is_proposed_at_the_nearest_point(searched: Store) -> None:
    even = dataclasses.replace(SPACE, constraints=(parse("x % 4 == 2", "f"),))
    tuned = tune(searched, warm(trials=2), plan=planned(space=even))
    assert [dict(point.candidate.choices)["x"] for point in first_of(searched, tuned)] == [6, 2]


@pytest.mark.slow
def test_a_resumed_run_begins_as_it_began_though_more_is_known_by_now(searched: Store) -> None:
    settings = warm(trials=4)
    begun = tune(searched, settings)
    tune(searched, fakes.settings(problem=Matmul(8, 8, 15), trials=12, seed=3))
    searched.finish_run(begun.run.id, "interrupted", 0.0)
    longer = tune(searched, settings)  # begins with what is known now
    assert first_of(searched, longer) != first_of(searched, begun)
    resumed = resume(begun.run.id, fakes.backends(), searched, Interruption())
    assert first_of(searched, resumed) == first_of(searched, begun)


def test_a_run_from_before_first_points_were_stored_resumes_with_the_files(store: Store) -> None:
    settings = fakes.settings(trials=2, sampler="exhaustive")
    backends = fakes.backends(plan=planned(first=(5, 3), seeds=(9,)))
    run = store.begin_run(settings, fakes.MACHINE, FakeTarget().compiler(), "0.1.0", None)
    resumed = resume(run, backends, store, Interruption())
    assert [trial.row for trial in trials_of(store, resumed.run.id)] == [5, 3]


@pytest.mark.slow
def test_known_points_are_rows_of_a_sampled_space(searched: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumeration, "PILOT_ROWS", 16)
    monkeypatch.setattr(enumeration, "SAMPLE_ROWS", 40)
    monkeypatch.setattr(enumeration, "GROWN_LIMIT", 200)
    monkeypatch.setattr("tuner.space.feasible_set.ROWS_LIMIT", 100)
    monkeypatch.setattr("tuner.space.feasible_set.SAMPLE_ROWS", 40)
    large = dataclasses.replace(SPACE, knobs=(*SPACE.knobs, *(Knob(name, (0, 1, 2, 3)) for name in "abc")))

    def plan(settings: RunSettings, _machine: Machine) -> Plan:
        return Plan(FeasibleSet.of((large,), tuple(point.candidate for point in settings.first or ())))

    tune(searched, fakes.settings(problem=Matmul(8, 8, 12), trials=20), plan=plan)
    begun = tune(searched, warm(trials=9), plan=plan)
    known = set(candidates_of(searched, 2))
    assert [point for point in first_of(searched, begun) if point.candidate in known]
    assert plan(begun.run.settings, fakes.MACHINE).feasible.is_sample
    uninterrupted = candidates_of(searched, begun.run.id)
    resumed = resume(begun.run.id, fakes.backends(plan=plan), searched, Interruption())
    assert candidates_of(searched, resumed.run.id) == uninterrupted


def test_a_recording_is_learned_from_unless_of_another_tuner(store: Store, tmp_path: Path) -> None:
    foreign = values.write_foreign(tmp_path / "hub.json", [({"x": 1}, 2.0)])
    refused = (
        "hub: has no problem that this tuner knows, and none of the run's strategies: found hub, allowed fake"
    )
    with pytest.raises(UsageError, match=refused):
        tune(store, fakes.settings(warm_files=(str(foreign),)))
    assert store.runs() == ()
    file = values.write_recording(tmp_path)
    names = {"strategies": (ChosenStrategy("fabricated"),), "warm_files": (str(file),)}
    first = first_of(
        store, tune(store, fakes.settings(1, problem=OTHER, **names), plan=planned(space=values.SPACE))
    )
    records = [trial.record for trial in map(values.trial, range(120)) if trial.record]
    times = {record.candidate: record.median_s for record in records if record.median_s is not None}
    assert {point.source for point in first} == {"8x8x8 (fabricated)"}
    assert [times[point.candidate] for point in first] == sorted(times[point.candidate] for point in first)
    assert times[first[0].candidate] == min(times.values())


# The same problem on other machines: where the search begins, and what its model expects.

ELSEWHERE = dataclasses.replace(fakes.MACHINE, name="another machine")


def known_to(store: Store, trials: int = 8, **changes: Any) -> TunedRun:
    return tune(
        store, fakes.settings(trials, sampler="tpe", warm_start=True, **changes), machine=lambda _: ELSEWHERE
    )


def test_a_search_begins_with_distant_ones_of_the_fastest_on_another_machine(searched: Store) -> None:
    tuned = known_to(searched)
    first = first_of(searched, tuned)
    assert [point.origin for point in first] == [WARM_START] * len(first)
    assert (len(first), dict(first[0].candidate.choices)["x"]) == (4, 7)
    prior = searched.run(tuned.run.id).settings.prior
    rows = [trial.row for trial in trials_of(searched, 1)]
    fastest = min(trials_of(searched, 1), key=lambda trial: trial.best_s or 1.0)
    assert (len(prior), prior[fastest.row], set(prior)) == (len(rows), "0", set(prior) - {"-"})


def test_without_a_warm_start_on_the_same_machine_and_for_another_problem_there_is_no_prior(
    searched: Store,
) -> None:
    here = tune(searched, fakes.settings(2, sampler="tpe", warm_start=True))
    cold = tune(searched, fakes.settings(2, sampler="tpe"), machine=lambda _: ELSEWHERE)
    other = known_to(searched, problem=OTHER)
    assert [searched.run(each.run.id).settings.prior for each in (cold, here, other)] == ["", "", ""]


def test_a_resumed_run_expects_what_it_expected_though_more_is_known_by_now(
    searched: Store, whole_run: Path, tmp_path: Path
) -> None:
    with Store.open(str(shutil.copy(whole_run, tmp_path / "other.db"))) as other:
        uninterrupted = candidates_of(other, known_to(other, 14).run.id)
    begun = known_to(searched, 7).run.id
    third = dataclasses.replace(ELSEWHERE, name="a third machine")
    tune(searched, fakes.settings(20, sampler="exhaustive"), machine=lambda _: third)
    backends = fakes.backends(machine=lambda _: ELSEWHERE)
    resume(begun, backends, searched, Interruption(), limit=RunLimit(trials=14))
    assert candidates_of(searched, begun) == uninterrupted


def test_a_recording_of_another_tuner_is_of_the_runs_space_where_its_strategy_is(
    store: Store, tmp_path: Path
) -> None:
    points = [({"x": x, "comment": "a"}, time_ms) for x, time_ms in ((1, 3.0), (2, 1.0), (3, 2.0))]
    file = values.write_foreign(tmp_path / "fake.json", points)
    settings = fakes.settings(1, warm_files=(str(file),))
    tuned = tune(store, settings, plan=planned())
    assert first_of(store, tuned)[0].candidate == Candidate.of("fake", {"x": 2, "comment": "a"})
    prior = store.run(tuned.run.id).settings.prior
    assert [place for place, digit in enumerate(prior) if digit != "-"] == [2, 4, 6]
    assert prior[4] == "0"


Outcomes = dict[Measurement | Verdict | Failure, bool]
SCRIPT, CODE, STORED = "1" * 64, "2" * 64, db_values.sha256(db_values.SCRIPT)
TIME = Measurement((1.0,), 1, 1.0, (1.0, 1.0))
CUT_OFF = dataclasses.replace(TIME, is_complete=False)


def known(store: Store, fresh: bool = False) -> KnownOutcomes:
    run = db_values.begin(store, dataclasses.replace(db_values.SETTINGS, fresh=fresh))
    return KnownOutcomes(store, store.run(run))


@pytest.mark.parametrize(("script", "code"), [(STORED, ""), ("", "a" * 64), ("", "")])
@pytest.mark.parametrize("fresh", [False, True])
def test_earlier_runs_are_known_to_runs_not_fresh(store: Store, script: str, code: str, fresh: bool) -> None:
    measured = db_values.outcome(db_values.timed(1e-3), artifact="a" * 64)
    trial = db_values.add(store, db_values.begin(store), 0, measured)
    found = known(store, fresh).recall(script, code)
    assert (None if found is None else found.reused_from) == (None if fresh or not script + code else trial)


def test_earlier_runs_with_complete_times_are_not_read_one_by_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of a problem that had been tuned 35 times began by reading each of these runs."""
    for _ in range(3):
        db_values.add(store, db_values.begin(store), 0, db_values.outcome(db_values.timed(1e-3)))
    run = store.run(db_values.begin(store))
    monkeypatch.setattr(Store, "run", pytest.fail)
    KnownOutcomes(store, run)


@pytest.mark.parametrize(("measured", "fresh"), [(TIME, True), (CUT_OFF, True), (CUT_OFF, False)])
def test_a_run_repeats_nothing_of_its_own(store: Store, measured: Measurement, fresh: bool) -> None:
    outcomes = known(store, fresh)
    own = dataclasses.replace(db_values.outcome(measured), script_sha256=SCRIPT, artifact_sha256=CODE)
    outcomes.add(7, own)
    for script, code in ((SCRIPT, ""), ("", CODE)):
        found = present(outcomes.recall(script, code))
        assert (found.outcome, found.reused_from) == (measured, 7)


def test_a_complete_time_precedes_an_early_stopped_one_of_the_same_code(store: Store) -> None:
    run = db_values.begin(store)
    cut_off = db_values.outcome(CUT_OFF, artifact="a" * 64)
    early = db_values.add(store, run, 0, cut_off)
    assert present(known(store).recall("", "a" * 64)).outcome == CUT_OFF
    db_values.time_again(store, run, (early, db_values.timed(0.5)))
    assert known(store).recall("", "a" * 64) is None  # no earlier trial of the code is cut off any more
    complete = db_values.outcome(db_values.timed(0.5), artifact="a" * 64)
    db_values.add(store, db_values.begin(store), 0, complete)
    outcomes = known(store)
    outcomes.add(99, dataclasses.replace(cut_off, artifact_sha256="a" * 64))
    assert present(outcomes.recall("", "a" * 64)).outcome == complete.outcome


def record(outcome: Measurement | Verdict | Failure, reused_from: int | None = None) -> Record:
    problem, target = fakes.settings().problem, TargetName("cpu")
    return Record(problem, Candidate("s", ()), target, outcome, "script", "code", (), reused_from)


def test_what_is_not_due_to_the_machine_lasts() -> None:
    whole: Outcomes = {TIME: True, Verdict(0.1, 4): True, CUT_OFF: False}
    whole |= {Failure(stage, f"{TIMED_OUT} 30 s"): False for stage in Stage}
    for outcome, lasts in (whole | {Failure(s, "no"): s in REPEATABLE for s in Stage}).items():
        assert is_reusable(record(outcome)) == lasts
        assert is_early_stopped(record(outcome)) == (outcome is CUT_OFF)


def test_an_outcome_is_known_by_script_and_by_code_and_by_its_origin_and_no_hash_is_no_key() -> None:
    known = OutcomesByCode()
    known.add(7, record(TIME))
    assert known.find("script") == known.find("code") == record(TIME, reused_from=7)
    known.add(9, record(TIME, reused_from=8))
    assert known.find("code") == record(TIME, reused_from=8)
    known.add(7, dataclasses.replace(record(Failure(Stage.COMPILE, "no")), artifact_sha256=""))
    assert known.find("") is None
