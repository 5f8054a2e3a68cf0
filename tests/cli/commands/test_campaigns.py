from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Tuner, require, require_fields
from tests.cli.real import brief_remeasurement, real_campaign, real_candidates
from tests.default_suite import ALL
from tests.texts import text_beside
from tests.tuning import fakes
from tests.tuning.test_fake_campaign import limits, members
from tuner.analysis.portfolio import SAME_WEIGHTS, TUNED
from tuner.core.matmul import Matmul
from tuner.db.store import Store
from tuner.models.library.dispatch.matmul import DispatchedMatmul
from tuner.models.library.dispatch.resolver import BASELINE
from tuner.results.campaign_matrix import TIMED, campaign_matrix
from tuner.targets.registry import real_backends
from tuner.tuning.campaign import begin_campaign
from tuner.tuning.events import Interruption

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
    done = tuner.done("tune --shapes", shapes, "--trials", "11")
    require(done.out, "first, again", "matmul 64x8x8 f64 nn none", "campaign  1: 2 problems, 11 trials in")
    require(done.out, "for 5 calls, each problem as often as it occurs", "tuner history --run 1")
    phrase = "final re-measurement: timing the best 4 again"
    require(done.err, "campaign 1: 2 problems, fake, 1 thread on fake", phrase)
    assert {trial["run"] for trial in tuner("history --run 1 --json").json} == {1}
    tuner.done("export matmul 8x8x8 --format json")


def test_json_has_the_document_of_each_run(tuner: Tuner, shapes: str) -> None:
    document = tuner.done("tune --shapes", shapes, "--trials", "11", "--json", "--seed", "3").json
    require_fields(document, campaign=1, status="done", trials=11, source="shapes.yaml")
    first, second = document["problems"]
    require_fields(first, run=1, name="first, again", count=4)
    require_fields(second, run=2, name="", count=1)
    assert first["counts"]["proposed"] + second["counts"]["proposed"] == 11
    total_s = sum(each["count"] * each["best"]["median_s"] for each in (first, second))
    assert document["total_s"] == pytest.approx(total_s)


def test_by_default_a_problem_has_eight_trials_and_failed_ones_are_named(tuner: Tuner, shapes: str) -> None:
    assert tuner("tune --shapes", shapes, "--json").json["trials"] == 16
    tuner.backends = fakes.backends(bind=lambda *_: fakes.failing_bind)
    done = tuner.failed("tune --shapes", shapes, "--trials", "4", "--fresh")
    require(done.out, "no candidate worked", "total     unknown: a problem has no time")
    require(done.out, "2 of 2 trials failed at verify: element (0, 1): found 2", "tuner explain")


@pytest.mark.slow
def test_a_campaign_is_resumed_by_its_number(tuner: Tuner, shapes: str) -> None:
    tuner("tune --shapes", shapes, "--trials", "11")
    again = tuner("tune --resume campaign:1 --json")
    assert (again.code, again.json["trials"]) == (0, 11)
    longer = tuner("tune --resume campaign:1 --trials 14 --json")
    assert (longer.code, longer.json["trials"]) == (0, 14)


NOT_ON = "--shapes cannot be combined with --on: a campaign is measured on one class of machine"


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("matmul", "--shapes cannot be combined with matmul: the file has the problems"),
        ("--dtype f64", "combined with --dtype: each problem of the file has its own"),
        ("--no-warm-start", "--shapes cannot be combined with --no-warm-start"),
        ("--entry f", "--shapes cannot be combined with --entry"),
        ("--resume 1", "--resume cannot be combined with --shapes"),
        ("--retime", "--shapes cannot be combined with --retime"),
        ("--trials 0", "trials: found 0, allowed 1 or more"),
        ("--fleet", "drivers and nodes meet on a server"),
        ("--fleet --on a,b --db postgresql://x/y", NOT_ON),
    ],
)
def test_options_of_one_problem_are_refused(tuner: Tuner, shapes: str, options: str, message: str) -> None:
    if "--fleet" in options:
        pytest.importorskip("procrastinate", reason="--fleet needs the extra fleet")
    assert message in tuner.refused(f"tune {options} --shapes", shapes)


def test_a_mistake_in_the_file_an_unknown_campaign_and_options_of_a_resumed_one_are_refused(
    tuner: Tuner, tmp_path: Path, shapes: str
) -> None:
    path = tmp_path / "shapes.csv"
    path.write_text("shape,count\n8x8x8,2\n8x8,1\n")
    line = "shapes.csv: line 3: shape: found '8x8', allowed MxNxK"
    assert line in tuner.refused("tune --shapes", str(path))
    tuner("tune --shapes", shapes, "--trials", "4")
    for campaign, message in (
        ("campaign:7", "campaign: found 7, allowed 1 to 1"),
        ("campaign:1 --seed 4", "--resume cannot be combined with --seed"),
    ):
        assert message in tuner.refused(f"tune --resume {campaign}")
    assert tuner("tune --resume campaign:x").code == 2


