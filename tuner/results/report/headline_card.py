"""The headline card of a report for one problem: the best result, how reliable it is, its compiler passes."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuner.analysis.ratios import Comparable, NotComparable, against_baseline
from tuner.core.records import Measurement, PassSeconds
from tuner.core.runs import Run
from tuner.core.serialization import count_text
from tuner.results.output.formatting import gflop_per_s, speed_text
from tuner.results.report.content import Bar, BestKnown, ShownReliability, reliability_of

PASSES_SHOWN = 12


@dataclass(frozen=True)
class Card:
    """The headline card of a report for one problem: best result, its reliability, ratio to the baseline."""

    best: BestKnown
    trust: ShownReliability
    ratio: str  # to the baseline; "" if no ratio may be printed
    objection: str  # why a reliable time has no ratio to the baseline; "" otherwise
    is_doubted: bool  # the time is not reliable, and ``trust`` has the reason
    speeds: tuple[Bar, ...]  # of the best trial and of the baseline, as shares of the peak if it is known


def card_of(best: BestKnown) -> Card:
    """Returns the headline card of a report for the best result of one problem."""
    run = best.run
    trial = best.selected.best
    compared = against_baseline(run, trial)
    is_doubted = not trial.reliability.is_reliable
    ratio = ""
    objection = ""
    if isinstance(compared, Comparable):
        ratio = compared.times_text
    if isinstance(compared, NotComparable) and not is_doubted:
        objection = compared.reason
    return Card(
        best=best,
        trust=reliability_of(run, trial),
        ratio=ratio,
        objection=objection,
        is_doubted=is_doubted,
        speeds=_speed_bars(run, best.selected.measurement),
    )


def pass_rows(passes: tuple[PassSeconds, ...]) -> list[tuple[str, ...]]:
    """Returns the table (pass, ms, runs) of the first PASSES_SHOWN (12) of ``passes``, the header first."""
    longest = [(pass_.name, f"{pass_.seconds * 1e3:.1f}", str(pass_.runs)) for pass_ in passes[:PASSES_SHOWN]]
    return [("pass", "ms", "runs"), *longest]


def _speed_bars(run: Run, ours: Measurement) -> tuple[Bar, ...]:
    compared = [("this schedule", ours, "ours")]
    if run.baseline is not None:
        compared.append(("baseline", run.baseline.measurement, "baseline"))
    least_s = min(measurement.interval_s[0] for _, measurement, _ in compared)
    bars = []
    if run.roofline is not None:
        problem = run.settings.problem
        reached = (problem.flop, problem.bytes, run.machine.l3_bytes, least_s)
        least_s *= run.roofline.raised(*reached).share(*reached)
    for name, measurement, colour in compared:
        low_s, high_s = measurement.interval_s
        figure = speed_text(gflop_per_s(run.settings.problem, measurement.median_s))
        share = least_s / measurement.median_s
        interval = (least_s / high_s, least_s / low_s)
        bars.append(Bar(name, share, figure, colour, interval))
    if run.roofline is not None:
        bars.append(Bar("roofline", 1.0, speed_text(gflop_per_s(run.settings.problem, least_s)), "peak"))
    return tuple(bars)


def doubt_text(best: Sequence[BestKnown]) -> str:
    """Returns a sentence on why times of a report's cards are unreliable; "" if all are reliable."""
    cards = list(map(card_of, best))
    doubted = [card for card in cards if card.is_doubted]
    if not doubted:
        return ""
    times = count_text(len(cards), "time")
    verb = "is" if len(doubted) == 1 else "are"
    first = doubted[0]
    text = f"{len(doubted)} of {times} {verb} unreliable. Run {first.best.run.id}: {first.trust.reason}"
    if len(doubted) == 1:
        return text
    return f"{text} Each of them has its own reason."
