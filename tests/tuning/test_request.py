import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

import tuner
from tests.tuning import fakes
from tests.tuning.fakes import MACHINE
from tuner.core.candidate import ChosenStrategy, TargetName
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul
from tuner.core.processors import Processors
from tuner.core.requests import RunRequest
from tuner.core.round_quality import StoredRound
from tuner.core.runs import RunSettings, StoredTrial, TrialQuery
from tuner.db.store import Store
from tuner.results.differences import differences
from tuner.search.samplers import SAMPLERS
from tuner.space.file.yaml import default_space_file
from tuner.targets.interface import TargetStatus
from tuner.tuning.events import Event, Interruption, TrialDone
from tuner.tuning.request import GIB, RunLimit, require_memory, require_threads, require_workers, run_settings
from tuner.tuning.run import begin, resume
from tuner.tuning.tuned_run import TunedRun


def test_a_problem_that_fits_passes() -> None:
    require_memory(Matmul(512, 512, 512), MACHINE)


@pytest.mark.parametrize("sizes", [(2**31 - 1, 2**31 - 1, 2**31 - 1), (50_000, 50_000, 1), (1, 1, 2**31 - 1)])
def test_an_enormous_problem_is_refused_with_both_sizes(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(UsageError, match=r"reference need [\d.]+ GiB, available 8\.0 GiB"):
        require_memory(Matmul(*sizes), dataclasses.replace(MACHINE, memory_bytes=8 * GIB))


def test_a_machine_whose_memory_is_unknown_refuses_nothing() -> None:
    """That of another tuner's recording, where nothing is allocated."""
    require_memory(Matmul(100_000, 100_000, 100_000), dataclasses.replace(MACHINE, memory_bytes=0))


def test_more_workers_than_the_memory_holds_are_refused() -> None:
    machine = dataclasses.replace(MACHINE, memory_bytes=2 * GIB)
    require_workers(10, machine)
    require_workers(10**6, dataclasses.replace(machine, memory_bytes=0))
    with pytest.raises(UsageError, match="workers: found 11, allowed 1 to 10: each is a process"):
        require_workers(11, machine)


def test_a_run_with_a_million_processes_does_not_begin(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "results.db")) as store:
        with pytest.raises(UsageError, match="workers: found 1000000, allowed 1 to"):
            begin(fakes.settings(workers=10**6), fakes.backends(), store, Interruption())
        assert store.runs() == ()


def test_more_threads_than_processors_are_refused() -> None:
    machine = dataclasses.replace(MACHINE, name="eight", logical_cores=8, chip="")
    eight = Processors(present=8, allowed=8)
    require_threads(8, machine, eight)
    require_threads(9, dataclasses.replace(machine, logical_cores=0), eight)
    require_threads(9, dataclasses.replace(machine, chip="sm_90"), Processors(8, 1))
    with pytest.raises(UsageError, match="threads: found 9, allowed up to 8, the processors of eight"):
        require_threads(9, machine, eight)


@pytest.mark.parametrize(
    ("processors", "message"),
    [
        (Processors(8, 2), r"found 4, allowed up to 2: the affinity mask .*taskset.* allows 2 of 8"),
        (Processors(8, 8, 2.5), r"found 4, allowed up to 2: the quota .*\(cpu.max\) is 2.5 processors"),
        (Processors(8, 3, 2.0), r"found 4, allowed up to 2: the quota of the control group"),
        (Processors(8, 2, 4.0), r"found 4, allowed up to 2: the affinity mask"),
        (Processors(1, 1, 0.5), r"found 4, allowed up to 1, the processors of"),
    ],
)
def test_processors_that_the_process_may_not_use_are_no_package_for_threads(
    processors: Processors, message: str
) -> None:
    machine = dataclasses.replace(MACHINE, logical_cores=processors.allowed)
    require_threads(processors.usable, machine, processors)
    with pytest.raises(UsageError, match=f"^threads: {message}") as raised:
        require_threads(4, machine, processors)
    assert "\n" not in str(raised.value)


