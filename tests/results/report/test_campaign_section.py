"""The section of a campaign: map of times, curve of portfolios, choices of problems held out."""

from dataclasses import replace

import pytest

from tests.db.test_campaigns import CAMPAIGN, MEMBERS, RESULT
from tests.db.values import COMPILER, MACHINE
from tests.fakes import bind
from tests.results.report.values import parsed
from tests.tuning import fakes
from tests.tuning.test_campaign import plan
from tests.tuning.test_fake_campaign import COUNTS, PROBLEMS, limits, members
from tuner.analysis.portfolio import held_out_choices
from tuner.analysis.time_matrix import TimeMatrix
from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.interfaces import Script
from tuner.core.matmul import Matmul
from tuner.core.programs import ExplainedFusion, ProgramResult
from tuner.core.reliability import RELIABLE, unknown, unreliable
from tuner.core.requests import Campaign
from tuner.db.store import Store
from tuner.results.campaign_matrix import FAILED, NOT_TRIED, TIMED, campaign_matrix
from tuner.results.report import campaign_section
from tuner.results.report.page import gathered, page_html, reported_campaign
from tuner.results.report.program_section import program_section_of
from tuner.targets.backends import Backends
from tuner.tuning.campaign import begin_campaign
from tuner.tuning.events import Interruption


def matrix() -> TimeMatrix:
    """Three m of one n and k: configuration 0 is best for few rows, 1 for many; 2 was timed once."""
    problems = tuple(Matmul(m, 64, 64) for m in (8, 16, 32))
    columns = tuple(Candidate.of("fake", {"x": x}) for x in range(3))
    times_s = ((1.0, 2.0, None), (2.0, 2.5, 4.0), (8.0, 4.0, None))
    applies = ((True, True, False), *((True,) * 3,) * 2)
    return TimeMatrix(problems, (1, 1, 1), columns, times_s, applies, costs=((1.0, 1.0, 1.0),) * 3)


def test_the_map_has_a_line_per_problem_and_the_most_timed_configurations_first() -> None:
    drawn = campaign_section.time_map_of(matrix(), (RELIABLE,) * 3)
    assert (drawn.problems, drawn.columns) == (("8x64x64", "16x64x64", "32x64x64"), (0, 1, 2))
    shades = {(cell.problem, cell.column): cell.shade for cell in drawn.cells}
    assert shades["8x64x64", 0] == "5"
    assert shades["8x64x64", 1] == "1"  # half as fast
    assert shades["8x64x64", 2] == shades["32x64x64", 2] == "none"
    texts = {(cell.problem, cell.column): cell.text for cell in drawn.cells}
    assert texts["16x64x64", 1] == "80.0% of the best"
    assert (texts["8x64x64", 2], texts["32x64x64", 2]) == ("does not apply", "not timed")


def test_a_cell_of_unreliable_times_has_no_ratio_and_one_of_times_of_unknown_reliability_a_mark() -> None:
    drawn = campaign_section.time_map_of(matrix(), (RELIABLE, unreliable("load"), unknown("timed once")))
    texts = {(cell.problem, cell.column): cell.text for cell in drawn.cells}
    assert (texts["8x64x64", 1], texts["16x64x64", 1]) == ("50.0% of the best", "timed, unreliable")
    assert texts["32x64x64", 0] == "50.0% of the best (unknown)"
    assert {cell.shade for cell in drawn.cells if cell.problem == "16x64x64"} == {"none"}


def test_the_curve_of_portfolios_rises_and_a_choice_is_made_without_the_problem_itself() -> None:
    curve = campaign_section.portfolio_curve_of(matrix())
    assert curve is not None
    assert [point.size for point in curve.points] == [1, 2, 3]
    shares = [point.in_sample for point in curve.points if point.in_sample is not None]
    assert shares == sorted(shares)
    assert shares[1] == shares[2] == 1.0
    assert curve.y(1.0) == 0.0
    assert {name for name, _ in curve.paths} == {"in_sample", "held_out", "worst"}
    first, second, third = held_out_choices(matrix())
    assert (second.source, second.efficiency in (0.8, 1.0)) == ("same n and k", True)
    assert (first.problem.sizes[0], third.problem.sizes[0]) == (8, 32)
    assert third.efficiency == 0.5  # the rows below it prefer configuration 0


