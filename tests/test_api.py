"""The Python API: what it gives, and that a value of a wrong type is refused in one line."""

import datetime
import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tuner
from tests.cli.real import brief_remeasurement, real_candidates
from tests.db import values
from tests.models.library.dispatch.rules import rule_of, ship
from tests.tuning import fakes
from tuner.core.candidate import TargetName
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.gpu import chip_of
from tuner.core.machine import gpu_machine
from tuner.core.problem import Problem
from tuner.core.queries import TrialQuery
from tuner.core.runs import ChosenStrategy
from tuner.core.typed_arguments import typed, typed_arguments
from tuner.db.store import Store
from tuner.models.quantized.quantized_files import QuantizedTensor
from tuner.results.exported_trial import exported
from tuner.targets.target import TargetStatus

PROBLEM = tuner.Matmul(8, 8, 8)
CPU, CUDA = TargetName("cpu"), TargetName("cuda", "sm_90")


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Puts fakes in place of compiler and clock; returns a database."""
    monkeypatch.setattr("tuner.targets.registry.real_backends", fakes.backends)
    return str(tmp_path / "results.db")


def test_the_environment_names_the_database_whose_history_runs_and_trials_are_short_lines(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Path(database).with_name("data")
    monkeypatch.setenv("XDG_DATA_HOME", str(data))  # of the user's own database
    monkeypatch.setenv("TUNER_DB", database)
    run = tuner.tune(PROBLEM, trials=20, sampler="exhaustive")
    assert run.best is not None
    assert len(tuner.history()) == len(tuner.history(db=Path(database))) == 20
    assert tuner.load_best(PROBLEM)("a", "b") == (PROBLEM, run.best.script_text, 1, ("a", "b"))
    assert not data.exists()
    assert len(tuner.history(db=database, shape="8x8x8", best=True)) == 1
    assert len(tuner.history(db=database, shape=(8, 8, np.int64(8)))) == 20
    assert tuner.history(db=database, shape=[9, 9, 9]) == ()
    assert tuner.history(db=database, shape="9x9x9") == ()
    assert len(tuner.history(db=database, op="matmul", dtype=np.dtype("float32"))) == 20
    assert tuner.history(db=database, op="matmul", dtype=np.float64) == ()
    assert tuner.runs(db=database) == (run,)
    assert tuner.runs(db=database, op="matmul", dtype=np.float32, status="done") == (run,)
    assert tuner.runs(db=database, status="interrupted") == ()
    with pytest.raises(tuner.UsageError, match=r"^runs: found 'color', allowed operation, shape, dtype"):
        tuner.runs(db=database, color="red")
    best = run.best
    problem, trials = "matmul 8x8x8 f32 nn none, fake", "20 trials, 0 failed"
    of_best = f"{best.id} of run 1: {problem}: fake(comment=a, x=7), measured 0.001 s, reliable"
    assert repr(best) == f"StoredTrial({of_best})"
    assert repr(run) == f"TunedRun(1: {problem}, done, {trials}; best {best!r})"
    assert (best.strategy, best.knobs) == ("fake", {"x": 7, "comment": "a"})
    assert (best.time_s, best.best_s, best.script) == (fakes.BEST_S, fakes.BEST_S, best.script_text)


@pytest.mark.slow
@pytest.mark.mlir
def test_a_strategy_of_ones_own_space_without_a_configuration_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    backends = real_candidates()
    monkeypatch.setattr("tuner.targets.registry.real_backends", lambda: backends)
    space, db = tmp_path / "mine.yaml", tmp_path / "results.db"
    space.write_text("{extends: default, strategies: {matmul_cpu_packed: {constraints: ['m / 0 > 1']}}}")
    none = "^'m / 0 > 1' leaves none of the [0-9]+ combinations of strategy matmul_cpu_packed"
    why = f"{none}, as it divides by zero$"
    problem = tuner.Matmul(16, 32, 16)
    with brief_remeasurement():
        with pytest.warns(UserWarning, match=why) as warned:
            run = tuner.tune(problem, "cpu", 1, space=space, db=db)
        with pytest.warns(UserWarning, match=why) as again:
            tuner.resume(run.run.id, db, trials=2)
        tuner.resume(run.run.id, db, trials=3, progress=True)
        # shipped strategies need not suit it: no warning
        tuner.tune(tuner.Matmul(1, 16, 16), "cpu", 1, db=db)
    assert [each.filename for each in (*warned, *again)] == [__file__] * 2
    assert [str(each.message) for each in warned] == [str(each.message) for each in again]
    assert f"note: {warned[0].message}\n" in capsys.readouterr().err


@pytest.mark.mlir
def test_a_kernel_is_loaded_untuned_until_the_database_of_the_environment_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = tuner.Matmul(64, 64, 64)
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    ship(shipped, monkeypatch, rule_of({problem: (1e-3, 2e-3)}))
    monkeypatch.setenv("TUNER_DB", str(tmp_path / "later" / "results.db"))
    kernel = tuner.load_best(problem, target="cpu")
    ones = np.ones((64, 64), np.float32)
    np.testing.assert_array_equal(kernel(ones, ones), 64 * ones)
    assert list(tmp_path.iterdir()) == [shipped]


@pytest.mark.parametrize("name", ["history", "runs", "export", "load_best", "report", "resume"])
def test_a_question_creates_no_database(name: str, tmp_path: Path) -> None:
    missing = tmp_path / "none" / "missing.db"
    line = f"^database sqlite:///{missing}: no such file; tuner tune .* --db {missing}$"
    with pytest.raises(UsageError, match=line):
        getattr(tuner, name)(**CALLS[name] | {"db": str(missing)})
    assert not missing.parent.exists()


@pytest.mark.slow
def test_an_interrupted_run_raises_and_is_resumed(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_arguments: object) -> None:
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
    for number, allowed in ((7, "7, allowed 1 to 1"), ("1", "'1', allowed an integer")):
        with pytest.raises(UsageError, match=f"run: found {allowed}"):
            tuner.resume(number, db=database)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "^trials: found 0, allowed 1 or more$"),
        ({"budget": 0}, "^budget: found 0, allowed seconds, more than 0$"),
        ({"budget": "soon"}, "^budget: found 'soon', allowed a time such as 60s, 5m or 1h$"),
        ({"target": "tpu"}, "^target: found 'tpu', allowed auto, fake"),
        ({"strategy": 7}, "^strategy: found 7, allowed a path, a text or a tuple of values, each a path or"),
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
    assert run.best is not None, [trial.record for trial in tuner.history(db=database)]
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((32, 16), np.float32), rng.standard_normal((16, 48), np.float32)
    np.testing.assert_allclose(tuner.load_best(problem, db=database)(a, b), a @ b, rtol=1e-4, atol=1e-5)


GPU = gpu_machine("cuda", chip_of("sm_90"), "NVIDIA GPU")
Storing = Callable[[str, tuple[tuple[Problem, TargetName], ...]], KernelCode]


@pytest.fixture
def stored(database: str, monkeypatch: pytest.MonkeyPatch) -> Storing:
    """Stores a trial of each problem and target; there is a GPU. Returns the program of all."""

    def store_all(chip: str, found: tuple[tuple[Problem, TargetName], ...]) -> KernelCode:
        program = KernelCode(chip, "// ptx", b"cubin", (), ())
        on_cpu = values.outcome(values.timed(1e-3))
        on_gpu = replace(values.outcome(values.timed(1e-3), artifact="a" * 64), kernel_code=program)
        with Store.open(database) as store:
            for problem, target in found:
                settings = replace(values.SETTINGS, problem=problem, target=target)
                run = values.begin(store, settings, fakes.MACHINE if target == CPU else GPU)
                values.add(store, run, 0, replace(on_cpu if target == CPU else on_gpu, target=target))
        return program

    backends = fakes.backends(
        (TargetStatus("cpu", True, ""), TargetStatus("cuda", True, "", chip="sm_90", chips=("sm_90a",))),
        machine=lambda target: fakes.MACHINE if target == CPU else GPU,
    )
    monkeypatch.setattr("tuner.targets.registry.real_backends", lambda: backends)
    return store_all


def test_load_best_takes_the_cpu_where_the_gpu_has_nothing(database: str, stored: Storing) -> None:
    alone, both, on_cpu = (tuner.Matmul(size, size, size) for size in (8, 16, 24))
    program = stored("sm_90", ((alone, CUDA), (both, CPU), (both, CUDA), (on_cpu, CPU)))
    for target in ("auto", "cuda"):
        kernel = tuner.load_best(alone, db=database, target=target)
        assert kernel("a", "b") == (alone, program, ("a", "b"))
    with pytest.raises(UsageError, match="matmul 8x8x8 f32 nn none cpu: nothing measured on"):
        tuner.load_best(alone, db=database, target="cpu")
    assert tuner.load_best(both, db=database)("a") == (both, program, ("a",))
    assert tuner.load_best(on_cpu, db=database)("a") == (on_cpu, values.SCRIPT, 1, ("a",))


def test_load_best_and_export_return_no_refuted_trial(database: str, stored: Storing) -> None:
    stored("sm_90", ((PROBLEM, CUDA), (PROBLEM, CPU)))
    assert tuner.load_best(PROBLEM, db=database)("a")
    with Store.open(database) as store:
        trials = store.trials(TrialQuery(status="measured"))
        for each in trials:
            store.refute(each.id, Failure(Stage.VERIFY, "in the final re-measurement: wrong"))
    for target in ("auto", "cpu", "cuda"):
        with pytest.raises(UsageError, match="nothing measured"):
            tuner.load_best(PROBLEM, db=database, target=target)
    with Store.open(database) as store:
        for each in trials:
            for form in ("script", "provenance"):
                with pytest.raises(UsageError, match=f"trial {each.id}: failed"):
                    exported(fakes.backends(), store, store.trial(each.id), form, None)


def test_load_best_finds_what_was_tuned_for_another_name_of_the_chip(database: str, stored: Storing) -> None:
    program = stored("sm_90a", ((PROBLEM, TargetName("cuda", "sm_90a")),))
    for text in ("auto", "cuda", "cuda:sm_90a"):
        assert tuner.load_best(PROBLEM, db=database, target=text)("a")[1] == program
    with pytest.raises(UsageError, match="nothing measured"):
        tuner.load_best(PROBLEM, db=database, target="cuda:sm_90")


@pytest.mark.slow
def test_the_best_script_and_a_page_are_returned_and_written(database: str, tmp_path: Path) -> None:
    run = tuner.tune(PROBLEM, trials=20, sampler="exhaustive", db=database)
    assert run.best is not None
    script = tuner.export(PROBLEM, db=database)
    assert run.best.script_text in script.decode()
    assert tuner.export(run.best, tmp_path / "own.mlir", db=database) == (tmp_path / "own.mlir").read_bytes()
    source = tuner.export(run.best.id, format="source", db=database)
    assert (tmp_path / "own.source.mlir").read_bytes() == source
    assert tuner.export(PROBLEM, db=database, machine=fakes.MACHINE.name, stock=True) == script
    for options, message in (
        ({"machine": "another"}, "nothing measured on 'another', only on fake"),
        (
            {"format": "json"},
            r"format: found .json., allowed script, provenance, source, payload, ptx, cubin",
        ),
        ({"what": run.best, "format": "ptx"}, "has no GPU program"),
    ):
        with pytest.raises(UsageError, match=message):
            tuner.export(**{"what": PROBLEM, "db": database} | options)  # type: ignore[arg-type]
    tuner.tune(PROBLEM, trials=5, db=database)
    page = tuner.report(tmp_path / "report.html", db=database, run=1, compile_time=True)
    assert page.startswith("<!doctype html>")
    assert (tmp_path / "report.html").read_text() == page
    with pytest.raises(UsageError, match="limit: found 0, allowed 1 or more"):
        tuner.report(db=database, limit=0)


@pytest.mark.slow
def test_words_are_those_of_the_command_line_and_progress_is_reported_if_asked(
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
    packed = "matmul_cpu_packed"
    by_names = tuner.tune(PROBLEM, budget="1h", trials=3, strategy=packed, warm_start=False, db=database)
    assert by_names.run.settings.budget_s == 3600.0
    assert by_names.run.settings.strategies == (ChosenStrategy(packed),)
    both = tuner.tune(PROBLEM, trials=3, strategy=(packed,), budget=7200, db=database)
    assert both.run.settings.budget_s == 7200
    with pytest.raises(UsageError, match=r"absent\.json"):
        tuner.tune(PROBLEM, trials=3, warm_start=Path("absent.json"), db=database)


MISSING = "/nonexistent/results.db"  # a call whose arguments are all right ends at this database


class Stranger:
    """A value that no parameter takes, which is printed on two lines."""

    def __repr__(self) -> str:
        return "two\nlines"


CALLS: dict[str, dict[str, Any]] = {  # public function -> arguments of a call that is refused before any work
    "tune": {"problem": PROBLEM, "target": "replay:/nonexistent", "trials": 1},
    "tune_many": {"problems": [PROBLEM], "target": "replay:/nonexistent", "trials": 1},
    "resume": {"run": 1, "db": MISSING},
    "resume_many": {"campaign": 1, "db": MISSING},
    **{name: {"db": MISSING} for name in ("history", "runs")},
    "export": {"what": PROBLEM, "db": MISSING},
    "load_best": {"problem": PROBLEM, "db": MISSING},
    "load_range": {"campaign": 1, "db": MISSING},
    "portfolio": {"campaign": 1, "configs": 1, "db": MISSING},
    "read_quantized": {"path": "/nonexistent.gguf", "name": "blk.0.ffn_up.weight"},
    "report": {"db": MISSING},
    "compile_program": {"payload": "/nonexistent.mlir", "target": "cpu"},
    "load": {"folder": "/nonexistent"},
    "c_library": {"folder": "/nonexistent", "output": "/nonexistent"},
    "Matmul": {"m": 8, "n": 8, "k": 8},
    "BatchMatmul": {"batch": 2, "m": 8, "n": 8, "k": 8},
    "GroupedMatmul": {"groups": 2, "m": 8, "n": 8, "k": 8},
}
CONDITIONS = ("shape", "op", "dtype", "target", "threads", "status", "since", "limit", "cache")
OF_TRIALS = ("run", "best", "sort", "strategy")  # conditions that ``runs`` has not


def parameters(name: str) -> list[str]:
    """Returns what a public function may be called with, conditions of past trials and runs among it."""
    named = inspect.signature(getattr(tuner, name)).parameters.values()
    conditions = {"history": (*CONDITIONS, *OF_TRIALS), "runs": CONDITIONS}.get(name, ())
    return [*(each.name for each in named if each.kind is not each.VAR_KEYWORD), *conditions]


PARAMETERS = [(name, each) for name in CALLS for each in parameters(name)]


def refusal(call: Callable[..., object], **arguments: Any) -> str:
    with pytest.raises(tuner.UsageError) as refused:
        call(**arguments)
    line = str(refused.value)
    assert "\n" not in line
    assert len(line) < 300
    return line


def test_every_public_function_is_called_here_and_options_of_a_product_are_of_their_types() -> None:
    functions = {name for name in tuner.__all__ if inspect.isfunction(getattr(tuner, name))}
    assert functions - {"progress"} == CALLS.keys()  # which has no parameter
    a = np.ones((2, 2), np.float32)
    for name in ("rule", "db", "threads", "measure"):
        assert refusal(tuner.matmul, a=a, b=a, **{name: [a]}).startswith(f"{name}: found [array")
    assert refusal(tuner.matmul, a=a, b=a, out=5) == "matmul: return arrays must be of ArrayType"
    assert "matmul" in refusal(tuner.matmul, a="x", b="y")


@pytest.mark.parametrize("name", CALLS)
def test_a_value_of_no_type_that_is_allowed_is_refused_by_its_name(name: str) -> None:
    for parameter in parameters(name):
        line = refusal(getattr(tuner, name), **CALLS[name] | {parameter: Stranger()})
        names = f"{parameter}|op|dtype|output dtype|operation"
        assert re.match(rf"({names}): found \S*Stranger, allowed ", line), line


ANY_VALUE = st.one_of(
    st.sampled_from([None, True, b"x", "a\0b", "\ud800", float("nan"), object, datetime.date(2026, 1, 31)]),
    st.sampled_from([(), [], {}, (1, "x"), np.ones(3), np.float32(1), Path("a\0b"), Stranger(), len]),
    st.integers(),
    st.sampled_from([10**5000, -1, 2**63, "x", ""]),
)


@given(st.sampled_from(PARAMETERS), ANY_VALUE)
@settings(max_examples=150)
def test_any_value_works_or_is_refused_in_one_line(called: tuple[str, str], value: Any) -> None:
    name, parameter = called
    try:
        getattr(tuner, name)(**CALLS[name] | {parameter: value})
    except tuner.UsageError as error:
        if "\n" in str(error):
            raise


@pytest.mark.parametrize(
    ("name", "arguments", "line"),
    [
        ("history", {"since": 5}, "since: found 5, allowed a datetime, a text or None"),
        ("history", {"limit": "x"}, "limit: found 'x', allowed an integer or None"),
        ("history", {"limit": [10**5000]}, "limit: found builtins.list, allowed an integer or None"),
        ("history", {"run": "2"}, "run: found '2', allowed an integer or None"),
        ("history", {"sort": None}, "sort: found None, allowed a text"),
        ("history", {"shape": (8, "x")}, "shape: found (8, 'x'), allowed a text, a tuple of .* or None"),
        ("load_best", {"problem": 5}, "problem: found 5, allowed such as tuner.Matmul(512, 512, 512)"),
        ("export", {"what": PROBLEM, "file": 5}, "file: found 5, allowed a path, a text or None"),
        ("report", {"file": 3}, "file: found 3, allowed a path, a text or None"),
        ("load", {"folder": 5}, "folder: found 5, allowed a text or a path"),
        ("compile_program", {"payload": 5}, "payload: found 5, allowed a text or a path"),
        ("tune_many", {"problems": 5}, "problems: found 5, allowed a tuple of values, each such as tuner.M"),
        ("resume", {"run": True}, "run: found True, allowed an integer"),
    ],
)
def test_the_line_says_what_is_found_and_allowed(name: str, arguments: dict[str, Any], line: str) -> None:
    pattern = re.escape(line).replace(r"\.\*", ".*")
    assert re.match(pattern, refusal(getattr(tuner, name), **arguments))


def test_functions_on_modules_refuse_values_of_no_type_that_is_allowed() -> None:
    torch = pytest.importorskip("torch", reason="pip install torch")
    import tuner.torch

    module = {"module": torch.nn.Linear(4, 2)}
    calls = {"compile": module, "tune": module, "load": {"folder": "/nonexistent"}, "graph_counts": {}}
    calls["load_gguf"] = {"path": "/nonexistent"}
    for name, call in calls.items():
        function = getattr(tuner.torch, name)
        for parameter in inspect.signature(function).parameters:
            line = refusal(function, **call | {parameter: Stranger()})
            assert re.match(rf"{parameter}: found \S*Stranger, allowed ", line), line


@pytest.mark.parametrize("function", [tuner.history, tuner.runs])
def test_history_and_runs_take_their_arguments_by_keyword_and_say_so(function: Callable[..., Any]) -> None:
    takes = "it takes db=, conditions by keyword, such as shape='512x512x512'"
    with pytest.raises(TypeError, match=f"^{function.__name__}: too many positional arguments; {takes}$"):
        function(PROBLEM)


def test_public_objects_say_what_they_are(database: str) -> None:
    options = {"dtype": "bf16", "layout": "nt", "epilogue": "bias_relu", "output": "bf16", "align": "64"}
    for problem in (
        PROBLEM,
        tuner.Matmul(8, 16, 32, cache="cold", **options),  # type: ignore[arg-type]
        tuner.BatchMatmul(2, 8, 16, 32, "i8"),
    ):
        assert eval(repr(problem), {"Matmul": tuner.Matmul, "BatchMatmul": tuner.BatchMatmul}) == problem
    assert repr(PROBLEM) == "Matmul(8, 8, 8, 'f32')"
    quantized = tuner.Matmul(1, 64, 64, weights="i4", group_size=32)
    assert repr(quantized) == "Matmul(1, 64, 64, 'f32', layout='nt', weights='i4-g32-f16')"
    assert eval(repr(quantized), {"Matmul": tuner.Matmul}) == quantized
    tuned = tuner.tune(PROBLEM, trials=2, db=database)
    assert repr(tuned.run).startswith("Run(1: matmul 8x8x8 f32 nn none, ")
    assert repr(tuner.history(db=database)).startswith("Trials(2 trials, the last: StoredTrial(2 of run 1: ")
    assert repr(tuner.history(db=database, shape="9x9x9")) == "Trials(0 trials)"
    assert re.fullmatch(r"<tuner\.matmul: \d+ shapes looked up>", repr(tuner.matmul))


@pytest.mark.mlir
def test_kernels_programs_and_layers_say_what_they_are(tmp_path: Path) -> None:
    database = str(tmp_path / "results.db")
    types = "(%x: tensor<4xf32>, %n: f32) -> tensor<4xf32>"
    payload = f"func.func @same{types} {{ return %x : tensor<4xf32> }}"
    with Store.open(database):
        pass
    program = tuner.compile_program(payload, target="cpu", db=database)
    assert re.fullmatch(r"\w+Function\(same\(4xf32, f32\) -> \(4xf32\).*\)", repr(program))
    weights = QuantizedTensor("up", "Q4_0", 4, np.zeros((64, 128), np.int8), np.ones((64, 4), np.float16))
    assert repr(weights) == "QuantizedTensor('up': Q4_0, 64x128, 4 bits, float16 scales of 32)"


def test_the_function_keeps_its_name_and_its_parameters_and_an_integer_of_numpy_is_one() -> None:
    @typed_arguments
    def doubled(number: int, *, times: "float" = 2) -> float:
        return number * times

    assert (doubled.__name__, list(inspect.signature(doubled).parameters)) == ("doubled", ["number", "times"])
    assert doubled(2, times=1.5) == 3
    with pytest.raises(TypeError, match="missing a required argument: 'number'"):
        doubled()  # type: ignore[call-arg]
    assert tuner.Matmul(np.int64(8), np.uint8(8), 8) == PROBLEM  # type: ignore[arg-type]
    assert type(typed("run", np.int64(3), int | None)) is int


@pytest.mark.mlir
def test_load_best_compiles_what_is_shipped_for_a_problem_that_was_never_tuned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, database = tuner.Matmul(8, 48, 33), str(tmp_path / "results.db")
    with Store.open(database):
        pass  # there is a database, without this problem
    rule = rule_of({tuner.Matmul(8, 48, 32): (1e-3, 2e-3)})
    ship(tmp_path, monkeypatch, rule)
    a, b = np.ones(problem.a_shape, np.float32), np.ones(problem.b_shape, np.float32)
    kernel = tuner.load_best(problem, db=database)
    np.testing.assert_array_equal(kernel(a, b), a @ b)
    origin = "not tuned and not timed here: shipped results of "
    assert repr(kernel).startswith(f"CpuCallable(matmul 8x48x33 f32 nn none, 1 thread; {origin}")
    for others in (None, replace(rule, machine="another")):  # nothing is shipped; of other processors
        (tmp_path / str(others is None)).mkdir()
        ship(tmp_path / str(others is None), monkeypatch, others)
        with pytest.raises(tuner.UsageError, match="nothing measured yet"):
            tuner.load_best(problem, db=database)
    with pytest.raises(tuner.UsageError, match="no such file"):
        tuner.load_best(problem, db=tmp_path / "missing.db")
