"""A campaign on a target without compiler and clock."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import bind
from tests.tuning import fakes
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul, Problem
from tuner.core.records import Measurement
from tuner.core.requests import CampaignMember, CampaignSettings
from tuner.core.runs import TrialQuery
from tuner.db.store import Store
from tuner.results.campaign_matrix import NOT_TRIED, TIMED, campaign_matrix
from tuner.tuning.campaign import MissingCell, begin_campaign, measure_cells, resume_campaign
from tuner.tuning.events import CampaignEvent, CampaignStarted, Interruption, RunEvent, TrialDone
from tuner.tuning.request import RunLimit
from tuner.tuning.run import resume
from tuner.tuning.tuned_run import TunedCampaign

PROBLEMS = (Matmul(8, 8, 8), Matmul(64, 8, 8), Matmul(64, 64, 8))
COUNTS = (1, 12, 2)


def members(problems: tuple[Problem, ...] = PROBLEMS) -> tuple[CampaignMember, ...]:
    return tuple(
        CampaignMember(fakes.settings(problem=problem), f"layer {place}", COUNTS[place])
        for place, problem in enumerate(problems)
    )


def limits(trials: int | None = 15, budget_s: float | None = None) -> CampaignSettings:
    return CampaignSettings("shapes.yaml", trials, budget_s, 0, ())


def begun(store: Store, *limit: float | None, **changes: Any) -> TunedCampaign:
    """Returns a campaign begun with a limit of trials and seconds, on backends that are changed."""
    of = limits(*limit)  # type: ignore[arg-type]
    return begin_campaign(of, members(), fakes.backends(**changes), store, Interruption())


def resumed(store: Store, limit: RunLimit | None = None, **changes: Any) -> TunedCampaign:
    return resume_campaign(1, fakes.backends(**changes), store, Interruption(), limit=limit)


def test_all_problems_share_one_budget_and_each_is_an_ordinary_run(store: Store) -> None:
    found = begun(store)
    assert (found.campaign.status, found.trials) == ("done", 15)
    assert (found.problems, found.counts) == (PROBLEMS, COUNTS)
    assert all(each.counts.proposed >= 4 for each in found.runs)
    for each in found.runs:
        assert each.run.status == "done"
        assert each.run.settings.trials == each.counts.proposed
        numbers = [trial.number for trial in fakes.trials_of(store, each.run.id)]
        assert numbers == [*range(each.counts.proposed)]
        assert None not in (each.selected, each.run.baseline)
        assert each.run.roofline == fakes.ROOFLINE
    times = [best.best_s for best in found.best if best is not None and best.best_s is not None]
    assert found.total_s == pytest.approx(sum(c * t for c, t in zip(COUNTS, times, strict=True)))
    seconds = f"{found.total_s:.4g} s in all, {found.reliability.word}"
    assert repr(found) == f"TunedCampaign(1: 3 problems, done, 15 trials; {seconds})"
    assert 0 < sum(each.seconds for each in found.runs) <= found.campaign.seconds
    assert 0 < found.campaign.search_s <= found.campaign.seconds


def test_the_pool_comes_from_first_points_and_seeds_and_is_stored(store: Store) -> None:
    def plan(*arguments: object) -> object:
        whole = fakes.FAKE.measurement.plan(*arguments)  # type: ignore[arg-type]
        return replace(whole, first=(6, 3), seeds=lambda _resources: (3, 14))

    found = begun(store, 6, plan=plan)
    columns = found.campaign.settings.columns
    assert [dict(column.choices)["x"] for column in columns] == [3, 1, 7]
    proposed = store.campaign_proposals(found.campaign.id)
    assert [each.column for each in proposed[:3]] == [columns[0]] * 3  # without a model in their order
    assert [each.number for each in proposed] == [*range(6)]


def test_a_failing_problem_leaves_the_others(store: Store) -> None:
    binds = {PROBLEMS[1]: fakes.failing_bind}
    found = begun(store, bind=lambda _strategies, problem, *_: binds.get(problem, bind))
    assert [each.has_worked for each in found.runs] == [True, False, True]
    assert found.total_s is None
    assert not found.has_worked
    assert "no time of every problem" in repr(found)


def test_events_name_the_run(store: Store) -> None:
    events: list[CampaignEvent] = []
    begin_campaign(limits(6), members(), fakes.backends(), store, Interruption(), events.append)
    assert isinstance(events[0], CampaignStarted)
    done = [each for each in events if isinstance(each, RunEvent) and isinstance(each.event, TrialDone)]
    assert Counter(each.place for each in done) == {0: 2, 1: 2, 2: 2}
    assert done[-1].proposed == 6


@pytest.mark.slow
def test_an_interrupted_campaign_is_resumed_to_its_end(store: Store) -> None:
    interruption = Interruption()

    def observe(event: CampaignEvent) -> None:
        if isinstance(event, RunEvent) and event.proposed >= 7:
            interruption.ask()

    found = begin_campaign(limits(), members(), fakes.backends(), store, interruption, observe)
    assert found.is_interrupted
    assert {each.run.status for each in found.runs} == {"interrupted"}
    with pytest.raises(UsageError, match="run 2: belongs to campaign 1, whose runs share one budget"):
        resume(2, fakes.backends(), store, Interruption())
    whole = resumed(store)
    assert (whole.campaign.status, whole.trials) == ("done", 15)


@pytest.mark.slow
def test_a_campaign_is_extended_to_what_that_budget_would_have_done(store: Store, tmp_path: Path) -> None:
    first = begun(store)
    assert resumed(store) == first
    longer = resumed(store, RunLimit(trials=30))
    assert (longer.trials, longer.campaign.settings.trials) == (30, 30)
    proposed = [each.counts.proposed for each in longer.runs]
    assert [each.run.settings.trials for each in longer.runs] == proposed
    with Store.open(str(tmp_path / "other.db")) as other:
        begun(other, 30)
        at_once = [(each.run, each.column) for each in other.campaign_proposals(1)]
    assert [(each.run, each.column) for each in store.campaign_proposals(1)] == at_once


def test_a_run_of_a_finished_campaign_can_be_extended_and_then_the_campaign_no_more(store: Store) -> None:
    begun(store)
    longer = resume(2, fakes.backends(), store, Interruption(), limit=RunLimit(trials=12))
    assert longer.counts.proposed == 12
    with pytest.raises(UsageError, match="campaign 1: run 2 was extended on its own; start a new campaign"):
        resumed(store, RunLimit(trials=40))


def test_a_limit_below_what_is_done_and_another_compiler_are_refused(store: Store) -> None:
    begun(store)
    for limit, message in (
        (RunLimit(trials=14), "trials: found 14, but campaign 1 has 15 trials already"),
        (RunLimit(budget_s=1e-9), "budget: found 1e-09 s, but campaign 1 has searched for"),
    ):
        with pytest.raises(UsageError, match=message):
            resumed(store, limit)
    with pytest.raises(UsageError, match="run 1: was made by another version of the compiler"):
        resumed(store, RunLimit(trials=30), compiler=lambda _target: fakes.OTHER_COMPILER)


def test_a_budget_of_time_ends_the_search_and_a_large_one_tries_everything_once(store: Store) -> None:
    least = begun(store, None, 1e-9)
    assert (least.trials, least.campaign.status) == (1, "done")
    found = begun(store, 1000)
    assert [each.counts.proposed for each in found.runs] == [20, 20, 20]
    assert found.total_s == pytest.approx(sum(COUNTS) * fakes.BEST_S)


def test_what_cannot_be_tuned_is_refused_before_anything_is_stored(store: Store) -> None:
    def plan(settings: object, machine: object) -> object:
        raise UsageError("no strategy can do it")

    with pytest.raises(UsageError, match="matmul 8x8x8 f32 nn none: no strategy can do it"):
        begun(store, plan=plan)
    with pytest.raises(UsageError, match="no problem to tune"):
        begin_campaign(limits(), (), fakes.backends(), store, Interruption())
    assert store.campaigns() == ()


@pytest.fixture
def finished(store: Store) -> Store:
    """Gives a database with a finished campaign of three problems and few trials."""
    begun(store, 5)
    return store


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
def test_cells_become_complete_trials_of_their_runs_and_of_the_campaign(finished: Store) -> None:
    cells = missing(finished)
    before = finished.campaign_proposals(1)
    assert cells
    assert measure(finished, cells) == len(cells)
    assert missing(finished) == ()
    proposals = finished.campaign_proposals(1)
    assert proposals[: len(before)] == before
    assert [each.number for each in proposals] == [*range(len(before) + len(cells))]
    added = proposals[len(before) :]
    assert [each.column for each in added] == [cell.column for cell in cells]
    for each in added:
        assert each.proposal.trial is not None
        outcome = each.proposal.trial.record.outcome
        assert isinstance(outcome, Measurement)
        assert outcome.is_complete
    found = campaign_matrix(1, fakes.backends(), finished)
    assert all(cell.state == TIMED for row in found.cells for cell in row)


@pytest.mark.slow
def test_the_campaign_is_finished_and_can_be_extended_afterwards(finished: Store) -> None:
    place = missing(finished)[0].place
    cells = tuple(cell for cell in missing(finished) if cell.place == place)
    rounds = [len(finished.rounds(run.id)) for run in finished.campaign(1).runs]
    measure(finished, cells)
    campaign = finished.campaign(1)
    assert campaign.status == "done"
    added = [len(finished.rounds(run.id)) - count for run, count in zip(campaign.runs, rounds, strict=True)]
    assert added == [int(each == place) for each in range(3)]
    run = campaign.runs[place]
    assert run.settings.trials == len(finished.trials(TrialQuery(run=run.id)))
    done = len(finished.campaign_proposals(1))
    again = resumed(finished, RunLimit(trials=done + 3))
    assert (again.problems, again.trials) == (PROBLEMS, done + 3)


def test_an_interruption_leaves_the_rest_and_an_unfinished_campaign_is_refused(finished: Store) -> None:
    asked, cells = Interruption(), missing(finished)
    asked.ask()
    assert measure(finished, cells, asked) == 0
    assert missing(finished) == cells
    finished.set_campaign_status(1, "interrupted")
    with pytest.raises(UsageError, match="campaign 1: is interrupted"):
        measure(finished, missing(finished))
