"""Which trials become entries of a library; fakes in place of compiler and clock."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Tuner
from tests.tuning import fakes
from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.queries import TaskQuery
from tuner.db.store import Store
from tuner.models.library.entries import ONE_THREAD, gpu_entries, library_entries
from tuner.targets.backends import Backends
from tuner.targets.target import TargetStatus
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin

PROCESSOR = (TargetStatus("cpu", True, "for tests"), TargetStatus("cuda", True, "for tests"))
SMALL, LARGE = Matmul(8, 8, 8), Matmul(16, 8, 8)


def parts(**changes: object) -> Backends:
    """Returns backends with four configurations, of which x = 7 is the fastest."""
    few = fakes.plan({"x": (5, 6, 7, 8), "comment": ("a",)})
    return fakes.backends(PROCESSOR, **{"plan": few, **changes})


def tune(store: Store, problem: Problem = SMALL, backends: Backends | None = None, **settings: Any) -> int:
    given = {"trials": 20, "sampler": "exhaustive", "target": TargetName("cpu"), **settings}
    return begin(fakes.settings(problem=problem, **given), backends or parts(), store, Interruption()).run.id


@pytest.mark.slow
def test_each_problem_has_the_best_trial_of_the_runs_named_or_that_fit_the_options(store: Store) -> None:
    large, small_run = tune(store, LARGE), tune(store, SMALL, trials=3)
    tune(store, SMALL)
    found = library_entries(store, parts())
    assert [entry.problem for entry in found.entries] == [LARGE, SMALL]
    assert found.notes == ()
    assert {dict(entry.candidate.choices)["x"] for entry in found.entries} == {7}
    small = found.entries[1]
    assert (small.baseline, small.baseline_s) == ("FakeBLAS 1.0", fakes.BASELINE_S)
    assert small.script == store.trial(small.trial).script_text
    assert (small.threads, small.machine) == (1, fakes.MACHINE)
    assert small.median_s == pytest.approx(fakes.BEST_S)
    named = library_entries(store, parts(), TaskQuery(), (small_run, large, small_run)).entries
    assert [store.trial(entry.trial).run for entry in named] == [large, small_run]
    tune(store, SMALL, threads=2)
    (entry,) = library_entries(store, parts(), replace(ONE_THREAD, shape=SMALL.shape, threads=2)).entries
    assert (entry.problem, entry.threads) == (SMALL, 2)


@pytest.mark.slow
def test_a_baseline_timed_alone_has_no_time_in_the_entry(store: Store) -> None:
    tune(store, backends=parts(runner=fakes.runner_without_baseline))
    (entry,) = library_entries(store, parts()).entries
    assert (entry.baseline, entry.baseline_s) == ("FakeBLAS 1.0", None)


@pytest.mark.slow
def test_a_run_without_a_time_is_noted(store: Store) -> None:
    failed = tune(store, LARGE, backends=parts(bind=lambda *_: fakes.failing_bind), trials=2)
    found = library_entries(store, parts(), TaskQuery(), (tune(store, SMALL), failed))
    assert [entry.problem for entry in found.entries] == [SMALL]
    assert found.notes == (f"run {failed}: {LARGE.key}: no successful trial that fits the options",)


def test_a_fastest_script_with_custom_ops_gives_way_to_the_best_without(store: Store) -> None:
    tune(store, SMALL, parts(bind=lambda *_: fakes.bind_with_custom_op))
    (fastest,) = library_entries(store, parts()).entries
    found = library_entries(store, parts(), stock_only=True)
    assert '"tuner.fast"' in fastest.script
    assert '"tuner.fast"' not in found.entries[0].script
    (note,) = found.notes
    chosen = f"{SMALL.key}: trial {found.entries[0].trial}"
    assert note.startswith(f"{chosen}, since the fastest, trial {fastest.trial}, calls tuner.")
    assert note.endswith("it takes +100.0% time (95 % interval +100.0% .. +100.0%)")


def test_a_problem_without_a_stock_script_is_left_out_and_named(store: Store) -> None:
    tune(store, SMALL, parts(bind=lambda *_: fakes.bind_with_custom_op, plan=fakes.plan({"x": (7,)})))
    message = r"every timed script calls tuner's transform ops \(trial \d+: tuner.fast\); more trials"
    with pytest.raises(UsageError, match=message):
        library_entries(store, parts(), stock_only=True)
    tune(store, LARGE)
    found = library_entries(store, parts(), stock_only=True)
    assert [entry.problem for entry in found.entries] == [LARGE]
    assert len(found.notes) == 1


def test_nothing_measured_is_one_line(store: Store) -> None:
    with pytest.raises(UsageError, match="export: nothing measured that fits the options; tuner history"):
        library_entries(store, parts())
    run = tune(store, backends=parts(bind=lambda *_: fakes.failing_bind))
    with pytest.raises(UsageError, match=f"run {run}: has no successful trial .*; tuner history --run {run}"):
        library_entries(store, parts(), runs=(run,))
    with pytest.raises(UsageError, match="run: found 9, allowed 1"):
        library_entries(store, parts(), runs=(9,))


def test_results_of_a_gpu_are_refused(store: Store) -> None:
    run = tune(store, target=TargetName("cuda", "sm_90"))
    with pytest.raises(UsageError, match=f"run {run}: a library has schedules for a CPU, not for cuda:sm_90"):
        library_entries(store, parts(), runs=(run,))
    with pytest.raises(UsageError, match="for a cpu, measured are only cuda:sm_90"):
        library_entries(store, parts())
    with pytest.raises(UsageError, match=r"schedules for a CPU, not for cuda$"):
        library_entries(store, parts(), replace(ONE_THREAD, target="cuda"))


def test_a_library_is_of_one_machine(store: Store) -> None:
    elsewhere = fakes.changed(
        parts(machine=lambda _: fakes.OTHER_MACHINE), machine=lambda: fakes.OTHER_MACHINE
    )
    there = tune(store, SMALL, elsewhere)
    with pytest.raises(UsageError, match=r"nothing measured on 'fake', only on another; choose with --mach"):
        library_entries(store, parts())
    here = tune(store, LARGE)
    with pytest.raises(UsageError, match=rf"run {there}: was measured on 'another', the library is for 'fa"):
        library_entries(store, parts(), runs=(here, there))
    named = library_entries(store, parts(), replace(ONE_THREAD, machine="another"))
    assert [entry.problem for entry in named.entries] == [SMALL]


def test_problems_that_a_program_cannot_tell_apart_are_refused(store: Store) -> None:
    runs = tune(store, SMALL), tune(store, replace(SMALL, align="64"))
    with pytest.raises(UsageError, match="differ only in how they were timed; choose with --align or --cach"):
        library_entries(store, parts(), TaskQuery(), runs)
    assert len(library_entries(store, parts()).entries) == 1


# Which trials on GPUs become entries of a library; fakes in place of compiler, simulator and clock.

TUNE = "tune matmul 8x8x8 --sampler exhaustive --trials 20"


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tuner = Tuner(tmp_path_factory.mktemp("verified") / "results.db", fakes.untimed_backends())
    tuner.done(f"{TUNE} --target simulator --dtype f16 --chip sm_90")
    return tuner.database


@pytest.mark.slow
def test_the_first_that_was_verified_is_taken_with_a_note_where_nothing_was_timed(verified: Path) -> None:
    with Store.open(str(verified)) as store:
        found = gpu_entries(store, TaskQuery(target="simulator"))
        (entry,) = found.entries
        assert (entry.median_s, entry.baseline, entry.baseline_s) == (None, "", None)
        assert entry.script == store.trial(entry.trial).script_text
        assert entry.program == store.code(entry.trial)
    (note,) = found.notes
    assert note == "matmul 8x8x8 f16 nn none: not timed on a GPU: trial 1 is the first of 18 verified"


def test_runs_that_are_not_named_do_not_count(verified: Path) -> None:
    with Store.open(str(verified)) as store:
        assert [entry.trial for entry in gpu_entries(store, TaskQuery(), (1,)).entries] == [1]
        with pytest.raises(UsageError, match="nothing measured or verified on a GPU that fits the options"):
            gpu_entries(store, TaskQuery(target="cuda"), (1,))


@pytest.mark.slow
def test_a_trial_that_was_timed_is_taken_before_those_that_were_verified(tmp_path: Path) -> None:
    tuner = Tuner(tmp_path / "results.db", fakes.backends())
    tuner.done(TUNE)
    with Store.open(str(tuner.database)) as store:
        found = gpu_entries(store, TaskQuery())
    (entry,) = found.entries
    assert found.notes == ()
    assert entry.median_s == pytest.approx(fakes.BEST_S)
    assert (entry.baseline, entry.baseline_s) == ("FakeBLAS 1.0", fakes.BASELINE_S)


@pytest.mark.mlir
def test_the_command_takes_entries_for_a_target_or_a_run_on_one(verified: Path, tmp_path: Path) -> None:
    tuner = Tuner(verified, fakes.untimed_backends())
    for option in (("--target", "simulator"), ("--run", "1")):
        # fakes verify without code: the entry is compiled again, and its script is none
        done = tuner("export", "--format", "c", *option, "-o", str(tmp_path / "out"))
        assert (done.code, done.err[:42]) == (1, "error: trial 1: matmul 8x8x8 f16 nn none: ")


def test_a_target_that_is_not_there_is_refused_with_those_that_are(verified: Path, tmp_path: Path) -> None:
    tuner = Tuner(verified, fakes.untimed_backends())
    for target in ("kuda", "cuda:sm_90"):
        refused = tuner.refused("export --format c --target", target, "-o", str(tmp_path / "out"))
        assert refused == f"error: target: found {target!r}, allowed auto, simulator, replay\n"
