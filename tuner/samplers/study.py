"""The sampler port, implemented by an Optuna study in memory."""

from collections.abc import Iterator
from contextlib import contextmanager

import optuna
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage

from tuner.core.sampler import AbstractSampler
from tuner.samplers.method import AbstractMethod


class StudySampler(AbstractSampler):
    """Asks and tells one study.

    The database is authoritative: a resumed run replays its records into a new study.
    """

    def __init__(self, method: AbstractMethod) -> None:
        self.study = quiet_study(method)  # its trials have the strategy and its knobs as parameters
        self._method = method
        self._pool = method.task.pool
        self._pending: dict[int, optuna.Trial] = {}  # by row

    def ask(self, number: int) -> int | None:
        if self._pool.is_exhausted:
            return None
        if number != len(self._pool.order):
            raise ValueError(f"trial: found {number}, allowed {len(self._pool.order)}")
        trial = self.study.ask(self._method.propose(number))
        row = self._pool.order[number]
        self._pending[row] = trial
        return row

    def row_of(self, number: int) -> int:
        """Returns the row of a trial of the study."""
        return self._pool.order[number]

    def tell(self, row: int, value: float | None) -> None:
        trial = self._pending.pop(row, None)
        if trial is None:
            raise ValueError(f"row {row} is not pending")
        self.study.tell(trial, value, state=optuna.trial.TrialState.FAIL if value is None else None)

    def replay(self, number: int, row: int) -> None:
        self._pool.put_first(row)
        self.ask(number)


def quiet_study(
    sampler: BaseSampler | None, storage: BaseStorage | None = None, name: str | None = None
) -> optuna.Study:
    """Returns a new study, without Optuna's log line."""
    with quietly():
        return optuna.create_study(sampler=sampler, storage=storage, study_name=name)


@contextmanager
def quietly() -> Iterator[None]:
    """Silences Optuna's log during the block, then restores its verbosity."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(verbosity)
