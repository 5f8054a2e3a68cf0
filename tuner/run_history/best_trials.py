"""The best trial of a group (problem, target, threads, machine): the definition that all commands use.

A group's best trial is the selected result (``select_result``) of one of the group's runs: a run with a
reliable timing round precedes an unreliable one, then the least median wins, then the earliest run. Nothing
is cached: what was timed again, merged, imported or marked stale counts at the next query.
"""

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tuner.analysis.selected_result import SelectedResult, select_result
from tuner.core.runs import BestGroup, Run, RunBound, StoredTrial, TrialQuery

if TYPE_CHECKING:
    from tuner.db.store import Store

MEASURED = "measured"


@dataclass(frozen=True)
class RunResult:
    """A stored run and its selected result: the trial to use, and the trials tied with the fastest."""

    run: Run
    selected: SelectedResult

    @property
    def best(self) -> StoredTrial:
        """Returns the trial to use, which is the best trial of the run's selected result."""
        return self.selected.best

    @property
    def rank(self) -> tuple[bool, float, datetime.datetime, str]:
        """Returns a sort key by which the run with the best result comes first.

        Its elements: whether the run's times are unreliable, the best trial's median seconds per call, when
        the run began, the run's uuid.
        """
        run = self.run
        return bool(run.unreliable), self.selected.measurement.median_s, run.created, run.uuid


def group_of(trial: StoredTrial) -> BestGroup:
    """Returns a trial's group of comparable times: its problem, target, number of threads and machine."""
    record = trial.record
    return BestGroup(record.problem.key, record.target.text, trial.threads, trial.machine.name)


def any_group(_group: BestGroup) -> bool:
    """Returns True for every group: the default of parameter ``is_asked`` of ``best_results``."""
    return True


def any_trial(_trial: StoredTrial) -> bool:
    """Returns True for every trial: the default of parameter ``is_selectable`` of ``best_results``."""
    return True


def best_results(
    store: "Store",
    query: TrialQuery,
    is_asked: Callable[[BestGroup], bool] = any_group,
    is_selectable: Callable[[StoredTrial], bool] = any_trial,
) -> Mapping[BestGroup, RunResult]:
    """Returns the best run's result per group of comparable times (problem, target, threads, machine).

    Args:
        store: The results database.
        query: Conditions on the trials; its limit, its sorting and ``best`` are ignored.
        is_asked: Selects the groups of the result.
        is_selectable: Selects the trials that can be results.

    A group without a selectable trial is missing from the mapping. Raises UsageError for an unknown status in
    the query.
    """
    of_group: dict[BestGroup, list[RunBound]] = {}
    for bound in store.run_bounds(query):
        if is_asked(bound.group):
            of_group.setdefault(bound.group, []).append(bound)
    found = ((group, _best(store, query, bounds, is_selectable)) for group, bounds in of_group.items())
    return {group: best for group, best in found if best is not None}


def _best(
    store: "Store", query: TrialQuery, bounds: list[RunBound], is_selectable: Callable[[StoredTrial], bool]
) -> RunResult | None:
    """Returns the best of several runs; a run whose lower bound is above the best so far is not read."""
    best: RunResult | None = None
    for bound in sorted(bounds, key=lambda each: (each.is_unreliable, each.least_s)):
        if best is not None and (bound.is_unreliable, bound.least_s) > best.rank[:2]:
            break
        answered = _run_result(store, query, bound.run, is_selectable)
        if answered is not None and (best is None or answered.rank < best.rank):
            best = answered
    return best


def _run_result(
    store: "Store", query: TrialQuery, run_id: int, is_selectable: Callable[[StoredTrial], bool]
) -> RunResult | None:
    status = query.status or MEASURED
    trials = store.trials(replace(query, run=run_id, best=False, status=status, limit=None, sort="number"))
    run = store.run(run_id)
    selected = select_result(tuple(filter(is_selectable, trials)), run.noise)
    return None if selected is None else RunResult(run, selected)
