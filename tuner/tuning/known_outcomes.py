"""Outcomes that a run reuses: of earlier runs, of early-stopped candidates, of the run's earlier trials."""

from dataclasses import replace
from typing import TYPE_CHECKING

from tuner.core.errors import REPEATABLE, Failure
from tuner.core.record import Measurement, Record
from tuner.core.runs import ReuseKey, Run, TrialQuery


class OutcomesByCode:
    """Records of trials by the hashes of script and code; of several the latest."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}

    def add(self, trial: int, record: Record) -> None:
        """Adds the record of a trial; ``reused_from`` names the trial that was measured."""
        # without the program, which the store has
        source = replace(record, reused_from=record.reused_from or trial, program=None)
        self._records |= {record.script_sha256: source, record.artifact_sha256: source}

    def find(self, sha256: str) -> Record | None:
        """Returns the record of a script or of code by hash; None where it is unknown or the hash is ""."""
        return self._records.get(sha256) if sha256 else None


if TYPE_CHECKING:
    from tuner.db.store import Store


class KnownOutcomes:
    """Recalls outcomes by script or code; a fresh run recalls only the outcomes of its own trials."""

    def __init__(self, store: "Store", run: Run) -> None:
        settings = run.settings
        self._store = store
        self._is_fresh = settings.fresh
        self._key = ReuseKey(
            settings.problem, settings.target, settings.threads, run.machine.name, run.compiler.fingerprint
        )
        self._early_stopped = OutcomesByCode() if settings.fresh else early_stopped_before(store, run)
        self._own = OutcomesByCode()

    def add(self, trial: int, record: Record) -> None:
        """Adds the outcome of a trial of the run."""
        if is_cut_off(record):
            self._early_stopped.add(trial, record)
        elif is_lasting(record) and record.reused_from is None:
            self._own.add(trial, record)

    def recall(self, script_sha256: str, artifact_sha256: str) -> Record | None:
        """Returns the record of an earlier trial with the same script or code; None if there is none.

        One of both hashes is "".
        """
        either = script_sha256 or artifact_sha256
        early_stopped_at = self._early_stopped.find(either)
        if early_stopped_at is not None or self._is_fresh:
            return early_stopped_at or self._own.find(either)
        known = self._store.recall(self._key, script_sha256 or None, artifact_sha256 or None)
        if known is None:
            return None
        return replace(known.record, reused_from=known.record.reused_from or known.id)


def early_stopped_before(store: "Store", run: Run) -> OutcomesByCode:
    """Returns early-stopped outcomes of earlier runs with the same problem, compiler and machine."""
    settings, found = run.settings, OutcomesByCode()
    query = TrialQuery.measured(settings.problem, settings.target, run.machine, settings.threads)
    is_same: dict[int, bool] = {}
    for trial in store.trials(query):
        if trial.run not in is_same:
            is_same[trial.run] = store.run(trial.run).compiler == run.compiler
        if is_same[trial.run] and is_cut_off(trial.record):
            found.add(trial.id, trial.record)
    return found


def is_cut_off(record: Record) -> bool:
    """Returns whether a timing was early-stopped: no result, but reason enough not to time the code again."""
    return isinstance(record.outcome, Measurement) and not record.outcome.is_complete


def is_lasting(record: Record) -> bool:
    """Returns whether equal code would have the same outcome again, whatever the machine's condition."""
    if isinstance(record.outcome, Failure):
        return record.outcome.stage in REPEATABLE
    return not is_cut_off(record)
