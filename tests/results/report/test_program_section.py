"""The section of a tuned program: a bar and a row for each fusion, loops marked, baselines next to it."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.db.test_groups import CAMPAIGN, MEMBERS, RESULT
from tests.db.values import COMPILER, MACHINE
from tests.results.report.parsed import parsed
from tuner.core.programs import ExplainedFusion, ProgramResult
from tuner.core.reliability import RELIABLE
from tuner.core.requests import Campaign
from tuner.db.store import Store
from tuner.results.report.campaign_section import program_section_of
from tuner.results.report.page import gathered, page_html

LOOPS = replace(
    RESULT.fusions[0].fusion, kind="loops", strategy="", knobs=(), origin="loops", reason="<pooling>"
)
PROGRAM = replace(RESULT, fusions=(*RESULT.fusions, ExplainedFusion(LOOPS, 2e-6, 0.2, 0.01, 2e-6, RELIABLE)))


def stored(store: Store, result: ProgramResult | None = PROGRAM) -> Campaign:
    number = store.begin_campaign(CAMPAIGN, MEMBERS, MACHINE, COMPILER, "0.1.0", None)
    if result is not None:
        store.set_program_result(number, result)
    return store.campaign(number)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path / "results.db"))


def test_each_fusion_is_a_bar_relative_to_the_longest_and_a_row(store: Store) -> None:
    found = program_section_of(stored(store))
    assert found is not None
    assert [(bar.name, bar.share, bar.kind) for bar in found.bars] == [
        ("g0 contraction, tuned", 1.0, "ours"),
        ("g1 loops, loops", 0.25, "failed"),
    ]
    assert found.bars[1].figure == "2 us, 20%, roofline 1%"
    header, first, second = found.fusions
    row = dict(zip(header, first, strict=True))
    assert (row["before"], row["time"], row["schedule"]) == ("15 us", "8 us", "tuned")
    assert dict(zip(header, second, strict=True))["strategy and knobs"] == "<pooling>"


def test_baselines_are_bars_next_to_the_program_and_those_that_did_not_run_are_rows_with_a_reason(
    store: Store,
) -> None:
    found = program_section_of(stored(store))
    assert found is not None
    assert [(bar.name, bar.figure, bar.kind) for bar in found.baseline_bars] == [
        ("tuner", "10 us", "ours"),
        ("eager", "30 us", "baseline"),
    ]
    assert found.baselines[1:] == (
        ("eager", "30 us", "reliable", "3.00 times as fast (95 % interval 2.50 .. 3.50)"),
        ("onnxruntime", "-", "-", "not compared: not installed"),
    )


def test_the_page_of_all_runs_and_that_of_a_campaign_have_the_section_escaped(store: Store) -> None:
    campaign = stored(store)
    for report in (gathered(store), replace(gathered(store), campaigns=(campaign,))):
        page = page_html(report)
        assert f'id="program-{campaign.id}"' in page
        assert "&lt;pooling&gt;" in page
        assert "<pooling>" not in page
        parsed(page)


def test_a_campaign_without_a_program_has_no_section(store: Store) -> None:
    assert program_section_of(stored(store, None)) is None
    assert "Program " not in page_html(gathered(store))
