"""The sampler port over an Optuna study that lives in memory."""

from collections.abc import Iterator
from contextlib import contextmanager

import optuna
from optuna.samplers import BaseSampler

from tuner.core.sampler import AbstractSampler
from tuner.samplers.method import NUMBER, AbstractMethod
from tuner.samplers.proposals import Pool

ROW = "row"  # the one parameter of a trial


class StudySampler(AbstractSampler):
    """Asks and tells one study. Our records are the truth: a resumed run replays them into a new one."""

    def __init__(self, method: AbstractMethod, pool: Pool) -> None:
        self._pool = pool
        self._study = quiet_study(method)
        self._pending: dict[int, optuna.Trial] = {}

    def ask(self, number: int) -> int | None:
        return None if self._pool.is_exhausted else self._propose(number)

    def tell(self, row: int, value: float | None) -> None:
        self._pool.tell(row, value)
        failed = optuna.trial.TrialState.FAIL if value is None else None
        self._study.tell(self._pending.pop(row), value, state=failed)

    def replay(self, number: int, row: int) -> None:
        self._pool.require_unseen(row)  # before the study has a trial of it
        self._study.enqueue_trial({ROW: row})
        self._propose(number)

    def _propose(self, number: int) -> int:
        trial = self._study.ask()
        trial.set_user_attr(NUMBER, number)
        row = trial.suggest_int(ROW, 0, len(self._pool.unseen) - 1)
        self._pool.propose(row)
        self._pending[row] = trial
        return row


def quiet_study(sampler: BaseSampler) -> optuna.Study:
    """Makes a study without Optuna's line about it."""
    with quietly():
        return optuna.create_study(sampler=sampler)


@contextmanager
def quietly() -> Iterator[None]:
    """Keeps Optuna from telling what it does; leaves the verbosity as it was."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(verbosity)
