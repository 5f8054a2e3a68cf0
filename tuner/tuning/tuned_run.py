"""A run with its selected result."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuner.analysis.selected_result import SelectedResult, select_result
from tuner.core.runs import Counts, Run, StoredTrial, TrialQuery
from tuner.core.timing_round import StoredRound

if TYPE_CHECKING:
    from tuner.db.store import Store


@dataclass(frozen=True, repr=False)
class TunedRun:
    """A run, the numbers of its trials by outcome, and its selected result."""

    run: Run
    counts: Counts
    selected: SelectedResult | None  # None: no candidate has a time
    seconds: float  # wall time of all sessions
    rounds: tuple[StoredRound, ...] = ()  # timing rounds, the earliest first

    def __repr__(self) -> str:
        """Returns one line: problem, target, status, numbers of trials, best trial."""
        run, counts = self.run, self.counts
        return (
            f"TunedRun({run.id}: {run.settings.problem.key}, {run.settings.target}, {run.status}, "
            f"{counts.proposed} trials, {counts.failed} failed; best {self.best!r})"
        )

    @property
    def best(self) -> StoredTrial | None:
        """Returns the selected trial, the one to use; None where no candidate has a time."""
        return None if self.selected is None else self.selected.best

    @property
    def has_worked(self) -> bool:
        """True if a candidate was correct: timed, or verified on a target that times nothing."""
        return self.selected is not None or self.counts.verified > 0

    @property
    def lost(self) -> str:
        """Returns why the latest timing round gave no times; '' where it gave times, or there was none."""
        latest = self.rounds[-1].quality if self.rounds else None
        return latest.unreliable if latest is not None and latest.is_lost else ""

    @property
    def is_interrupted(self) -> bool:
        """True if the run was interrupted: ``tuner.resume`` goes on with it."""
        return self.run.status == "interrupted"


def tuned_run(store: "Store", run_id: int) -> TunedRun:
    """Returns a stored run with its selected result. Raises UsageError for an unknown run."""
    run = store.run(run_id)
    selected = select_result(store.trials(TrialQuery(run=run_id, sort="number")), run.noise)
    return TunedRun(run, store.counts(run_id), selected, run.seconds or 0.0, store.rounds(run_id))
