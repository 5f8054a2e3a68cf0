"""One candidate for several machines: the one with the least worst-case slowdown."""

import itertools
from dataclasses import dataclass

from tuner.analysis.selected_result import timed, top_trials_of
from tuner.core.candidate import Candidate
from tuner.core.runs import StoredTrial


@dataclass(frozen=True)
class Compromise:
    """A candidate that was timed on each of several machines, with its slowdown on each."""

    trials: tuple[StoredTrial, ...]  # of the same candidate, one per machine
    slowdowns: tuple[float, ...]  # against the machine's fastest trial: 0.1 is 10 % slower
    fastest: tuple[StoredTrial, ...]  # one per machine

    @property
    def worst(self) -> float:
        """Returns the candidate's largest slowdown over the machines: 0.1 is 10 % slower than the fastest."""
        return max(self.slowdowns)


def best_compromise(machines: tuple[tuple[StoredTrial, ...], ...]) -> Compromise | None:
    """Returns the candidate whose largest slowdown over the machines is least.

    ``machines`` has, for each of one or more machines, all trials of one run. None where no candidate has a
    time on each machine. A time of the final re-measurement takes precedence over a time of the search. Stale
    and early-stopped trials are left out.
    """
    by_candidate = [_by_candidate(trials) for trials in machines]
    if not all(by_candidate):
        return None
    fastest = tuple(
        min(top_trials_of(trials), key=lambda trial: timed(trial).median_s) for trials in machines
    )
    shared = [candidate for candidate in by_candidate[0] if all(candidate in each for each in by_candidate)]
    choices = []
    for candidate in shared:
        trials = tuple(each[candidate] for each in by_candidate)
        pairs = zip(trials, fastest, strict=True)
        slowdowns = tuple(max(0.0, timed(ours).median_s / timed(best).median_s - 1) for ours, best in pairs)
        choices.append(Compromise(trials, slowdowns, fastest))
    return min(choices, key=lambda choice: choice.worst, default=None)


def _by_candidate(trials: tuple[StoredTrial, ...]) -> dict[Candidate, StoredTrial]:
    is_result = (
        trial.best_s is not None and not trial.stale and trial.early_stopped is None for trial in trials
    )
    found = itertools.compress(trials, is_result)
    return {trial.record.candidate: trial for trial in found}
