"""How f32 is multiplied (--math): one option that every command with problems has, and its refusals."""

from pathlib import Path

import pytest

from tests.cli.conftest import Tuner, require
from tests.support.gpu_trials import configuration, store_gpu_trial
from tuner.core.dtypes import IEEE, MATH, PLAIN_DTYPES
from tuner.core.matmul import Matmul
from tuner.db.store import Store
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir

SIZES = "matmul 64x64x32"
GPU = "--target simulator:sm_90"
PROGRAM = Path(__file__).parents[3] / "examples" / "async_matmul.mlir"
HINT = "hint: --dtype f32 --math"


@pytest.fixture
def tuner(tmp_path: Path) -> Tuner:
    return Tuner(tmp_path / "results.db", real_backends())


@pytest.mark.slow
def test_a_mode_is_in_the_key_of_what_is_tuned_listed_exported_and_lowered(
    tuner: Tuner, tmp_path: Path
) -> None:
    key = "matmul 64x64x32 tf32x3 nn none"
    tuned = tuner.done(f"tune {SIZES} --dtype f32 --math tf32x3 {GPU} --trials 1").out
    require(tuned, key, "1 trial: 1 verified, 0 failed")
    for options in ("--math tf32x3", "--dtype f32 --math tf32x3"):
        (trial,) = tuner(f"history {options} --json").json
        assert trial["problem"]["dtype"] == "tf32x3"
    for options in ("--dtype f32", "--math ieee", "--math tf32"):
        assert tuner(f"history {options} --json").json == []
    path = tmp_path / "verified.mlir"
    tuner.done("export --trial 1 -o", str(path))
    require(path.read_text(), f"// {key} on simulator:sm_90")
    require(tuner.done(f"lower {SIZES} --math tf32 {GPU} --to source").err, "matmul 64x64x32 tf32 nn none")


@pytest.mark.slow
def test_six_products_are_tuned_listed_exported_and_lowered_where_the_gpu_has_wgmma(
    tuner: Tuner, tmp_path: Path
) -> None:
    key = "matmul 67x35x71 bf16x6 tn none"
    sizes = "matmul 67x35x71 --layout tn --math bf16x6 --target simulator:sm_90a"
    require(tuner.done(f"tune {sizes} --trials 2").out, key, "2 trials: 2 verified, 0 failed")
    assert len(tuner("history --math bf16x6 --json").json) == 2
    path = tmp_path / "verified.mlir"
    tuner.done("export --trial 1 -o", str(path))
    require(path.read_text(), f"// {key} on simulator:sm_90a", "// planes: a b")
    require(tuner.done("show 1").out, key, "split_a_kernel")
    assert "wgmma.mma_async" in tuner.done("lower --trial 1 --to code").out


@pytest.mark.slow
def test_a_run_in_f32_and_one_in_a_mode_of_it_do_not_see_each_other(tuner: Tuner) -> None:
    tuner.done(f"tune {SIZES} --math tf32 {GPU} --trials 1")
    tuned = tuner.done(f"tune {SIZES} {GPU} --trials 1").out
    require(tuned, "matmul 64x64x32 f32 nn none")
    assert [trial["problem"]["dtype"] for trial in tuner("history --json").json] == ["tf32", "f32"]


def test_exports_of_a_mode_and_hints_name_it(tuner: Tuner) -> None:
    problem = Matmul(64, 64, 32, math="tf32x3")
    with Store.open(str(tuner.database)) as store:
        store_gpu_trial(store, problem, configuration(problem))
    require(tuner.done("history --best --math tf32x3").out, "matmul 64x64x32 tf32x3", "cuda:sm_90")
    error = tuner.refused(f"export {SIZES} --math tf32 --target cuda:sm_90 -o unused.mlir")
    require(error, "tf32 nn none", "hint: tuner tune matmul 64x64x32 --math tf32")


