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
    """A stored run with the numbers of its trials by outcome, its selected result and its timing rounds."""

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
        """Returns the trial to use, from the selected result; None where no candidate has a time."""
        return None if self.selected is None else self.selected.best

    @property
    def has_worked(self) -> bool:
        """True if any candidate of the run was correct: timed, or verified on a target that times nothing."""
        return self.selected is not None or self.counts.verified + self.counts.compiled > 0

    @property
    def lost(self) -> str:
        """Returns why the run's latest timing round gave no times; '' if it gave times or there is none."""
        latest = self.rounds[-1].quality if self.rounds else None
        return latest.unreliable if latest is not None and latest.is_lost else ""

    @property
    def is_interrupted(self) -> bool:
        """True if the run was interrupted before its end: ``tuner.resume`` continues it."""
        return self.run.status == "interrupted"


def tuned_run(store: "Store", run_id: int) -> TunedRun:
    """Returns the stored run ``run_id`` with trial counts, selected result and timing rounds.

    Raises UsageError for an unknown run.
    """
    run = store.run(run_id)
    selected = select_result(store.trials(TrialQuery(run=run_id, sort="number")), run.noise)
    return TunedRun(run, store.counts(run_id), selected, run.seconds or 0.0, store.rounds(run_id))
