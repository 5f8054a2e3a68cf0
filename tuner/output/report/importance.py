"""Importance of knobs as bars, and the results of the ablation as tables."""

from tuner.analysis.ablation import Ablation, KnobAblation
from tuner.output.ablation import GAIN_HEADER, held_row, strategy_row, without_row
from tuner.output.report.bars import Bar

KNOBS = ("knob", "held at", *GAIN_HEADER, "without", *GAIN_HEADER)
STRATEGIES = ("strategy", "all trials", "failed", "best", *GAIN_HEADER)


def importance_bars(ablation: Ablation, is_trusted: bool = True) -> tuple[Bar, ...]:
    """Returns a bar per knob of an ablation, the most important knob first.

    Figures also have the gain of knobs for which it is known, if ``is_trusted``: if the run's times are
    reliable.
    """
    ranked = sorted(ablation.knobs, key=lambda each: -each.importance)
    return tuple(_bar(each, ranked[0].importance, is_trusted) for each in ranked)


def _bar(knob: KnobAblation, largest: float, is_trusted: bool) -> Bar:
    gain = f", gain {knob.without_best.slower:.1%}" if knob.without_best and is_trusted else ""
    share = knob.importance / largest if largest > 0 else 0.0
    return Bar(f"{knob.knob} = {knob.best}", share, f"{knob.importance:.0%}{gain}")


def knob_rows(ablation: Ablation) -> list[tuple[str, ...]]:
    """Returns the table of an ablation's knobs as tuples of cells, the header first."""
    return [KNOBS, *((*held_row(each)[:-1], *without_row(each)[1:]) for each in ablation.knobs)]


def strategy_rows(ablation: Ablation) -> list[tuple[str, ...]]:
    """Returns the table of an ablation's strategies as tuples of cells, the header first."""
    return [STRATEGIES, *map(strategy_row, ablation.strategies)]
