"""Which knobs matter: importance as bars, the figures of the ablation behind them as tables."""

from tuner.analysis.ablation import Ablation, KnobAblation, StrategyAblation
from tuner.output.ablation import GAIN_HEADER, gain_texts
from tuner.output.formatting import seconds_text
from tuner.output.report.bars import Bar, bars
from tuner.output.report.element import Markup, element, joined
from tuner.output.report.table import Head, table

KNOBS = (
    Head("knob"),
    Head("held at"),
    *(Head(name, is_number=name != "95 % interval") for name in GAIN_HEADER),
    Head("without"),
    *(Head(name, is_number=name != "95 % interval") for name in GAIN_HEADER),
)
STRATEGIES = (
    Head("strategy"),
    *(Head(name, is_number=True) for name in ("all trials", "failed", "best")),
    *(Head(name, is_number=name != "95 % interval") for name in GAIN_HEADER),
)


def importance(ablation: Ablation, is_trusted: bool = True) -> Markup:
    """Draws a bar per knob, and the tables that are folded away; gains only of times that are trusted."""
    ranked = sorted(ablation.knobs, key=lambda each: -each.importance)
    drawn = bars(tuple(_bar(each, ranked[0].importance, is_trusted) for each in ranked)) if ranked else None
    caption = (
        f"{ablation.measured} measured trials of {ablation.strategy}. Importance (PED-ANOVA): "
        "a knob's share of what tells the fastest tenth from all. Gain: how much slower the best trial "
        "without the knob's best value is."
    )
    figures = element("details", element("summary", "All figures of the ablation"), _tables(ablation))
    return joined((drawn, element("p", caption, class_="faint"), figures))


def _bar(knob: KnobAblation, largest: float, is_trusted: bool) -> Bar:
    has_gain = knob.without_best is not None and is_trusted
    gain = f", gain {knob.without_best.slower:.1%}" if knob.without_best and has_gain else ""
    share = knob.importance / largest if largest > 0 else 0.0
    return Bar(f"{knob.knob} = {knob.best}", share, f"{knob.importance:.0%}{gain}")


def _tables(ablation: Ablation) -> Markup:
    explained = (
        "Gain: how much slower the best trial is that holds a knob where the search began, then that of all "
        "without the knob's best value. By chance: how likely a knob without any effect shows as much. "
        "A dash: too few trials."
    )
    strategies = "Strategies; gain: how much slower the best trial of one is than the best of all."
    return joined(
        (
            table(KNOBS, [_knob_row(each) for each in ablation.knobs], explained),
            table(STRATEGIES, [_strategy_row(each) for each in ablation.strategies], strategies),
        )
    )


def _knob_row(knob: KnobAblation) -> tuple[str, ...]:
    return (knob.knob, str(knob.held), *gain_texts(knob.gain), str(knob.best), *gain_texts(knob.without_best))


def _strategy_row(each: StrategyAblation) -> tuple[str, ...]:
    best = "-" if each.best_s is None else seconds_text(each.best_s)
    return (each.strategy, str(each.trials), str(each.failed), best, *gain_texts(each.gain))
