"""What the trials of a run became, by script and by code: a fresh run repeats nothing of its own."""

from dataclasses import replace

from tuner.core.errors import REPEATABLE, Failure
from tuner.core.record import Measurement, Record


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
