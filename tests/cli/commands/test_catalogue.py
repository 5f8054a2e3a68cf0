from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Tuner
from tests.fakes import bind
from tests.tuning import fakes
from tuner.core.candidate import Candidate
from tuner.core.interfaces import Script
from tuner.space.file.reading import parse_space
from tuner.targets import children

SPACE = """
strategies:
  matmul_cpu_packed:
    ops: [matmul]
    dtypes: [f32]
    description: Packs both operands.
    knobs:
      tile_m: [4, 8, 16]
      tile_n: [16, 32]
    constraints:
      - "tile_m * tile_n <= 256"
      - "tile_m < 16"
"""


@pytest.fixture
def space(tuner: Tuner, tmp_path: Path) -> str:
    tuner.backends = fakes.backends(plan=children.plan)
    path = tmp_path / "space.yaml"
    path.write_text(SPACE)
    return str(path)


def test_space_counts_what_constraints_reject_and_says_why_a_dtype_has_none(tuner: Tuner, space: str) -> None:
    document = tuner("space", "matmul", "64x64x64", "--space", space, "--json").json
    assert document.keys() >= {"cartesian", "feasible", "rejected"}
    assert (document["cartesian"], document["feasible"]) == (6, 4)
    assert document["rejected"] == {"tile_m * tile_n <= 256": 1, "tile_m < 16": 1}
    done = tuner("space", "matmul", "64x64x64", "--space", space)
    assert "matmul 64x64x64 f32 nn none: 4 of 6 combinations are feasible" in done.out
    assert "  1 rejected by tile_m < 16" in done.out
    phrase = ("explain", "matmul", "64x64x64", "matmul_cpu_packed(tile_m=16, tile_n=16)", "--space", space)
    assert tuner(*phrase, "--json").json["constraint"] == "tile_m < 16"
    done = tuner("space", "matmul", "64x64x64", "--dtype", "f64", "--space", space)
    assert done.code == 2
    assert "no strategy can do matmul 64x64x64 f64" in done.err
    assert "dtype: found f64, allowed f32" in done.err


def test_space_counts_what_nothing_breaks(tuner: Tuner, space: str) -> None:
    text = Path(space).read_text().replace('"tile_m < 16"', '"tile_m < 99"')
    Path(space).write_text(text + "    preferences: ['tile_n < 99', 'tile_m < 99']\n")
    lines = tuner("space", "matmul", "64x64x64", "--space", space).out.splitlines()
    assert not any(line.startswith("  0 ") for line in lines)
    assert lines[-1] == "  2 preferences and 1 constraint that nothing breaks here"


def test_space_reports_what_comes_last(tuner: Tuner, space: str) -> None:
    text = Path(space).read_text() + "    preferences: ['tile_n == 32', 'tile_m == 4']\n"
    Path(space).write_text(text)
    done = tuner("space", "matmul", "64x64x64", "--space", space)
    assert "4 of 6 combinations are feasible\n  1 meet all preferences; the other 3 are tried" in done.out
    assert "  2 come last by tile_n == 32\n  1 come last by tile_m == 4\n" in done.out
    document = tuner("space", "matmul", "64x64x64", "--space", space, "--json").json
    assert (document["feasible"], document["preferred"]) == (4, 1)
    assert document["demoted"] == {"tile_n == 32": 2, "tile_m == 4": 1}
    (entry,) = tuner("strategies", "--space", space, "--json").json
    assert entry["preferences"] == ["tile_n == 32", "tile_m == 4"]


def test_strategies_are_listed_with_their_knobs(tuner: Tuner, space: str) -> None:
    done = tuner("strategies", "--space", space)
    assert "matmul_cpu_packed: Packs both operands." in done.out
    assert "knobs   tile_m, tile_n" in done.out
    (document,) = tuner("strategies", "--space", space, "--json").json
    assert (document["knobs"], document["dtypes"]) == (["tile_m", "tile_n"], ["f32"])
    assert "matmul_cpu_packed" in [one["name"] for one in tuner("strategies", "--json").json]


