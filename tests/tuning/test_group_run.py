"""A campaign on a target without compiler and clock."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes import bind
from tests.tuning import fakes
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul, Problem
from tuner.core.requests import CampaignMember, CampaignSettings
from tuner.core.runs import TrialQuery
from tuner.db.store import Store
from tuner.tuning.campaign import begin_campaign, resume_campaign
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


def tuned(store: Store, trials: int = 15) -> TunedCampaign:
    return begin_campaign(limits(trials), members(), fakes.backends(), store, Interruption())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "tuner.db")) as opened:
        yield opened


def test_all_problems_share_one_budget_and_each_is_an_ordinary_run(store: Store) -> None:
    found = tuned(store)
    assert (found.campaign.status, found.trials) == ("done", 15)
    assert found.problems == PROBLEMS
    assert found.counts == COUNTS
    assert all(each.counts.proposed >= 4 for each in found.runs)
    for each in found.runs:
        assert each.run.status == "done"
        assert each.run.settings.trials == each.counts.proposed
        assert each.selected is not None
        assert [trial.number for trial in store.trials(TrialQuery(run=each.run.id, sort="number"))] == [
            *range(each.counts.proposed)
        ]
        assert each.run.baseline is not None
        assert each.run.roofline == fakes.ROOFLINE
    times = [best.best_s for best in found.best if best is not None and best.best_s is not None]
    assert found.total_s == pytest.approx(sum(c * t for c, t in zip(COUNTS, times, strict=True)))
    seconds = f"{found.total_s:.4g} s in all, {found.reliability.word}"
    assert repr(found) == f"TunedCampaign(1: 3 problems, done, 15 trials; {seconds})"


def test_seconds_of_the_runs_are_those_of_the_campaign(store: Store) -> None:
    found = tuned(store)
    spent = sum(each.seconds for each in found.runs)
    assert 0 < spent <= found.campaign.seconds
    assert 0 < found.campaign.search_s <= found.campaign.seconds


@pytest.mark.slow
def test_a_large_budget_tries_everything_once(store: Store) -> None:
    found = tuned(store, trials=1000)
    assert [each.counts.proposed for each in found.runs] == [20, 20, 20]
    assert found.total_s == pytest.approx(sum(COUNTS) * fakes.BEST_S)


def test_the_pool_comes_from_first_points_and_seeds_and_is_stored(store: Store) -> None:
    def plan(*arguments: object) -> object:
        whole = fakes.FAKE.outcomes.plan(*arguments)  # type: ignore[arg-type]
        return replace(whole, first=(6, 3), seeds=lambda _resources: (3, 14))

    backends = fakes.backends(plan=plan)
    found = begin_campaign(limits(6), members(), backends, store, Interruption())
    columns = found.campaign.settings.columns
    assert [dict(column.choices)["x"] for column in columns] == [3, 1, 7]
    proposed = store.campaign_proposals(found.campaign.id)
    assert [each.column for each in proposed[:3]] == [columns[0]] * 3  # without a model in their order
    assert [each.number for each in proposed] == [*range(6)]


def test_a_failing_problem_leaves_the_others(store: Store) -> None:
    backends = fakes.backends(
        bind=lambda _strategies, problem, *_: fakes.failing_bind if problem == PROBLEMS[1] else bind
    )
    found = begin_campaign(limits(), members(), backends, store, Interruption())
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
    resumed = resume_campaign(1, fakes.backends(), store, Interruption())
    assert (resumed.campaign.status, resumed.trials) == ("done", 15)


@pytest.mark.slow
def test_a_finished_campaign_is_returned_as_it_is_and_extended_by_a_limit(store: Store) -> None:
    first = tuned(store)
    assert resume_campaign(1, fakes.backends(), store, Interruption()) == first
    longer = resume_campaign(1, fakes.backends(), store, Interruption(), limit=RunLimit(trials=20))
    assert (longer.trials, longer.campaign.settings.trials) == (20, 20)
    assert [each.run.settings.trials for each in longer.runs] == [
        each.counts.proposed for each in longer.runs
    ]


@pytest.mark.slow
def test_an_extended_campaign_does_what_one_with_this_budget_would_have_done(
    store: Store, tmp_path: Path
) -> None:
    tuned(store)
    resume_campaign(1, fakes.backends(), store, Interruption(), limit=RunLimit(trials=30))
    with Store.open(str(tmp_path / "other.db")) as other:
        tuned(other, trials=30)
        at_once = [(each.run, each.column) for each in other.campaign_proposals(1)]
    assert [(each.run, each.column) for each in store.campaign_proposals(1)] == at_once


def test_a_run_of_a_finished_campaign_can_be_extended_and_then_the_campaign_no_more(store: Store) -> None:
    tuned(store)
    longer = resume(2, fakes.backends(), store, Interruption(), limit=RunLimit(trials=12))
    assert longer.counts.proposed == 12
    with pytest.raises(UsageError, match="campaign 1: run 2 was extended on its own; start a new campaign"):
        resume_campaign(1, fakes.backends(), store, Interruption(), limit=RunLimit(trials=40))


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (RunLimit(trials=14), "trials: found 14, but campaign 1 has 15 trials already"),
        (RunLimit(budget_s=1e-9), "budget: found 1e-09 s, but campaign 1 has searched for"),
    ],
)
def test_a_limit_below_what_is_done_is_refused(store: Store, limit: RunLimit, message: str) -> None:
    tuned(store)
    with pytest.raises(UsageError, match=message):
        resume_campaign(1, fakes.backends(), store, Interruption(), limit=limit)


def test_a_budget_of_time_ends_the_search(store: Store) -> None:
    found = begin_campaign(limits(None, 1e-9), members(), fakes.backends(), store, Interruption())
    assert (found.trials, found.campaign.status) == (0, "done")


def test_what_cannot_be_tuned_is_refused_before_anything_is_stored(store: Store) -> None:
    def plan(settings: object, machine: object) -> object:
        raise UsageError("no strategy can do it")

    with pytest.raises(UsageError, match="matmul 8x8x8 f32 nn none: no strategy can do it"):
        begin_campaign(limits(), members(), fakes.backends(plan=plan), store, Interruption())
    with pytest.raises(UsageError, match="no problem to tune"):
        begin_campaign(limits(), (), fakes.backends(), store, Interruption())
    assert store.campaigns() == ()


def test_a_campaign_of_another_compiler_is_not_resumed(store: Store) -> None:
    tuned(store)
    other = fakes.backends(compiler=lambda _target: fakes.OTHER_COMPILER)
    with pytest.raises(UsageError, match="run 1: was made by another version of the compiler"):
        resume_campaign(1, other, store, Interruption(), limit=RunLimit(trials=30))
