"""The importance of a run's knobs: by PED-ANOVA of its trials, and by ablation of each knob.

``importances`` compares the knob values of the fastest points with those of all points. ``ablate`` compares a
run's best trial with the best trial of a subset: of the trials that keep a knob's first value, that lack its
best value, or that have another strategy (``Gain``).
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from tuner.analysis.constraint_mining import log_chance_all_wanted
from tuner.core.candidate import Value
from tuner.core.records import Measurement, Record
from tuner.core.serialization import count_text
from tuner.core.trials import StoredTrial

# PED-ANOVA: how much the distribution of each knob among the fastest points differs from that among all.
# Watanabe et al., 2023, https://arxiv.org/abs/2304.10255, for knobs of few values: the Pearson divergence
# between the values of the fastest points and of all points, per knob, as a share of the sum over knobs.
TOP_SHARE = 0.1  # share of the fastest points, as in the paper
TOP_MIN = 5
PRIOR = 1.0  # pseudo-observations, spread over the values: a value seen by accident is not a certainty
MEASURED_MIN = 20  # trials of a strategy: with fewer, nearly any knob looks important
HELD_MIN = 3  # trials with the value held, for a figure


def importances(points: Sequence[dict[str, Value]], times_s: Sequence[float]) -> dict[str, float]:
    """Returns knob -> PED-ANOVA importance: how much its values in the fastest points differ from all.

    ``points``: knob -> value of each point; ``times_s``: seconds of each point. Importances are shares that
    sum to 1, or all 0 if nothing differs; {} without points. Points of equal times keep their order.
    """
    if not points:
        return {}
    order = sorted(range(len(points)), key=lambda index: times_s[index])
    top = order[: max(TOP_MIN, math.ceil(TOP_SHARE * len(order)))]
    raw = {}
    for name in points[0]:
        fastest = [points[index][name] for index in top]
        raw[name] = _divergence(fastest, [point[name] for point in points])
    total = sum(raw.values())
    if total <= 0:
        return dict.fromkeys(raw, 0.0)
    return {name: value / total for name, value in raw.items()}


def _divergence(top: list[Value], every: list[Value]) -> float:
    levels = set(every)
    among_top = Counter(top)
    among_all = Counter(every)
    divergence = 0.0
    for level in levels:
        share_top = (among_top[level] + PRIOR / len(levels)) / (len(top) + PRIOR)
        share_all = (among_all[level] + PRIOR / len(levels)) / (len(every) + PRIOR)
        divergence += share_all * (share_top / share_all - 1) ** 2
    return divergence


# Ablation of a run: how much slower its best time is with one knob held, or with one strategy only.
#
# Two ablations per knob: the knob is held at its value in the first measured trial of the strategy, where the
# search began; and its best value is excluded. The best of few trials is slower than the best of many:
# ``chance`` is the probability that a knob without any effect shows as large a slowdown.


@dataclass(frozen=True)
class Gain:
    """How much slower the best trial of a subset of a run's trials is than the best trial of all."""

    slower: float  # 0.2: 20 % more time
    interval: tuple[float, float]  # from the 95 % intervals of both times
    trials: int  # number of measured trials in the subset
    chance: float  # probability that as many trials, drawn at random, have a best that is as slow or slower


@dataclass(frozen=True)
class KnobAblation:
    """How much slower a run's best trial is if one knob keeps its first value, or lacks its best value."""

    knob: str
    best: Value  # of the best trial
    held: Value  # of the strategy's first measured trial
    gain: Gain | None  # slowdown with the knob held; None: too few trials have the held value
    without_best: Gain | None  # slowdown without the best value; None: too few trials have another value
    importance: float  # PED-ANOVA importance, as a share of the sum over the knobs


@dataclass(frozen=True)
class StrategyAblation:
    """The trials, failures and best time of one strategy, and its slowdown against the fastest strategy."""

    strategy: str
    trials: int
    failed: int
    best_s: float | None  # None: no trial was timed
    gain: Gain | None  # slowdown against the best strategy; None: too few trials were timed


@dataclass(frozen=True)
class Ablation:
    """How much each knob of the best trial's strategy and each strategy contributes to a run's best time."""

    strategy: str  # of the best trial
    measured: int  # measured trials of ``strategy``
    knobs: tuple[KnobAblation, ...]  # knobs with more than one value tried, the largest gain first
    strategies: tuple[StrategyAblation, ...]  # fastest first