def test_a_run_with_a_million_threads_does_not_begin(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "results.db")) as store:
        with pytest.raises(
            UsageError, match="threads: found 1000000, allowed up to 2, the processors of fake"
        ):
            begin(fakes.settings(threads=10**6), fakes.backends(), store, Interruption())
        assert store.runs() == ()


# A run that is extended ends with the trials of one that was started with the larger limit.

PARTS = fakes.backends()


SHORT, LONG = 5, 12


def tune(store: Store, trials: int, sampler: str = "random", **more: object) -> TunedRun:
    return begin(fakes.settings(trials=trials, sampler=sampler, **more), PARTS, store, Interruption())


def extended(
    store: Store, limit: RunLimit, observe: Callable[[Event], None] = lambda _event: None
) -> TunedRun:
    return resume(1, PARTS, store, Interruption(), observe, limit=limit)


def trials_of(store: Store) -> tuple[StoredTrial, ...]:
    return store.trials(TrialQuery(run=1, sort="number"))


def opened(folder: Path, name: str) -> Store:
    return Store.open(str(folder / f"{name}.db"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "workers"), [*((name, 1) for name in SAMPLERS), ("random", 3), ("tpe", 3)]
)
def test_an_extended_run_has_the_trials_of_one_with_that_limit(
    tmp_path: Path, sampler: str, workers: int
) -> None:
    with opened(tmp_path, "whole") as whole, opened(tmp_path, "extended") as store:
        expected = tune(whole, LONG, sampler, workers=workers)
        tune(store, SHORT, sampler, workers=workers)
        done = extended(store, RunLimit(trials=LONG))
        assert differences(trials_of(whole), trials_of(store)) == ()
        assert done.run.settings == expected.run.settings
        assert (done.run.status, done.counts) == ("done", expected.counts)
        assert done.best is not None
        assert expected.best is not None
        assert done.best.number == expected.best.number


def test_the_best_of_all_trials_are_timed_again_and_only_that_round_answers(store: Store) -> None:
    tune(store, 3, "exhaustive")  # x = 0, 0, 1: the best, x = 7, comes later
    done = extended(store, RunLimit(trials=20))
    assert [(each.of_trials, each.is_answering) for each in done.rounds] == [(3, False), (20, True)]
    assert done.best is not None
    assert done.best.knobs["x"] == 7
    assert done.best.final is not None
    again = resume(1, PARTS, store, Interruption(), retime=True)  # of equally quiet ones the earlier stays
    assert [each.is_answering for each in again.rounds] == [False, True, False]


@pytest.mark.slow
def test_an_extension_that_is_interrupted_keeps_the_earlier_answer_until_it_is_done(store: Store) -> None:
    before = tune(store, 3, "exhaustive")
    interruption = Interruption()

    def interrupt(event: Event) -> None:
        if isinstance(event, TrialDone) and event.number == 9:
            interruption.ask()

    cut = resume(1, PARTS, store, interruption, interrupt, limit=RunLimit(trials=20))
    assert cut.is_interrupted
    assert 3 < cut.counts.proposed < 20
    assert cut.best == before.best
    done = resume(1, PARTS, store, Interruption())
    assert (done.counts.proposed, done.run.settings.trials) == (20, 20)
    assert [each.of_trials for each in done.rounds] == [3, 20]
    assert done.best is not None
    assert done.best.knobs["x"] == 7


