"""What a budget leaves for the search: when it is spent, and the seconds of the final re-measurement.

First estimates from the budget alone: what is reserved for the final re-measurement before anything ran.
``Pace`` then predicts the same steps from the times of a session.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tuner.core.interfaces import FINAL_EFFORT, Effort
from tuner.core.problem import Problem
from tuner.core.requests import CampaignSettings
from tuner.core.runs import RunSettings
from tuner.runtime.timing import FEW_SAMPLES, SAMPLE_S
from tuner.tuning.progress import Progress

TOP_TRIALS = 8
LEAST_S = 0.03  # per candidate, however short the search was
SHARE_OF_SEARCH = 0.02  # per candidate: 12 of them are a quarter of the search; UNTIMED doubles it
BASELINE_START_S = 1.6  # until the baseline's process has started, and the command has ended
COMPILED_AGAIN_S = 0.1  # until a top trial is compiled, loaded and verified again
OTHERS_TIMED = 4  # next to the top trials: the baseline, the fastest again and at other alignments
OTHERS_TIMED_AT_LEAST = 2  # without other alignments
UNTIMED = 2  # factor from timed seconds to all seconds: an untimed call precedes each sample
DRAWN_PER_S = 1.5e9  # elements of operands before each sample, as ``tuner.targets.cpu.timing_checks`` does
MOST_RESERVED = 0.4  # of a budget
# Of a budget for fusions: these are timed once more in the program, with their initial configurations
MOST_RESERVED_OF_FUSIONS = 0.2
STARTED_ANEW_S = 0.06  # of timing a candidate, next to its samples: warm-up, reference kernel, extremes
LEAST_SLOWNESS = 0.5  # long calls have no untimed call before them
LEAST_TOP_TRIALS = 1  # of a final re-measurement that has little time
LATE = 0.05  # of a budget, by which the final re-measurement may end late
MOST_KEPT = 0.6  # of a budget, for the least of a final re-measurement
END_PER_START = 0.1  # seconds to end the command per second that its start has taken
SHORT_BUDGET_S = 20.0  # below it as much of a budget as possible is for the search, see ``is_short``
EARLY_STOPPED = 2.0  # a candidate slower than this many times the incumbent is early-stopped
LEAST_EFFORT = Effort(LEAST_S, FEW_SAMPLES)  # of a final re-measurement whose time is over
ROOFLINE_S = 2.0  # until a child process has measured a roofline


def in_flight_s(sessions: Sequence[Progress]) -> float:
    """Returns an estimate of the seconds until all pending trials, and one more, have ended.

    By the average seconds of the trials that ended in ``sessions``, not in earlier sessions; 0 if none has
    ended. These are the measuring worker's, or those from one outcome to the next where they are more: where
    cores are few, no trial is compiled while another is timed.
    """
    evaluated = 0
    evaluated_s = 0.0
    steps = 0  # from one outcome to the next of the same session
    between_s = 0.0
    pending = 0
    for session in sessions:
        evaluated += session.evaluated
        evaluated_s += session.evaluated_s
        steps += max(0, session.evaluated - 1)
        between_s += session.between_outcomes_s
        pending += session.pending
    if evaluated == 0:
        return 0.0
    pace_s = max(evaluated_s / evaluated, between_s / max(1, steps))
    return pace_s * (1 + pending)


def search_effort(incumbent_s: float | None) -> Effort:
    """Returns the effort of a trial: a timing stops early if it is above EARLY_STOPPED x ``incumbent_s``.

    ``incumbent_s``: least seconds per call so far; None: no time yet, and the timing does not stop early.
    """
    if incumbent_s is None:
        return Effort()
    return Effort(stop_above_s=EARLY_STOPPED * incumbent_s)


def is_spent(limits: RunSettings | CampaignSettings, proposed: int, searched_s: float) -> bool:
    """Returns whether a search has used up its limit of trials or seconds; at least one trial is allowed."""
    if limits.trials is not None and proposed >= limits.trials:
        return True
    return limits.budget_s is not None and searched_s >= limits.budget_s and proposed > 0


def is_short(budget_s: float | None) -> bool:
    """Returns whether a budget (seconds; None: no budget) is below SHORT_BUDGET_S.

    Then the roofline is not measured, and the baseline is timed only in the final re-measurement, not also
    before the search.
    """
    return budget_s is not None and budget_s < SHORT_BUDGET_S


def reserved_s(
    budget_s: float | None,
    problems: int = 1,
    top_trials: int = TOP_TRIALS,
    *,
    are_fusions: bool = False,
) -> float:
    """Returns the seconds of a budget that are reserved for the final re-measurements.

    ``budget_s``: seconds, None: no budget, for which 0 is returned. ``problems``: number of re-measurements;
    ``top_trials``: trials in each. ``are_fusions``: for fusions no baseline is started or timed, which takes
    less.
    """
    if budget_s is None:
        return 0.0
    each_s = remeasurement_s(budget_s / problems, top_trials)
    if are_fusions:
        return min(problems * (each_s - BASELINE_START_S), MOST_RESERVED_OF_FUSIONS * budget_s)
    return min(problems * each_s, MOST_RESERVED * budget_s)


def remeasurement_s(search_s: float, top_trials: int = TOP_TRIALS) -> float:
    """Returns an estimate of the seconds of a final re-measurement after a search of ``search_s`` seconds."""
    timed_s = UNTIMED * (top_trials + OTHERS_TIMED) * final_effort(search_s).budget_s
    return _untimed_s(top_trials) + timed_s


def _untimed_s(top_trials: int) -> float:
    return BASELINE_START_S + COMPILED_AGAIN_S * top_trials


def untimed_factor(problem: Problem, best_s: float | None) -> float:
    """Returns the ratio of all seconds to timed seconds in a final re-measurement, which also draws operands.

    ``best_s``: seconds per call of the fastest trial; None: unknown, taken as at most SAMPLE_S.
    """
    drawn_s = problem.bytes / problem.input_bytes / DRAWN_PER_S
    return UNTIMED + drawn_s / max(SAMPLE_S, best_s or 0.0)


def final_effort(
    search_s: float,
    left_s: float | None = None,
    top_trials: int = TOP_TRIALS,
    untimed: float = UNTIMED,
) -> Effort:
    """Returns the effort per candidate: FINAL_EFFORT, or less after a search under 15 s or if time is short.

    ``left_s``: seconds of the budget that are left for all top trials of the problem; None: no budget.
    ``untimed``: ``untimed_factor`` of the problem.
    """
    budget_s = min(FINAL_EFFORT.budget_s, max(LEAST_S, SHARE_OF_SEARCH * search_s))
    if left_s is not None:
        each_s = (left_s - _untimed_s(top_trials)) / (untimed * (top_trials + OTHERS_TIMED))
        budget_s = min(budget_s, max(LEAST_S, each_s))
    return replace(FINAL_EFFORT, budget_s=budget_s)


@dataclass(frozen=True)
class Pace:
    """Seconds that the steps of a run take, measured while it goes on, to predict the steps to come."""

    start_s: float = BASELINE_START_S  # until a child process has started
    again_s: float = COMPILED_AGAIN_S  # until a top trial is loaded again, and compiled if it must be
    slowness: float = 1.0  # seconds to time a candidate, over those on a quiet processor
    sample_s: float = 0.0  # seconds of a sample, with the untimed call before it
    end_s: float = 0.0  # from the last time to the end of the command

    @classmethod
    def of(cls, progress: Progress, start_s: float | None, command_start_s: float) -> "Pace":
        """Returns the pace of a session, from its progress so far.

        ``start_s``: seconds in which its child processes started, None: not known yet. ``command_start_s``:
        seconds from the start of the command to the start of the session.
        """
        pace = cls(end_s=END_PER_START * command_start_s)
        if start_s is not None:
            pace = replace(pace, start_s=start_s)
        paces = progress.paces
        if not paces:
            return pace
        # the low median: the first trial also compiles what shows the conditions of the machine
        slowness = statistics.median_low(
            trial.timing_s / (UNTIMED * trial.samples_s + STARTED_ANEW_S) for trial in paces
        )
        again_s = statistics.mean(trial.loaded_s for trial in paces)
        if progress.ended > progress.evaluated:  # trials of earlier sessions are compiled again
            again_s += statistics.mean(trial.compiled_s for trial in paces)
        return replace(
            pace,
            again_s=again_s,
            slowness=max(LEAST_SLOWNESS, slowness),
            sample_s=statistics.median_low(trial.samples_s / trial.samples for trial in paces),
        )

    def final_s(self, effort: Effort, top_trials: int) -> float:
        """Returns the estimated seconds from the start of a final re-measurement to the command's end.

        ``effort``: of each candidate; ``top_trials``: how many trials are timed again.
        """
        return self._untimed_s(top_trials) + self._timed_s(effort, top_trials)

    def kept_s(self, budget_s: float, search_s: float, top_trials: int) -> float:
        """Returns the seconds of a budget to keep for a final re-measurement after ``search_s`` seconds."""
        wanted_s = self.final_s(final_effort(search_s), top_trials)
        least_s = self.final_s(LEAST_EFFORT, min(top_trials, LEAST_TOP_TRIALS))
        return min(max(least_s, min(wanted_s, MOST_RESERVED * budget_s)), MOST_KEPT * budget_s)

    def planned_final(
        self, budget_s: float | None, search_s: float, left_s: float, top_trials: int
    ) -> tuple[Effort, int]:
        """Returns (effort of a final re-measurement, how many trials it times, at most ``top_trials``).

        ``left_s``: seconds until the budget ends. The effort is ``final_effort`` without a budget (None), or
        if all trials fit into the time left; else less.
        """
        effort = final_effort(search_s)
        if budget_s is None:
            return effort, top_trials
        while top_trials > LEAST_TOP_TRIALS and self.final_s(LEAST_EFFORT, top_trials) > left_s:
            top_trials -= 1
        each_s = (left_s - self._untimed_s(top_trials)) / (self.slowness * (top_trials + OTHERS_TIMED))
        fitting_s = max(LEAST_S, (each_s - STARTED_ANEW_S) / UNTIMED)
        within_s = max(0.0, left_s + LATE * budget_s - self.end_s)
        return replace(effort, budget_s=min(effort.budget_s, fitting_s), within_s=within_s), top_trials

    def _untimed_s(self, top_trials: int) -> float:
        return self.start_s + top_trials * self.again_s + self.end_s

    def _timed_s(self, effort: Effort, top_trials: int) -> float:
        samples_s = max(effort.budget_s, effort.min_samples * self.sample_s)
        others = OTHERS_TIMED if effort.has_offsets else OTHERS_TIMED_AT_LEAST
        return self.slowness * (top_trials + others) * (UNTIMED * samples_s + STARTED_ANEW_S)