@dataclass(frozen=True)
class TooFew:
    """The result of ``ablate`` with fewer than MEASURED_MIN (20) measured trials of the best strategy."""

    strategy: str  # of the best trial; "" where no trial was measured
    measured: int
    strategies: tuple[StrategyAblation, ...] = ()  # fastest first

    @property
    def reason(self) -> str:
        """Returns the message: how many measured trials were found, and how many an ablation needs."""
        of = f" of {self.strategy}" if self.strategy else ""
        trials = count_text(self.measured, "measured trial")
        return f"ablation: found {trials}{of}, it needs {MEASURED_MIN} or more"


@dataclass(frozen=True)
class _Timed:
    number: int
    record: Record
    time: Measurement

    @property
    def strategy(self) -> str:
        return self.record.candidate.strategy

    @property
    def knobs(self) -> dict[str, Value]:
        return dict(self.record.candidate.choices)


def ablate(trials: tuple[StoredTrial, ...]) -> Ablation | TooFew:
    """Returns the ablation of one run's trials, by their times during the search.

    TooFew if fewer than MEASURED_MIN (20) trials of the best strategy were measured. Stale trials do not
    count.
    """
    timed = sorted(
        (
            _Timed(trial.number, trial.record, trial.record.outcome)
            for trial in trials
            if isinstance(trial.record.outcome, Measurement) and not trial.stale
        ),
        key=lambda trial: trial.time.median_s,
    )
    if not timed:
        return TooFew("", 0)
    best = timed[0]
    own = [trial for trial in timed if trial.strategy == best.strategy]
    if len(own) < MEASURED_MIN:
        return TooFew(best.strategy, len(own), _strategies(trials, timed))
    return Ablation(best.strategy, len(own), _knobs(own), _strategies(trials, timed))


def _knobs(own: list[_Timed]) -> tuple[KnobAblation, ...]:
    importance = importances([trial.knobs for trial in own], [trial.time.median_s for trial in own])
    names = [name for name in own[0].knobs if len({trial.knobs[name] for trial in own}) > 1]

    def rank(knob: KnobAblation) -> tuple[float, float]:
        gains = [gain.slower for gain in (knob.gain, knob.without_best) if gain is not None]
        return -max(gains, default=0.0), -knob.importance

    return tuple(sorted((_knob(name, own, importance[name]) for name in names), key=rank))


def _knob(name: str, own: list[_Timed], importance: float) -> KnobAblation:
    held = min(own, key=lambda trial: trial.number).knobs[name]
    best = own[0].knobs[name]
    others = [index for index, trial in enumerate(own) if trial.knobs[name] != best]
    return KnobAblation(
        knob=name,
        best=best,
        held=held,
        gain=_gain(own, [index for index, trial in enumerate(own) if trial.knobs[name] == held]),
        without_best=_gain(own, others, never=1),  # the fastest trial has the best value
        importance=importance,
    )


def _strategies(trials: tuple[StoredTrial, ...], timed: list[_Timed]) -> tuple[StrategyAblation, ...]:
    records = [trial.record for trial in trials]
    every = (*(trial.record for trial in timed), *records)
    names = dict.fromkeys(record.candidate.strategy for record in every)
    ablations = []
    for name in names:
        statuses = [record.status for record in records if record.candidate.strategy == name]
        chosen = [index for index, trial in enumerate(timed) if trial.strategy == name]
        best_s = timed[chosen[0]].time.median_s if chosen else None
        failed = statuses.count("failed")
        ablations.append(StrategyAblation(name, len(statuses), failed, best_s, _gain(timed, chosen)))
    return tuple(ablations)


def _gain(every: list[_Timed], chosen: list[int], never: int = 0) -> Gain | None:
    """Returns how much slower the best of the trials ``chosen`` is than the best of ``every``.

    None if fewer than HELD_MIN are chosen. ``chosen``: ascending indices in ``every``, which is sorted by
    time. ``never``: how many of the fastest trials cannot be in ``chosen`` by its definition; the probability
    is over the other trials.
    """
    if len(chosen) < HELD_MIN:
        return None
    some = every[chosen[0]].time
    best = every[0].time
    # strictly faster: trials of equal code share one time
    faster = max(0, sum(trial.time.median_s < some.median_s for trial in every) - never)
    drawn = len(chosen)
    count = len(every) - never
    # that no faster trial is among ``drawn`` trials, taken at random
    if drawn + faster <= count:
        chance = exp(log_chance_all_wanted(drawn, count - faster, count))
    else:
        chance = 0.0
    if chosen[0] == 0:
        return Gain(0.0, (0.0, 0.0), drawn, chance)
    low = some.interval_s[0] / best.interval_s[1] - 1
    high = some.interval_s[1] / best.interval_s[0] - 1
    return Gain(some.median_s / best.median_s - 1, (low, high), drawn, chance)