@pytest.mark.slow
def test_where_all_trials_are_there_only_the_missing_round_is_timed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill between the last trial and the end of the final re-measurement."""
    tune(store, 3, "exhaustive")
    rounds: Callable[..., None] = store.add_round
    monkeypatch.setattr(store, "add_round", lambda *_text: None)
    extended(store, RunLimit(trials=6))
    monkeypatch.setattr(store, "add_round", rounds)
    store.finish_run(1, "interrupted", 0.0)
    done = resume(1, PARTS, store, Interruption())
    assert [each.of_trials for each in done.rounds] == [3, 6]


@pytest.mark.slow
def test_a_limit_of_time_counts_the_search_alone(store: Store) -> None:
    tune(store, 3, "exhaustive")
    store.finish_run(1, "done", 1000.0)  # as long as a final re-measurement may have taken
    done = extended(store, RunLimit(budget_s=600.0))
    assert done.counts.proposed == 20  # the whole space
    assert (done.run.settings.trials, done.run.settings.budget_s) == (None, 600.0)


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (RunLimit(trials=4), "^trials: found 4, but run 1 has 5 trials already$"),
        (RunLimit(budget_s=1e-9), r"^budget: found 1e-09 s, but run 1 has searched for .* s already$"),
    ],
)
def test_a_limit_that_was_passed_is_refused_and_changes_nothing(
    store: Store, limit: RunLimit, message: str
) -> None:
    before = tune(store, SHORT)
    with pytest.raises(UsageError, match=message):
        extended(store, limit)
    assert (store.run(1), store.rounds(1)) == (before.run, before.rounds)


def test_a_limit_that_is_reached_already_times_nothing_again(store: Store) -> None:
    rounds: tuple[StoredRound, ...] = tune(store, SHORT).rounds
    assert extended(store, RunLimit(trials=SHORT)).rounds == rounds


@pytest.mark.slow
def test_a_pruned_run_is_not_extended(store: Store) -> None:
    tune(store, 20, "exhaustive")
    assert store.prune().trials > 0
    with pytest.raises(UsageError, match=r"^run 1: some of its trials were pruned; start a new run$"):
        extended(store, RunLimit(trials=30))


@pytest.mark.parametrize(("trials", "budget_s"), [(0, None), (True, None), (None, 0.0), (None, -1.0)])
def test_a_limit_is_a_number_or_a_time(trials: int | None, budget_s: float | None) -> None:
    with pytest.raises(UsageError, match=r"^(trials|budget): found"):
        RunLimit.of(trials, budget_s)
    assert RunLimit.of(None, None) is None


# Settings of a run: defaults, targets, what is refused.

PROBLEM = Matmul(8, 8, 8)


def settings(**options: object) -> RunSettings:
    return run_settings(RunRequest(PROBLEM, **options), fakes.backends())  # type: ignore[arg-type]


def test_defaults_are_filled_in() -> None:
    made = settings()
    assert (made.trials, made.budget_s, made.threads, made.workers) == (100, None, 1, 1)
    assert made.target == TargetName("fake")
    assert made.space_yaml == default_space_file().read_text()
    assert ChosenStrategy("matmul_cpu_packed") in made.strategies


def test_a_budget_in_seconds_alone_limits_no_trials() -> None:
    assert settings(budget_s=5.0).trials is None


def test_files_may_be_named_by_texts() -> None:
    named = settings(warm_files=("a.t4.json",), space=str(default_space_file()))
    assert named.warm_files == (str(Path("a.t4.json").absolute()),)


def test_without_times_the_sampler_is_one_that_needs_none() -> None:
    untimed = TargetStatus("simulator", True, "no clock", is_timed=False)
    backends = fakes.backends((untimed, TargetStatus("fake", True, "for tests")))
    problem = tuner.Matmul(8, 8, 8, "f16")
    assert run_settings(RunRequest(problem, "simulator"), backends).sampler == "random"
    assert run_settings(RunRequest(problem, "simulator"), backends).target == TargetName("simulator", "sm_90")
    assert (
        run_settings(RunRequest(problem, "simulator", sampler="exhaustive"), backends).sampler == "exhaustive"
    )
    assert run_settings(RunRequest(problem, "fake"), backends).sampler == "tpe"
    with pytest.raises(
        UsageError, match="sampler: found 'tpe', allowed random, exhaustive: target simulator"
    ):
        run_settings(RunRequest(problem, "simulator", sampler="tpe"), backends)


def test_what_processors_do_not_take_is_refused_before_anything_is_tried() -> None:
    backends = fakes.backends((TargetStatus("cpu", True, "here"),))
    with pytest.raises(UsageError, match="dtype: found 'f16', allowed f32, f64, bf16, i8 on target cpu"):
        run_settings(RunRequest(tuner.Matmul(8, 8, 8, "f16")), backends)