def test_the_contractions_of_a_model_are_tuned(tuner: Tuner, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(text_beside(__file__, "MODEL"))
    done = tuner.done("tune --shapes", str(path), "--trials", "3", "--json")
    found = [(each["name"], each["problem"]["shape"]) for each in done.json["problems"]]
    assert found == [("layer", [8, 4, 16])]
    assert "note: left out: layer: its sizes are not static" in done.err


# ``tuner portfolio``, without compiler and clock, and with the real ones.


@pytest.fixture
def finished(tmp_path: Path) -> Tuner:
    with Store.open(str(tmp_path / "results.db")) as store:
        begin_campaign(limits(5), members(), fakes.backends(), store, Interruption())
    return Tuner(tmp_path / "results.db", fakes.backends())


def times(finished: Tuner) -> int:
    with Store.open(str(finished.database)) as store:
        found = campaign_matrix(1, fakes.backends(), store)
    return sum(cell.state == TIMED for row in found.cells for cell in row)


@pytest.mark.slow
def test_what_the_chosen_lack_is_measured_and_stored_as_trials_of_the_runs(finished: Tuner) -> None:
    before = times(finished)
    document = finished("portfolio 1 --configs 2 --json").json
    assert (len(document["configurations"]), document["predicted"]) == (2, 0)
    assert sum(each["problems"] for each in document["configurations"]) == 3
    assert all(0 < each["efficiency"] <= 1 for each in document["problems"])
    assert document["in_sample"]["worst"] <= document["in_sample"]["geomean"]
    assert document["held_out"]["geomean"] <= 1
    assert times(finished) > before
    assert len(finished("history --json").json) >= 5 + times(finished) - before
    again = finished("portfolio 1 --configs 2 --json")  # nothing is missing any more
    assert "measuring" not in again.err
    assert again.json["configurations"] == document["configurations"]


def test_the_printed_form_names_configurations_problems_and_both_figures(finished: Tuner) -> None:
    shown = finished("portfolio 1 --configs 2")
    assert "measuring" in shown.err
    require(shown.out, "campaign 1: 2 configurations", "matmul 8x8x8", "layer 0")
    require(shown.out, "in sample:  geometric mean", "held out:   geometric mean")


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("portfolio 1 --configs 500", "configs: found 500, allowed 1.."),
        ("portfolio 1 --configs 0", "configs: found 0, allowed 1.."),
        ("portfolio 7 --configs 2", "campaign: found 7"),
        ("portfolio x --configs 2", "'x' is not a valid integer"),
        ("portfolio 1", "Missing option '--configs'"),
    ],
)
def test_wrong_arguments_are_refused(finished: Tuner, arguments: str, message: str) -> None:
    assert message in finished.refused(arguments)


def test_a_campaign_that_is_not_finished_is_refused(finished: Tuner) -> None:
    with Store.open(str(finished.database)) as store:
        store.set_campaign_status(1, "interrupted")
    done = finished("portfolio campaign:1 --configs 2")
    assert done.code == 2
    assert "campaign 1: is interrupted" in done.err


@pytest.mark.slow
@pytest.mark.mlir
def test_a_rule_file_of_a_real_campaign_serves_products(tmp_path: Path) -> None:
    backends = real_candidates()
    finished, rule = Tuner(tmp_path / "results.db", backends), tmp_path / "mm.rule.yaml"
    with brief_remeasurement():
        with Store.open(str(finished.database)) as store:
            real_campaign(store, backends, (Matmul(4, 48, 32), Matmul(16, 48, 32)))
        done = finished.done("portfolio 1 --configs 2 --stock -o", str(rule))
    assert "mm.rule.yaml: 2 configurations, 2 problems" in " ".join(done.out.split())
    matmul = DispatchedMatmul(real_backends, lambda: tmp_path / "first-use")
    rng = np.random.default_rng(0)
    for m, source in ((4, TUNED), (8, SAME_WEIGHTS), (3, SAME_WEIGHTS), (16, TUNED)):
        a = rng.standard_normal((m, 32)).astype(np.float32)
        b = rng.standard_normal((32, 48)).astype(np.float32)
        chosen = matmul.chosen(a, b, rule=rule, measure="never")
        if chosen.source != BASELINE:  # whose time is invented here
            assert chosen.source == source
        assert np.allclose(matmul(a, b, rule=rule, measure="never"), a @ b, atol=1e-4)
