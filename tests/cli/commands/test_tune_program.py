"""``tuner tune payload.mlir`` through the real compiler, search and simulator."""

from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.cli.real import brief_remeasurement, real_candidates
from tests.op_group_problems import program_text
from tuner.db.store import Store

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.device")

ROOT = Path(__file__).parents[3]
# As the README has it: tests/docs/test_examples.py compares.
EXAMPLE = ("tune", "examples/async_matmul.mlir", "--target", "cpu", "--trials", "4")
PRINTED = (EXAMPLE,)
PAYLOAD = """func.func @main(%a: tensor<16x8xf32>, %b: tensor<8x16xf32>, %c: tensor<16x16xf32>)
    -> tensor<16x16xf32> {
  %first = linalg.matmul ins(%a, %b : tensor<16x8xf32>, tensor<8x16xf32>)
    outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
  %second = linalg.matmul ins(%a, %b : tensor<16x8xf32>, tensor<8x16xf32>)
    outs(%first : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %second : tensor<16x16xf32>
}"""
MAIN, OTHER = "\nfunc.func @main() { return }", "\nfunc.func @other() { return }"
FAR = "\nfunc.func private @far()"
COUNTED = PAYLOAD.replace("@main(", "@main(%turns: i32, ")
ON_SIMULATOR = ("--target", "simulator", "--strategy", "matmul_gpu_naive", "--trials", "1", "--workers", "1")


@pytest.fixture
def tune(tmp_path: Path) -> Tuner:
    """Gives the real thing, but for what is measured beside it and takes seconds."""
    (tmp_path / "payload.mlir").write_text(PAYLOAD)
    return Tuner(tmp_path / "results.db", real_candidates())


@pytest.fixture
def counted(tmp_path: Path) -> str:
    """Gives the file of a program with an argument that only the user knows."""
    (tmp_path / "counted.mlir").write_text(COUNTED)
    return str(tmp_path / "counted.mlir")


@pytest.mark.slow
def test_equal_matmuls_are_tuned_once_and_the_program_is_checked(tune: Tuner, counted: str) -> None:
    done = tune("tune", counted, *ON_SIMULATOR, "--arg", "0=7", "--json")
    assert done.code == 0, done.err
    (problem,) = done.json["problems"]
    assert (problem["problem"]["shape"], problem["run"]["counts"]["verified"]) == ([16, 16, 8], 1)
    assert problem["used"]["strategy"] == "matmul_gpu_naive"
    program = done.json["program"]
    assert program["right"]
    assert [one["equal"] for one in program["comparisons"]] == [True]
    assert (done.json["plain"], done.json["speedup"]) == (None, None)
    done = tune("tune", counted, *ON_SIMULATOR)
    assert done.code == 1
    assert done.out.splitlines()[-1].startswith("failed  program: argument 0: a value of type i32 is missing")
    message = "tune: --cache cannot be combined with a program: its types come from the file"
    assert message in tune.refused("tune", counted, "--target", "cpu", "--cache", "cold")


@pytest.mark.slow
def test_a_program_on_the_host_is_timed_twice(tune: Tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's example, as printed."""
    monkeypatch.chdir(ROOT)
    with brief_remeasurement():
        done = tune(*EXAMPLE)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "matmul  matmul 84x84x32 f32 nn none"
    assert [line.split()[0] for line in lines[-3:]] == ["time", "plain", "gain"]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("8x8x8",), "tune: 8x8x8 cannot be combined with a program: its types come from the file"),
        (("--dtype", "f64"), "tune: --dtype cannot be combined with a program"),
        (("--output-dtype", "f16"), "tune: --output-dtype cannot be combined with a program"),
        (("--threads", "0"), "threads: found 0, allowed 1 to 256"),
        (
            ("--threads", "2", "--space", "default"),
            "threads: found 2, allowed 1: a program without fusions runs on one thread",
        ),
        (("--entry", "f"), "payload.mlir: payload: entry: found 'f', allowed main"),
    ],
)
def test_options_of_no_payload_are_refused(tune: Tuner, options: tuple[str, ...], message: str) -> None:
    assert message in tune.refused(
        "tune", str(tune.database.parent / "payload.mlir"), "--target", "cpu", *options
    )


