"""The ablation of a run as tables and JSON: how much each knob of the best configuration contributes."""

from dataclasses import asdict
from typing import Any

from tuner.analysis.importance import Ablation, Gain, KnobAblation, StrategyAblation, TooFew
from tuner.core.reliability import Reliability
from tuner.core.round_quality import noise_text
from tuner.core.runs import Run
from tuner.core.serialization import seconds_text
from tuner.results.output.formatting import table_lines, wrapped

GAIN_HEADER = ("trials", "gain", "95 % interval", "p-value")
HELD_HEADER = ("knob", "held at", *GAIN_HEADER, "importance")
WITHOUT_HEADER = ("knob", "without", *GAIN_HEADER)
STRATEGY_HEADER = ("strategy", "trials", "failed", "best", "timed", *GAIN_HEADER[1:])
GAIN_LINE = (
    "gain      how much slower the best trial is that holds a knob where the search began; in the second "
    "table, that of all without the knob's best value; in the last, that of a strategy; '-': fewer than 3 "
    "such trials"
)
P_VALUE_LINE = (
    "p-value   how likely as many trials, drawn at random, have no faster best: below 0.05 the gain is "
    "hardly chance, near 1 it shows nothing"
)
IMPORTANCE_LINE = (
    "importance: a knob's share of what distinguishes the fastest tenth from all trials (PED-ANOVA)"
)
SPARED = ("timed", "failed")  # columns of the table of strategies that a narrow terminal loses first


def ablation_document(run: Run, ablation: Ablation | TooFew) -> dict[str, Any]:
    """Returns the document of ``tuner show run:ID --ablation --json``; gains are fractions: 0.2 is 20 %.

    For TooFew it has the number of measured trials, and no knobs.
    """
    return {
        "run": run.id,
        "noise": run.noise,
        "reliability": run.reliability.text,
        "knobs": (),
        **asdict(ablation),
    }


def ablation_lines(
    run: Run, ablation: Ablation | TooFew, reliability: Reliability, columns: int | None = None
) -> list[str]:
    """Returns a run's ablation as text: two tables of knobs (if there are enough trials), one of strategies.

    ``reliability``: of the run's times, printed unless they are reliable; ``columns``: width to fit, None:
    any.
    """
    doubts = [] if reliability.is_reliable else [f"reliable  {reliability.answer}"]
    strategies = table_lines(STRATEGY_HEADER, [*map(strategy_row, ablation.strategies)], columns, SPARED)
    if isinstance(ablation, TooFew):
        why = ablation.reason.removeprefix("ablation: ")
        gain = "gain      how much slower the best trial of a strategy is than the best of all"
        explained = (f"ablation  run {run.id}: {why} to compare knobs", gain, P_VALUE_LINE, *doubts)
        return [*wrapped(explained, columns), "", *strategies]
    of_strategy = f"{ablation.measured} measured trials of {ablation.strategy}"
    explained = (
        f"ablation  run {run.id}: {of_strategy}{noise_text(run.noise)}",
        GAIN_LINE,
        P_VALUE_LINE,
        IMPORTANCE_LINE,
        *doubts,
    )
    return [
        *wrapped(explained, columns),
        "",
        *table_lines(HELD_HEADER, [*map(held_row, ablation.knobs)], columns),
        "",
        *table_lines(WITHOUT_HEADER, [*map(without_row, ablation.knobs)], columns),
        "",
        *strategies,
    ]


def held_row(knob: KnobAblation) -> tuple[str, ...]:
    """Returns a knob's table cells for trials that keep the value of the strategy's first measured trial."""
    return (knob.knob, str(knob.held), *gain_texts(knob.gain), f"{knob.importance:.0%}")


def without_row(knob: KnobAblation) -> tuple[str, ...]:
    """Returns a knob's table cells for trials that have another value than the best trial's."""
    return (knob.knob, str(knob.best), *gain_texts(knob.without_best))


def strategy_row(ablation: StrategyAblation) -> tuple[str, ...]:
    """Returns the table cells of a strategy: name, trials, failed trials, best time, then ``gain_texts``."""
    best = "-" if ablation.best_s is None else seconds_text(ablation.best_s)
    return (ablation.strategy, str(ablation.trials), str(ablation.failed), best, *gain_texts(ablation.gain))


def gain_texts(gain: Gain | None) -> tuple[str, str, str, str]:
    """Returns four table cells: number of trials, slowdown, its 95 % interval, p-value; all '-' for None."""
    if gain is None:
        return "-", "-", "-", "-"
    interval = f"{gain.interval[0]:.1%} .. {gain.interval[1]:.1%}"
    return str(gain.trials), f"{gain.slower:.1%}", interval, f"{gain.chance:.2g}"
