"""A group of runs with the selected result of each problem."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuner.core.problem import Problem
from tuner.core.reliability import Reliability, reliability_of_all
from tuner.core.run_groups import RunGroup
from tuner.core.runs import StoredTrial
from tuner.tuning.tuned_run import TunedRun, tuned_run

if TYPE_CHECKING:
    from tuner.db.store import Store


@dataclass(frozen=True, repr=False)
class TunedGroup:
    """A stored group of runs, one per problem, each with its counts and its selected result."""

    group: RunGroup
    runs: tuple[TunedRun, ...]  # in the order of the problems

    def __repr__(self) -> str:
        """Returns one line: number of problems, status, trials, total time of one pass."""
        total_s = self.total_s
        time = (
            "no time of every problem"
            if total_s is None
            else f"{total_s:.4g} s in all, {self.reliability.word}"
        )
        return (
            f"TunedGroup({self.group.id}: {len(self.runs)} problems, {self.group.status}, "
            f"{self.trials} trials; {time})"
        )

    @property
    def trials(self) -> int:
        """Returns the number of trials of all problems together."""
        return sum(each.counts.proposed for each in self.runs)

    @property
    def best(self) -> tuple[StoredTrial | None, ...]:
        """Returns the best trial of each problem, in order; None where no candidate has a time."""
        return tuple(each.best for each in self.runs)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Returns the problems in order."""
        return tuple(each.run.settings.problem for each in self.runs)

    @property
    def counts(self) -> tuple[int, ...]:
        """Returns how often each problem occurs in what is tuned, in order."""
        return tuple(1 if each.run.group is None else each.run.group.count for each in self.runs)

    @property
    def total_s(self) -> float | None:
        """Returns the sum of the best times, each times its count; None where a problem has no time."""
        times = [None if best is None else best.best_s for best in self.best]
        if any(time is None for time in times):
            return None
        return sum(count * time for count, time in zip(self.counts, times, strict=True) if time is not None)

    @property
    def reliability(self) -> Reliability:
        """Returns how reliable ``total_s`` is: as the least reliable of the times."""
        return reliability_of_all([best.reliability for best in self.best if best is not None])

    @property
    def has_worked(self) -> bool:
        """True if every problem has a correct candidate."""
        return all(each.has_worked for each in self.runs)

    @property
    def is_interrupted(self) -> bool:
        """True if the group was interrupted before its end: ``tuner.resume_many`` continues it."""
        return self.group.status == "interrupted"


def tuned_group(store: "Store", group_id: int) -> TunedGroup:
    """Returns the stored group ``group_id`` with each run's result. Raises UsageError for an unknown id."""
    group = store.group(group_id)
    return TunedGroup(group, tuple(tuned_run(store, run.id) for run in group.runs))
