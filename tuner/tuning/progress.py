"""What one session of a run keeps in mind between trials."""

from dataclasses import replace

from tuner.core.errors import Stage
from tuner.core.record import Record
from tuner.core.runs import Counts, Proposal

EVALUATING = tuple(stage.value for stage in (Stage.LOAD, Stage.RUN, Stage.VERIFY, Stage.MEASURE))


class Progress:
    """Numbers, outcomes and the best of the trials that went through the loop."""

    def __init__(self, stored: tuple[Proposal, ...]) -> None:
        """Takes the proposals of earlier sessions, by number."""
        self._known = {each.number: each.trial is not None for each in stored}
        self.trial_ids = {each.number: each.id for each in stored}  # by trial number
        self.counts = Counts(proposed=len(stored))
        self.best: Record | None = None
        self.evaluated_s = 0.0  # of this session: the measuring worker's time for its trials

    def propose(self, number: int, trial_id: int) -> None:
        """Takes in a proposal."""
        self.trial_ids[number] = trial_id
        self.counts = replace(self.counts, proposed=number + 1)

    def take(self, number: int, record: Record) -> bool:
        """Takes in an outcome; tells whether it is a new one, not of an earlier session."""
        if is_faster(record, self.best):
            self.best = record
        self.counts = with_outcome(self.counts, record)
        is_new = not self._known.get(number, False)
        self.evaluated_s += evaluated_s(record) if is_new else 0.0
        return is_new


def with_outcome(counts: Counts, record: Record) -> Counts:
    """Returns the counts with one more outcome."""
    return Counts(
        counts.proposed,
        counts.measured + (record.status == "measured"),
        counts.verified + (record.status == "verified"),
        counts.failed + (record.status == "failed"),
        counts.reused + (record.reused_from is not None),
    )


def evaluated_s(record: Record) -> float:
    """Returns the seconds that the measuring worker had a candidate."""
    return sum(seconds for stage, seconds in record.stage_s if stage in EVALUATING)


def is_faster(record: Record, best: Record | None) -> bool:
    """Says whether a measured record beats the best so far."""
    if record.median_s is None or best is None or best.median_s is None:
        return record.median_s is not None
    return record.median_s < best.median_s
