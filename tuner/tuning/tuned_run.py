"""A stored run or campaign as its result: selected trials and numbers of trials by outcome."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuner.analysis.selected_result import SelectedResult, select_result
from tuner.core.problem import Problem
from tuner.core.queries import Counts, TrialQuery
from tuner.core.reliability import Reliability, reliability_of_all
from tuner.core.requests import Campaign
from tuner.core.round_quality import StoredRound
from tuner.core.runs import Run
from tuner.core.serialization import count_text
from tuner.core.trials import AlikeFailures, StoredTrial, alike_failures

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
    failures: tuple[AlikeFailures, ...] = ()  # the most frequent first

    def __repr__(self) -> str:
        """Returns one line: problem, target, status, numbers of trials, best trial."""
        run = self.run
        counts = self.counts
        return (
            f"TunedRun({run.id}: {run.settings.problem.key}, {run.settings.target}, {run.status}, "
            f"{counts.proposed} trials, {counts.failed} failed; best {self.best!r})"
        )

    @property
    def best(self) -> StoredTrial | None:
        """Returns the trial to use, from the selected result; None where no candidate has a time."""
        if self.selected is None:
            return None
        return self.selected.best

    @property
    def has_worked(self) -> bool:
        """True if a candidate was timed, verified, or (for another processor) compiled."""
        return self.selected is not None or self.counts.verified + self.counts.compiled > 0

    @property
    def why_not_worked(self) -> str:
        """Returns why no candidate worked, by the most frequent failure; "" if one did, or all are pending.

        "2 of 3 trials failed at compile: linalg.matmul at payload:8:16: Attempted to vectorize, but failed".
        """
        if self.has_worked or not self.failures:
            return ""
        alike = self.failures[0]
        trials = f"{len(alike.trials)} of {count_text(self.counts.proposed, 'trial')}"
        return f"{trials} failed at {alike.failure.stage.value}: {alike.failure.reason}"

    @property
    def lost(self) -> str:
        """Returns why the run's latest final re-measurement gave no times; "" if it did, or there is none."""
        latest = self.rounds[-1].quality if self.rounds else None
        if latest is not None and latest.is_lost:
            return latest.reliability.reason
        return ""

    @property
    def is_interrupted(self) -> bool:
        """True if the run was interrupted before its end: ``tuner.resume`` continues it."""
        return self.run.status == "interrupted"


def tuned_run(store: "Store", run_id: int) -> TunedRun:
    """Returns a stored run with its counts, its result and its rounds.

    Raises UsageError for an unknown id.
    """
    run = store.run(run_id)
    trials = store.trials(TrialQuery(run=run_id, sort="number"))
    selected = select_result(trials, run.noise)
    counts = store.counts(run_id)
    seconds = run.seconds or 0.0
    return TunedRun(run, counts, selected, seconds, store.rounds(run_id), alike_failures(trials))


@dataclass(frozen=True, repr=False)
class TunedCampaign:
    """A stored campaign with its runs, one per problem, each with its counts and its selected result."""

    campaign: Campaign
    runs: tuple[TunedRun, ...]  # in the order of the problems
    ended_early: str = ""  # why the search ended before its limits, in the session that ended it

    def __repr__(self) -> str:
        """Returns one line: number of problems, status, trials, total time of all problems."""
        total_s = self.total_s
        time = "not every problem has a time"
        if total_s is not None:
            time = f"{total_s:.4g} s in all, {self.reliability.word}"
        return (
            f"TunedCampaign({self.campaign.id}: {len(self.runs)} problems, {self.campaign.status}, "
            f"{self.trials} trials; {time})"
        )

    @property
    def trials(self) -> int:
        """Returns the number of trials of all problems together."""
        return sum(run.counts.proposed for run in self.runs)

    @property
    def best(self) -> tuple[StoredTrial | None, ...]:
        """Returns the best trial of each problem, in order; None where no candidate has a time."""
        return tuple(run.best for run in self.runs)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Returns the problems of the campaign, in the order of its runs."""
        return tuple(run.run.settings.problem for run in self.runs)

    @property
    def counts(self) -> tuple[int, ...]:
        """Returns how often each problem occurs in the tuned program or list, in order of the problems."""
        return tuple(1 if run.run.campaign is None else run.run.campaign.count for run in self.runs)

    @property
    def total_s(self) -> float | None:
        """Returns the sum of (best time x count) over the problems; None if a problem has no time."""
        total_s = 0.0
        for count, best in zip(self.counts, self.best, strict=True):
            if best is None or best.best_s is None:
                return None
            total_s += count * best.best_s
        return total_s

    @property
    def reliability(self) -> Reliability:
        """Returns how reliable ``total_s`` is: that of the least reliable time in it."""
        return reliability_of_all([best.reliability for best in self.best if best is not None])

    @property
    def has_worked(self) -> bool:
        """True if every problem has a candidate that was timed, verified, or compiled for another machine."""
        return all(run.has_worked for run in self.runs)

    @property
    def is_interrupted(self) -> bool:
        """True if the campaign was interrupted before its end: ``tuner.resume_many`` continues it."""
        return self.campaign.status == "interrupted"


def tuned_campaign(store: "Store", campaign_id: int) -> TunedCampaign:
    """Returns the stored campaign with each run's result. Raises UsageError for an unknown id."""
    campaign = store.campaign(campaign_id)
    return TunedCampaign(campaign, tuple(tuned_run(store, run.id) for run in campaign.runs))
