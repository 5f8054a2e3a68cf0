"""Past trials as a tuple that converts to a pandas.DataFrame, where pandas is installed."""

import importlib
from typing import Any

from tuner.core.errors import Failure, UsageError
from tuner.core.runs import StoredTrial

KNOB = "knob."  # prefix of a knob's column: a knob may have the name of another column


class Trials(tuple[StoredTrial, ...]):
    """A tuple of stored trials with outcomes, convertible to tables."""

    def to_frame(self) -> Any:
        """Returns the trials as a pandas.DataFrame: one line per trial, one column ``knob.NAME`` per knob.

        Returns:
            The table; its columns are the keys of the dictionaries that ``rows()`` returns.

        Raises:
            UsageError: pandas is not installed.

        Example:
            >>> import tuner
            >>> trials = tuner.history(run=1)
            >>> len(trials.to_frame()) == len(trials)
            True
        """
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise UsageError("missing dependency 'pandas'", "pip install pandas") from error
        return pandas.DataFrame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """Returns one dictionary per trial: what was tried, where, and the outcome.

        Returns:
            Dictionaries with among others op, shape, target, machine, strategy, status, ``median_s`` in
            seconds per call (None: not timed), and ``knob.NAME`` for each knob that the trial's strategy has.

        Raises:
            Nothing: each dictionary has all keys, apart from those of knobs.

        Example:
            >>> import tuner
            >>> tuner.history(run=1).rows()[0]["shape"]
            '64x64x64'
        """
        return [_row(trial) for trial in self]


def _row(trial: StoredTrial) -> dict[str, Any]:
    record = trial.record
    problem = record.problem
    failure = record.outcome if isinstance(record.outcome, Failure) else None
    return {
        "trial": trial.id,
        "run": trial.run,
        "number": trial.number,
        "op": problem.operation,
        "shape": problem.shape,
        "dtype": problem.dtype,
        "output": problem.result_dtype,
        "layout": problem.layout,
        "epilogue": problem.epilogue,
        "align": problem.align,
        "cache": problem.cache,
        "target": record.target.text,
        "threads": trial.threads,
        "machine": trial.machine.name,
        "strategy": trial.strategy,
        "status": record.status,
        "stage": failure and failure.stage.value,
        "reason": failure and failure.reason,
        "median_s": trial.time_s,
        "early_stopped_after": trial.early_stopped and len(trial.early_stopped.samples_s),  # samples
        "reliability": trial.reliability.text,
        "unreliable": trial.unreliable or None,
        "stale": trial.stale or None,
        "created": trial.created,
        **{f"{KNOB}{name}": value for name, value in trial.knobs.items()},
    }
