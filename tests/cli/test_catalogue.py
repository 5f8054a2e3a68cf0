import dataclasses
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.tuning import fakes
from tuner.tuning.parts import real_composition

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
    tuner.composition = dataclasses.replace(fakes.composition(), plan=real_composition().plan)
    path = tmp_path / "space.yaml"
    path.write_text(SPACE)
    return str(path)


def test_space_counts_what_each_constraint_rejects(tuner: Tuner, space: str) -> None:
    document = tuner("space", "matmul", "64x64x64", "--space", space, "--json").json
    assert document.keys() >= {"cartesian", "feasible", "rejected"}
    assert (document["cartesian"], document["feasible"]) == (6, 4)
    assert document["rejected"] == {"tile_m * tile_n <= 256": 1, "tile_m < 16": 1}


def test_space_in_lines(tuner: Tuner, space: str) -> None:
    done = tuner("space", "matmul", "64x64x64", "--space", space)
    assert "matmul 64x64x64 f32 nn none: 4 of 6 combinations are feasible" in done.out
    assert "  1 rejected by tile_m < 16" in done.out


def test_a_strategy_that_cannot_do_the_dtype_says_why(tuner: Tuner, space: str) -> None:
    done = tuner("space", "matmul", "64x64x64", "--dtype", "f64", "--space", space)
    assert done.code == 2
    assert "no strategy can do matmul 64x64x64 f64" in done.err
    assert "dtype: found f64, allowed f32" in done.err


def test_strategies_are_listed_with_their_knobs(tuner: Tuner, space: str) -> None:
    done = tuner("strategies", "--space", space)
    assert "matmul_cpu_packed: Packs both operands." in done.out
    assert "knobs  tile_m, tile_n" in done.out
    (document,) = tuner("strategies", "--space", space, "--json").json
    assert document["knobs"] == ["tile_m", "tile_n"]
    assert document["dtypes"] == ["f32"]


def test_the_shipped_strategies_are_listed(tuner: Tuner) -> None:
    assert "matmul_cpu_packed" in [one["name"] for one in tuner("strategies", "--json").json]


def test_targets_tell_what_works_and_why_not(tuner: Tuner) -> None:
    assert tuner("targets").out == "fake: available: for tests\ngpu: not available: no driver\n"
    assert tuner("targets", "--json").json == [
        {"name": "fake", "available": True, "reason": "for tests"},
        {"name": "gpu", "available": False, "reason": "no driver"},
    ]
