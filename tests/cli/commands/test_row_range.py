"""``tuner tune matmul 1..MxNxK``: a range of m as one campaign, its history, and the C library of it."""

from pathlib import Path

import numpy as np
import pytest

import tuner as api
from tests.cli.conftest import Tuner, require, require_fields
from tests.cli.real import brief_remeasurement, real_candidates
from tests.models.library.c.c_programs import NEEDS_CC, call, shared_object
from tuner.core.matmul import Matmul

RANGE = "1..6x8x8"
TUNED = 1


def test_a_range_is_tuned_as_one_campaign_that_history_and_show_name(tuner: Tuner) -> None:
    done = tuner.done(f"tune matmul {RANGE} --trials 10")
    require(done.out, "matmul 1x8x8", "matmul 6x8x8", "campaign  1: 5 problems, 10 trials in")
    require(done.out, f"range     {RANGE}: each m runs by these kernels", "python    tuner.load_range(1)")
    require(done.out, "export    tuner export --campaign 1 --format c -o DIR")
    require(tuner.done("show campaign:1").out, f"range     {RANGE}")
    line = f"range {RANGE}: runs 1 to 5, as tuner show campaign:1 lists"
    require(tuner.done("history --runs").out, line)
    require(tuner.done("history").out, line)
    require_fields(tuner.done("show campaign:1 --json").json, source=RANGE, trials=10)
    longer = tuner.done("tune --resume campaign:1 --trials 12")
    require(longer.out, "12 trials in", f"range     {RANGE}")


def test_history_of_other_runs_names_no_range(tuner: Tuner) -> None:
    tuner.done("tune matmul 8x8x8 --trials 2")
    assert "range" not in tuner.done("history --runs").out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("tune matmul ?x8x8", "the range of m is missing\nhint: matmul 1..4096x8x8"),
        ("tune matmul 1..8x8x8 --layout tn", "layout tn stores A by columns"),
        ("tune matmul 1..8x8x8 --target simulator", "kernels of a CPU serve a range of m\\, not"),
        ("tune matmul 1..8x8x8 --trials 0", "--trials 0 cannot be combined with a range of m"),
        ("tune matmul 1..8x8x8 --no-warm-start", "--no-warm-start cannot be combined with a range of m"),
        ("tune batch_matmul 1..8x8x8", "allowed BxMxNxK"),
        ("tune 1..8x8x8", "the operation is missing\nhint: tuner tune matmul 1..8x8x8"),
        ("export matmul 1..8x8x8", "then tuner export --campaign N --format c"),
    ],
)
def test_what_a_range_is_not_for_is_refused_with_a_way_out(tuner: Tuner, command: str, message: str) -> None:
    assert message.replace("\\", "") in tuner.refused(command)


@pytest.mark.slow
@pytest.mark.mlir
@NEEDS_CC
def test_a_real_range_is_right_for_every_m_in_python_and_in_c(tmp_path: Path) -> None:
    tuner = Tuner(tmp_path / "results.db", real_candidates())
    with brief_remeasurement():
        tuner.done("tune matmul 1..13x40x24 --target cpu --trials 8")
    tuner.done("export --campaign 1 --format c -o", str(tmp_path / "mm"))
    function = shared_object(tmp_path / "mm", "tuner_matmul.c", "tuner_kernels.o")["tuner_matmul_f32_nn"]
    assert "Range (m x n x k): 1..13x40x24" in (tmp_path / "mm" / "tuner_matmul.h").read_text()
    kernel = api.load_range(1, db=tuner.database)
    b = np.random.default_rng(0).standard_normal((24, 40), np.float32)
    for rows in range(1, 14):
        assert call(function, Matmul(rows, 40, 24), seed=rows) == TUNED
        a = np.random.default_rng(rows).standard_normal((rows, 24), np.float32)
        np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-4, atol=1e-5)
    with pytest.raises(api.UsageError, match="a: found 14 rows, allowed 1 to 13"):
        kernel(np.ones((14, 24), np.float32), b)


def test_a_campaign_of_other_problems_is_no_range(tuner: Tuner, tmp_path: Path) -> None:
    (tmp_path / "shapes.yaml").write_text("- 8x8x8\n")
    tuner.done("tune --shapes", str(tmp_path / "shapes.yaml"), "--trials", "2")
    with pytest.raises(api.UsageError, match="campaign 1: tuned single problems, not a range of rows"):
        api.load_range(1, db=tuner.database)
