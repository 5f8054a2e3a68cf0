from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Tuner, require, require_fields
from tests.fakes import bind
from tests.tuning import fakes
from tuner.core.candidate import Candidate
from tuner.core.interfaces import Script
from tuner.space.file.reading import parse_space
from tuner.targets import run_plan

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
    tuner.backends = fakes.backends(plan=run_plan.plan)
    path = tmp_path / "space.yaml"
    path.write_text(SPACE)
    return str(path)


def test_space_counts_what_constraints_reject_and_says_why_a_dtype_has_none(tuner: Tuner, space: str) -> None:
    rejected = {"tile_m * tile_n <= 256": 1, "tile_m < 16": 1}
    document = tuner("space matmul 64x64x64 --space", space, "--json").json
    require_fields(document, cartesian=6, feasible=4, rejected=rejected)
    said = tuner("space matmul 64x64x64 --space", space).out
    feasible = "matmul 64x64x64 f32 nn none: 4 of 6 combinations are feasible"
    require(said, feasible, "  1 rejected by tile_m < 16")
    point = ("matmul_cpu_packed(tile_m=16, tile_n=16)", "--space", space, "--json")
    assert tuner("explain matmul 64x64x64", *point).json["constraint"] == "tile_m < 16"
    refused = tuner.refused("space matmul 64x64x64 --dtype f64 --space", space)
    require(refused, "no strategy can do matmul 64x64x64 f64", "dtype: found f64, allowed f32")


def test_space_counts_what_nothing_breaks_and_what_comes_last(tuner: Tuner, space: str) -> None:
    Path(space).write_text(SPACE + "    preferences: ['tile_n == 32', 'tile_m == 4']\n")
    said = tuner("space matmul 64x64x64 --space", space).out
    assert "4 of 6 combinations are feasible\n  1 meet all preferences; the other 3 are tried" in said
    assert "  2 come last by tile_n == 32\n  1 come last by tile_m == 4\n" in said
    document = tuner("space matmul 64x64x64 --space", space, "--json").json
    require_fields(document, feasible=4, preferred=1, demoted={"tile_n == 32": 2, "tile_m == 4": 1})
    (entry,) = tuner("strategies --space", space, "--json").json
    assert entry["preferences"] == ["tile_n == 32", "tile_m == 4"]
    text = SPACE.replace('"tile_m < 16"', '"tile_m < 99"')
    Path(space).write_text(text + "    preferences: ['tile_n < 99', 'tile_m < 99']\n")
    lines = tuner("space matmul 64x64x64 --space", space).out.splitlines()
    assert not any(line.startswith("  0 ") for line in lines)
    assert lines[-1] == "  2 preferences and 1 constraint that nothing breaks here"


def test_strategies_are_listed_with_their_knobs(tuner: Tuner, space: str) -> None:
    said = tuner("strategies --space", space).out
    require(said, "matmul_cpu_packed: Packs both operands.", "knobs   tile_m, tile_n")
    (document,) = tuner("strategies --space", space, "--json").json
    require_fields(document, knobs=["tile_m", "tile_n"], dtypes=["f32"])
    assert "matmul_cpu_packed" in [one["name"] for one in tuner("strategies --json").json]
    assert [one["name"] for one in tuner("strategies rows_cpu --json").json] == ["rows_cpu"]
    assert "found 'rows_cp'" in tuner.refused("strategies rows_cp")


def test_targets_report_what_works_and_why_not(tuner: Tuner) -> None:
    reasons = {"fake": "for tests", "gpu": "no driver"}
    reasons["replay"] = "with a file only, a recorded space: --target replay:FILE"
    shown = [f"{name}: {'' if name == 'fake' else 'not '}available: {why}" for name, why in reasons.items()]
    assert tuner("targets").out.splitlines() == shown
    documents = [{"name": name, "available": name == "fake", "reason": why} for name, why in reasons.items()]
    assert tuner("targets --json").json == documents


