"""The state of a search: ids and counts of its trials, and the best record so far."""

from dataclasses import replace

from tuner.core.errors import Stage
from tuner.core.records import Record
from tuner.core.runs import Counts, Proposal

EVALUATING = tuple(stage.value for stage in (Stage.LOAD, Stage.RUN, Stage.VERIFY, Stage.MEASURE))


class Progress:
    """The state of one session's search: ids and counts of its trials, and the best record so far."""

    def __init__(self, stored: tuple[Proposal, ...]) -> None:
        self._known = {each.number: each.trial is not None for each in stored}
        self.trial_ids = {each.number: each.id for each in stored}  # by trial number
        self.counts = Counts(proposed=len(stored))
        self.best: Record | None = None
        self.ended = 0  # trials that have ended in this session, or in earlier ones
        self.evaluated_s = 0.0  # of this session: the measuring worker's time for its trials

    def propose(self, number: int, trial_id: int) -> None:
        """Counts a proposal: trial ``number`` of the run, which is stored with the id ``trial_id``."""
        self.trial_ids[number] = trial_id
        self.counts = replace(self.counts, proposed=number + 1)

    def take(self, number: int, record: Record) -> bool:
        """Counts the outcome of trial ``number``; returns False if an earlier session stored it."""
        if is_faster(record, self.best):
            self.best = record
        self.counts = with_outcome(self.counts, record)
        is_new = not self._known.get(number, False)
        self.ended += 1
        self.evaluated_s += evaluated_s(record) if is_new else 0.0
        return is_new


def with_outcome(counts: Counts, record: Record) -> Counts:
    """Returns ``counts`` with the outcome ``record`` counted by its status, and as reused if it is."""
    return Counts(
        counts.proposed,
        counts.measured + (record.status == "measured"),
        counts.verified + (record.status == "verified" and not record.is_compiled_only),
        counts.failed + (record.status == "failed"),
        counts.reused + (record.reused_from is not None),
        counts.compiled + record.is_compiled_only,
    )


def evaluated_s(record: Record) -> float:
    """Returns the seconds that were spent to load, run, verify and time the candidate of a record."""
    return sum(seconds for stage, seconds in record.stage_s if stage in EVALUATING)


def is_faster(record: Record, best: Record | None) -> bool:
    """Returns whether ``record`` has a time, and a lesser time than ``best`` where ``best`` has one."""
    if record.median_s is None or best is None or best.median_s is None:
        return record.median_s is not None
    return record.median_s < best.median_s
