"""The steps that runs and campaigns share: trials, final re-measurement, baseline, roofline; all stored.

A round is one final re-measurement: the top trials and the baseline timed interleaved.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tuner.core.candidate import Candidate
from tuner.core.errors import Failure, TunerError, reason_of
from tuner.core.interfaces import FINAL_EFFORT, AbstractRunner, BoundRecord, Effort
from tuner.core.queries import TrialQuery
from tuner.core.records import Measurement
from tuner.core.reliability import Reliability
from tuner.core.roofline import Roofline
from tuner.core.round_quality import (
    Evidence,
    RoundQuality,
    TimedRound,
    reliability_alone,
    reliability_in_round,
    round_quality,
)
from tuner.core.runs import Baseline, Run
from tuner.core.trials import NOT_TIMED, REPLAYED, Proposal, StoredTrial
from tuner.runtime.timing_lock import LockWait
from tuner.runtime.workers.runner import RunnerOrder
from tuner.targets.target import Bind, RunnerSettings, Target
from tuner.tuning import events
from tuner.tuning.budget import ROOFLINE_S, TOP_TRIALS, is_short
from tuner.tuning.known_outcomes import KnownOutcomes
from tuner.tuning.progress import Progress
from tuner.tuning.remeasurement import (
    Remeasurement,
    bound_record,
    choose_top_trials,
    quality_that_counts,
    quietest_reference_s,
    remeasure_top_trials,
)
from tuner.tuning.search_loop import ReplayingRunner

if TYPE_CHECKING:
    from tuner.db.store import Store


IN_THE_FINAL = "in the final re-measurement"  # how the reason begins of a trial that failed there
# a wait for other tuners that a run reports: seconds, share of it
WAIT_SHOWN_S = 1.0
WAIT_SHOWN = 0.05


@dataclass(frozen=True)
class Session:
    """One session of a stored run, new or resumed: run, target, store, and how to report and interrupt it."""

    run: Run
    stored: tuple[Proposal, ...]  # of earlier sessions, by number
    target: Target
    store: "Store"
    interruption: events.Interruption = field(default_factory=events.Interruption)
    observe: events.Observer = events.ignore
    clock: Callable[[], float] = time.monotonic

    @property
    def bind(self) -> Bind:
        """Returns the function that makes a candidate's script; reads the script files of the strategies."""
        settings = self.run.settings
        return self.target.bind(settings.strategies, settings.problem, settings.threads, self.run.machine)


