"""What trials became, by script and by code: what need not be found out again."""

from dataclasses import replace

from tuner.core.errors import REPEATABLE, Failure
from tuner.core.record import Measurement, Record


class OutcomesByCode:
    """Records by the hashes of their script and of their code; the latest counts."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}

    def add(self, trial: int, record: Record) -> None:
        """Remembers the record of a trial, as one of the trial whose outcome it is."""
        # the store has the program
        source = replace(record, reused_from=record.reused_from or trial, program=None)
        self._records |= {record.script_sha256: source, record.artifact_sha256: source}

    def find(self, sha256: str) -> Record | None:
        """Returns the record of a script or of code, with the trial that it is from."""
        return self._records.get(sha256) if sha256 else None


def is_cut_off(record: Record) -> bool:
    """Tells whether timing was stopped early: too coarse as a result, enough not to try the code again."""
    return isinstance(record.outcome, Measurement) and not record.outcome.is_complete


def is_lasting(record: Record) -> bool:
    """Tells whether equal code would become the same again: what may be due to the machine does not."""
    if isinstance(record.outcome, Failure):
        return record.outcome.stage in REPEATABLE
    return not is_cut_off(record)
