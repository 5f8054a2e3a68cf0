"""Outcomes that a run need not find out again: of earlier runs, of hopeless candidates, of its own trials."""

from dataclasses import replace
from typing import TYPE_CHECKING

from tuner.core.errors import REPEATABLE, Failure
from tuner.core.record import Measurement, Record
from tuner.core.runs import ReuseKey, Run
from tuner.tuning.hopeless import Hopeless, hopeless_before

if TYPE_CHECKING:
    from tuner.db.store import Store


class KnownOutcomes:
    """Recalls by script or code; a fresh run knows what its own trials became, and nothing else."""

    def __init__(self, store: "Store", run: Run) -> None:
        settings = run.settings
        self._store = store
        self._is_fresh = settings.fresh
        self._key = ReuseKey(
            settings.problem, settings.target, settings.threads, run.machine.name, run.compiler.fingerprint
        )
        self._hopeless = Hopeless() if settings.fresh else hopeless_before(store, run)
        self._own = OwnRecords()

    def add(self, trial: int, record: Record) -> None:
        """Takes in what a trial of the run became."""
        self._hopeless.add(trial, record)
        self._own.add(trial, record)

    def recall(self, script_sha256: str, artifact_sha256: str) -> Record | None:
        """Returns what became of the same script or code in an earlier trial; None if that is not known.

        One of the hashes is "".
        """
        either = script_sha256 or artifact_sha256
        hopeless = self._hopeless.find(either)
        if hopeless is not None or self._is_fresh:
            return hopeless or self._own.find(either)
        known = self._store.recall(self._key, script_sha256 or None, artifact_sha256 or None)
        if known is None:
            return None
        return replace(known.record, reused_from=known.record.reused_from or known.id)


class OwnRecords:
    """Records whose outcome holds for equal code as well; the latest counts."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}

    def add(self, trial: int, record: Record) -> None:
        """Remembers the record of a trial unless it is reused itself, or may be due to the machine."""
        if record.reused_from is not None or not _holds(record):
            return
        source = replace(record, reused_from=trial, program=None)  # the store has the program
        self._records |= {record.script_sha256: source, record.artifact_sha256: source}

    def find(self, sha256: str) -> Record | None:
        """Returns the record of a script or of code, with the trial that it is from."""
        return self._records.get(sha256) if sha256 else None


def _holds(record: Record) -> bool:
    match record.outcome:
        case Measurement(is_complete=is_complete):
            return is_complete
        case Failure(stage=stage):
            return stage in REPEATABLE
    return True
