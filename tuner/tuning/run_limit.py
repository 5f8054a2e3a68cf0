"""A new limit for a stored run, which continues as if it had been started with this limit."""

from dataclasses import dataclass, replace

from tuner.core.errors import UsageError
from tuner.core.runs import Proposal, Run, RunSettings
from tuner.tuning.run_request import require_budget, require_number


@dataclass(frozen=True)
class RunLimit:
    """The limit of a run's search: so many trials or seconds, whichever is first; None: no limit."""

    trials: int | None = None
    budget_s: float | None = None

    def __post_init__(self) -> None:
        """Raises UsageError unless ``trials`` is a positive integer and ``budget_s`` a positive time."""
        require_number("trials", self.trials, 1)
        require_budget(self.budget_s)

    @classmethod
    def of(cls, trials: int | None, budget_s: float | None) -> "RunLimit | None":
        """Returns the limit; None if both arguments are None. Raises UsageError for an invalid argument."""
        return None if trials is None and budget_s is None else cls(trials, budget_s)

    def applied(self, settings: RunSettings) -> RunSettings:
        """Returns ``settings`` with this limit in place of their limits of trials and time."""
        return replace(settings, trials=self.trials, budget_s=self.budget_s)


def searched_s(run: Run) -> float:
    """Returns the seconds of its time budget that a stored run has used, over all sessions.

    The final re-measurement of a finished run does not count.
    """
    return run.search_s if run.status == "done" and run.search_s is not None else run.seconds or 0.0


def require_longer(run: Run, stored: tuple[Proposal, ...], limit: RunLimit) -> None:
    """Raises UsageError for a run that exceeds ``limit`` already, in trials or time, or has pruned trials.

    ``stored``: the run's proposals, by number.
    """
    if [each.number for each in stored] != [*range(len(stored))]:
        raise UsageError(f"run {run.id}: some of its trials were pruned; start a new run")
    if limit.trials is not None and limit.trials < len(stored):
        raise UsageError(f"trials: found {limit.trials}, but run {run.id} has {len(stored)} trials already")
    used_s = searched_s(run)
    if limit.budget_s is not None and limit.budget_s < used_s:
        raise UsageError(
            f"budget: found {limit.budget_s:g} s, but run {run.id} has searched for {used_s:.1f} s already"
        )
