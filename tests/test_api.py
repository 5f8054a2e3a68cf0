import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tuner
from tests.db import values
from tests.tuning import fakes
from tuner import api
from tuner.chips import chip_of
from tuner.config import default_space_file
from tuner.db.store import Store
from tuner.errors import UsageError
from tuner.kernel import KernelProgram
from tuner.machine import gpu_machine
from tuner.runs import RunSettings
from tuner.target_name import TargetName
from tuner.tuning.composition import TargetStatus

PROBLEM = tuner.Matmul(8, 8, 8)


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Puts fakes in place of compiler and clock; returns a database."""
    monkeypatch.setattr("tuner.tuning.parts.real_composition", fakes.composition)
    return str(tmp_path / "results.db")


def settings(**words: object) -> RunSettings:
    return api.run_settings(PROBLEM, fakes.composition(), **words)  # type: ignore[arg-type]


def test_tune_returns_the_run_with_its_best(database: str) -> None:
    run = tuner.tune(PROBLEM, trials=20, sampler="exhaustive", db=database)
    assert run.best is not None
    assert run.best.best_s == fakes.BEST_S
    assert run.counts.proposed == 20


def test_history_takes_the_fields_of_a_query(database: str) -> None:
    tuner.tune(PROBLEM, trials=5, db=database)
    assert len(tuner.history(database)) == 5
    assert len(tuner.history(database, shape="8x8x8", best=True)) == 1
    assert tuner.history(database, shape="9x9x9") == ()


def test_history_of_an_unknown_field_is_refused(database: str) -> None:
    with pytest.raises(UsageError, match="history: found 'color', allowed operation, shape"):
        tuner.history(database, color="red")


def test_load_best_loads_the_script_of_the_best(database: str) -> None:
    run = tuner.tune(PROBLEM, trials=20, sampler="exhaustive", db=database)
    assert run.best is not None
    kernel = tuner.load_best(PROBLEM, db=database)
    assert kernel("a", "b") == (PROBLEM, run.best.script_text, 1, ("a", "b"))


def test_load_best_of_nothing_says_how_to_begin(database: str) -> None:
    with pytest.raises(UsageError, match="nothing measured yet; begin with: tuner tune matmul 8x8x8"):
        tuner.load_best(PROBLEM, db=database)


def test_an_interrupted_run_raises_and_is_stored(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(problem: object, threads: int, seed: int, target: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tuner.tuning.parts.real_composition", lambda: fakes.composition(vendor=interrupt))
    with pytest.raises(KeyboardInterrupt, match="go on with: tuner tune --resume 1"):
        tuner.tune(PROBLEM, db=database)


def test_defaults_are_filled_in() -> None:
    made = settings()
    assert (made.trials, made.budget_s, made.threads, made.workers) == (100, None, 1, 1)
    assert made.target == "fake"
    assert made.space_yaml == default_space_file().read_text()
    assert "matmul_cpu_packed" in made.strategies


def test_a_budget_in_seconds_alone_limits_no_trials() -> None:
    assert settings(budget_s=5.0).trials is None


@pytest.mark.parametrize("name", ["threads", "trials", "workers"])
def test_counts_begin_at_1(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name}: found 0, allowed 1 or more"):
        settings(**{name: 0})


@pytest.mark.parametrize("name", ["trials", "workers", "threads", "seed"])
@pytest.mark.parametrize("found", [2.5, "5", True])
def test_counts_are_integers(name: str, found: object) -> None:
    with pytest.raises(UsageError, match=rf"{name}: found {re.escape(repr(found))}, allowed an integer"):
        settings(**{name: found})


@pytest.mark.parametrize("found", [0, -1.0, float("nan"), float("inf"), "5s"])
def test_a_budget_is_a_time_that_ends(found: object) -> None:
    with pytest.raises(UsageError, match=r"budget_s: found .*, allowed seconds, more than 0"):
        settings(budget_s=found)


def test_files_may_be_named_by_texts() -> None:
    named = settings(warm_files=("a.t4.json",), space=str(default_space_file()))
    assert named.warm_files == (str(Path("a.t4.json").absolute()),)


def test_a_seed_is_not_negative() -> None:
    with pytest.raises(UsageError, match="seed: found -1, allowed 0 or more"):
        settings(seed=-1)


def test_a_seed_fits_a_database() -> None:
    with pytest.raises(UsageError, match="seed: found 9223372036854775808, allowed 0 to 9223372036854775807"):
        settings(seed=2**63)


def test_auto_is_the_first_target_that_works() -> None:
    statuses = (TargetStatus("gpu", False, "no driver"), TargetStatus("cpu", True, "here"))
    assert api.resolve_target("auto", fakes.composition(targets=lambda: statuses)) == TargetName("cpu")


def test_auto_is_never_a_target_without_times() -> None:
    untimed = TargetStatus("simulator", True, "no clock", is_timed=False)
    parts = fakes.composition(targets=lambda: (untimed, TargetStatus("cpu", True, "here")))
    assert api.resolve_target("auto", parts) == TargetName("cpu")
    with pytest.raises(UsageError, match="chip: found 'sm_80' for target cpu, allowed for cuda, simulator"):
        api.resolve_target("auto", parts, "sm_80")
    with pytest.raises(UsageError, match="found none that works here: simulator: no clock"):
        api.resolve_target("auto", fakes.composition(targets=lambda: (untimed,)))


def test_a_target_that_only_compiles_may_be_asked_for() -> None:
    cuda = TargetStatus("cuda", False, "no driver", is_timed=False, can_compile=True)
    parts = fakes.composition(targets=lambda: (cuda,))
    assert api.resolve_target("cuda", parts, "sm_80") == TargetName("cuda", "sm_80")
    with pytest.raises(UsageError, match="chip: found 'sm_1', allowed sm_80, "):
        api.resolve_target("cuda:sm_1", parts)


def test_auto_prefers_a_gpu_and_takes_its_chip() -> None:
    statuses = (TargetStatus("cpu", True, "here"), TargetStatus("cuda", True, "NVIDIA H200", chip="sm_90"))
    parts = fakes.composition(targets=lambda: statuses)
    assert api.resolve_target("auto", parts) == TargetName("cuda", "sm_90")
    assert api.resolve_target("cuda", parts) == TargetName("cuda", "sm_90")
    assert api.resolve_target("cpu", parts) == TargetName("cpu")
    assert api.resolve_target("cuda", parts, "sm_90a") == TargetName("cuda", "sm_90a")


@pytest.mark.parametrize(("word", "chip"), [("cuda:sm_80", ""), ("cuda", "sm_80"), ("auto", "sm_80")])
def test_code_for_another_chip_than_the_gpu_here_is_refused(word: str, chip: str) -> None:
    here = TargetStatus("cuda", True, "NVIDIA H200", chip="sm_90")
    parts = fakes.composition(targets=lambda: (here,))
    message = "found cuda:sm_80, the GPU here is sm_90, allowed cuda:sm_90, or simulator:sm_80"
    with pytest.raises(UsageError, match=message):
        api.resolve_target(word, parts, chip)


def test_the_default_chip_is_that_of_the_gpu_here() -> None:
    parts = fakes.composition(targets=lambda: (TargetStatus("cuda", True, "an A100", chip="sm_80"),))
    assert api.resolve_target("cuda", parts) == TargetName("cuda", "sm_80")


def test_without_times_the_sampler_is_one_that_needs_none() -> None:
    untimed = TargetStatus("simulator", True, "no clock", is_timed=False)
    parts = fakes.composition(targets=lambda: (untimed, TargetStatus("fake", True, "for tests")))
    problem = tuner.Matmul(8, 8, 8, "f16")
    assert api.run_settings(problem, parts, target="simulator").sampler == "random"
    assert api.run_settings(problem, parts, target="simulator").target == "simulator:sm_90"
    assert api.run_settings(problem, parts, target="simulator", sampler="exhaustive").sampler == "exhaustive"
    assert api.run_settings(problem, parts, target="fake").sampler == "tpe"
    with pytest.raises(
        UsageError, match="sampler: found 'tpe', allowed random, exhaustive: target simulator"
    ):
        api.run_settings(problem, parts, target="simulator", sampler="tpe")


def test_what_processors_do_not_take_is_refused_before_anything_is_tried() -> None:
    parts = fakes.composition(targets=lambda: (TargetStatus("cpu", True, "here"),))
    with pytest.raises(UsageError, match="dtype: found 'f16', allowed f32, f64, bf16 on target cpu"):
        api.run_settings(tuner.Matmul(8, 8, 8, "f16"), parts)


def test_no_target_that_works_tells_every_reason() -> None:
    statuses = (TargetStatus("gpu", False, "no driver"), TargetStatus("cpu", False, "no AVX2"))
    parts = fakes.composition(targets=lambda: statuses)
    with pytest.raises(UsageError, match="found none that works here: gpu: no driver; cpu: no AVX2"):
        api.resolve_target("auto", parts)
    with pytest.raises(UsageError, match="target cpu: not available here: no AVX2"):
        api.resolve_target("cpu", parts)
    with pytest.raises(UsageError, match=re.escape("target: found 'tpu', allowed auto, gpu, cpu")):
        api.resolve_target("tpu", parts)


@pytest.mark.mlir
def test_a_real_kernel_is_tuned_loaded_and_right(tmp_path: Path) -> None:
    database = str(tmp_path / "real.db")
    problem = tuner.Matmul(32, 48, 16)
    run = tuner.tune(problem, trials=3, workers=1, db=database)
    assert run.best is not None, [trial.record for trial in tuner.history(database)]
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((32, 16), np.float32), rng.standard_normal((16, 48), np.float32)
    np.testing.assert_allclose(tuner.load_best(problem, db=database)(a, b), a @ b, rtol=1e-4, atol=1e-5)


def test_load_best_of_a_gpu_loads_the_program_that_was_compiled(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = KernelProgram("sm_90", "// ptx", b"cubin", (), ())
    gpu = gpu_machine("cuda", chip_of("sm_90"), "NVIDIA GPU")
    with Store.open(database) as store:
        settings = replace(values.SETTINGS, target="cuda:sm_90")
        record = replace(values.outcome(values.timed(1e-3), artifact="a" * 64), program=program)
        values.add(store, values.begin(store, settings, gpu), 0, replace(record, target="cuda:sm_90"))
    parts = fakes.composition(
        targets=lambda: (TargetStatus("cpu", True, ""), TargetStatus("cuda", True, "", chip="sm_90")),
        target_machine=lambda target: gpu if target.startswith("cuda") else fakes.MACHINE,
    )
    monkeypatch.setattr("tuner.tuning.parts.real_composition", lambda: parts)
    for target in ("auto", "cuda"):
        kernel = tuner.load_best(values.PROBLEM, db=database, target=target)
        assert kernel("a", "b") == (values.PROBLEM, program, ("a", "b"))
    with pytest.raises(UsageError, match="matmul 512x512x512 f32 nn none cpu: nothing measured on"):
        tuner.load_best(values.PROBLEM, db=database, target="cpu")


def test_load_best_prefers_a_gpu_and_takes_the_cpu_where_the_gpu_has_nothing(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, on_cpu = tuner.Matmul(16, 16, 16), PROBLEM
    gpu = gpu_machine("cuda", chip_of("sm_90"), "NVIDIA GPU")
    program = KernelProgram("sm_90", "// ptx", b"cubin", (), ())
    record = replace(values.outcome(values.timed(1e-3), artifact="a" * 64), program=program)
    with Store.open(database) as store:
        for problem, target, machine in (
            (both, "cpu", fakes.MACHINE),
            (both, "cuda:sm_90", gpu),
            (on_cpu, "cpu", fakes.MACHINE),
        ):
            run = values.begin(store, replace(values.SETTINGS, problem=problem, target=target), machine)
            values.add(store, run, 0, replace(record, target=target))
    parts = fakes.composition(
        targets=lambda: (TargetStatus("cpu", True, ""), TargetStatus("cuda", True, "", chip="sm_90")),
        target_machine=lambda target: gpu if target.startswith("cuda") else fakes.MACHINE,
    )
    monkeypatch.setattr("tuner.tuning.parts.real_composition", lambda: parts)
    assert tuner.load_best(both, db=database)("a") == (both, program, ("a",))
    assert tuner.load_best(on_cpu, db=database)("a") == (on_cpu, values.SCRIPT, 1, ("a",))
