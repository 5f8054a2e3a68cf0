"""Another limit for a stored run: it goes on as if it had been started with that limit."""

from dataclasses import dataclass, replace

from tuner.core.errors import UsageError
from tuner.core.runs import Proposal, Run, RunSettings
from tuner.tuning.run_request import require_budget, require_number


@dataclass(frozen=True)
class RunLimit:
    """When a search ends: after so many trials or so many seconds, whichever is first; None: no limit."""

    trials: int | None = None
    budget_s: float | None = None

    def __post_init__(self) -> None:
        """Raises UsageError for a number or a time that is none."""
        require_number("trials", self.trials, 1)
        require_budget(self.budget_s)

    @classmethod
    def of(cls, trials: int | None, budget_s: float | None) -> "RunLimit | None":
        """Returns the limit that is asked for; None where none is. Raises UsageError."""
        return None if trials is None and budget_s is None else cls(trials, budget_s)

    def applied(self, settings: RunSettings) -> RunSettings:
        """Returns settings with this limit in place of theirs."""
        return replace(settings, trials=self.trials, budget_s=self.budget_s)


def searched_s(run: Run) -> float:
    """Returns the seconds of a budget that a run has used; a finished run's final re-measurement is none."""
    return run.search_s if run.status == "done" and run.search_s is not None else run.seconds or 0.0


def require_longer(run: Run, stored: tuple[Proposal, ...], limit: RunLimit) -> None:
    """Raises UsageError for a limit that the run has passed, and for a run that lacks trials."""
    if [each.number for each in stored] != [*range(len(stored))]:
        raise UsageError(f"run {run.id}: some of its trials were pruned; start a new run")
    if limit.trials is not None and limit.trials < len(stored):
        raise UsageError(f"trials: found {limit.trials}, but run {run.id} has {len(stored)} trials already")
    used_s = searched_s(run)
    if limit.budget_s is not None and limit.budget_s < used_s:
        raise UsageError(
            f"budget: found {limit.budget_s:g} s, but run {run.id} has searched for {used_s:.1f} s already"
        )