class RunSteps:
    """Proposes, stores and re-measures trials of one stored run, and times its baseline."""

    def __init__(self, session: Session) -> None:
        self.run = session.run
        self._session = session
        self._store = session.store
        self.progress = Progress(session.stored)
        self._known = KnownOutcomes(session.store, session.run)
        self._has_measured_roofline = False  # with or without success
        self._baseline_failure = ""  # as last reported
        self._fastest: dict[int, BoundRecord] = {}  # by trial id, with their artifacts
        self.lock_wait = LockWait(
            self._report_waiting, lambda who: session.observe(events.LockWaitEnded(who))
        )

    @property
    def order(self) -> RunnerOrder:
        """Returns the order for a runner: problem, target, functions to bind scripts and recall outcomes.

        Reads the script files of the strategies.
        """
        settings = self.run.settings
        return RunnerOrder(settings.problem, settings.target, self._session.bind, self._known.recall)

    @property
    def runner_settings(self) -> RunnerSettings:
        """Returns the settings of a runner that reports what it waits for as events of the run."""
        settings = self.run.settings
        observe = self._session.observe
        return RunnerSettings(
            settings.threads,
            settings.workers,
            settings.seed,
            self.lock_wait,
            self.run.uuid,
            lambda why: observe(events.WaitsForNode(why)),
        )

    def _report_waiting(self, who: str) -> None:
        self._session.observe(events.WaitsForLock(who, has_budget=self.lock_wait.ends_s is not None))

    def report_waited(self, elapsed_s: float) -> None:
        """Reports an event if a session of ``elapsed_s`` seconds waited long for other tuners."""
        waited_s = self.lock_wait.waited_s
        if waited_s >= max(WAIT_SHOWN_S, WAIT_SHOWN * elapsed_s):
            self._session.observe(events.WaitedForLock(waited_s, elapsed_s))

    def replaying(self, runner: AbstractRunner) -> ReplayingRunner:
        """Returns a runner that returns stored outcomes for stored trials; ``runner`` runs all others."""
        records = tuple(
            None if proposal.trial is None else bound_record(proposal.trial)
            for proposal in self._session.stored
        )
        return ReplayingRunner(runner, records, self._session.interruption)

    def propose(
        self,
        number: int,
        row: int,
        candidate: Candidate,
        elapsed_s: float,
        in_campaign: tuple[int, Candidate] | None = None,  # (number, unprojected configuration)
    ) -> bool:
        """Stores a proposal unless an earlier session stored it; returns whether it is new.

        ``elapsed_s``: seconds of the run so far. ``in_campaign``: (number in the campaign, configuration
        before its projection), None: the run is not part of a campaign.
        """
        if number in self.progress.trial_ids:
            return False
        trial_id = self._store.propose(self.run.id, number, row, candidate, elapsed_s, in_campaign)
        self.progress.propose(number, trial_id)
        return True

    def store_outcome(self, number: int, bound: BoundRecord, elapsed_s: float) -> bool:
        """Stores and reports an outcome unless an earlier session stored it; returns whether it is new."""
        progress = self.progress
        record = bound.record
        trial_id = progress.trial_ids[number]
        self._known.add(trial_id, record)
        if not progress.take(number, record, elapsed_s):
            return False
        self._keep(trial_id, bound)
        self._store.record(trial_id, record, bound.script.text, elapsed_s)
        best = progress.best
        trust = NOT_TIMED
        if best is not None and isinstance(best.outcome, Measurement):
            trust = self._reliability_alone(best.outcome)
        self._session.observe(
            events.TrialDone(trial_id, number, record, progress.counts, best, elapsed_s, trust)
        )
        return True

    def _keep(self, trial_id: int, bound: BoundRecord) -> None:
        """Keeps the code of the fastest trials of this session, so that it need not be compiled again.

        The final re-measurement times these trials.
        """
        if bound.artifact is None or bound.record.median_s is None:
            return
        self._fastest[trial_id] = bound
        if len(self._fastest) > TOP_TRIALS:
            del self._fastest[max(self._fastest, key=lambda kept: self._fastest[kept].record.median_s or 0.0)]

    def _bound_of(self, trial: StoredTrial) -> BoundRecord:
        return self._fastest.get(trial.id) or bound_record(trial)

    def has_round(self) -> bool:
        """Returns whether a final re-measurement gave times after the last trial was proposed."""
        rounds = self._store.rounds(self.run.id)
        proposed = self.progress.counts.proposed
        return any(not stored.quality.is_lost and stored.of_trials >= proposed for stored in rounds)

    def remeasure_top_trials(
        self, runner: AbstractRunner, effort: Effort = FINAL_EFFORT, limit: int | None = None
    ) -> RoundQuality | None:
        """Times the fastest trials again, at most TOP_TRIALS (8) and at most ``limit``; stores a round.

        Returns the quality of the round; None without a trial to time. A trial whose code is found wrong
        becomes a failed trial, and the others are timed without it.
        """
        while True:
            trials = self._store.trials(TrialQuery(run=self.run.id, sort="number"))
            top_trials = choose_top_trials(trials)[:limit]
            if not top_trials:
                return None
            self._session.observe(events.RemeasurementStarted(len(top_trials)))
            final_times = remeasure_top_trials(runner, top_trials, effort, self._bound_of)
            if not final_times.wrong:
                break
            for trial, failure in final_times.wrong:
                self.refute(trial, failure)
        if not final_times.times:
            self._session.observe(events.RoundLost(final_times.reason))
            lost = TimedRound(RoundQuality.lost(final_times.reason), (), None)
            self._store.add_round(self.run.id, lost)
            return lost.quality
        baseline = final_times.baseline or self._timed_baseline()  # else timed alone, right after
        return self.store_round(final_times, baseline, quietest_reference_s(trials), trials)

    def refute(self, trial: StoredTrial, failure: Failure) -> None:
        """Stores as failed a trial whose code a round found wrong; reports the fastest trial that is left."""
        failure = replace(failure, reason=reason_of(f"{IN_THE_FINAL}: {failure.reason}"))
        self._store.refute(trial.id, failure)
        self._known.add(trial.id, replace(trial.record, outcome=failure, verdict=None))
        left = choose_top_trials(self._store.trials(TrialQuery(run=self.run.id, sort="number")))
        best = left[0].record if left else None
        self._session.observe(events.TrialRefuted(trial.id, failure, best))

    def measure_baseline(self) -> None:
        baseline = self._timed_baseline()
        if baseline is not None:
            self._store.set_baseline(self.run.id, baseline)

    @property
    def roofline_s(self) -> float:
        """Returns the seconds that measuring the roofline will take; 0 if it will not be measured.

        It is not measured if a run of equal machine, type and threads has stored one, if the budget is short
        (``is_short``), or if the target times nothing.
        """
        is_known = self._store.known_roofline(self.run.id) is not None
        if is_known or is_short(self.run.settings.budget_s) or not self._session.target.is_timed():
            return 0.0
        return ROOFLINE_S

    def measure_roofline(self) -> None:
        """Stores the machine's roofline, unless a run on it with equal type and threads has stored one.

        The roofline is measured now. With a short budget (``is_short``) the shipped one of such machines is
        stored instead. Nothing is stored if there is none, or if measuring fails.
        """
        if self._store.known_roofline(self.run.id) is not None:
            return
        roofline = self._measured_roofline()
        if roofline is not None:
            self._store.set_roofline(self.run.id, roofline)

    def store_roofline(self) -> None:
        """Stores the machine's roofline with the run, raised where the fastest trial exceeds it.

        If no run on the machine has one, it is measured as by ``measure_roofline``, unless this run has tried
        that.
        """
        roofline = self._store.known_roofline(self.run.id)
        if roofline is None and not self._has_measured_roofline:
            roofline = self._measured_roofline()
        if roofline is not None:
            self.set_roofline(roofline)

    def set_roofline(self, roofline: Roofline) -> None:
        problem = self.run.settings.problem
        trials = self._store.trials(TrialQuery(run=self.run.id))
        times_s = [trial.best_s for trial in trials if trial.best_s is not None]
        if times_s:
            l3_bytes = self.run.machine.l3_bytes
            roofline = roofline.raised(problem.flop, problem.bytes, l3_bytes, min(times_s))
        self._store.set_roofline(self.run.id, roofline)

    def store_round(
        self,
        final_times: Remeasurement,
        baseline: Baseline | None,
        reference_s: float | None,
        trials: tuple[StoredTrial, ...] = (),
    ) -> RoundQuality:
        """Stores the times of a round; returns its quality.

        ``baseline``: timed in the round, None: not timed. ``reference_s``: the reference kernel's least time
        in the search, None: unknown. ``trials``: all trials of the run, whose undisturbed times count in
        place of a disturbed round that they contradict.
        """
        quality = round_quality(
            final_times.noise,
            None if baseline is None else baseline.measurement,
            final_times.host,
            quietest_reference_s=reference_s,
            spare_cores=self._spare_cores,
        )
        quality = quality_that_counts(
            quality,
            final_times.times,
            trials,
            quietest_reference_s=reference_s,
            spare_cores=self._spare_cores,
        )
        if final_times.baseline is not None:
            evidence = Evidence(True, quality.noise, quality.reliability)
            trust = reliability_in_round((final_times.baseline.measurement,), evidence)
            self._session.observe(events.BaselineMeasured(final_times.baseline, trust))
        times = tuple((trial.id, measurement) for trial, measurement in final_times.times)
        if quality.is_lost and baseline is not None and self._store.run(self.run.id).baseline is None:
            self._store.set_baseline(self.run.id, replace(baseline, is_interleaved=False))
        self._store.add_round(self.run.id, TimedRound(quality, times, baseline))
        if final_times.noise is not None:
            self._session.observe(events.NoiseMeasured(final_times.noise))
        return quality

    def _measured_roofline(self) -> Roofline | None:
        settings = self.run.settings
        if is_short(settings.budget_s):
            if self.run.machine.chip:
                return None
            from tuner.tuning.pretuned import shipped_roofline  # loads YAML

            return shipped_roofline(self.run.machine, settings.problem.multiplied_dtype, settings.threads)
        self._has_measured_roofline = True
        self._session.observe(events.RooflineStarted())
        try:
            with self._session.interruption.waiting():
                return self._session.target.roofline(settings.problem, settings.threads, self.lock_wait)
        except TunerError:
            return None

    @property
    def _spare_cores(self) -> int:
        return self.run.machine.physical_cores - self.run.settings.threads

    def _reliability_alone(self, time: Measurement) -> Reliability:
        if not self.run.settings.target.has_machine:
            return REPLAYED
        return reliability_alone(time.host, quietest_reference_s=None, spare_cores=self._spare_cores)

    def _timed_baseline(self) -> Baseline | None:
        settings = self.run.settings
        if not settings.problem.runs_alone:
            return None  # no library computes a fusion
        self._session.observe(events.BaselineStarted())
        try:
            with self._session.interruption.waiting():
                baseline = self._session.target.baseline(
                    settings.problem, settings.threads, settings.seed, self.lock_wait
                )
        except TunerError as error:
            if str(error) != self._baseline_failure:  # it is tried again with the final re-measurement
                self._session.observe(events.BaselineFailed(str(error)))
            self._baseline_failure = str(error)
            return None
        self._session.observe(
            events.BaselineMeasured(baseline, self._reliability_alone(baseline.measurement))
        )
        return baseline
