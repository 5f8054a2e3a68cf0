"""``tuner show RUN --ablation``: how much each knob and each strategy improved the best time of a run."""

from dataclasses import asdict
from typing import Any

from tuner.analysis.ablation import Ablation, Gain, KnobAblation, StrategyAblation, TooFew
from tuner.core.runs import Run
from tuner.core.time_text import seconds_text
from tuner.output.fitted_table import table_lines
from tuner.output.formatting import wrapped

GAIN_HEADER = ("trials", "gain", "95 % interval", "p-value")
HELD_HEADER = ("knob", "held at", *GAIN_HEADER, "importance")
WITHOUT_HEADER = ("knob", "without", *GAIN_HEADER)
STRATEGY_HEADER = ("strategy", "trials", "failed", "best", "timed", *GAIN_HEADER[1:])
GAIN_LINE = (
    "gain      how much slower the best trial is that holds a knob where the search began; in the second "
    "table, that of all without the knob's best value; '-': fewer than 3 such trials"
)
SPARED = ("timed", "failed")  # columns of the table of strategies that a narrow terminal loses first


def ablation_document(run: Run, ablation: Ablation | TooFew) -> dict[str, Any]:
    """Returns the document of ``tuner show run:ID --ablation --json``; gains are fractions: 0.2 is 20 %."""
    return {
        "run": run.id,
        "noise": run.noise,
        "reliability": run.reliability.text,
        "knobs": (),
        **asdict(ablation),
    }


def ablation_lines(
    run: Run, ablation: Ablation | TooFew, distrusted: str, columns: int | None = None
) -> list[str]:
    """Returns a run's ablation as text: two tables of knobs (if trials suffice) and one of strategies.

    ``distrusted``: why the run's times are unreliable, "" if they are reliable. ``columns``: the width of the
    terminal in characters, None without a limit.
    """
    badge = [f"badge     unreliable: {distrusted}"] * bool(distrusted)
    strategies = table_lines(STRATEGY_HEADER, [*map(strategy_row, ablation.strategies)], columns, SPARED)
    if isinstance(ablation, TooFew):
        why = ablation.reason.removeprefix("ablation: ")
        explained = (f"ablation  run {run.id}: {why} to compare knobs", *badge)
        return [*wrapped(explained, columns), "", *strategies]
    noise = "" if run.noise is None else f"; noise floor {run.noise:.1%}"
    explained = (
        f"ablation  run {run.id}: {ablation.measured} measured trials of {ablation.strategy}{noise}",
        GAIN_LINE,
        "p-value   that of a knob without any effect; importance: PED-ANOVA",
        *badge,
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


def held_row(each: KnobAblation) -> tuple[str, ...]:
    """Returns a knob's table cells for the trials with the knob at the value where the search began.

    Cells: knob, held value, the four of ``gain_texts``, importance.
    """
    return (each.knob, str(each.held), *gain_texts(each.gain), f"{each.importance:.0%}")


def without_row(each: KnobAblation) -> tuple[str, ...]:
    """Returns the table cells of one knob for the trials that have another value than the knob's best one.

    Cells: knob, best value, the four of ``gain_texts``.
    """
    return (each.knob, str(each.best), *gain_texts(each.without_best))


def strategy_row(each: StrategyAblation) -> tuple[str, ...]:
    """Returns the table cells of a strategy: name, trials, failed trials, best time, then ``gain_texts``."""
    best = "-" if each.best_s is None else seconds_text(each.best_s)
    return (each.strategy, str(each.trials), str(each.failed), best, *gain_texts(each.gain))


def gain_texts(gain: Gain | None) -> tuple[str, str, str, str]:
    """Returns four table cells: number of trials, slowdown, its 95 % interval, p-value; all '-' for None."""
    if gain is None:
        return "-", "-", "-", "-"
    interval = f"{gain.interval[0]:.1%} .. {gain.interval[1]:.1%}"
    return str(gain.trials), f"{gain.slower:.1%}", interval, f"{gain.chance:.2g}"
