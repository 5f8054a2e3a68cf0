"""``tuner show RUN --ablation``: what each knob and each strategy gave a run."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tuner.analysis.ablation import Ablation, Gain, KnobAblation, StrategyAblation
from tuner.cli.output.formatting import seconds_text, table_text
from tuner.core.runs import Run

if TYPE_CHECKING:
    pass

GAIN_HEADER = ("trials", "gain", "95 % interval", "p-value")
KNOB_HEADER = ("knob", "held at", *GAIN_HEADER, "without", *GAIN_HEADER, "importance")
STRATEGY_HEADER = ("strategy", "trials", "failed", "best", "timed", *GAIN_HEADER[1:])


def ablation_document(run: Run, ablation: Ablation) -> dict[str, Any]:
    """Returns what ``--json`` prints; gains are fractions of the best time."""
    return {"run": run.id, "noise": run.noise, **asdict(ablation)}


def ablation_lines(run: Run, ablation: Ablation) -> list[str]:
    """Returns two tables for people."""
    noise = "" if run.noise is None else f"; noise floor {run.noise:.1%}"
    return [
        f"ablation  run {run.id}: {ablation.measured} measured trials of {ablation.strategy}{noise}",
        "gain      how much slower the best trial is that holds a knob where the search began,",
        "          then that of all without the knob's best value; '-': fewer than 3 such trials",
        "p-value   that of a knob without any effect; importance: PED-ANOVA",
        "",
        table_text(KNOB_HEADER, [_knob_row(each) for each in ablation.knobs]),
        "",
        table_text(STRATEGY_HEADER, [_strategy_row(each) for each in ablation.strategies]),
    ]


def _knob_row(each: KnobAblation) -> tuple[str, ...]:
    held = (each.knob, str(each.held), *gain_texts(each.gain))
    return (*held, str(each.best), *gain_texts(each.without_best), f"{each.importance:.0%}")


def _strategy_row(each: StrategyAblation) -> tuple[str, ...]:
    best = "-" if each.best_s is None else seconds_text(each.best_s)
    return (each.strategy, str(each.trials), str(each.failed), best, *gain_texts(each.gain))


def gain_texts(gain: Gain | None) -> tuple[str, str, str, str]:
    """Returns trials, gain, interval and chance; '-' where too few trials are behind them."""
    if gain is None:
        return "-", "-", "-", "-"
    interval = f"{gain.interval[0]:.1%} .. {gain.interval[1]:.1%}"
    return str(gain.trials), f"{gain.slower:.1%}", interval, f"{gain.chance:.2g}"
