"""``tuner portfolio`` and ``tuner distill``, without compiler and clock, and with the real ones."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Tuner
from tests.cli.real import brief_remeasurement, real_candidates
from tests.tuning import fakes
from tests.tuning.test_group_run import limits, members
from tuner.analysis.dispatch import SAME_WEIGHTS, TUNED
from tuner.core.problem import Matmul, Problem
from tuner.core.requests import CampaignMember, CampaignSettings, RunRequest
from tuner.db.store import Store
from tuner.library.dispatch.matmul import DispatchedMatmul
from tuner.library.dispatch.resolver import BASELINE
from tuner.results.campaign_matrix import TIMED, campaign_matrix
from tuner.targets.backends import Backends
from tuner.targets.registry import real_backends
from tuner.tuning.campaign import begin_campaign
from tuner.tuning.events import Interruption
from tuner.tuning.request import run_settings


@pytest.fixture
def tuner(tmp_path: Path) -> Tuner:
    """Gives the commands with a database that has a campaign of three problems and few trials."""
    with Store.open(str(tmp_path / "results.db")) as store:
        begin_campaign(limits(5), members(), fakes.backends(), store, Interruption())
    return Tuner(tmp_path / "results.db", fakes.backends())


def times(tuner: Tuner) -> int:
    with Store.open(str(tuner.database)) as store:
        found = campaign_matrix(1, fakes.backends(), store)
    return sum(cell.state == TIMED for row in found.cells for cell in row)


@pytest.mark.slow
def test_what_the_chosen_lack_is_measured_and_stored_as_trials_of_the_runs(tuner: Tuner) -> None:
    before = times(tuner)
    first = tuner("portfolio", "1", "--configs", "2", "--json")
    document = json.loads(first.out)
    assert len(document["configurations"]) == 2
    assert document["predicted"] == 0
    assert sum(each["problems"] for each in document["configurations"]) == 3
    assert all(0 < each["efficiency"] <= 1 for each in document["problems"])
    assert document["in_sample"]["worst"] <= document["in_sample"]["geomean"]
    assert document["held_out"]["geomean"] <= 1
    assert times(tuner) > before
    runs = json.loads(tuner("history", "--json").out)
    assert len(runs) >= 5 + times(tuner) - before

    again = tuner("portfolio", "1", "--configs", "2", "--json")  # nothing is missing any more
    assert "measuring" not in again.err
    assert json.loads(again.out)["configurations"] == document["configurations"]


def test_the_printed_form_names_configurations_problems_and_both_figures(tuner: Tuner) -> None:
    shown = tuner("portfolio", "1", "--configs", "2")
    assert "measuring" in shown.err
    assert "campaign 1: 2 configurations" in shown.out
    assert "matmul 8x8x8" in shown.out
    assert "layer 0" in shown.out
    assert "in sample:  geometric mean" in shown.out
    assert "held out:   geometric mean" in shown.out


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("portfolio", "1", "--configs", "500"), "configs: found 500, allowed 1.."),
        (("portfolio", "1", "--configs", "0"), "configs: found 0, allowed 1.."),
        (("portfolio", "7", "--configs", "2"), "campaign: found 7"),
        (("portfolio", "x", "--configs", "2"), "'x' is not a valid integer"),
        (("portfolio", "1"), "Missing option '--configs'"),
        (("distill", "1", "--configs", "2"), "Missing option '-o'"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(
    tuner: Tuner, arguments: tuple[str, ...], message: str
) -> None:
    found = tuner(*arguments)
    assert found.code == 2
    assert message in found.err
    assert found.out == ""


def test_a_campaign_that_is_not_finished_is_refused(tuner: Tuner) -> None:
    with Store.open(str(tuner.database)) as store:
        store.set_campaign_status(1, "interrupted")
    found = tuner("portfolio", "1", "--configs", "2")
    assert found.code == 2
    assert "campaign 1: is interrupted" in found.err


def real_campaign(store: Store, backends: Backends, problems: tuple[Problem, ...], trials: int) -> None:
    requests = (RunRequest(each, target="cpu") for each in problems)
    found = tuple(CampaignMember(run_settings(each, backends), "", 1) for each in requests)
    settings = CampaignSettings("", trials, None, 0, ())
    begin_campaign(settings, found, backends, store, Interruption())


@pytest.mark.slow
@pytest.mark.mlir
def test_a_rule_file_of_a_real_campaign_serves_products(tmp_path: Path) -> None:
    backends = real_candidates()
    tuner, rule = Tuner(tmp_path / "results.db", backends), tmp_path / "mm.rule.yaml"
    with brief_remeasurement():
        with Store.open(str(tuner.database)) as store:
            real_campaign(store, backends, (Matmul(4, 48, 32), Matmul(16, 48, 32)), trials=4)
        found = tuner("distill", "1", "--configs", "2", "--stock", "-o", str(rule))
    assert found.code == 0, found.err
    assert "mm.rule.yaml: 2 configurations, 2 problems" in " ".join(found.out.split())
    matmul = DispatchedMatmul(real_backends, lambda: tmp_path / "first-use")
    rng = np.random.default_rng(0)
    for m, source in ((4, TUNED), (8, SAME_WEIGHTS), (3, SAME_WEIGHTS), (16, TUNED)):
        a = rng.standard_normal((m, 32)).astype(np.float32)
        b = rng.standard_normal((32, 48)).astype(np.float32)
        chosen = matmul.chosen(a, b, rule=rule, measure="never")
        if chosen.source != BASELINE:  # whose time is invented here
            assert chosen.source == source
        assert np.allclose(matmul(a, b, rule=rule, measure="never"), a @ b, atol=1e-4)
