"""Shares of a program's fusions: only of times that can be relied on."""

from dataclasses import replace

import pytest

from tests.db.test_groups import SUMMARY
from tuner.core.programs import ExplainedFusion
from tuner.core.reliability import RELIABLE, unreliable
from tuner.programs.fusion_compiler import with_shares
from tuner.results.output.program_tables import explained_document, fusion_table
from tuner.runtime.cpu.host import describe_machine

FIRST = ExplainedFusion(SUMMARY, 6e-6, reliability=RELIABLE)
SECOND = ExplainedFusion(replace(SUMMARY, kind="rows"), 2e-6, reliability=RELIABLE)


@pytest.mark.slow
def test_reliable_times_have_shares_of_the_whole_and_of_the_roofline() -> None:
    first, second = with_shares((FIRST, SECOND), describe_machine(), 8e-6)
    assert (first.share, second.share) == (0.75, 0.25)
    assert first.roofline is not None


@pytest.mark.slow
def test_a_part_that_takes_longer_than_the_whole_is_unreliable_and_nothing_has_a_share() -> None:
    """Measured: 75.21 us and 39.74 us for parts of a program of 11.55 us."""
    parts = (replace(FIRST, time_s=75.21e-6), replace(SECOND, time_s=39.74e-6))
    found = with_shares(parts, describe_machine(), 11.55e-6)
    assert [each.reliability for each in found] == [
        unreliable("it takes longer than a whole call, 11.55 us")
    ] * 2
    assert [(each.share, each.roofline) for each in found] == [(None, None)] * 2


@pytest.mark.slow
def test_one_disturbed_fusion_leaves_the_others_without_a_share() -> None:
    disturbed = replace(SECOND, reliability=unreliable("the reference kernel drifted by 34%: load"))
    found = with_shares((FIRST, disturbed), describe_machine(), 8e-6)
    assert [each.share for each in found] == [None, None]
    assert found[0].roofline is not None
    header, *rows = fusion_table(found)
    cells = [dict(zip(header, row, strict=True)) for row in rows]
    assert [(each["reliability"], each["share"]) for each in cells] == [
        ("reliable", "-"),
        ("unreliable", "-"),
    ]
    assert cells[1]["roofline"] == "-"
    document = explained_document(found[1])
    assert document["reliability"] == "unreliable: the reference kernel drifted by 34%: load"
    assert (document["share"], document["roofline"]) == (None, None)