COMMANDS = (f"tune {SIZES}", "history", "check --best", "bundle export -o unused", f"space {SIZES}")
REFUSALS = {
    f"tune {SIZES} --dtype bf16 --math tf32": (
        f"math tf32 cannot be combined with dtype bf16, only with f32\n{HINT} tf32, in Python math='tf32'"
    ),
    f"tune {SIZES} --math tf32 --target cpu": (
        "math: found 'tf32', allowed ieee, bf16x6 on target cpu; cuda and simulator take it\n"
        "hint: --math ieee"
    ),
    f"tune {SIZES} --math bf16x6 {GPU}": (
        "math: found 'bf16x6', allowed ieee, tf32, tf32x3 on simulator:sm_90; "
        "sm_90a and CPUs with AMX take it\nhint: --math ieee"
    ),
    "history --math tf32x4": (
        "math: found 'tf32x4', allowed ieee, tf32, tf32x3, bf16x6\nhint: did you mean tf32x3?"
    ),
}


@pytest.mark.parametrize("dtype", sorted({*MATH.values()} - {MATH[IEEE]}))
@pytest.mark.parametrize("command", COMMANDS)
def test_the_type_of_a_mode_is_named_by_the_mode(tuner: Tuner, command: str, dtype: str) -> None:
    allowed = ", ".join(PLAIN_DTYPES)
    message = f"error: dtype: found {dtype!r}, allowed {allowed}\n{HINT} {dtype}\n"
    assert tuner.refused(f"{command} --dtype {dtype}") == message


@pytest.mark.parametrize("options", REFUSALS)
def test_what_cannot_be_combined_is_one_line_and_a_hint(tuner: Tuner, options: str) -> None:
    assert tuner.refused(options) == f"error: {REFUSALS[options]}\n"


@pytest.mark.slow
def test_a_file_of_problems_has_modes(tuner: Tuner, tmp_path: Path) -> None:
    shapes = tmp_path / "shapes.yaml"
    shapes.write_text("- {shape: 64x64x32, math: tf32x3}\n- {shape: 64x64x32}\n")
    tuner.done(f"tune --shapes {shapes} {GPU} --trials 2")
    assert {trial["problem"]["dtype"] for trial in tuner("history --json").json} == {"tf32x3", "f32"}
    shapes.write_text("- {shape: 64x64x32, dtype: tf32x3}\n")
    require(tuner.refused(f"tune --shapes {shapes} {GPU} --trials 2"), "line 1: dtype: found 'tf32x3'", HINT)


@pytest.mark.slow
def test_a_program_multiplies_in_the_mode_with_its_tolerance(tuner: Tuner) -> None:
    errors = {}
    for math in ("ieee", "tf32", "tf32x3"):
        document = tuner.done(f"run {PROGRAM} {GPU} --math {math} --compare --json").json
        (comparison,) = document["comparisons"]
        assert document["problems"] == [f"matmul 84x84x32 {MATH[math]} nn none"]
        errors[math] = (comparison["error"], comparison["tolerance"])
    assert errors["tf32x3"][1] == errors["ieee"][1] < errors["tf32"][0] < errors["tf32"][1]


@pytest.mark.slow
def test_a_program_is_lowered_in_the_mode(tuner: Tuner) -> None:
    text = tuner.done(f"lower {PROGRAM} --to ptx --math tf32x3").out
    assert "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" in text
    assert "mma.sync" not in tuner.done(f"lower {PROGRAM} --to ptx").out


@pytest.mark.slow
def test_a_program_is_tuned_in_the_mode(tuner: Tuner) -> None:
    tuned = tuner.done(f"tune {PROGRAM} {GPU} --math tf32x3 --trials 1").out
    require(tuned, "matmul 84x84x32 tf32x3 nn none")
    assert [trial["problem"]["dtype"] for trial in tuner("history --json").json] == ["tf32x3"]


@pytest.mark.parametrize("command", ["run", "tune"])
def test_modes_of_programs_are_those_of_gpus(tuner: Tuner, command: str) -> None:
    message = tuner.refused(f"{command} {PROGRAM} --target cpu --math tf32")
    assert message == "error: math tf32 cannot be combined with target cpu, only with cuda, simulator\n"
    message = tuner.refused(f"{command} {PROGRAM} {GPU} --math bf16x6")
    assert message == "error: math: found 'bf16x6', allowed for programs ieee, tf32, tf32x3\n"
