"""Best trials of the same problem for other states of the caches, where they are other schedules."""

from dataclasses import replace
from typing import TYPE_CHECKING

from tuner.core.problem import CACHES
from tuner.core.runs import StoredTrial, TrialQuery
from tuner.run_history.best_known import is_measured_there
from tuner.run_history.best_trials import best_results, group_of

if TYPE_CHECKING:
    from tuner.db.store import Store


def other_winners(store: "Store", best: StoredTrial) -> tuple[StoredTrial, ...]:
    """Returns the best trials for other cache states than that of ``best``, with other scripts than its own.

    At most one per state, of the same problem otherwise, and of the same target, machine and threads. () for
    a trial that was not timed, and for a replay.
    """
    if best.best_s is None or not is_measured_there(group_of(best)):
        return ()
    found = (_winner(store, best, cache) for cache in CACHES if cache != best.record.problem.cache)
    return tuple(
        each for each in found if each is not None and each.record.script_sha256 != best.record.script_sha256
    )


def _winner(store: "Store", best: StoredTrial, cache: str) -> StoredTrial | None:
    problem = replace(best.record.problem, cache=cache)
    query = TrialQuery.measured(problem, best.record.target, best.machine, best.threads)
    return next((each.best for each in best_results(store, query).values()), None)
