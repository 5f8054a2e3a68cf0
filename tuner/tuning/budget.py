"""What a budget leaves for the search: when it is spent, and the seconds of the final re-measurement."""

from collections.abc import Sequence
from dataclasses import replace

from tuner.core.interfaces import FINAL_EFFORT, Effort
from tuner.core.requests import CampaignSettings
from tuner.core.runs import RunSettings
from tuner.tuning.progress import Progress

TOP_TRIALS = 8
LEAST_S = 0.03  # per candidate, however short the search was
SHARE_OF_SEARCH = 0.02  # per candidate: 12 of them are a quarter of the search; UNTIMED doubles it
COMPILED_AGAIN_S = 1.5  # until the top trials of a problem are compiled and loaded again
OTHERS_TIMED = 4  # next to the top trials: the baseline, the fastest again and at other alignments
UNTIMED = 2  # factor from timed seconds to all seconds: an untimed call precedes each sample
MOST_RESERVED = 0.4  # of a budget
ROOFLINE_S = 2.0  # until a child process has measured a roofline


def in_flight_s(sessions: Sequence[Progress]) -> float:
    """Returns the seconds until the trials in flight, and one more, end at the pace of those before."""
    ended = sum(each.ended for each in sessions)
    pace_s = sum(each.evaluated_s for each in sessions) / ended if ended else 0.0
    return pace_s * (1 + sum(each.counts.proposed for each in sessions) - ended)


def is_spent(limits: RunSettings | CampaignSettings, proposed: int, searched_s: float) -> bool:
    """Returns whether a search has used up its proposals or seconds; a budget allows one at least."""
    if limits.trials is not None and proposed >= limits.trials:
        return True
    return limits.budget_s is not None and searched_s >= limits.budget_s and proposed > 0


def reserved_s(budget_s: float | None, problems: int = 1, top_trials: int = TOP_TRIALS) -> float:
    """Returns the seconds of a budget that are kept for the final re-measurements of ``problems``."""
    if budget_s is None:
        return 0.0
    timed_s = UNTIMED * (top_trials + OTHERS_TIMED) * final_effort(budget_s / problems).budget_s
    return min(problems * (COMPILED_AGAIN_S + timed_s), MOST_RESERVED * budget_s)


def final_effort(search_s: float, left_s: float | None = None, top_trials: int = TOP_TRIALS) -> Effort:
    """Returns the effort per candidate: FINAL_EFFORT, less after a search under 15 s or if time is short.

    ``left_s``: of the budget, in seconds, for all top trials of the problem; None: no budget.
    """
    budget_s = min(FINAL_EFFORT.budget_s, max(LEAST_S, SHARE_OF_SEARCH * search_s))
    if left_s is not None:
        each_s = (left_s - COMPILED_AGAIN_S) / (UNTIMED * (top_trials + OTHERS_TIMED))
        budget_s = min(budget_s, max(LEAST_S, each_s))
    return replace(FINAL_EFFORT, budget_s=budget_s)
