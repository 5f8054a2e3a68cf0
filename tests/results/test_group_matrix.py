from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import bind
from tests.tuning import fakes
from tests.tuning.test_campaign import plan
from tests.tuning.test_group_run import COUNTS, PROBLEMS, limits, members
from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.interfaces import Script
from tuner.db.store import Store
from tuner.results.campaign_matrix import FAILED, NOT_TRIED, TIMED, campaign_matrix
from tuner.targets.backends import Backends
from tuner.tuning.campaign import begin_campaign
from tuner.tuning.events import Interruption


def sometimes_failing(candidate: Candidate) -> Script:
    return (fakes.failing_bind if dict(candidate.choices)["x"] == 0 else bind)(candidate)


def parts() -> Backends:
    return fakes.backends(plan=plan, bind=lambda *_: sometimes_failing)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "tuner.db")) as opened:
        yield opened


@pytest.mark.slow
def test_each_cell_has_the_trial_of_its_projection_or_a_reason(store: Store) -> None:
    begin_campaign(limits(40), members(), parts(), store, Interruption())
    found = campaign_matrix(1, parts(), store)
    assert (found.problems, found.counts) == (PROBLEMS, COUNTS)
    assert found.names == ("layer 0", "layer 1", "layer 2")
    assert found.columns[:8] == store.campaign(1).settings.columns
    assert len(found.columns) > 8  # what samplers found
    proposals = store.campaign_proposals(1)
    runs = [run.id for run in store.campaign(1).runs]
    for run, row in zip(runs, found.cells, strict=True):
        tried = {each.proposal.candidate: each.proposal.trial for each in proposals if each.run == run}
        for cell in row:
            assert cell.candidate is not None
            assert cell.trial == tried.get(cell.candidate)
            assert cell.state == (
                NOT_TRIED if cell.trial is None else FAILED if cell.trial.best_s is None else TIMED
            )
            assert (cell.reason == "") == (cell.state == TIMED)
    failed = [cell for row in found.cells for cell in row if cell.state == FAILED]
    assert failed
    assert all(cell.reason == "element (0, 1): found 2, expected 1" for cell in failed)


def test_the_matrix_of_times_is_for_analysis(store: Store) -> None:
    begin_campaign(limits(20), members(), parts(), store, Interruption())
    found = campaign_matrix(1, parts(), store)
    times = found.times
    assert times.columns == found.columns
    assert int(times.is_timed().sum()) == sum(cell.state == TIMED for row in found.cells for cell in row)
    assert times.is_applicable().all()
    best = min(cell.time_s for row in found.cells for cell in row if cell.time_s is not None)
    assert times.best_s().min() == best


def test_an_unknown_campaign_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="campaign: found 3, allowed none"):
        campaign_matrix(3, parts(), store)