@pytest.mark.slow
def test_the_page_of_a_campaign_shows_its_section_and_its_runs_if_any_is_timed(store: Store) -> None:
    begin_campaign(limits(40), members(), parts(), store, Interruption())
    reported = reported_campaign(store, parts(), 1)
    section = campaign_section.campaign_section_of(reported)
    page = parsed(page_html(gathered(store, campaign=reported)))
    assert {"campaign-1", "run-1", "run-2", "run-3"} <= page.names()
    assert "Campaign 1: 3 problems under one budget" in page.text
    assert section.time_map is not None
    untimed = [cell for cell in section.time_map.cells if cell.shade == "none"]
    drawn = [rect for rect in page.of("rect", "shade-none") if rect["width"] == "13"]  # of the campaign's map
    assert len(drawn) == len(untimed) > 0
    assert "Where dispatch chooses worst" in page.text
    assert {each.problem for each in section.choices} <= set(PROBLEMS)
    rows, columns = len(reported.matrix.problems), len(reported.matrix.columns)
    untimed_matrix = replace(reported.matrix, times_s=((None,) * columns,) * rows)
    section = campaign_section.campaign_section_of(replace(reported, matrix=untimed_matrix))
    assert (section.time_map, section.curve, section.choices) == (None, None, ())


# The section of a tuned program: a bar and a row for each fusion, loops marked, baselines next to it.

LOOPS = replace(
    RESULT.fusions[0].fusion, kind="loops", strategy="", knobs=(), origin="loops", reason="<pooling>"
)
PROGRAM = replace(RESULT, fusions=(*RESULT.fusions, ExplainedFusion(LOOPS, 2e-6, 0.2, 0.01, 2e-6, RELIABLE)))


def stored(store: Store, result: ProgramResult | None = PROGRAM) -> Campaign:
    number = store.begin_campaign(CAMPAIGN, MEMBERS, MACHINE, COMPILER, "0.1.0", None)
    if result is not None:
        store.set_program_result(number, result)
    return store.campaign(number)


def test_each_fusion_is_a_bar_and_a_row_and_baselines_are_bars_or_rows_with_a_reason(store: Store) -> None:
    found = program_section_of(stored(store))
    assert found is not None
    bars = [(bar.name, bar.share, bar.colour) for bar in found.bars]
    assert bars == [("g0 contraction, tuned", 1.0, "ours"), ("g1 loops, loops", 0.25, "failed")]
    assert found.bars[1].figure == "2 us, 20%, roofline 1%"
    header, first, second = found.fusions
    row = dict(zip(header, first, strict=True))
    assert (row["before"], row["time"], row["schedule"]) == ("15 us", "8 us", "tuned")
    assert dict(zip(header, second, strict=True))["strategy and knobs"] == "<pooling>"
    bars_of_all = [(bar.name, bar.figure, bar.colour) for bar in found.baseline_bars]
    assert bars_of_all == [("tuner", "10 us", "ours"), ("eager", "30 us", "baseline")]
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


def sometimes_failing(candidate: Candidate) -> Script:
    return (fakes.failing_bind if dict(candidate.choices)["x"] == 0 else bind)(candidate)


def parts() -> Backends:
    return fakes.backends(plan=plan, bind=lambda *_: sometimes_failing)


def test_each_cell_has_the_trial_of_its_projection_or_a_reason(store: Store) -> None:
    begin_campaign(limits(40), members(), parts(), store, Interruption())
    found = campaign_matrix(1, parts(), store)
    assert (found.problems, found.counts) == (PROBLEMS, COUNTS)
    assert found.names == ("layer 0", "layer 1", "layer 2")
    assert found.columns[:8] == store.campaign(1).settings.columns
    assert len(found.columns) > 8  # what samplers found
    proposals = store.campaign_proposals(1)
    for run, row in zip([run.id for run in store.campaign(1).runs], found.cells, strict=True):
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


def test_the_matrix_of_times_is_for_analysis_and_an_unknown_campaign_is_refused(store: Store) -> None:
    begin_campaign(limits(20), members(), parts(), store, Interruption())
    found = campaign_matrix(1, parts(), store)
    times = found.times
    assert times.columns == found.columns
    assert int(times.is_timed().sum()) == sum(cell.state == TIMED for row in found.cells for cell in row)
    assert times.is_applicable().all()
    best = min(cell.time_s for row in found.cells for cell in row if cell.time_s is not None)
    assert times.best_s().min() == best
    with pytest.raises(UsageError, match="campaign: found 3, allowed 1 to 1"):
        campaign_matrix(3, parts(), store)
