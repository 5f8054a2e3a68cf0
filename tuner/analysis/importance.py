"""The importance of knobs in a run, by their distribution among its fastest trials (PED-ANOVA)."""

import math
from collections import Counter
from collections.abc import Sequence

from tuner.core.candidate import Value

# PED-ANOVA: how much the distribution of each knob among the fastest points differs from that among all.
# Watanabe et al., 2023, https://arxiv.org/abs/2304.10255, for knobs of few values: the Pearson divergence
# between the values of the fastest points and of all points, per knob, as a share of the sum over knobs.
TOP_SHARE = 0.1  # share of the fastest points, as in the paper
TOP_MIN = 5
PRIOR = 1.0  # pseudo-observations, spread over the values: a value seen by accident is no certainty


def importances(points: Sequence[dict[str, Value]], times_s: Sequence[float]) -> dict[str, float]:
    """Returns knob -> PED-ANOVA importance: its share of the divergence of the fastest points from all.

    ``points`` are dicts knob -> value with equal knobs, ``times_s`` their times in seconds. Shares sum to 1,
    or are all 0 where nothing differs; {} without points. Points of equal times keep their order.
    """
    if not points:
        return {}
    order = sorted(range(len(points)), key=lambda index: times_s[index])
    top = order[: max(TOP_MIN, math.ceil(TOP_SHARE * len(order)))]
    raw = {
        name: _divergence([points[index][name] for index in top], [point[name] for point in points])
        for name in points[0]
    }
    total = sum(raw.values())
    return {name: value / total if total > 0 else 0.0 for name, value in raw.items()}


def _divergence(top: list[Value], every: list[Value]) -> float:
    levels = set(every)
    among_top, among_all = Counter(top), Counter(every)
    divergence = 0.0
    for level in levels:
        share_top = (among_top[level] + PRIOR / len(levels)) / (len(top) + PRIOR)
        share_all = (among_all[level] + PRIOR / len(levels)) / (len(every) + PRIOR)
        divergence += share_all * (share_top / share_all - 1) ** 2
    return divergence
