"""Stored runs as Optuna studies: their trials have the same parameters as those of a live search."""

from collections.abc import Iterable

from optuna.storages import BaseStorage, InMemoryStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from tuner.core.errors import Failure
from tuner.core.runs import Run, StoredTrial
from tuner.samplers.parameters import Distributions, distributions_of_candidates, parameters
from tuner.samplers.study import quiet_study


def stored_studies(runs: Iterable[tuple[Run, tuple[StoredTrial, ...]]]) -> BaseStorage:
    """Returns an Optuna storage in memory with one study for each run; a study minimizes seconds.

    A trial without a time (failed, or only verified) has the state FAIL.
    """
    storage = InMemoryStorage()
    for run, trials in runs:
        study = quiet_study(
            None, storage, f"run {run.id}: {run.settings.problem.key} on {run.settings.target}"
        )
        study.set_user_attr("value", "seconds per call, the median")
        study.set_user_attr("machine", run.machine.name)
        study.set_user_attr("sampler", f"{run.settings.sampler}, seed {run.settings.seed}")
        distributions = distributions_of_candidates(trial.record.candidate for trial in trials)
        study.add_trials(_trial(trial, distributions) for trial in trials)
    return storage


def _trial(trial: StoredTrial, distributions: Distributions) -> FrozenTrial:
    record, values = trial.record, parameters(trial.record.candidate)
    attributes: dict[str, str | int] = {"trial": trial.id, "status": record.status}
    if trial.best_s is not None:
        attributes["reliability"] = trial.reliability.text
    if isinstance(record.outcome, Failure):
        attributes |= {"stage": record.outcome.stage.value, "reason": record.outcome.reason}
    made = create_trial(
        state=TrialState.FAIL if trial.best_s is None else TrialState.COMPLETE,
        value=trial.best_s,
        params=dict(values),
        distributions={name: distributions[name] for name in values},
        user_attrs=attributes,
    )
    made.datetime_start = made.datetime_complete = trial.created.replace(tzinfo=None)
    return made
