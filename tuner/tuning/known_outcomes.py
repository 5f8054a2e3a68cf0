"""Outcomes that a run reuses: of earlier runs, of early-stopped candidates, of the run's earlier trials."""

from dataclasses import replace
from typing import TYPE_CHECKING

from tuner.core.errors import REPEATABLE, Failure
from tuner.core.record import Measurement, Record, Verdict
from tuner.core.runs import ReuseKey, Run, TrialQuery


class OutcomesByCode:
    """Finds records of trials by the hash of their script or their compiled code; the latest added wins."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}

    def add(self, trial: int, record: Record) -> None:
        """Adds the record of trial ``trial`` (an id) under the hashes of its script and of its code.

        The kept copy has the id in ``reused_from``, or the id of the trial that this trial reused; it has no
        program.
        """
        # without the program, which the store has
        source = replace(record, reused_from=record.reused_from or trial, program=None)
        self._records |= {record.script_sha256: source, record.artifact_sha256: source}

    def find(self, sha256: str) -> Record | None:
        """Returns the record by the SHA-256 of its script or code; None where the hash is unknown or ""."""
        return self._records.get(sha256) if sha256 else None


if TYPE_CHECKING:
    from tuner.db.store import Store


class KnownOutcomes:
    """The outcomes that a run reuses for candidates with the same script or the same compiled code.

    They are those of the database and of the run itself; a fresh run reuses only outcomes of its trials.
    """

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
        """Adds the outcome of trial ``trial`` (an id) of this run, so that equal code can reuse it.

        Failures that may not repeat, such as crashes and timeouts, are left out.
        """
        if is_early_stopped(record):
            self._early_stopped.add(trial, record)
        elif is_reusable(record) and record.reused_from is None:
            self._own.add(trial, record)

    def recall(self, script_sha256: str, artifact_sha256: str) -> Record | None:
        """Returns the record of an earlier trial with the same script or code; None if there is none.

        Give one SHA-256 and "" for the other. ``reused_from`` of the record is the id of the trial that was
        measured.
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
    """Returns the early-stopped outcomes that are stored for the problem and the target of ``run``.

    The number of threads, the machine and the compiler are the same as well.
    """
    settings, found = run.settings, OutcomesByCode()
    query = TrialQuery.measured(settings.problem, settings.target, run.machine, settings.threads)
    is_same: dict[int, bool] = {}
    for trial in store.trials(query):
        if trial.run not in is_same:
            is_same[trial.run] = store.run(trial.run).compiler == run.compiler
        if is_same[trial.run] and is_early_stopped(trial.record):
            found.add(trial.id, trial.record)
    return found


def is_early_stopped(record: Record) -> bool:
    """Returns True for an early-stopped timing, which is no result but shows that the code is too slow."""
    return isinstance(record.outcome, Measurement) and not record.outcome.is_complete


def is_reusable(record: Record) -> bool:
    """Returns whether equal code can reuse the outcome, whatever the machine's condition was.

    True for a complete measurement, a verdict, and a failure at stage BIND, COMPILE, RESOURCES or VERIFY;
    False for an early-stopped timing, for a verdict of 0 elements, which another machine may improve on, and
    for other failures, which the machine may have caused.
    """
    if isinstance(record.outcome, Verdict):
        return record.outcome.elements > 0
    if isinstance(record.outcome, Failure):
        return record.outcome.stage in REPEATABLE
    return not is_early_stopped(record)
