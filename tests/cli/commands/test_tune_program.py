"""``tuner tune payload.mlir`` through the real compiler, search and simulator."""

from pathlib import Path

import pytest

from tests.analysis.matrices import instance
from tests.cli.conftest import Tuner, require, require_fields
from tests.cli.real import BRIEF, brief_remeasurement, real_candidates
from tests.fusion_problems import program_text
from tests.texts import text_beside
from tests.tuning import fakes
from tuner.core.queries import TrialQuery
from tuner.db.store import Store
from tuner.models.compile_work import find_fusions
from tuner.models.fusion_tuning import FusionSteps
from tuner.models.run_work import run_and_time, run_program
from tuner.space.scripts.choice import first_configuration
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.gpu.lowering.device")

ROOT = Path(__file__).parents[3]
# As the README has it: tests/docs/test_examples.py compares.
EXAMPLE = ("tune", "examples/async_matmul.mlir", "--target", "cpu", "--trials", "4")
PRINTED = (EXAMPLE,)
PAYLOAD = text_beside(__file__, "PAYLOAD")
MAIN, OTHER = "\nfunc.func @main() { return }", "\nfunc.func @other() { return }"
FAR = "\nfunc.func private @far()"
COUNTED = PAYLOAD.replace("@main(", "@main(%turns: i32, ")
ON_SIMULATOR = "tune --target simulator --strategy matmul_gpu_naive --trials 1 --workers 1"
ON_CPU = "tune --target cpu --workers 1 --json"


@pytest.fixture
def tune(tmp_path: Path) -> Tuner:
    (tmp_path / "payload.mlir").write_text(PAYLOAD)
    return Tuner(tmp_path / "results.db", real_candidates())


@pytest.fixture
def counted(tmp_path: Path) -> str:
    """Gives the file of a program with an argument that only the user knows."""
    (tmp_path / "counted.mlir").write_text(COUNTED)
    return str(tmp_path / "counted.mlir")


@pytest.mark.slow
def test_equal_matmuls_are_tuned_once_and_the_program_is_checked(tune: Tuner, counted: str) -> None:
    document = tune.done(f"{ON_SIMULATOR} --arg 0=7 --json", counted).json
    (problem,), program = document["problems"], document["program"]
    assert (problem["problem"]["shape"], problem["run"]["counts"]["verified"]) == ([16, 16, 8], 1)
    assert problem["used"]["strategy"] == "matmul_gpu_naive"
    assert program["right"]
    assert [one["equal"] for one in program["comparisons"]] == [True]
    require_fields(document, plain=None, speedup=None)
    message = "tune: --cache cannot be combined with a program: its types come from the file"
    assert message in tune.refused("tune --target cpu --cache cold", counted)


@pytest.mark.slow
def test_a_program_without_its_argument_fails_after_its_problems_are_tuned(tune: Tuner, counted: str) -> None:
    done = tune.failed(ON_SIMULATOR, counted)
    assert done.out.splitlines()[-1].startswith("failed  program: argument 0: a value of type i32 is missing")


@pytest.mark.slow
def test_a_program_on_the_host_is_timed_twice(tune: Tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with brief_remeasurement():
        lines = tune.done(*EXAMPLE).out.splitlines()
    assert lines[0] == "matmul  matmul 84x84x32 f32 nn none"
    assert [line.split()[0] for line in lines[-3:]] == ["time", "plain", "gain"]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("8x8x8", "tune: 8x8x8 cannot be combined with a program: its types come from the file"),
        ("--dtype f64", "tune: --dtype cannot be combined with a program"),
        ("--output-dtype f16", "tune: --output-dtype cannot be combined with a program"),
        ("--threads 0", "threads: found 0, allowed 1 to 256"),
        ("--threads 2 --space default", "found 2, allowed 1: a program without fusions runs on one thread"),
        ("--entry f", "payload.mlir: payload: entry: found 'f', allowed main"),
    ],
)
def test_options_of_no_payload_are_refused(tune: Tuner, options: str, message: str) -> None:
    payload = str(tune.database.parent / "payload.mlir")
    assert message in tune.refused("tune", payload, "--target", "cpu", *options.split())


@pytest.mark.slow
def test_messages_about_a_payload_begin_with_its_file(tune: Tuner) -> None:
    payload = tune.database.parent / "broken.mlir"
    payload.write_text("func.func @main(")
    assert tune("tune", str(payload), "--target", "cpu").err.startswith(f"error: {payload}:1:16: ")


@pytest.mark.slow
def test_a_file_of_contractions_alone_is_tuned_by_shapes(tune: Tuner) -> None:
    model = tune.database.parent / "model of two.mlir"
    for text, message in (
        (PAYLOAD.replace("@main(", "@layer(") + OTHER, "public functions: found layer, other"),
        (PAYLOAD.replace("> {", "> {\n  func.call @far() : () -> ()") + FAR, "far"),
        (PAYLOAD.replace("@main(", "private @layer(") + MAIN, "no matmul of static sizes and known types"),
    ):
        model.write_text(text)
        done = tune(ON_SIMULATOR, str(model))
        assert done.code != 0
        error, hint = done.err.splitlines()
        assert message in error
        assert hint == f"hint: tuner tune --shapes '{model}'"


