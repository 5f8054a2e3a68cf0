import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.tuning import fakes


@pytest.fixture(scope="module")
def several_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gives a database with a run of 8x8x8 of which nothing failed, and one of 16x8x8 of which all failed."""
    tuner = Tuner(tmp_path_factory.mktemp("several") / "results.db", fakes.backends())
    assert tuner("tune", "matmul", "8x8x8", "--sampler", "exhaustive", "--trials", "20").code == 0
    tuner.backends = fakes.backends(bind=lambda *_: fakes.failing_bind)
    assert tuner("tune", "matmul", "16x8x8", "--trials", "2").code == 1
    return tuner.database


@pytest.fixture
def several(tuner: Tuner, several_database: Path) -> Tuner:
    shutil.copy(several_database, tuner.database)
    return tuner


@pytest.mark.slow
def test_a_run_is_a_line_and_the_latest_comes_first(several: Tuner) -> None:
    header, latest, first, shared = several("runs").out.splitlines()
    assert header.split() == [
        *("run", "begun", "problem", "status", "trials", "failed", "best", "reliability", "GFLOP/s")
    ]
    assert shared == "in every row: target fake"
    assert latest.split()[0] == "2"
    assert latest.split()[-5:] == ["2", "2", "-", "-", "-"]
    assert first.split()[0] == "1"
    assert "matmul 8x8x8 f32" in first
    assert "1 ms" in first


def test_the_best_of_a_run_is_its_answer(several: Tuner) -> None:
    listed = {run["run"]: run for run in several("runs", "--json").json}
    shown = several("show", "run:1", "--json").json
    assert listed[1]["best"] == shown["best"]
    assert listed[2]["best"] is None
    assert listed[2]["counts"] == {
        "proposed": 2,
        "measured": 0,
        "verified": 0,
        "failed": 2,
        "reused": 0,
        "compiled": 0,
    }


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        (("--shape", "8x8x8"), [1]),
        (("--op", "matmul", "--dtype", "f32", "--layout", "nn", "--output-dtype", "f32"), [2, 1]),
        (("--target", "fake", "--machine", "fake", "--threads", "1", "--epilogue", "none"), [2, 1]),
        (("--threads", "2"), []),
        (("--status", "done"), [2, 1]),
        (("--status", "interrupted"), []),
        (("--limit", "1"), [2]),
        (("--since", "2020-01-01"), [2, 1]),
        (("--since", "2999-01-01"), []),
    ],
)
def test_conditions_choose(several: Tuner, options: tuple[str, ...], runs: list[int]) -> None:
    assert [run["run"] for run in several("runs", *options, "--json").json] == runs
