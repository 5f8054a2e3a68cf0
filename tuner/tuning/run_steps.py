"""The steps that runs and campaigns share: trials, final re-measurement, baseline, roofline; all stored.

A resumed run repeats its stored proposals first (``ReplayingSampler``, ``ReplayingRunner``). A round is one
final re-measurement: the top trials and the baseline timed interleaved.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tuner.analysis.selected_result import half_width
from tuner.core.candidate import Candidate
from tuner.core.errors import Failure, TunerError, reason_of
from tuner.core.interfaces import (
    FINAL_EFFORT,
    AbstractRunner,
    AbstractSampler,
    BoundRecord,
    Effort,
    FinalTimes,
    Script,
)
from tuner.core.queries import TrialQuery
from tuner.core.records import HostConditions, Measurement
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
from tuner.targets.target import RunnerSettings, Target
from tuner.tuning import events
from tuner.tuning.budget import ROOFLINE_S, TOP_TRIALS, is_short
from tuner.tuning.disturbed_finals import quality_that_counts
from tuner.tuning.known_outcomes import KnownOutcomes
from tuner.tuning.progress import Progress

if TYPE_CHECKING:
    from tuner.db.store import Store


IN_THE_FINAL = "in the final re-measurement"  # how the reason begins of a trial that failed there
# a wait for other tuners that a run reports: seconds, share of it
WAIT_SHOWN_S = 1.0
WAIT_SHOWN = 0.05


@dataclass(frozen=True)
class Remeasurement:
    """The times of a final re-measurement of a run's top trials, its noise floor, and its baseline time."""

    times: tuple[tuple[StoredTrial, Measurement], ...]  # of the trials that still work, in the given order
    noise: float | None  # relative; None where the fastest lacks one of its two times
    baseline: Baseline | None = None  # None: was not timed interleaved with the trials
    reason: str = ""  # why a time is missing; "": all were timed
    wrong: tuple[tuple[StoredTrial, Failure], ...] = ()  # whose code is wrong; then no trial has a time

    @property
    def by_trial(self) -> dict[int, Measurement]:
        """Returns the time of each trial by its id."""
        return {trial.id: measurement for trial, measurement in self.times}

    @property
    def host(self) -> HostConditions | None:
        """Returns the host's conditions while trials were timed; None: no times, a GPU, or a replay."""
        if self.times:
            return self.times[0][1].host
        return None


def choose_top_trials(trials: tuple[StoredTrial, ...], limit: int = TOP_TRIALS) -> tuple[StoredTrial, ...]:
    """Returns up to ``limit`` measured trials, the fastest first; one for each distinct code."""
    measured = [trial for trial in trials if trial.record.median_s is not None]
    measured.sort(key=lambda trial: (trial.record.median_s, trial.number))
    by_code: dict[str, StoredTrial] = {}
    for trial in measured:
        by_code.setdefault(trial.record.code, trial)
    return tuple(by_code.values())[:limit]


def remeasure_top_trials(
    runner: AbstractRunner,
    top_trials: tuple[StoredTrial, ...],
    effort: Effort = FINAL_EFFORT,
    bound_of: Callable[[StoredTrial], BoundRecord] | None = None,
) -> Remeasurement:
    """Times ``top_trials`` interleaved, the first (the fastest) twice; leaves out trials that fail now.

    If the code of a trial is found wrong, no trial has a time. ``bound_of``: returns a trial's record, for a
    caller that keeps artifacts; None: ``bound_record``, and each script is compiled again.
    """
    bound = tuple(map(bound_of or bound_record, top_trials))
    final_times = runner.remeasure((*bound, bound[0]), effort)
    wrong = {
        trial.id: (trial, outcome)
        for trial, outcome in zip((*top_trials, top_trials[0]), final_times.times, strict=True)
        if isinstance(outcome, Failure) and outcome.shows_a_defect
    }
    if wrong:
        return Remeasurement((), None, reason=final_times.reason, wrong=tuple(wrong.values()))
    *measurements, again = final_times.measured
    times = tuple(
        (trial, measurement)
        for trial, measurement in zip(top_trials, measurements, strict=True)
        if measurement is not None
    )
    first = measurements[0]
    noise = None if first is None or again is None else noise_of(first, again)
    return Remeasurement(times, noise, final_times.baseline, final_times.reason)


def quietest_reference_s(trials: tuple[StoredTrial, ...]) -> float | None:
    """Returns the least seconds per call of the reference kernel during any trial; None: never timed."""
    outcomes = (trial.record.outcome for trial in trials)
    hosts = (outcome.host for outcome in outcomes if isinstance(outcome, Measurement))
    return min((host.reference_s for host in hosts if host is not None), default=None)


def bound_record(trial: StoredTrial) -> BoundRecord:
    """Returns a stored trial's record with its script, for a runner that times it again."""
    record = trial.record
    return BoundRecord(record, Script(trial.script_text, record.script_sha256))


def noise_of(first: Measurement, again: Measurement) -> float:
    """Returns the noise floor by two timings of the same code: the relative difference of their medians.

    At least the half width of each timing's 95 % interval, relative to its median.
    """
    smaller = min(first.median_s, again.median_s)
    difference = abs(first.median_s - again.median_s) / smaller
    return max(difference, *map(half_width, (first, again)))


