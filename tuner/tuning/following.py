"""A run that proposes the candidates of another run, the leader, on another class of machine."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tuner.core.errors import UsageError
from tuner.core.runs import WARM_START, FirstPoint, Run, RunQuery, RunSettings, TaskQuery, TrialQuery
from tuner.core.target_name import TargetName
from tuner.tuning.composition import Composition
from tuner.tuning.first_points import rows_of_first

if TYPE_CHECKING:
    from tuner.core.machine import Machine
    from tuner.db.store import Store

SOURCE: Final = "run {}"  # source of each first point


def following(
    leader: Run, target: TargetName, composition: Composition, store: "Store"
) -> tuple[RunSettings | None, int | None]:
    """Returns (settings, None) for a run that follows ``leader`` on ``target``, or (None, id of that run).

    The follower proposes the candidates that the leader has tried, in the same order, without those that are
    not feasible on its machine. The id is returned where such a run is stored for the target's machine.
    Raises UsageError where no candidate is feasible.
    """
    settings = replace(leader.settings, target=target)
    source = composition.outcomes_of_run(settings)
    machine = source.machine(target)
    begun = _begun(leader, machine, store)
    if begun is not None:
        return None, begun
    settings = replace(settings, first=_proposed(leader, store), warm_start=False, budget_s=None)
    rows = rows_of_first(settings, source.plan(settings, machine))
    if not rows:
        raise UsageError(
            f"run {leader.id}: found no candidate that is feasible on {machine.name!r}, allowed 1 or more"
        )
    return replace(settings, trials=len(rows)), None


def _begun(leader: Run, machine: "Machine", store: "Store") -> int | None:
    """Returns the id of a machine's run that follows a leader; None where no such run has begun."""
    source = SOURCE.format(leader.id)
    runs = [
        run for run in store.matching_runs(RunQuery(TaskQuery(machine=machine.name))) if run.id > leader.id
    ]
    following = [run for run in runs if run.settings.first and run.settings.first[0].source == source]
    return following[0].id if following else None


def _proposed(leader: Run, store: "Store") -> tuple[FirstPoint, ...]:
    trials = store.trials(TrialQuery(run=leader.id, sort="number"))
    source = SOURCE.format(leader.id)
    return tuple(FirstPoint(trial.record.candidate, WARM_START, source) for trial in trials)
