"""A campaign that is killed anywhere, and resumed, ends with the trials of one that was not."""

import contextlib
import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from tests.fakes import FakeTarget
from tests.tuning import fakes
from tests.tuning.test_group_run import limits, members
from tests.tuning.test_resume import KilledError, Life
from tuner.core.machine import Machine
from tuner.core.runs import RunSettings, StoredTrial, TrialQuery
from tuner.db.store import Store
from tuner.results.differences import differences
from tuner.targets.backends import Backends
from tuner.targets.interface import Plan
from tuner.tuning.campaign import begin_campaign, resume_campaign

TRIALS = 36  # beyond the pool: the sampler proposes, too
MOMENTS = ("compile", "load", "verify", "measure", "measure_together")
WRITES = (
    *("begin_campaign", "propose", "record", "set_campaign_seconds", "set_campaign_status"),
    *("add_round", "set_roofline", "extend_run"),
)
Proposed = list[tuple[int, int, str]]  # (place of the run, number in the run, unprojected configuration)


def plan(settings: RunSettings, machine: Machine) -> Plan:
    """Returns a plan of 40 configurations, with a pool of eight."""
    whole = fakes.plan({"x": tuple(range(20)), "comment": ("a", "b")})(settings, machine)
    return dataclasses.replace(whole, first=(0, 7, 21), seeds=lambda _resources: (30, 12, 35, 9, 3))


def backends() -> Backends:
    return fakes.backends(plan=plan)


class MortalCampaignStore:
    """A store whose writes are moments: a kill comes before the commit or after it, never inside."""

    def __init__(self, store: Store, life: Life) -> None:
        self._store = store
        self._life = life

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return self._life.around(found) if name in WRITES else found


def lived(store: Store, life: Life, session: Callable[..., Any]) -> None:
    """Runs a session whose every step of a candidate and every write is a moment of its life."""
    with pytest.MonkeyPatch.context() as patch:
        for name in MOMENTS:
            patch.setattr(FakeTarget, name, life.around(getattr(FakeTarget, name)))
        with contextlib.suppress(KilledError):
            session(backends(), cast(Store, MortalCampaignStore(store, life)), life.interruption)


def begun(*parts: Any) -> None:
    begin_campaign(limits(TRIALS), members(), *parts)


def resumed(*parts: Any) -> None:
    resume_campaign(1, *parts)


def trials(store: Store, campaign: int = 1) -> list[tuple[StoredTrial, ...]]:
    runs = store.campaign(campaign).runs
    return [store.trials(TrialQuery(run=run.id, sort="number")) for run in runs]


def proposed(store: Store, campaign: int = 1) -> Proposed:
    places = {run.id: place for place, run in enumerate(store.campaign(campaign).runs)}
    found = store.campaign_proposals(campaign)
    return [(places[each.run], each.proposal.number, each.column.text) for each in found]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Proposed, list[Any], int]:
    life = Life()
    with Store.open(str(tmp_path_factory.mktemp("group") / "whole.db")) as store:
        lived(store, life, begun)
        assert store.campaign(1).status == "done"
        return proposed(store), trials(store), life.moments


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "is_polite"), [*zip(range(10), itertools.cycle((False, False, True)))])
def test_a_campaign_killed_anywhere_resumes_to_the_same_trials(
    uninterrupted: tuple[Proposed, list[Any], int], tmp_path: Path, moment: int, is_polite: bool
) -> None:
    order, expected, moments = uninterrupted
    ends_at = 3 + round(moments * (moment + 0.5) / 10)
    with Store.open(str(tmp_path / "killed.db")) as store:
        lived(store, Life(ends_at, is_polite), begun)
        assert store.campaign(1).status != "done"
        lived(store, Life(moments // 3), resumed)  # and once more
        resumed(backends(), store, Life().interruption)
        assert store.campaign(1).status == "done"
        assert proposed(store) == order
        for one, other in zip(expected, trials(store), strict=True):
            assert [each.text for each in differences(one, other)] == []


@pytest.mark.slow
def test_the_uninterrupted_campaign_used_pool_and_sampler(
    uninterrupted: tuple[Proposed, list[Any], int],
) -> None:
    order, found, _ = uninterrupted
    assert len(order) == sum(len(each) for each in found) == TRIALS
    pooled = {column for _, _, column in order[:12]}
    assert len({column for _, _, column in order}) > len(pooled)
    assert max(len(each) for each in found) > 8  # the pool's size


def test_a_campaign_killed_before_it_is_stored_leaves_nothing(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "tuner.db")) as store:
        lived(store, Life(0), begun)
        assert store.campaigns() == ()
        assert store.runs() == ()
