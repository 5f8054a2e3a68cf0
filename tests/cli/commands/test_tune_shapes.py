from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.tuning import fakes

SHAPES = """\
- {shape: 8x8x8, name: first, count: 3}
- {shape: 64x8x8, dtype: f64}
- {shape: 8x8x8, name: again}
"""


@pytest.fixture
def shapes(tmp_path: Path) -> str:
    path = tmp_path / "shapes.yaml"
    path.write_text(SHAPES)
    return str(path)


def test_all_problems_of_a_file_are_tuned_under_one_budget(tuner: Tuner, shapes: str) -> None:
    done = tuner("tune", "--shapes", shapes, "--trials", "11")
    assert done.code == 0, done.err
    assert "first, again" in done.out
    assert "matmul 64x8x8 f64 nn none" in done.out
    assert "campaign  1: 2 problems, 11 trials in" in done.out
    assert "for 5 calls, each problem as often as it occurs" in done.out
    assert "tuner history --run 1" in done.out
    assert "campaign 1: 2 problems, fake, 1 thread on fake" in done.err
    assert "final re-measurement: timing the best 4 again" in done.err


def test_json_has_the_document_of_each_run(tuner: Tuner, shapes: str) -> None:
    done = tuner("tune", "--shapes", shapes, "--trials", "11", "--json", "--seed", "3")
    assert done.code == 0, done.err
    assert (done.json["group"], done.json["status"], done.json["trials"]) == (1, "done", 11)
    assert done.json["source"] == "shapes.yaml"
    first, second = done.json["problems"]
    assert (first["run"], first["name"], first["count"]) == (1, "first, again", 4)
    assert (second["run"], second["name"], second["count"]) == (2, "", 1)
    assert first["counts"]["proposed"] + second["counts"]["proposed"] == 11
    total_s = sum(each["count"] * each["best"]["median_s"] for each in (first, second))
    assert done.json["total_s"] == pytest.approx(total_s)


def test_without_a_limit_a_problem_has_eight_trials_on_average(tuner: Tuner, shapes: str) -> None:
    assert tuner("tune", "--shapes", shapes, "--json").json["trials"] == 16


def test_each_run_of_a_campaign_is_found_as_any_other(tuner: Tuner, shapes: str) -> None:
    tuner("tune", "--shapes", shapes, "--trials", "11")
    assert {trial["run"] for trial in tuner("history", "--run", "1", "--json").json} == {1}
    exported = tuner("export", "matmul", "8x8x8", "--format", "json")
    assert exported.code == 0, exported.err


@pytest.mark.slow
def test_a_campaign_is_resumed_by_its_number(tuner: Tuner, shapes: str) -> None:
    tuner("tune", "--shapes", shapes, "--trials", "11")
    again = tuner("tune", "--resume", "campaign:1", "--json")
    assert (again.code, again.json["trials"]) == (0, 11)
    longer = tuner("tune", "--resume", "campaign:1", "--trials", "14", "--json")
    assert (longer.code, longer.json["trials"]) == (0, 14)


def test_a_problem_where_nothing_works_is_named_and_exits_with_1(tuner: Tuner, shapes: str) -> None:
    tuner.backends = fakes.backends(bind=lambda *_: fakes.failing_bind)
    done = tuner("tune", "--shapes", shapes, "--trials", "4")
    assert done.code == 1
    assert "no candidate worked" in done.out
    assert "total     unknown: a problem has no time" in done.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("matmul",), "--shapes cannot be combined with matmul: the file has the problems"),
        (
            ("--dtype", "f64"),
            "combined with --dtype: each problem of the file has its own",
        ),
        (("--no-warm-start",), "--shapes cannot be combined with --no-warm-start"),
        (("--entry", "f"), "--shapes cannot be combined with --entry"),
        (("--resume", "1"), "--resume cannot be combined with --shapes"),
        (("--retime",), "--shapes cannot be combined with --retime"),
        (("--trials", "0"), "trials: found 0, allowed 1 or more"),
        (("--fleet",), "drivers and nodes meet on a server"),
        (
            ("--fleet", "--on", "a,b", "--db", "postgresql://x/y"),
            "--shapes cannot be combined with --on: a campaign is measured on one class of machine",
        ),
    ],
)
def test_options_of_one_problem_are_refused(
    tuner: Tuner, shapes: str, options: tuple[str, ...], message: str
) -> None:
    if "--fleet" in options:
        pytest.importorskip("procrastinate", reason="--fleet needs the extra fleet")
    assert message in tuner.refused("tune", *options, "--shapes", shapes)


def test_a_mistake_in_the_file_is_one_line(tuner: Tuner, tmp_path: Path) -> None:
    path = tmp_path / "shapes.csv"
    path.write_text("shape,count\n8x8x8,2\n8x8,1\n")
    message = tuner.refused("tune", "--shapes", str(path))
    assert "shapes.csv: line 3: shape: found '8x8', allowed MxNxK" in message


def test_an_unknown_campaign_and_options_of_a_resumed_one_are_refused(tuner: Tuner, shapes: str) -> None:
    tuner("tune", "--shapes", shapes, "--trials", "4")
    assert "campaign: found 7, allowed 1 to 1" in tuner.refused("tune", "--resume", "campaign:7")
    refused = tuner.refused("tune", "--resume", "campaign:1", "--seed", "4")
    assert "--resume cannot be combined with --seed" in refused
    assert tuner("tune", "--resume", "campaign:x").code == 2


@pytest.mark.slow
def test_the_contractions_of_a_model_are_tuned(tuner: Tuner, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(
        """func.func @layer(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>, %c: tensor<8x4xf32>,
            %d: tensor<?x4xf32>, %e: tensor<?x16xf32>) -> (tensor<8x4xf32>, tensor<?x4xf32>) {
          %0 = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x4xf32>)
            outs(%c : tensor<8x4xf32>) -> tensor<8x4xf32>
          %1 = linalg.matmul ins(%e, %b : tensor<?x16xf32>, tensor<16x4xf32>)
            outs(%d : tensor<?x4xf32>) -> tensor<?x4xf32>
          return %0, %1 : tensor<8x4xf32>, tensor<?x4xf32>
        }"""
    )
    done = tuner("tune", "--shapes", str(path), "--trials", "3", "--json")
    assert done.code == 0, done.err
    assert [(each["name"], each["problem"]["shape"]) for each in done.json["problems"]] == [
        ("layer", [8, 4, 16])
    ]
    assert "note: left out: layer: its sizes are not static" in done.err
