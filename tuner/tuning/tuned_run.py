"""The result of a run."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuner.analysis.selected_result import SelectedResult, select_result
from tuner.core.runs import Counts, Run, StoredTrial, TrialQuery
from tuner.core.timing_round import StoredRound

if TYPE_CHECKING:
    from tuner.db.store import Store


@dataclass(frozen=True, repr=False)
class TunedRun:
    """A run, the counts of its trials, and its selected result."""

    run: Run
    counts: Counts
    answer: SelectedResult | None  # None: no candidate has a time
    seconds: float  # of all sessions
    rounds: tuple[StoredRound, ...] = ()  # of timing, oldest first

    def __repr__(self) -> str:
        """Returns one line: what was tuned, status, counts, and the best trial."""
        run, counts = self.run, self.counts
        return (
            f"TunedRun({run.id}: {run.settings.problem.key}, {run.settings.target}, {run.status}, "
            f"{counts.proposed} trials, {counts.failed} failed; best {self.best!r})"
        )

    @property
    def best(self) -> StoredTrial | None:
        """Returns the best trial, which is the one to use; None where no candidate has a time."""
        return None if self.answer is None else self.answer.best

    @property
    def has_worked(self) -> bool:
        """Returns whether any candidate was correct: timed, or verified on an untimed target."""
        return self.answer is not None or self.counts.verified > 0

    @property
    def lost(self) -> str:
        """Returns why the latest round of timing gave no times; '' where it did, or no round was tried."""
        latest = self.rounds[-1].quality if self.rounds else None
        return latest.unreliable if latest is not None and latest.is_lost else ""

    @property
    def is_interrupted(self) -> bool:
        """Returns whether the run was interrupted, and so can be resumed."""
        return self.run.status == "interrupted"


def tuned_run(store: "Store", run_id: int) -> TunedRun:
    """Returns a stored run with its selected result."""
    run = store.run(run_id)
    answer = select_result(store.trials(TrialQuery(run=run_id, sort="number")), run.noise)
    return TunedRun(run, store.counts(run_id), answer, run.seconds or 0.0, store.rounds(run_id))
