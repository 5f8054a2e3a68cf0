"""The section of a campaign: map of times, curve of portfolios, choices of problems held out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.results.report.parsed import parsed
from tests.results.test_group_matrix import parts
from tests.tuning.test_group_run import PROBLEMS, limits, members
from tuner.analysis.dispatch import held_out_choices
from tuner.analysis.time_matrix import TimeMatrix
from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul
from tuner.core.reliability import RELIABLE, unknown, unreliable
from tuner.db.store import Store
from tuner.results.report.campaign_section import campaign_section_of, portfolio_curve_of, time_map_of
from tuner.results.report.page import gathered, page_html, reported_campaign
from tuner.tuning.campaign import begin_campaign
from tuner.tuning.events import Interruption

COLUMNS = tuple(Candidate.of("fake", {"x": x}) for x in range(3))
NEVER = (True, True, True)


def matrix() -> TimeMatrix:
    """Three m of one n and k: configuration 0 is best for few rows, 1 for many; 2 was timed once."""
    return TimeMatrix(
        problems=tuple(Matmul(m, 64, 64) for m in (8, 16, 32)),
        counts=(1, 1, 1),
        columns=COLUMNS,
        times_s=((1.0, 2.0, None), (2.0, 2.5, 4.0), (8.0, 4.0, None)),
        applies=((True, True, False), NEVER, NEVER),
        costs=((1.0, 1.0, 1.0),) * 3,
    )


def test_the_map_has_a_line_per_problem_and_the_most_timed_configurations_first() -> None:
    drawn = time_map_of(matrix(), (RELIABLE,) * 3)
    assert (drawn.problems, drawn.columns) == (("8x64x64", "16x64x64", "32x64x64"), (0, 1, 2))
    shades = {(cell.problem, cell.column): cell.shade for cell in drawn.cells}
    assert shades["8x64x64", 0] == "5"
    assert shades["8x64x64", 1] == "1"  # half as fast
    assert shades["8x64x64", 2] == shades["32x64x64", 2] == "none"
    texts = {(cell.problem, cell.column): cell.text for cell in drawn.cells}
    assert texts["16x64x64", 1] == "80.0% of the best"
    assert (texts["8x64x64", 2], texts["32x64x64", 2]) == ("does not apply", "not timed")


def test_a_cell_of_unreliable_times_has_no_ratio_and_one_of_times_of_unknown_reliability_a_mark() -> None:
    trusts = (RELIABLE, unreliable("load"), unknown("timed once"))
    drawn = time_map_of(matrix(), trusts)
    texts = {(cell.problem, cell.column): cell.text for cell in drawn.cells}
    assert texts["8x64x64", 1] == "50.0% of the best"
    assert texts["16x64x64", 1] == "timed, unreliable"
    assert texts["32x64x64", 0] == "50.0% of the best (unknown)"
    assert {cell.shade for cell in drawn.cells if cell.problem == "16x64x64"} == {"none"}


def test_the_curve_of_portfolios_rises_to_all_of_the_speed() -> None:
    curve = portfolio_curve_of(matrix())
    assert curve is not None
    assert [point.size for point in curve.points] == [1, 2, 3]
    shares = [point.in_sample for point in curve.points if point.in_sample is not None]
    assert shares == sorted(shares)
    assert shares[1] == shares[2] == 1.0
    assert curve.y(1.0) == 0.0
    assert {name for name, _ in curve.paths} == {"in_sample", "held_out", "worst"}


def test_a_choice_is_made_without_the_problem_itself() -> None:
    first, second, third = held_out_choices(matrix())
    assert (second.source, second.efficiency in (0.8, 1.0)) == ("same n and k", True)
    assert (first.problem.sizes[0], third.problem.sizes[0]) == (8, 32)
    assert third.efficiency == 0.5  # the rows below it prefer configuration 0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "tuner.db")) as opened:
        yield opened


@pytest.mark.slow
def test_the_page_of_a_campaign_shows_its_section_and_its_runs(store: Store) -> None:
    begin_campaign(limits(40), members(), parts(), store, Interruption())
    reported = reported_campaign(store, parts(), 1)
    section = campaign_section_of(reported)
    page = parsed(page_html(gathered(store, campaign=reported)))
    assert {"campaign-1", "run-1", "run-2", "run-3"} <= page.names()
    assert "Campaign 1: 3 problems under one budget" in page.text
    assert section.time_map is not None
    untimed = [cell for cell in section.time_map.cells if cell.shade == "none"]
    drawn = [rect for rect in page.of("rect", "shade-none") if rect["width"] == "13"]  # of the campaign's map
    assert len(drawn) == len(untimed) > 0
    assert "Where dispatch chooses worst" in page.text
    assert {each.problem for each in section.choices} <= set(PROBLEMS)


@pytest.mark.slow
def test_a_campaign_without_a_time_says_so(store: Store) -> None:
    begin_campaign(limits(40), members(), parts(), store, Interruption())
    reported = reported_campaign(store, parts(), 1)
    rows, columns = len(reported.matrix.problems), len(reported.matrix.columns)
    untimed = TimeMatrix(
        reported.matrix.problems,
        reported.matrix.counts,
        reported.matrix.columns,
        ((None,) * columns,) * rows,
        reported.matrix.applies,
        reported.matrix.costs,
    )
    section = campaign_section_of(type(reported)(reported.campaign, untimed))
    assert (section.time_map, section.curve, section.choices) == (None, None, ())


def test_an_unknown_campaign_is_named(store: Store) -> None:
    with pytest.raises(UsageError, match=r"^campaign: found 7, allowed none: the database has no campaign"):
        reported_campaign(store, parts(), 7)
