"""The candidate for several machines: on none of them much slower than the best there."""

from dataclasses import dataclass

from tuner.analysis.selected_result import timed, top_trials_of
from tuner.core.candidate import Candidate
from tuner.core.runs import StoredTrial


@dataclass(frozen=True)
class Compromise:
    """A candidate that was timed on every machine."""

    trials: tuple[StoredTrial, ...]  # of the same candidate, one per machine
    slowdowns: tuple[float, ...]  # beside the fastest there: 0.1 is 10 % slower
    fastest: tuple[StoredTrial, ...]  # on each machine

    @property
    def worst(self) -> float:
        """Returns the slowdown on the machine that it suits least."""
        return max(self.slowdowns)


def best_compromise(machines: tuple[tuple[StoredTrial, ...], ...]) -> Compromise | None:
    """Returns the candidate whose worst slowdown is the least, of the trials of one run per machine.

    None where no candidate has a time on each machine. Times of finalists count before first ones.
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
    found = (trial for trial in trials if trial.best_s is not None and not trial.stale)
    return {trial.record.candidate: trial for trial in found}