# Resuming a run as if it had never stopped: its stored trials are replayed in the search loop, which asks,
# starts and finishes in the same order as before. Stored proposals are not proposed anew, and trials with an
# outcome are not run again, so the sampler receives the same outcomes and proposes the same configurations.


class ReplayingSampler(AbstractSampler):
    """Proposes what earlier sessions of the run proposed first, then what the wrapped sampler proposes."""

    def __init__(self, method: AbstractSampler, rows: tuple[int, ...]) -> None:
        self._method = method
        self._rows = rows  # by trial number

    def ask(self, number: int) -> int | None:
        if number >= len(self._rows):
            return self._method.ask(number)
        self._method.replay(number, self._rows[number])
        return self._rows[number]

    def tell(self, row: int, value: float | None) -> None:
        self._method.tell(row, value)

    def replay(self, number: int, row: int) -> None:
        self._method.replay(number, row)


class ReplayingRunner(AbstractRunner):
    """Returns the stored records of earlier sessions first, then runs candidates by the wrapped runner.

    An interruption ends it while it waits for a candidate.
    """

    def __init__(
        self,
        runner: AbstractRunner,
        records: tuple[BoundRecord | None, ...],  # by trial number; None: no outcome was stored
        interruption: events.Interruption,
    ) -> None:
        self._runner = runner
        self._records = records
        self._interruption = interruption
        self._started: deque[BoundRecord | None] = deque()

    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        record = self._records[number] if number < len(self._records) else None
        self._started.append(record)
        if record is None:
            self._runner.start(number, candidate, effort)

    def finish(self) -> BoundRecord:
        record = self._started.popleft()
        if record is not None:
            return record
        with self._interruption.waiting():
            return self._runner.finish()

    def remeasure(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        with self._interruption.waiting():
            return self._runner.remeasure(top_trials, effort)

    def close(self) -> None:
        self._runner.close()


class RunSteps:
    """Proposes, stores and re-measures trials of one stored run, and times its baseline."""

    def __init__(
        self,
        run: Run,
        stored: tuple[Proposal, ...],  # of earlier sessions, by number
        target: Target,
        store: "Store",
        interruption: events.Interruption,
        observe: events.Observer,
    ) -> None:
        self.run = run
        self.progress = Progress(stored)
        self._stored = stored
        self._target = target
        self._store = store
        self._interruption = interruption
        self._observe = observe
        self._known = KnownOutcomes(store, run)
        self._has_measured_roofline = False  # with or without success
        self._baseline_failure = ""  # as last reported
        self._fastest: dict[int, BoundRecord] = {}  # by trial id, with their artifacts
        self.lock_wait = LockWait(self._report_waiting, lambda who: observe(events.LockWaitEnded(who)))

    @property
    def order(self) -> RunnerOrder:
        """Returns what a runner of the run binds, and what it recalls; reads the scripts of strategies."""
        settings = self.run.settings
        own = (settings.strategies, settings.problem, settings.threads, self.run.machine)
        return RunnerOrder(settings.problem, settings.target, self._target.bind(*own), self._known.recall)

    @property
    def runner_settings(self) -> RunnerSettings:
        """Returns the settings of a runner that reports what it waits for as events of the run."""
        settings = self.run.settings
        observe = self._observe
        return RunnerSettings(
            settings.threads,
            settings.workers,
            settings.seed,
            self.lock_wait,
            self.run.uuid,
            lambda why: observe(events.WaitsForNode(why)),
        )

    def _report_waiting(self, who: str) -> None:
        self._observe(events.WaitsForLock(who, has_budget=self.lock_wait.ends_s is not None))

    def report_waited(self, elapsed_s: float) -> None:
        """Reports an event if a session of ``elapsed_s`` seconds waited long for other tuners."""
        waited_s = self.lock_wait.waited_s
        if waited_s >= max(WAIT_SHOWN_S, WAIT_SHOWN * elapsed_s):
            self._observe(events.WaitedForLock(waited_s, elapsed_s))

    def replaying(self, runner: AbstractRunner) -> ReplayingRunner:
        """Returns a runner that returns stored outcomes for stored trials; ``runner`` runs all others."""
        records = tuple(
            None if proposal.trial is None else bound_record(proposal.trial) for proposal in self._stored
        )
        return ReplayingRunner(runner, records, self._interruption)

    def propose(
        self,
        number: int,
        row: int,
        candidate: Candidate,
        elapsed_s: float,
        in_campaign: tuple[int, Candidate] | None = None,  # (number, unprojected configuration)
    ) -> bool:
        """Stores a proposal unless an earlier session stored it; returns whether it is new.

        ``elapsed_s``: seconds of the run so far.
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
        if not progress.take(number, record):
            return False
        self._keep(trial_id, bound)
        self._store.record(trial_id, record, bound.script.text, elapsed_s)
        best = progress.best
        trust = NOT_TIMED
        if best is not None and isinstance(best.outcome, Measurement):
            trust = self._reliability_alone(best.outcome)
        self._observe(events.TrialDone(trial_id, number, record, progress.counts, best, elapsed_s, trust))
        return True

    def _keep(self, trial_id: int, bound: BoundRecord) -> None:
        """Keeps the code of the fastest trials of this session: the final re-measurement compiles no more."""
        if bound.artifact is None or bound.record.median_s is None:
            return
        self._fastest[trial_id] = bound
        if len(self._fastest) > TOP_TRIALS:
            del self._fastest[max(self._fastest, key=lambda kept: self._fastest[kept].record.median_s or 0.0)]

    def _bound_of(self, trial: StoredTrial) -> BoundRecord:
        return self._fastest.get(trial.id) or bound_record(trial)

    def has_round(self) -> bool:
        """Returns True if a final re-measurement gave times after all trials proposed so far."""
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
            self._observe(events.RemeasurementStarted(len(top_trials)))
            final_times = remeasure_top_trials(runner, top_trials, effort, self._bound_of)
            if not final_times.wrong:
                break
            for trial, failure in final_times.wrong:
                self.refute(trial, failure)
        if not final_times.times:
            self._observe(events.RoundLost(final_times.reason))
            lost = TimedRound(RoundQuality.lost(final_times.reason), (), None)
            self._store.add_round(self.run.id, lost)
            return lost.quality
        baseline = final_times.baseline or self._timed_baseline()  # else timed alone, right after
        return self.store_round(final_times, baseline, quietest_reference_s(trials), trials)

    def refute(self, trial: StoredTrial, failure: Failure) -> None:
        """Makes a trial that was found wrong in a round a failed one, and reports the best that is left."""
        failure = replace(failure, reason=reason_of(f"{IN_THE_FINAL}: {failure.reason}"))
        self._store.refute(trial.id, failure)
        self._known.add(trial.id, replace(trial.record, outcome=failure, verdict=None))
        left = choose_top_trials(self._store.trials(TrialQuery(run=self.run.id, sort="number")))
        best = left[0].record if left else None
        self._observe(events.TrialRefuted(trial.id, failure, best))

    def measure_baseline(self) -> None:
        baseline = self._timed_baseline()
        if baseline is not None:
            self._store.set_baseline(self.run.id, baseline)

    @property
    def roofline_s(self) -> float:
        """Returns the seconds that measuring the roofline will take; 0 if it is known or nothing is timed.

        It is known from a run of equal machine, type and threads. With a short budget it is shipped, or
        not measured.
        """
        is_known = self._store.known_roofline(self.run.id) is not None
        if is_known or is_short(self.run.settings.budget_s) or not self._target.is_timed():
            return 0.0
        return ROOFLINE_S

    def measure_roofline(self) -> None:
        """Stores the machine's roofline, unless a run on it with equal type and threads has stored one.

        It is measured now; with a short budget, it is the shipped one of such machines, or there is none.
        """
        if self._store.known_roofline(self.run.id) is not None:
            return
        roofline = self._measured_roofline()
        if roofline is not None:
            self._store.set_roofline(self.run.id, roofline)

    def store_roofline(self) -> None:
        """Stores the machine's roofline with the run, raised where the fastest trial exceeds it.

        Where no run on the machine has one, it is got as by ``measure_roofline``, unless that was tried.
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

        ``reference_s``: the reference kernel's least time in the search. ``trials``: those whose undisturbed
        times count in place of a disturbed round that they contradict.
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
            self._observe(events.BaselineMeasured(final_times.baseline, trust))
        times = tuple((trial.id, measurement) for trial, measurement in final_times.times)
        if quality.is_lost and baseline is not None and self._store.run(self.run.id).baseline is None:
            self._store.set_baseline(self.run.id, replace(baseline, is_interleaved=False))
        self._store.add_round(self.run.id, TimedRound(quality, times, baseline))
        if final_times.noise is not None:
            self._observe(events.NoiseMeasured(final_times.noise))
        return quality

    def _shipped_roofline(self) -> Roofline | None:
        settings = self.run.settings
        if self.run.machine.chip:
            return None
        from tuner.tuning.pretuned import shipped_roofline  # loads YAML

        return shipped_roofline(self.run.machine, settings.problem.multiplied_dtype, settings.threads)

    def _measured_roofline(self) -> Roofline | None:
        if is_short(self.run.settings.budget_s):
            return self._shipped_roofline()
        self._has_measured_roofline = True
        settings = self.run.settings
        self._observe(events.RooflineStarted())
        try:
            with self._interruption.waiting():
                return self._target.roofline(settings.problem, settings.threads, self.lock_wait)
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
        self._observe(events.BaselineStarted())
        try:
            with self._interruption.waiting():
                baseline = self._target.baseline(
                    settings.problem, settings.threads, settings.seed, self.lock_wait
                )
        except TunerError as error:
            if str(error) != self._baseline_failure:  # it is tried again with the final re-measurement
                self._observe(events.BaselineFailed(str(error)))
            self._baseline_failure = str(error)
            return None
        self._observe(events.BaselineMeasured(baseline, self._reliability_alone(baseline.measurement)))
        return baseline