NAMES = ("script.mlir.j2", "space.yaml", "test_mine.py")


def test_three_files_are_written_and_their_space_can_be_asked_at_once(tuner: Tuner, tmp_path: Path) -> None:
    done = tuner.done("new-strategy mine --folder", str(tmp_path))
    own = tmp_path / "mine"
    assert sorted(own.rglob("*")) == sorted(own / name for name in NAMES)
    assert f"--space {own / 'space.yaml'} --strategy mine" in done.out
    assert done.err == "".join(f"wrote {own / name}\n" for name in NAMES)
    listed = tuner("strategies --space", str(own / "space.yaml"), "--json").json
    assert (listed[0]["name"], listed[0]["knobs"]) == ("mine", ["tile_m", "tile_n", "unroll_k"])


def test_no_file_is_replaced_and_json_names_those_written(tuner: Tuner, tmp_path: Path) -> None:
    own = tmp_path / "mine"
    own.write_text("mine")
    assert f"{own}: exists, and is not a folder" in tuner.refused("new-strategy mine --folder", str(tmp_path))
    own.unlink()
    own.mkdir()
    (own / "space.yaml").write_text("mine")
    done = tuner("new-strategy mine --folder", str(tmp_path))
    assert (done.code, [path.name for path in own.iterdir()]) == (2, ["space.yaml"])
    assert "space.yaml: exists, and is not replaced" in done.err
    (own / "space.yaml").unlink()
    done = tuner("new-strategy mine --folder", str(tmp_path), "--json")
    assert done.json == {"strategy": "mine", "files": [str(own / name) for name in NAMES]}


# Constraints that failed trials suggest.

SUGGEST = "space matmul 8x8x8 --suggest"


def fails_when_wide(chosen: Candidate) -> Script:
    knobs = dict(chosen.choices)
    if int(knobs["x"]) >= 12:
        knobs |= {"deed": "wrong", "at": "verify"}
    return bind(Candidate.of(chosen.strategy, knobs))


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Tuner:
    backends = fakes.backends(
        bind=lambda *_: fails_when_wide, plan=fakes.plan({"x": tuple(range(20)), "comment": ("a", "b", "c")})
    )
    failing = Tuner(tmp_path_factory.mktemp("suggest") / "results.db", backends)
    failing.done("tune matmul 8x8x8 --sampler exhaustive --trials 60")
    return failing


def test_lines_of_a_search_space_file_are_suggested_in_yaml_and_json(failing: Tuner) -> None:
    said = failing.done(SUGGEST).out
    saved = "      # would have saved 24 failed trials (24 of them here, 1 problem); p-value: "
    require(said, saved, "      # verify: ")
    assert yaml.safe_load(said) == {"strategies": {"fake": {"constraints": ["x < 12"]}}}
    entry = "    ops: [matmul]\n    dtypes: [f32]\n    knobs: {x: [1, 20]}\n    constraints:"
    assert said.startswith("# p-value: the chance that ")
    (strategy,) = parse_space(said.replace("    constraints:", entry), "suggested.yaml").strategies
    assert [each.text for each in strategy.constraints] == ["x < 12"]
    (document,) = failing(f"{SUGGEST} --json").json
    assert document.pop("chance") < 1e-6
    assert document.pop("reason")
    found = {"strategy": "fake", "constraint": "x < 12", "stage": "verify"}
    assert document == found | {"trials": 24, "trials_here": 24, "problems": 1}


def test_nothing_is_suggested_for_another_problem_or_for_too_few_failures(failing: Tuner) -> None:
    few = f"{SUGGEST} --min-support 25"
    for command in ("space matmul 9x9x9 --suggest", few, f"{SUGGEST} --since 2999-01-01"):
        assert failing(f"{command} --json").json == []
    why = "no constraint explains 25 failures or more, and no success, beyond chance"
    assert failing(few).out == f"# matmul 8x8x8 f32 nn none for fake:\n# nothing to suggest: {why}\n"
