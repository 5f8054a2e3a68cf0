"""The sampler port, implemented by an Optuna study in memory."""

from collections.abc import Iterator
from contextlib import contextmanager

import optuna
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage

from tuner.core.sampler import AbstractSampler
from tuner.samplers.method import AbstractMethod


class StudySampler(AbstractSampler):
    """The sampler of a run: a search method, with its proposals and outcomes in an Optuna study in memory.

    The database is authoritative: a resumed run replays its records into a new study.
    """

    def __init__(self, method: AbstractMethod) -> None:
        self.study = quiet_study(method)  # its trials have the strategy and its knobs as parameters
        self._method = method
        self._pool = method.task.pool
        self._pending: dict[int, optuna.Trial] = {}  # by row

    def ask(self, number: int) -> int | None:
        """Returns the index of the configuration to try as trial ``number``; None when all were proposed.

        Raises ValueError unless ``number`` is the number of proposals so far.
        """
        if self._pool.is_exhausted:
            return None
        if number != len(self._pool.order):
            raise ValueError(f"trial: found {number}, allowed {len(self._pool.order)}")
        trial = self.study.ask(self._method.propose(number))
        row = self._pool.order[number]
        self._pending[row] = trial
        return row

    def row_of(self, number: int) -> int:
        """Returns the index of the configuration that was proposed as trial ``number``."""
        return self._pool.order[number]

    def tell(self, row: int, value: float | None) -> None:
        """Stores the outcome of a pending configuration: ``value`` in seconds, None for a failed trial.

        ``row`` is its index in the feasible set. Raises ValueError for one that is not pending.
        """
        trial = self._pending.pop(row, None)
        if trial is None:
            raise ValueError(f"row {row} is not pending")
        self.study.tell(trial, value, state=optuna.trial.TrialState.FAIL if value is None else None)

    def replay(self, number: int, row: int) -> None:
        """Repeats a stored proposal: makes configuration ``row`` trial ``number``, as if ``ask`` chose it.

        Raises ValueError for a configuration outside of the set or proposed before, and for a wrong number.
        """
        self._pool.put_first(row)
        self.ask(number)


def quiet_study(
    sampler: BaseSampler | None, storage: BaseStorage | None = None, name: str | None = None
) -> optuna.Study:
    """Returns a new Optuna study that minimizes; Optuna's log line about it is suppressed.

    ``storage`` None: the study is kept in memory; ``name`` None: Optuna makes a name.
    """
    with quietly():
        return optuna.create_study(sampler=sampler, storage=storage, study_name=name)


@contextmanager
def quietly() -> Iterator[None]:
    """Context manager: suppresses Optuna's log messages below a warning, then restores its verbosity."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(verbosity)