@pytest.mark.slow
def test_no_hint_at_shapes_where_they_are_no_help(tune: Tuner) -> None:
    model = tune.database.parent / "model.mlir"
    two = "func.func @a() { return }\nfunc.func @b() { return }"
    for text, options in ((MAIN, ""), (two, ""), ("func.func @main(", ""), (PAYLOAD, " --entry f")):
        model.write_text(text)
        assert "--shapes" not in tune.refused(f"{ON_SIMULATOR}{options}", str(model)), text


def test_what_a_payload_takes_is_refused_without_one(tune: Tuner) -> None:
    for option in ("--arg 0=7", "--entry f"):
        needs = f"{option.split()[0]} needs a program: a file of MLIR in place of an operation and a shape"
        refused = tune.refused(f"tune matmul 8x8x8 {option}")
        assert refused == f"error: {needs}\nhint: tuner tune payload.mlir {option}\n"


def test_a_program_of_fusions_is_tuned_under_one_budget(tune: Tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is compiled, run and timed in this process; in a child's: the test of a resumed program."""
    here = FusionSteps(find_fusions, run_program, run_and_time)
    monkeypatch.setattr("tuner.models.fusion_tuning.PROCESSES", 1)
    monkeypatch.setattr("tuner.models.commands.tune_program.child_fusion_steps", lambda: here)
    monkeypatch.setattr("tuner.models.fusion_times.measure_roofline", lambda *_: fakes.ROOFLINE)
    for module in ("execution", "speedup"):
        monkeypatch.setattr(f"tuner.models.{module}.FINAL_EFFORT", BRIEF)
    file = tune.database.parent / "layers.mlir"
    file.write_text(program_text())
    with brief_remeasurement():
        document = tune.done(f"{ON_CPU} --trials 3", str(file)).json
    assert [each["run"]["counts"]["proposed"] for each in document["problems"]] == [1, 1, 1]
    assert {each["problem"]["cache"] for each in document["problems"]} == {"weights-cold"}
    assert [each["origin"] for each in document["fusions"]] == ["tuned"] * 3
    assert all(fusion[time] > 0 for fusion in document["fusions"] for time in ("before_s", "after_s"))
    assert document["program"]["right"]
    assert document["program"]["times"]["call_s"] > 0
    assert document["plain"]["call_s"] > 0
    with Store.open(str(tune.database)) as store:
        campaign = store.campaign(document["campaign"])
        assert campaign.settings.source == "layers.mlir"
        for run in campaign.runs:  # begins with what the fusion has without tuning
            (trial,) = store.trials(TrialQuery(run=run.id))
            untuned, _ = instance(tuple, first_configuration(run.settings.problem, real_backends().machine()))
            assert trial.record.candidate == untuned


@pytest.mark.slow
def test_a_resumed_program_is_compiled_and_timed_as_by_the_first_command(tune: Tuner) -> None:
    file = tune.database.parent / "layers.mlir"
    file.write_text(program_text())
    with brief_remeasurement():
        first = tune.done(f"{ON_CPU} --trials 3", str(file)).json
        assert tune.done("run --target cpu --explain", str(file)).out.count(" tuned ") == 3
        again = tune.done("tune --resume campaign:1 --trials 4 --json").json
        file.write_text(program_text(hidden=48))
        out = tune.done("run --target cpu --explain", str(file)).out
        assert out.count(" nearest ") + out.count(" first ") == 3  # of a fusion that has gained, or of none
        changed = tune.done("tune --resume campaign:1 --trials 5")
    assert set(again) == set(first)
    assert sum(each["run"]["counts"]["proposed"] for each in again["problems"]) == 4
    assert again["program"]["right"]
    assert again["plain"]["call_s"] > 0
    assert len(again["fusions"]) == 3
    require(changed.err, "note: the program is not timed: ", "has other fusions than those that were tuned")
    assert "campaign  1: 3 problems, 5 trials" in changed.out


@pytest.mark.slow
def test_a_program_that_cannot_be_grouped_is_tuned_matmul_by_matmul(tune: Tuner, counted: str) -> None:
    with brief_remeasurement():
        done = tune.done(f"{ON_CPU} --trials 1 --arg 0=7", counted)
    assert "note: not tuned as fusions: argument 0: i32 is not a tensor" in done.err
    assert [each["problem"]["op"] for each in done.json["problems"]] == ["matmul"]
    assert "fusions" not in done.json


def test_a_strategy_of_fusions_that_is_named_has_a_hint_at_what_is_tuned_then(
    tune: Tuner, counted: str
) -> None:
    refused = tune.refused("tune --target cpu --strategy contraction_cpu_packed", counted)
    assert "allowed contraction" in refused
    assert refused.endswith(
        "hint: with --strategy matmuls are tuned one by one; without, the program's fusions are\n"
    )
