"""Campaigns: stored, read back, merged."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.db.values import CANDIDATE, COMPILER, MACHINE, SCRIPT, SETTINGS, add, begin, outcome, timed
from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.core.programs import CompiledFusion, ExplainedFusion, ProgramBaseline, ProgramResult, ProgramSource
from tuner.core.records import MedianInterval
from tuner.core.reliability import RELIABLE
from tuner.core.requests import CampaignMember, CampaignSettings
from tuner.core.runs import CampaignPlace
from tuner.db.store import Store

WIDE = Candidate.of("matmul_cpu_packed", {"tile_m": 14, "order": "mnk"})
CAMPAIGN = CampaignSettings("shapes.yaml", 40, None, 7, (CANDIDATE, WIDE))
MEMBERS = (
    CampaignMember(replace(SETTINGS, trials=None, budget_s=None, first=()), "attention", 12),
    CampaignMember(replace(SETTINGS, problem=Matmul(1, 64, 64), trials=None, budget_s=None, first=()), "", 1),
)
PROGRAM = ProgramSource("/models/mlp.py:mlp", None, ("0=[8,4]zeros",), "weights-cold", ("eager",))
SUMMARY = CompiledFusion(
    "contraction", ("linalg.matmul",), "packed", (("panel", 32), ("order", "ji")), "tuned", "", "f32", 8, 64
)
TIME, RATIO = MedianInterval(3e-5, 2e-5, 4e-5), MedianInterval(3.0, 2.5, 3.5)
RESULT = ProgramResult(
    *(1e-5, 2e-5, MedianInterval(2.0, 1.9, 2.1)),
    (ExplainedFusion(SUMMARY, 8e-6, 1.0, 0.5, 1.5e-5, RELIABLE),),
    ("g1 linalg.pooling: no schedule",),
    (
        ProgramBaseline("eager", TIME, RATIO, "", RELIABLE),
        ProgramBaseline("onnxruntime", reason="not installed"),
    ),
    RELIABLE,
)


def begin_campaign(store: Store) -> int:
    return store.begin_campaign(CAMPAIGN, MEMBERS, MACHINE, COMPILER, "0.1.0", None)


def fill(store: Store) -> int:
    """Stores a campaign with three trials, of which the last has no outcome."""
    campaign = begin_campaign(store)
    first, second = (run.id for run in store.campaign(campaign).runs)
    trial = store.propose(first, 0, 10, CANDIDATE, 0.5, (0, CANDIDATE))
    store.record(trial, outcome(timed(0.5)), SCRIPT, 1.0)
    other = store.propose(second, 0, 11, CANDIDATE, 0.5, (1, WIDE))
    store.record(other, replace(outcome(timed(0.25)), problem=Matmul(1, 64, 64)), SCRIPT, 1.0)
    store.propose(first, 1, 12, WIDE, 2.0, (2, WIDE))
    store.set_campaign_seconds(campaign, 3.0, 2.5)
    return campaign


def test_a_campaign_is_read_back_with_its_runs_its_program_and_what_came_of_it(store: Store) -> None:
    begin(store)  # of its own
    found = store.campaign(begin_campaign(store))
    assert (found.settings, found.status, found.seconds, found.search_s) == (CAMPAIGN, "running", 0.0, 0.0)
    assert [run.settings for run in found.runs] == [member.settings for member in MEMBERS]
    places = [CampaignPlace(found.id, 0, "attention", 12), CampaignPlace(found.id, 1, "", 1)]
    assert [run.campaign for run in found.runs] == places
    assert ([run.campaign for run in store.runs()][-1], store.campaigns()) == (None, (found,))
    settings = replace(CAMPAIGN, program=PROGRAM)
    campaign = store.begin_campaign(settings, MEMBERS, MACHINE, COMPILER, "0.1.0", None)
    assert (store.campaign(campaign).settings, store.campaign(campaign).result) == (settings, None)
    store.set_program_result(campaign, RESULT)
    assert store.campaign(campaign).result == RESULT
    with pytest.raises(UsageError, match="99"):
        store.set_program_result(99, RESULT)


def test_proposals_of_a_campaign_are_in_its_order_with_their_unprojected_configuration(store: Store) -> None:
    campaign = fill(store)
    first, second = (run.id for run in store.campaign(campaign).runs)
    found = store.campaign_proposals(campaign)
    asked = [(each.number, each.run, each.column) for each in found]
    assert asked == [(0, first, CANDIDATE), (1, second, WIDE), (2, first, WIDE)]
    assert [each.proposal.candidate for each in found] == [CANDIDATE, CANDIDATE, WIDE]
    assert [each.proposal.number for each in found] == [0, 0, 1]
    assert [each.proposal.trial and each.proposal.trial.best_s for each in found] == [0.5, 0.25, None]
    assert store.campaign_proposals(99) == ()


def test_progress_and_limits_of_a_campaign_are_kept_and_an_unknown_one_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="campaign: found 1, allowed none: the database has no campaign"):
        store.campaign(1)
    campaign = fill(store)
    store.set_campaign_status(campaign, "interrupted")
    store.extend_campaign(campaign, None, 90.0)
    found = store.campaign(campaign)
    assert (found.status, found.seconds, found.search_s) == ("interrupted", 3.0, 2.5)
    assert {run.status for run in found.runs} == {"interrupted"}
    assert (found.settings.trials, found.settings.budget_s) == (None, 90.0)
    with pytest.raises(UsageError, match=f"campaign: found 77, allowed {campaign} to {campaign}"):
        store.extend_campaign(77, 1, None)
    with pytest.raises(ValueError, match="status: found 'asleep'"):
        store.set_campaign_status(campaign, "asleep")


@pytest.mark.slow
def test_a_merge_keeps_campaigns_and_a_second_one_adds_nothing(store: Store, tmp_path: Path) -> None:
    address = str(tmp_path / "other.db")
    with Store.open(address) as other:
        add(other, begin(other), 0, outcome(timed(0.1)))  # so that ids differ
        theirs = other.campaign(fill(other))
        before = other.campaign_proposals(theirs.id)
    begin_campaign(store)  # another campaign with the id of theirs
    for added in ((3, 4), (0, 0)):
        assert store.merge(address) == added
    ours = next(campaign for campaign in store.campaigns() if campaign.uuid == theirs.uuid)
    assert (len(store.campaigns()), replace(ours, id=0, runs=())) == (2, replace(theirs, id=0, runs=()))
    assert [run.uuid for run in ours.runs] == [run.uuid for run in theirs.runs]
    places = [replace(run.campaign, campaign=ours.id) for run in theirs.runs if run.campaign is not None]
    assert [run.campaign for run in ours.runs] == places
    merged = store.campaign_proposals(ours.id)
    assert [(each.number, each.column) for each in merged] == [(each.number, each.column) for each in before]


def test_a_merge_takes_the_progress_of_the_copy_that_ran_longer(store: Store, tmp_path: Path) -> None:
    address = str(tmp_path / "other.db")
    campaign = fill(store)
    store.backup(Path(address))
    with Store.open(address) as other:
        other.set_campaign_seconds(campaign, 9.0, 8.0)
        other.set_campaign_status(campaign, "done")
        other.set_program_result(campaign, RESULT)
    store.merge(address)
    assert (store.campaign(campaign).status, store.campaign(campaign).seconds) == ("done", 9.0)
    assert store.campaign(campaign).result == RESULT
    with Store.open(address) as other:
        other.set_campaign_seconds(campaign, 1.0, 1.0)
    store.merge(address)
    assert store.campaign(campaign).seconds == 9.0
