"""The headline card of one problem: speed, reliability, comparison with the baseline."""

from dataclasses import dataclass

from tuner.analysis.comparison import Comparable, NotComparable
from tuner.analysis.run_comparison import against_baseline, distrust
from tuner.core.pass_seconds import PassSeconds
from tuner.core.problem import Problem
from tuner.core.record import Measurement
from tuner.core.runs import Run
from tuner.output.formatting import speed_text
from tuner.output.json_documents import gflop_per_s
from tuner.output.report.badge import Badge, badge_of
from tuner.output.report.bars import Bar
from tuner.output.report.content import BestKnown

PASSES_SHOWN = 12


@dataclass(frozen=True)
class Card:
    """The headline card of a report for one problem: best result, its reliability, ratio to the baseline."""

    best: BestKnown
    trust: Badge
    ratio: str  # to the baseline; "" if no ratio may be printed
    objection: str  # why no ratio may be printed, although the time is reliable; "" where there is one
    is_doubted: bool  # the time is not reliable: it is no headline, ``trust`` has the reason
    speeds: tuple[Bar, ...]  # of the best trial and of the baseline, to the same scale; () if doubted


def card_of(best: BestKnown) -> Card:
    """Returns the headline card of a report for the best result of one problem."""
    run, trial = best.run, best.selected.best
    compared, doubt = against_baseline(run, trial), distrust(run, trial)
    return Card(
        best=best,
        trust=badge_of(run, trial),
        ratio=compared.times_text if isinstance(compared, Comparable) else "",
        objection="" if doubt or not isinstance(compared, NotComparable) else compared.reason,
        is_doubted=bool(doubt),
        speeds=() if doubt else _speeds(run, best.selected.measurement),
    )


def pass_rows(passes: tuple[PassSeconds, ...]) -> list[tuple[str, ...]]:
    """Returns the table of the longest compiler passes as tuples (pass, ms, runs), the header first.

    ``passes`` must be sorted, the longest first; at most PASSES_SHOWN (12) are listed.
    """
    longest = [(each.name, f"{each.seconds * 1e3:.1f}", str(each.runs)) for each in passes[:PASSES_SHOWN]]
    return [("pass", "ms", "runs"), *longest]


def _speeds(run: Run, ours: Measurement) -> tuple[Bar, ...]:
    rows = [("this schedule", ours, "ours")]
    if run.baseline is not None:
        rows.append(("baseline", run.baseline.measurement, "baseline"))
    least_s = min(measurement.interval_s[0] for _, measurement, _ in rows)
    problem = run.settings.problem
    return tuple(_speed(name, problem, measurement, least_s, kind) for name, measurement, kind in rows)


def _speed(name: str, problem: Problem, measurement: Measurement, least_s: float, kind: str) -> Bar:
    low_s, high_s = measurement.interval_s
    figure = speed_text(gflop_per_s(problem, measurement.median_s))
    return Bar(name, least_s / measurement.median_s, figure, kind, (least_s / high_s, least_s / low_s))
