"""Runs of the database as Optuna studies in memory, for programs that read those."""

from collections.abc import Iterable

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.storages import BaseStorage, InMemoryStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from tuner.core.candidate import Value
from tuner.core.errors import Failure
from tuner.core.record import Record
from tuner.core.runs import Run, StoredTrial
from tuner.samplers.study import quietly

STRATEGY = "strategy"  # a parameter beside the knobs


def exported_studies(runs: Iterable[tuple[Run, tuple[StoredTrial, ...]]]) -> BaseStorage:
    """Returns a storage with a study per run: seconds are minimized, a trial that failed is one of Optuna's.

    Proposals whose outcome never arrived are left out.
    """
    storage = InMemoryStorage()
    for run, trials in runs:
        finished = [(trial, trial.record) for trial in trials if trial.record is not None]
        study = _study(storage, run)
        distributions = _distributions([record for _, record in finished])
        study.add_trials(_trial(trial, record, distributions) for trial, record in finished)
    return storage


def _study(storage: BaseStorage, run: Run) -> Study:
    name = f"run {run.id}: {run.settings.problem.key} on {run.settings.target}"
    with quietly():
        study = optuna.create_study(storage=storage, study_name=name)
    study.set_user_attr("value", "seconds per call, the median")
    study.set_user_attr("machine", run.machine.name)
    study.set_user_attr("sampler", f"{run.settings.sampler}, seed {run.settings.seed}")
    return study


def _distributions(records: list[Record]) -> dict[str, BaseDistribution]:
    """Returns what each parameter of a run may be: one distribution for all trials."""
    values: dict[str, set[Value]] = {}
    for record in records:
        for name, value in _params(record).items():
            values.setdefault(name, set()).add(value)
    return {name: _distribution(found) for name, found in values.items()}


def _distribution(values: set[Value]) -> BaseDistribution:
    numbers = [value for value in values if isinstance(value, int)]
    if len(numbers) == len(values):
        return IntDistribution(min(numbers), max(numbers))
    return CategoricalDistribution(sorted(values, key=str))


def _params(record: Record) -> dict[str, Value]:
    return {STRATEGY: record.candidate.strategy, **dict(record.candidate.choices)}


def _trial(trial: StoredTrial, record: Record, distributions: dict[str, BaseDistribution]) -> FrozenTrial:
    params = _params(record)
    attributes: dict[str, str | int] = {"trial": trial.id, "status": record.status}
    if isinstance(record.outcome, Failure):
        attributes |= {"stage": record.outcome.stage.value, "reason": record.outcome.reason}
    made = optuna.trial.create_trial(
        state=TrialState.FAIL if trial.best_s is None else TrialState.COMPLETE,
        value=trial.best_s,
        params=params,
        distributions={name: distributions[name] for name in params},
        user_attrs=attributes,
    )
    made.datetime_start = made.datetime_complete = trial.created.replace(tzinfo=None)
    return made
