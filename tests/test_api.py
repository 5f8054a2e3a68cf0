from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tests.cli.real import brief_remeasurement, real_candidates
from tests.db import values
from tests.tuning import fakes
from tuner.core.candidate import ChosenStrategy, TargetName
from tuner.core.errors import UsageError
from tuner.core.gpu import chip_of
from tuner.core.gpu_code import KernelProgram
from tuner.core.machine import gpu_machine
from tuner.core.problem import Problem
from tuner.db.store import Store
from tuner.targets.interface import TargetStatus

PROBLEM = tuner.Matmul(8, 8, 8)
CPU, CUDA = TargetName("cpu"), TargetName("cuda", "sm_90")


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Puts fakes in place of compiler and clock; returns a database."""
    monkeypatch.setattr("tuner.targets.registry.real_backends", fakes.backends)
    return str(tmp_path / "results.db")


def test_without_a_name_the_database_is_that_of_the_environment(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))  # of the user's own database
    monkeypatch.setenv("TUNER_DB", database)
    run = tuner.tune(PROBLEM, trials=20, sampler="exhaustive")
    assert run.best is not None
    assert len(tuner.history()) == len(tuner.history(Path(database))) == 20
    assert tuner.load_best(PROBLEM)("a", "b")[1] == run.best.script_text
    assert not (tmp_path / "data").exists()


def test_history_takes_the_fields_of_a_query_the_options_of_commands_and_numpy_types(database: str) -> None:
    tuner.tune(PROBLEM, trials=5, db=database)
    assert len(tuner.history(database)) == 5
    assert len(tuner.history(database, shape="8x8x8", best=True)) == 1
    assert len(tuner.history(database, shape=(8, 8, np.int64(8)))) == 5
    assert tuner.history(database, shape=[9, 9, 9]) == ()
    assert tuner.history(database, shape="9x9x9") == ()
    assert len(tuner.history(database, op="matmul", dtype=np.dtype("float32"))) == 5
    assert tuner.history(database, op="matmul", dtype=np.float64) == ()


def test_a_run_and_a_trial_are_one_short_line(database: str) -> None:
    run = tuner.tune(PROBLEM, trials=20, sampler="exhaustive", db=database)
    assert repr(run.best) == (
        f"StoredTrial({run.best.id} of run 1: matmul 8x8x8 f32 nn none, fake: "  # type: ignore[union-attr]
        "fake(comment=a, x=7), measured 0.001 s, reliable)"
    )
    assert repr(run) == (
        f"TunedRun(1: matmul 8x8x8 f32 nn none, fake, done, 20 trials, 0 failed; best {run.best!r})"
    )


@pytest.mark.slow
def test_a_trial_reports_its_knobs_strategy_time_and_script(database: str) -> None:
    best = tuner.tune(PROBLEM, trials=20, sampler="exhaustive", db=database).best
    assert best is not None
    assert (best.strategy, best.knobs) == ("fake", {"x": 7, "comment": "a"})
    assert (best.time_s, best.best_s, best.script) == (fakes.BEST_S, fakes.BEST_S, best.script_text)


def test_runs_takes_the_fields_of_a_query(database: str) -> None:
    run = tuner.tune(PROBLEM, trials=5, db=database)
    assert tuner.runs(database) == (run,)
    assert tuner.runs(database, op="matmul", dtype=np.float32, status="done") == (run,)
    assert tuner.runs(database, status="interrupted") == ()
    with pytest.raises(tuner.UsageError, match=r"^runs: found 'color', allowed operation, shape, dtype"):
        tuner.runs(database, color="red")


@pytest.mark.slow
@pytest.mark.mlir
def test_a_strategy_of_ones_own_space_without_a_configuration_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    backends = real_candidates()
    monkeypatch.setattr("tuner.targets.registry.real_backends", lambda: backends)
    space, db = tmp_path / "mine.yaml", tmp_path / "results.db"
    constraint = "extends: default\nstrategies:\n  matmul_cpu_packed:\n    constraints: ['m / 0 > 1']\n"
    space.write_text(constraint)
    why = "^'m / 0 > 1' leaves strategy matmul_cpu_packed none of [0-9]+ combinations, as it divides by zero$"
    problem = tuner.Matmul(16, 32, 16)
    with brief_remeasurement():
        with pytest.warns(UserWarning, match=why) as warned:
            run = tuner.tune(problem, "cpu", 1, space=space, db=db)
        with pytest.warns(UserWarning, match=why) as again:
            tuner.resume(run.run.id, db, trials=2)
        tuner.resume(run.run.id, db, trials=3, progress=True)
        tuner.tune(
            tuner.Matmul(1, 16, 16), "cpu", 1, db=db
        )  # shipped strategies need not suit it: no warning
    assert [each.filename for each in (*warned, *again)] == [__file__] * 2
    assert [str(each.message) for each in warned] == [str(each.message) for each in again]
    assert f"note: {warned[0].message}\n" in capsys.readouterr().err


@pytest.mark.slow
def test_load_best_loads_the_script_of_the_best(database: str) -> None:
    run = tuner.tune(PROBLEM, trials=20, sampler="exhaustive", db=database)
    assert run.best is not None
    kernel = tuner.load_best(PROBLEM, db=database)
    assert kernel("a", "b") == (PROBLEM, run.best.script_text, 1, ("a", "b"))


@pytest.mark.parametrize(
    "ask",
    [
        lambda db: tuner.history(db),
        lambda db: tuner.runs(db),
        lambda db: tuner.export(PROBLEM, db=db),
        lambda db: tuner.load_best(PROBLEM, db=db),
        lambda db: tuner.report(db=db),
        lambda db: tuner.resume(1, db=db),
    ],
    ids=["history", "runs", "export", "load_best", "report", "resume"],
)
def test_a_question_creates_no_database(ask: Callable[[str], object], tmp_path: Path) -> None:
    missing = tmp_path / "none" / "missing.db"
    line = f"^database sqlite:///{missing}: no such file; tuner tune .* --db {missing}$"
    with pytest.raises(UsageError, match=line):
        ask(str(missing))
    assert not missing.parent.exists()


@pytest.mark.slow
def test_an_interrupted_run_raises_and_is_gone_on_with(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(problem: object, threads: int, seed: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tuner.targets.registry.real_backends", lambda: fakes.backends(baseline=interrupt))
    with pytest.raises(KeyboardInterrupt, match="go on with: tuner tune --resume 1 --db "):
        tuner.tune(PROBLEM, trials=20, sampler="exhaustive", db=database)
    monkeypatch.setattr("tuner.targets.registry.real_backends", fakes.backends)
    run = tuner.resume(1, db=database)
    assert (run.run.id, run.counts.proposed) == (1, 20)
    assert run.best is not None
    assert run.best.best_s == fakes.BEST_S
    extended = tuner.resume(1, db=database, budget="1h")
    assert (extended.run.settings.trials, extended.run.settings.budget_s) == (None, 3600.0)
    with pytest.raises(UsageError, match="trials: found 4, but run 1 has 20 trials already"):
        tuner.resume(1, db=database, trials=4)
    with pytest.raises(UsageError, match="run: found 7, allowed 1 to 1"):
        tuner.resume(7, db=database)
    with pytest.raises(UsageError, match="run: found '1', allowed an integer"):
        tuner.resume("1", db=database)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "^trials: found 0, allowed 1 or more$"),
        ({"budget": 0}, "^budget: found 0, allowed seconds, more than 0$"),
        ({"budget": "soon"}, "^budget: found 'soon', allowed a time such as 60s, 5m or 1h$"),
        ({"target": "tpu"}, "^target: found 'tpu', allowed auto, fake"),
        (
            {"strategy": 7},
            "^strategy: found 7, allowed a path, a text or a tuple of values, each a path or a",
        ),
        ({"warm_start": 7}, "^warm_start: found 7, allowed True or False, a path, a text or a tuple"),
        ({"problem": "64x64x64"}, "^problem: found '64x64x64', allowed such as tuner.Matmul"),
    ],
)
def test_wrong_arguments_are_refused(database: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        tuner.tune(**{"problem": PROBLEM, "db": database} | options)  # type: ignore[arg-type]
    assert not Path(database).exists()


@pytest.mark.mlir
def test_a_real_kernel_is_tuned_loaded_and_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuner.targets.registry.real_backends", real_candidates)
    database = str(tmp_path / "real.db")
    problem = tuner.Matmul(32, 48, 16)
    with brief_remeasurement():
        run = tuner.tune(problem, trials=3, workers=1, db=database)
    assert run.best is not None, [trial.record for trial in tuner.history(database)]
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((32, 16), np.float32), rng.standard_normal((16, 48), np.float32)
    np.testing.assert_allclose(tuner.load_best(problem, db=database)(a, b), a @ b, rtol=1e-4, atol=1e-5)


GPU = gpu_machine("cuda", chip_of("sm_90"), "NVIDIA GPU")
Stored = tuple[Problem, TargetName]


@pytest.fixture
def stored(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, tuple[Stored, ...]], KernelProgram]:
    """Stores a trial of each problem and target; there is a GPU. Returns the program of all."""

    def store_all(chip: str, found: tuple[Stored, ...]) -> KernelProgram:
        program = KernelProgram(chip, "// ptx", b"cubin", (), ())
        record = replace(values.outcome(values.timed(1e-3), artifact="a" * 64), program=program)
        with Store.open(database) as store:
            for problem, target in found:
                settings = replace(values.SETTINGS, problem=problem, target=target)
                run = values.begin(store, settings, fakes.MACHINE if target == CPU else GPU)
                values.add(store, run, 0, replace(record, target=target))
        return program

    backends = fakes.backends(
        (TargetStatus("cpu", True, ""), TargetStatus("cuda", True, "", chip="sm_90")),
        machine=lambda target: fakes.MACHINE if target == CPU else GPU,
    )
    monkeypatch.setattr("tuner.targets.registry.real_backends", lambda: backends)
    return store_all


def test_load_best_of_a_gpu_loads_the_program_that_was_compiled(database: str, stored: Any) -> None:
    program = stored("sm_90", ((PROBLEM, CUDA),))
    for target in ("auto", "cuda"):
        assert tuner.load_best(PROBLEM, db=database, target=target)("a", "b") == (
            PROBLEM,
            program,
            ("a", "b"),
        )
    with pytest.raises(UsageError, match="matmul 8x8x8 f32 nn none cpu: nothing measured on"):
        tuner.load_best(PROBLEM, db=database, target="cpu")


def test_load_best_prefers_a_gpu_and_takes_the_cpu_where_the_gpu_has_nothing(
    database: str, stored: Any
) -> None:
    both = tuner.Matmul(16, 16, 16)
    program = stored("sm_90", ((both, CPU), (both, CUDA), (PROBLEM, CPU)))
    assert tuner.load_best(both, db=database)("a") == (both, program, ("a",))
    assert tuner.load_best(PROBLEM, db=database)("a") == (PROBLEM, values.SCRIPT, 1, ("a",))


def test_load_best_finds_what_was_tuned_for_another_name_of_the_chip(database: str, stored: Any) -> None:
    program = stored("sm_90a", ((PROBLEM, TargetName("cuda", "sm_90a")),))
    for text in ("auto", "cuda", "cuda:sm_90a"):
        assert tuner.load_best(PROBLEM, db=database, target=text)("a")[1] == program
    with pytest.raises(UsageError, match="nothing measured"):
        tuner.load_best(PROBLEM, db=database, target="cuda:sm_90")


@pytest.mark.slow
def test_the_best_script_is_exported_and_written(database: str, tmp_path: Path) -> None:
    run = tuner.tune(PROBLEM, trials=20, sampler="exhaustive", db=database)
    assert run.best is not None
    script = tuner.export(PROBLEM, db=database)
    assert run.best.script_text in script.decode()
    assert tuner.export(run.best, tmp_path / "own.mlir", db=database) == (tmp_path / "own.mlir").read_bytes()
    assert (tmp_path / "own.source.mlir").read_bytes() == tuner.export(
        run.best.id, format="source", db=database
    )


def test_forms_and_trials_that_are_none_are_refused(database: str) -> None:
    run = tuner.tune(PROBLEM, trials=5, db=database)
    assert run.best is not None
    with pytest.raises(
        UsageError, match=r"format: found .json., allowed script, source, payload, ptx, cubin"
    ):
        tuner.export(PROBLEM, format="json", db=database)
    with pytest.raises(UsageError, match="has no GPU program"):
        tuner.export(run.best, format="ptx", db=database)


@pytest.mark.slow
def test_a_page_is_returned_and_written(database: str, tmp_path: Path) -> None:
    tuner.tune(PROBLEM, trials=5, db=database)
    page = tuner.report(tmp_path / "report.html", db=database, run=1, compile_time=True)
    assert page.startswith("<!doctype html>")
    assert (tmp_path / "report.html").read_text() == page
    with pytest.raises(UsageError, match="limit: found 0, allowed 1 or more"):
        tuner.report(db=database, limit=0)


@pytest.mark.slow
def test_progress_is_reported_on_stderr_where_somebody_asks(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tuner.tune(PROBLEM, trials=5, db=database)
    assert capsys.readouterr().err == ""
    events: list[object] = []
    tuner.tune(PROBLEM, trials=5, db=database, observe=events.append, progress=True)
    given = capsys.readouterr().err
    assert "run 2: matmul 8x8x8 f32 nn none, fake" in given
    assert "final re-measurement: " in given
    assert {type(event).__name__ for event in events} >= {"RunStarted", "TrialDone", "RemeasurementStarted"}
    tuner.resume(2, db=database, retime=True, progress=True)
    assert "final re-measurement: " in capsys.readouterr().err


@pytest.mark.slow
def test_words_are_those_of_the_command_line(database: str) -> None:
    by_names = tuner.tune(
        PROBLEM, budget="1h", trials=3, strategy="matmul_cpu_packed", warm_start=False, db=database
    )
    assert by_names.run.settings.budget_s == 3600.0
    assert by_names.run.settings.strategies == (ChosenStrategy("matmul_cpu_packed"),)
    both = tuner.tune(PROBLEM, trials=3, strategy=("matmul_cpu_packed",), budget=7200, db=database)
    assert both.run.settings.budget_s == 7200
    with pytest.raises(UsageError, match=r"absent\.json"):
        tuner.tune(PROBLEM, trials=3, warm_start=Path("absent.json"), db=database)


@pytest.mark.slow
def test_the_best_of_another_machine_and_that_of_stock_mlir_opt_are_exported(database: str) -> None:
    tuner.tune(PROBLEM, trials=20, sampler="exhaustive", db=database)
    best = tuner.export(PROBLEM, db=database)
    assert tuner.export(PROBLEM, db=database, machine=fakes.MACHINE.name, stock=True) == best
    with pytest.raises(UsageError, match="nothing measured on 'another', only on fake"):
        tuner.export(PROBLEM, db=database, machine="another")
