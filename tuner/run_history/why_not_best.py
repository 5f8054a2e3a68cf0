"""Why a trial with the least time is not its group's best trial."""

from typing import TYPE_CHECKING

from tuner.core.runs import StoredTrial
from tuner.run_history.best_trials import RunResult, group_of
from tuner.tuning.tuned_run import tuned_run

if TYPE_CHECKING:
    from tuner.db.store import Store


def why_not_best(store: "Store", trial: StoredTrial, best: RunResult) -> str:
    """Returns one clause: why ``trial``, with the least stored time of its group, is not ``best.best``.

    A group is a problem, target, number of threads and machine; ``best`` is the best run's result of the
    group.
    """
    if trial.stale:
        return f"its time no longer holds ({trial.stale})"
    if trial.early_stopped is not None:
        return "it was early-stopped: its samples are no result"
    if trial.run == best.run.id:
        return _why_in_its_run(trial, best)
    run = tuned_run(store, trial.run)
    if run.run.unreliable and not best.run.unreliable:
        return f"the timing of run {trial.run} is unreliable ({run.run.unreliable})"
    if run.selected is not None and run.selected.best.id != trial.id:
        return f"in run {trial.run} {_why_in_its_run(trial, RunResult(run.run, run.selected))}"
    return f"trial {best.best.id} is as fast, and its run is earlier"


def _why_in_its_run(trial: StoredTrial, best: RunResult) -> str:
    if trial.final is None and best.best.final is not None:
        return "it did not take part in the final re-measurement"
    return f"trial {best.best.id} is simpler, and as fast within the noise of {best.selected.floor:.1%}"


def why_first_is_not_best(
    store: "Store", trials: tuple[StoredTrial, ...], best_of_runs: tuple[RunResult, ...]
) -> str:
    """Returns one line: why the first of ``trials``, sorted by time, is not the best trial of its group.

    ``best_of_runs`` has the best run's result of each group (problem, target, threads, machine). '' where the
    first trial is the best, was not timed, or has no group there.
    """
    if not trials or trials[0].best_s is None:
        return ""
    first = trials[0]
    best = next((each for each in best_of_runs if group_of(each.best) == group_of(first)), None)
    if best is None or best.best.id == first.id:
        return ""
    return f"best: trial {best.best.id}, not {first.id}: {why_not_best(store, first, best)}"