def test_targets_report_what_works_and_why_not(tuner: Tuner) -> None:
    replay = "with a file only, a recorded space: --target replay:FILE"
    assert tuner("targets").out.splitlines() == [
        "fake: available: for tests",
        "gpu: not available: no driver",
        f"replay: not available: {replay}",
    ]
    assert tuner("targets", "--json").json == [
        {"name": "fake", "available": True, "reason": "for tests"},
        {"name": "gpu", "available": False, "reason": "no driver"},
        {"name": "replay", "available": False, "reason": replay},
    ]


NAMES = ("mine.mlir.j2", "mine.yaml", "test_mine.py")


def test_three_files_are_written_and_their_space_can_be_asked_at_once(tuner: Tuner, tmp_path: Path) -> None:
    done = tuner("new-strategy", "mine", "--folder", str(tmp_path))
    assert done.code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(NAMES)
    assert f"--space {tmp_path / 'mine.yaml'} --strategy mine" in done.out
    assert done.err == "".join(f"wrote {tmp_path / name}\n" for name in NAMES)
    listed = tuner("strategies", "--space", str(tmp_path / "mine.yaml"), "--json").json
    assert (listed[0]["name"], listed[0]["knobs"]) == ("mine", ["tile_m", "tile_n", "unroll_k"])


def test_no_file_is_replaced_and_json_names_those_written(tuner: Tuner, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("mine")
    done = tuner("new-strategy", "mine", "--folder", str(tmp_path))
    assert (done.code, [path.name for path in tmp_path.iterdir()]) == (2, ["mine.yaml"])
    assert "mine.yaml: exists, and is not replaced" in done.err
    (tmp_path / "mine.yaml").unlink()
    done = tuner("new-strategy", "mine", "--folder", str(tmp_path), "--json")
    assert done.json == {"strategy": "mine", "files": [str(tmp_path / name) for name in NAMES]}


# Constraints that failed trials suggest.

PROBLEM = ("matmul", "8x8x8")


def fails_when_wide(chosen: Candidate) -> Script:
    knobs = dict(chosen.choices)
    if int(knobs["x"]) >= 12:
        knobs |= {"deed": "wrong", "at": "verify"}
    return bind(Candidate.of(chosen.strategy, knobs))


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Tuner:
    """Gives commands a database of 60 trials, of which 24 failed."""
    backends = fakes.backends(
        bind=lambda *_: fails_when_wide, plan=fakes.plan({"x": tuple(range(20)), "comment": ("a", "b", "c")})
    )
    failing = Tuner(tmp_path_factory.mktemp("suggest") / "results.db", backends)
    assert failing("tune", *PROBLEM, "--sampler", "exhaustive", "--trials", "60").code == 0
    return failing


@pytest.mark.slow
def test_lines_of_a_search_space_file_are_suggested_in_yaml_and_json(failing: Tuner) -> None:
    done = failing("space", *PROBLEM, "--suggest")
    assert done.code == 0
    assert "      # would have saved 24 failed trials (24 of them here, 1 problem); p-value: " in done.out
    assert "      # verify: " in done.out
    assert yaml.safe_load(done.out) == {"strategies": {"fake": {"constraints": ["x < 12"]}}}
    entry = "    ops: [matmul]\n    dtypes: [f32]\n    knobs: {x: [1, 20]}\n    constraints:"
    (strategy,) = parse_space(done.out.replace("    constraints:", entry), "suggested.yaml").strategies
    assert [each.text for each in strategy.constraints] == ["x < 12"]
    (document,) = failing("space", *PROBLEM, "--suggest", "--json").json
    assert document["chance"] < 1e-6
    assert document["reason"]
    del document["chance"], document["reason"]
    found = {"strategy": "fake", "constraint": "x < 12", "stage": "verify"}
    assert document == found | {"trials": 24, "trials_here": 24, "problems": 1}


def test_nothing_is_suggested_for_another_problem_or_for_too_few_failures(failing: Tuner) -> None:
    assert failing("space", "matmul", "9x9x9", "--suggest", "--json").json == []
    assert failing("space", *PROBLEM, "--suggest", "--min-support", "25", "--json").json == []
    assert failing("space", *PROBLEM, "--suggest", "--since", "2999-01-01", "--json").json == []
    done = failing("space", *PROBLEM, "--suggest", "--min-support", "25")
    assert done.out == (
        "# matmul 8x8x8 f32 nn none for fake:\n"
        "# nothing to suggest: no constraint explains 25 failures or more, and no success, beyond chance\n"
    )
