"""The state of a search: ids and counts of its trials, its best record, seconds of this session's trials."""

import itertools
from dataclasses import dataclass, replace

from tuner.core.errors import Failure, Stage
from tuner.core.queries import Counts
from tuner.core.records import Measurement, Record
from tuner.core.trials import Proposal
from tuner.runtime.timing import sample_s

ALIKE_LIMIT = 10  # equal failures, and nothing else, that end the search of one script of a user
EVALUATING = tuple(stage.value for stage in (Stage.LOAD, Stage.RUN, Stage.VERIFY, Stage.MEASURE))


@dataclass(frozen=True)
class TrialPace:
    """The seconds in which a trial was compiled, loaded and timed, and its number of samples."""

    compiled_s: float
    loaded_s: float
    timing_s: float  # from the first call to the last
    samples: int
    samples_s: float  # of all samples, with the untimed calls before them

    @classmethod
    def of(cls, record: Record, taken: Measurement) -> "TrialPace":
        stage_s = dict(record.stage_s)
        return cls(
            compiled_s=stage_s.get("transform", 0.0) + stage_s.get("lower", 0.0),
            loaded_s=stage_s.get(Stage.LOAD.value, 0.0),
            timing_s=stage_s.get(Stage.MEASURE.value, 0.0),
            samples=len(taken.samples_s),
            samples_s=sum(map(sample_s, taken.samples_s, itertools.repeat(taken.inner_calls))),
        )


class Progress:
    """The state of one session's search: ids and counts of its trials, and the best record so far."""

    def __init__(self, stored: tuple[Proposal, ...]) -> None:
        self._known = {proposal.number: proposal.trial is not None for proposal in stored}
        self.trial_ids = {proposal.number: proposal.id for proposal in stored}  # by trial number
        self.counts = Counts(proposed=len(stored))
        self.best: Record | None = None
        self._first_outcome: object = None  # of the first trial that ended
        self._alike = 0  # trials from the first on that ended with this outcome, a failure
        self._first_s = 0.0  # seconds of the run at the first outcome of this session
        self._last_s = 0.0  # and at the last one
        self.ended = 0  # trials that have ended in this session, or in earlier ones
        self.evaluated = 0  # trials that have ended in this session
        self.evaluated_s = 0.0  # the measuring worker's time for these
        self.paces: list[TrialPace] = []  # of this session's trials with a time of their own

    @property
    def best_s(self) -> float | None:
        """Returns the seconds per call of the best record; None if no record has a time."""
        if self.best is None:
            return None
        return self.best.median_s

    @property
    def pending(self) -> int:
        """Returns the number of trials that are proposed and have not ended."""
        return self.counts.proposed - self.ended

    @property
    def between_outcomes_s(self) -> float:
        """Returns the seconds of the run from the first outcome of this session to the last one."""
        return self._last_s - self._first_s

    @property
    def same_failure(self) -> Failure | None:
        """Returns the failure with which all ended trials have failed.

        None if fewer than ALIKE_LIMIT trials have ended, or if not all of them failed alike.
        """
        first = self._first_outcome
        if self._alike < max(ALIKE_LIMIT, self.ended) or not isinstance(first, Failure):
            return None
        return first

    def propose(self, number: int, trial_id: int) -> None:
        """Counts a proposal: trial ``number`` of the run, which is stored with the id ``trial_id``."""
        self.trial_ids[number] = trial_id
        self.counts = replace(self.counts, proposed=number + 1)

    def take(self, number: int, record: Record, elapsed_s: float = 0.0) -> bool:
        """Counts the outcome of trial ``number``, ``elapsed_s`` seconds after the run began.

        Returns False if an earlier session has stored it already.
        """
        if is_faster(record, self.best):
            self.best = record
        self.counts = with_outcome(self.counts, record)
        is_new = not self._known.get(number, False)
        if self.ended == 0:
            self._first_outcome = record.outcome
        if self._alike == self.ended and isinstance(record.outcome, Failure):
            self._alike += record.outcome == self._first_outcome
        self.ended += 1
        if is_new:
            self._last_s = elapsed_s
            if self.evaluated == 0:
                self._first_s = elapsed_s
            self.evaluated += 1
            self.evaluated_s += evaluated_s(record)
            if isinstance(record.outcome, Measurement) and record.reused_from is None:
                self.paces.append(TrialPace.of(record, record.outcome))
        return is_new


def with_outcome(counts: Counts, record: Record) -> Counts:
    """Returns ``counts`` with the outcome ``record`` counted by its status and, if reused, as reused."""
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
    """Returns whether ``record`` has a time that is less than the time of ``best``.

    A record with a time is also faster than None and than a record without a time.
    """
    if record.median_s is None or best is None or best.median_s is None:
        return record.median_s is not None
    return record.median_s < best.median_s
