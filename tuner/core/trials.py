"""A trial of a run as the results database returns it: its outcome, its times, its script."""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass

from tuner.core.candidate import Candidate, Value
from tuner.core.errors import Failure, UsageError
from tuner.core.machine import Machine
from tuner.core.records import CompileSeconds, Measurement, Record
from tuner.core.reliability import Reliability, unknown
from tuner.core.serialization import seconds_text

NOT_TIMED = unknown("not timed")
REPLAYED = unknown("the time of a recording, nothing ran here")


@dataclass(frozen=True, repr=False)
class StoredTrial:
    """A trial with its outcome, as read from the results database, with the machine it ran on."""

    id: int
    run: int
    number: int
    row: int  # index of the candidate in the run's feasible set
    record: Record
    final: Measurement | None  # of the final re-measurement, interleaved with other trials
    stored_script: str  # as stored, altered or not: ``script_text`` is what may be run
    created: datetime.datetime  # UTC, when it was proposed
    machine: Machine
    threads: int
    stale: str = ""  # why the time no longer holds, from an audit; "" where it holds
    reliability: Reliability = NOT_TIMED  # of the time that counts
    compile_seconds: CompileSeconds | None = None  # seconds per pass; None: not measured
    is_altered: bool = False  # the stored script is not the one that the trial ran

    def __repr__(self) -> str:
        """Returns one line without script and samples: problem, target, candidate, status and time."""
        problem = f"{self.record.problem.key}, {self.record.target.text}"
        outcome = self.record.status
        if self.early_stopped is not None:
            outcome += f" > {self.early_stopped.least_s:.4g} s, early-stopped"
        elif self.best_s is not None:
            outcome += f" {self.best_s:.4g} s, {self.reliability.word}"
        return f"StoredTrial({self.id} of run {self.run}: {problem}: {self.record.candidate.text}, {outcome})"

    @property
    def summary(self) -> str:
        """Returns the origin of a kernel of this trial: 'trial 3 of run 1, 2.9 us, reliable'."""
        if self.best_s is None:
            time = "not timed"
        else:
            time = f"{seconds_text(self.best_s)}, {self.reliability.word}"
        return f"trial {self.id} of run {self.run}, {time}"

    @property
    def strategy(self) -> str:
        """Returns the name of the candidate's strategy."""
        return self.record.candidate.strategy

    @property
    def knobs(self) -> dict[str, Value]:
        """Returns the values of the candidate's knobs by the names of the knobs."""
        return dict(self.record.candidate.choices)

    @property
    def script_text(self) -> str:
        """Returns the bound script; "" where binding failed.

        Raises UsageError if the stored text was altered.
        """
        require_unaltered(self)
        return self.stored_script

    @property
    def script(self) -> str:
        """Returns the bound transform script as text; "" for a replay, and where binding failed.

        Raises UsageError if the stored text was altered.
        """
        if self.record.target.has_machine:
            return self.script_text
        return ""

    @property
    def time_s(self) -> float | None:
        """Returns the median seconds per call, None if the trial was not timed.

        Another name of ``best_s``.
        """
        return self.best_s

    @property
    def early_stopped(self) -> Measurement | None:
        """Returns the measurement of an early-stopped trial that was not timed again; None for other trials.

        The kernel was clearly slower than the best trial of its run so far, so only a few samples were taken.
        """
        outcome = self.record.outcome
        if self.final is not None or not isinstance(outcome, Measurement) or outcome.is_complete:
            return None
        return outcome

    @property
    def best_s(self) -> float | None:
        """Returns the median seconds per call that count for this trial; None if it was not timed.

        They are of the final re-measurement, else of the first measurement, which may be early-stopped.
        """
        if self.final is None:
            return self.record.median_s
        return self.final.median_s


def require_unaltered(trial: StoredTrial) -> None:
    """Raises UsageError if the stored script of ``trial`` is not the one that the trial ran."""
    if trial.is_altered:
        raise UsageError(
            f"trial {trial.id}: its stored script was altered: the text does not match its hash "
            f"{trial.record.script_sha256[:12]}",
            "restore the database from a backup, or tune the problem again",
        )


@dataclass(frozen=True)
class AlikeFailures:
    """The ids of trials that failed at one stage for reasons that differ only in numbers."""

    failure: Failure  # of the first of these trials
    trials: tuple[int, ...]  # ids


def alike_failures(trials: Iterable[StoredTrial]) -> tuple[AlikeFailures, ...]:
    """Returns the failed ones of ``trials``, grouped by stage and by reason without its numbers.

    The largest group first.
    """
    alike: dict[Failure, list[tuple[Failure, int]]] = {}
    for trial in trials:
        if isinstance(trial.record.outcome, Failure):
            failure = trial.record.outcome
            alike.setdefault(failure.without_numbers, []).append((failure, trial.id))
    frequent = sorted(alike.values(), key=len, reverse=True)
    return tuple(AlikeFailures(group[0][0], tuple(trial for _, trial in group)) for group in frequent)


@dataclass(frozen=True)
class Proposal:
    """A candidate that a run has proposed as trial ``number``, with its outcome if there is one."""

    id: int  # of the trial, known when the candidate is proposed
    number: int
    row: int  # index of the candidate in the run's feasible set
    candidate: Candidate
    trial: StoredTrial | None  # None: no outcome: its session was killed, or is still running
