from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tuning import fakes
from tests.tuning.test_group_run import PROBLEMS, limits, members
from tuner.core.errors import UsageError
from tuner.core.records import Measurement
from tuner.core.runs import TrialQuery
from tuner.db.store import Store
from tuner.results.campaign_matrix import NOT_TRIED, TIMED, campaign_matrix
from tuner.tuning.campaign import MissingCell, begin_campaign, measure_cells, resume_campaign
from tuner.tuning.events import Interruption
from tuner.tuning.request import RunLimit


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Gives a database with a finished campaign of three problems and few trials."""
    with Store.open(str(tmp_path / "tuner.db")) as opened:
        begin_campaign(limits(5), members(), fakes.backends(), opened, Interruption())
        yield opened


def missing(store: Store) -> tuple[MissingCell, ...]:
    found = campaign_matrix(1, fakes.backends(), store)
    return tuple(
        MissingCell(place, column, cell.candidate)
        for place, row in enumerate(found.cells)
        for column, cell in zip(found.columns, row, strict=True)
        if cell.state == NOT_TRIED and cell.candidate is not None
    )


def measure(store: Store, cells: tuple[MissingCell, ...], interruption: Interruption | None = None) -> int:
    return measure_cells(1, cells, fakes.backends(), store, interruption or Interruption())


@pytest.mark.slow
def test_cells_become_complete_trials_of_their_runs_and_of_the_campaign(store: Store) -> None:
    cells = missing(store)
    before = store.campaign_proposals(1)
    assert cells
    assert measure(store, cells) == len(cells)
    assert missing(store) == ()
    proposals = store.campaign_proposals(1)
    assert proposals[: len(before)] == before
    assert [each.number for each in proposals] == [*range(len(before) + len(cells))]
    added = proposals[len(before) :]
    assert [each.column for each in added] == [cell.column for cell in cells]
    for each in added:
        assert each.proposal.trial is not None
        outcome = each.proposal.trial.record.outcome
        assert isinstance(outcome, Measurement)
        assert outcome.is_complete
    found = campaign_matrix(1, fakes.backends(), store)
    assert all(cell.state == TIMED for row in found.cells for cell in row)


@pytest.mark.slow
def test_a_run_is_finished_afterwards_and_timed_again(store: Store) -> None:
    place = missing(store)[0].place
    cells = tuple(cell for cell in missing(store) if cell.place == place)
    rounds = [len(store.rounds(run.id)) for run in store.campaign(1).runs]
    measure(store, cells)
    campaign = store.campaign(1)
    assert campaign.status == "done"
    added = [len(store.rounds(run.id)) - count for run, count in zip(campaign.runs, rounds, strict=True)]
    assert added == [int(each == place) for each in range(3)]
    run = campaign.runs[place]
    assert run.settings.trials == len(store.trials(TrialQuery(run=run.id)))


@pytest.mark.slow
def test_the_campaign_can_be_extended_afterwards(store: Store) -> None:
    measure(store, missing(store)[:2])
    done = len(store.campaign_proposals(1))
    limit = RunLimit.of(done + 3, None)
    again = resume_campaign(1, fakes.backends(), store, Interruption(), limit=limit)
    assert again.problems == PROBLEMS
    assert again.trials == done + 3


def test_an_interruption_leaves_the_rest(store: Store) -> None:
    asked, cells = Interruption(), missing(store)
    asked.ask()
    assert measure(store, cells, asked) == 0
    assert missing(store) == cells


def test_a_campaign_that_is_not_finished_is_refused(store: Store) -> None:
    store.set_campaign_status(1, "interrupted")
    with pytest.raises(UsageError, match="campaign 1: is interrupted"):
        measure(store, missing(store))
