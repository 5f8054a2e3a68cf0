"""Orders compiled trials for measuring: of each problem the most promising first, by predicted cycles."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tuner.bundle.static_ranking import best_first
from tuner.core.pending_trial import PendingTrial
from tuner.targets.gpu.machine_code.predicted import predicted

LOOKED_AT = 64  # trials per problem whose cycles are predicted, in half a second each


def predicted_first(trials: Iterable[PendingTrial], looked_at: int = LOOKED_AT) -> tuple[PendingTrial, ...]:
    """Returns all trials grouped by problem, in each group the most promising first.

    Trials are ordered as by ``best_first``. Then cycles are predicted for the first ``looked_at`` of each
    problem, where nvdisasm is there, and trials are ordered again: predicted cycles decide between trials
    that are equal in use of tensor cores and in spilled bytes. Returned trials have the prediction in
    ``predicted_cycles``.
    """
    by_problem = itertools.groupby(best_first(trials), key=lambda trial: trial.problem)
    return best_first(trial for _, group in by_problem for trial in _predicted(group, looked_at))


def _predicted(trials: Iterable[PendingTrial], looked_at: int) -> Iterator[PendingTrial]:
    for number, trial in enumerate(trials):
        found = predicted(trial.problem, trial.program) if number < looked_at else None
        yield trial if found is None else replace(trial, predicted_cycles=found.cycles)