@pytest.mark.slow
def test_messages_about_a_payload_begin_with_its_file(tune: Tuner) -> None:
    payload = tune.database.parent / "broken.mlir"
    payload.write_text("func.func @main(")
    assert tune("tune", str(payload), "--target", "cpu").err.startswith(f"error: {payload}:1:16: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PAYLOAD.replace("@main(", "@layer(") + OTHER, "public functions: found layer, other"),
        (PAYLOAD.replace("> {", "> {\n  func.call @far() : () -> ()") + FAR, "far"),
        (PAYLOAD.replace("@main(", "private @layer(") + MAIN, "no matmul of static sizes and known types"),
    ],
)
def test_a_file_of_contractions_alone_is_tuned_by_shapes(tune: Tuner, text: str, message: str) -> None:
    model = tune.database.parent / "model of two.mlir"
    model.write_text(text)
    done = tune("tune", str(model), *ON_SIMULATOR)
    assert done.code != 0
    error, hint = done.err.splitlines()
    assert message in error
    assert hint == f"hint: tuner tune --shapes '{model}'"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "options"),
    [
        (MAIN, ()),
        ("func.func @a() { return }\nfunc.func @b() { return }", ()),
        ("func.func @main(", ()),
        (PAYLOAD, ("--entry", "f")),
    ],
)
def test_no_hint_at_shapes_where_they_are_no_help(tune: Tuner, text: str, options: tuple[str, ...]) -> None:
    model = tune.database.parent / "model.mlir"
    model.write_text(text)
    assert "--shapes" not in tune.refused("tune", str(model), *ON_SIMULATOR, *options)


@pytest.mark.parametrize(("option", "value"), [("--arg", "0=7"), ("--entry", "f")])
def test_what_a_payload_takes_is_refused_without_one(tune: Tuner, option: str, value: str) -> None:
    refused = tune.refused("tune", "matmul", "8x8x8", option, value)
    assert refused == (
        f"error: {option} needs a program: a file of MLIR in place of an operation and a shape\n"
        f"hint: tuner tune payload.mlir {option} {value}\n"
    )


FUSION_OPTIONS = ("--target", "cpu", "--workers", "1")


@pytest.mark.slow
def test_a_program_of_fusions_is_tuned_under_one_budget_and_found_tuned_later(tune: Tuner) -> None:
    file = tune.database.parent / "layers.mlir"
    file.write_text(program_text())
    with brief_remeasurement():
        done = tune("tune", str(file), *FUSION_OPTIONS, "--trials", "6", "--json")
    assert done.code == 0, done.err
    assert [each["run"]["counts"]["proposed"] for each in done.json["problems"]] == [2, 2, 2]
    assert {each["problem"]["cache"] for each in done.json["problems"]} == {"weights-cold"}
    assert [each["origin"] for each in done.json["groups"]] == ["tuned"] * 3
    for fusion in done.json["groups"]:
        assert fusion["before_s"] > 0
        assert fusion["after_s"] > 0
    program = done.json["program"]
    assert program["right"]
    assert program["times"]["call_s"] > 0
    assert done.json["plain"]["call_s"] > 0
    with Store.open(str(tune.database)) as store:
        assert store.campaign(done.json["group"]).settings.source == "layers.mlir"
    explained = tune("run", str(file), "--target", "cpu", "--explain")
    assert explained.code == 0, explained.err
    assert explained.out.count(" tuned ") == 3
    other = tune.database.parent / "wider.mlir"
    other.write_text(program_text(hidden=48))
    assert tune("run", str(other), "--target", "cpu", "--explain").out.count(" nearest ") == 3


@pytest.mark.slow
def test_a_resumed_program_is_compiled_and_timed_as_by_the_first_command(tune: Tuner) -> None:
    file = tune.database.parent / "layers.mlir"
    file.write_text(program_text())
    with brief_remeasurement():
        first = tune("tune", str(file), *FUSION_OPTIONS, "--trials", "3", "--json")
        again = tune("tune", "--resume", "campaign:1", "--trials", "4", "--json")
        file.write_text(program_text(hidden=48))
        changed = tune("tune", "--resume", "campaign:1", "--trials", "5")
    assert again.code == 0, again.err
    assert set(again.json) == set(first.json)
    assert sum(each["run"]["counts"]["proposed"] for each in again.json["problems"]) == 4
    assert again.json["program"]["right"]
    assert again.json["plain"]["call_s"] > 0
    assert len(again.json["groups"]) == 3
    assert changed.code == 0, changed.err
    assert "note: the program is not timed: " in changed.err
    assert "has other fusions than those that were tuned" in changed.err
    assert "campaign  1: 3 problems, 5 trials" in changed.out


@pytest.mark.slow
def test_a_program_that_cannot_be_grouped_is_tuned_matmul_by_matmul(tune: Tuner, counted: str) -> None:
    with brief_remeasurement():
        done = tune("tune", counted, *FUSION_OPTIONS, "--trials", "1", "--arg", "0=7", "--json")
    assert done.code == 0, done.err
    assert "note: not tuned as fusions: argument 0: i32 is no tensor" in done.err
    assert [each["problem"]["op"] for each in done.json["problems"]] == ["matmul"]
    assert "groups" not in done.json
