"""The steps of a run that sessions of one run and of a group of runs share; each stores what it did."""

from typing import TYPE_CHECKING

from tuner.core.bench import AbstractBench, BoundRecord
from tuner.core.candidate import Candidate
from tuner.core.errors import TunerError
from tuner.core.machine import Roofline
from tuner.core.record import Measurement
from tuner.core.reliability import Reliability
from tuner.core.round_quality import Evidence, reliability_alone, reliability_in_round, round_quality
from tuner.core.runs import NOT_TIMED, REPLAYED, Baseline, Proposal, Run, TrialQuery
from tuner.core.target import Effort
from tuner.core.timing_round import RoundQuality, TimedRound
from tuner.tuning.events import (
    BaselineFailed,
    BaselineMeasured,
    NoiseMeasured,
    Observer,
    RemeasurementStarted,
    RoundLost,
    TrialDone,
)
from tuner.tuning.interruption import Interruption
from tuner.tuning.known_outcomes import KnownOutcomes
from tuner.tuning.outcome_source import OutcomeSource
from tuner.tuning.progress import Progress
from tuner.tuning.remeasurement import (
    FINAL_EFFORT,
    Remeasurement,
    bound_record,
    choose_top_trials,
    quietest_anchor_s,
    remeasure_top_trials,
)
from tuner.tuning.resumption import ReplayingBench
from tuner.workers.in_flight import BenchOrder

if TYPE_CHECKING:
    from tuner.db.store import Store


class RunSteps:
    """Proposes, stores and re-measures trials of one stored run, and times its baseline."""

    def __init__(
        self,
        run: Run,
        stored: tuple[Proposal, ...],  # of earlier sessions, by number
        source: OutcomeSource,
        store: "Store",
        interruption: Interruption,
        observe: Observer,
    ) -> None:
        self.run = run
        self.progress = Progress(stored)
        self._stored = stored
        self._source = source
        self._store = store
        self._interruption = interruption
        self._observe = observe
        self._known = KnownOutcomes(store, run)
        self._has_measured_roofline = False  # with or without success
        settings = run.settings
        self._bind = source.bind(settings.strategies, settings.problem, settings.threads, run.machine)

    @property
    def order(self) -> BenchOrder:
        """Returns what a bench needs to know of the run's candidates."""
        settings = self.run.settings
        return BenchOrder(settings.problem, settings.target, self._bind, self._known.recall)

    def replaying(self, bench: AbstractBench) -> ReplayingBench:
        """Returns a bench that gives stored trials their stored outcome, and other trials to ``bench``."""
        records = tuple(None if each.trial is None else bound_record(each.trial) for each in self._stored)
        return ReplayingBench(bench, records, self._interruption)

    def propose(
        self,
        number: int,
        row: int,
        candidate: Candidate,
        elapsed_s: float,
        in_group: tuple[int, Candidate] | None = None,
    ) -> bool:
        """Stores a proposal unless an earlier session stored it; returns whether it is new.

        ``elapsed_s``: seconds of all sessions of the run. ``in_group``: as for ``Store.propose``.
        """
        if number in self.progress.trial_ids:
            return False
        trial_id = self._store.propose(self.run.id, number, row, candidate, elapsed_s, in_group)
        self.progress.propose(number, trial_id)
        return True

    def keep(self, number: int, bound: BoundRecord, elapsed_s: float) -> bool:
        """Stores and reports an outcome unless an earlier session stored it; returns whether it is new."""
        progress, record = self.progress, bound.record
        trial_id = progress.trial_ids[number]
        self._known.add(trial_id, record)
        if not progress.take(number, record):
            return False
        self._store.record(trial_id, record, bound.script.text, elapsed_s)
        best, trust = progress.best, NOT_TIMED
        if best is not None and isinstance(best.outcome, Measurement):
            trust = self._reliability_alone(best.outcome)
        self._observe(TrialDone(trial_id, number, record, progress.counts, best, elapsed_s, trust))
        return True

    def has_round(self) -> bool:
        """Returns whether a round over all trials gave times; a round before an extension covers fewer."""
        rounds = self._store.rounds(self.run.id)
        proposed = self.progress.counts.proposed
        return any(not each.quality.is_lost and each.of_trials >= proposed for each in rounds)

    def remeasure_top_trials(
        self, bench: AbstractBench, effort: Effort = FINAL_EFFORT, limit: int | None = None
    ) -> bool:
        """Times the fastest trials again; stores a new round with these times and the baseline's.

        ``effort`` is that for each trial. ``limit``: at most so many trials; None: as many as
        ``choose_top_trials`` returns. Returns whether the round gave times.
        """
        trials = self._store.trials(TrialQuery(run=self.run.id, sort="number"))
        top_trials = choose_top_trials(trials)[:limit]
        if not top_trials:
            return False
        self._observe(RemeasurementStarted(len(top_trials)))
        final_times = remeasure_top_trials(bench, top_trials, effort)
        if not final_times.times:
            self._lose_round(final_times.reason)
            return False
        baseline = final_times.baseline or self._timed_baseline()  # or alone, in the same minute
        self._keep_round(final_times, baseline, quietest_anchor_s(trials))
        return True

    def measure_baseline(self) -> None:
        """Times the baseline alone and stores it, where that works."""
        baseline = self._timed_baseline()
        if baseline is not None:
            self._store.set_baseline(self.run.id, baseline)

    def measure_roofline(self) -> None:
        """Measures and stores the machine's roofline, unless a run on the same machine has one.

        Without a roofline the result is complete too.
        """
        if self._store.known_roofline(self.run.id) is not None:
            return
        roofline = self._measured_roofline()
        if roofline is not None:
            self._store.set_roofline(self.run.id, roofline)

    def bound_by_roofline(self) -> None:
        """Stores the machine's roofline, raised to what the run's fastest trial reached.

        It is measured now where a quiet run finds only one that a disturbed run measured.
        """
        roofline = self._store.known_roofline(self.run.id)
        if roofline is None and not self._has_measured_roofline:
            roofline = self._measured_roofline()
        if roofline is not None:
            self.set_roofline(roofline)

    def set_roofline(self, roofline: Roofline) -> None:
        """Stores a roofline of the machine, raised to what the run's fastest trial reached."""
        problem, trials = self.run.settings.problem, self._store.trials(TrialQuery(run=self.run.id))
        times_s = [each.best_s for each in trials if each.best_s is not None]
        if times_s:
            l3_bytes = self.run.machine.l3_bytes
            roofline = roofline.raised(problem.flop, problem.bytes, l3_bytes, min(times_s))
        self._store.set_roofline(self.run.id, roofline)

    def _lose_round(self, reason: str) -> None:
        """Stores and reports a round that gave no times."""
        self._observe(RoundLost(reason))
        self._store.add_round(self.run.id, TimedRound(RoundQuality.lost(reason), (), None))

    def _keep_round(
        self, final_times: Remeasurement, baseline: Baseline | None, anchor_s: float | None
    ) -> None:
        quality = round_quality(
            final_times.noise,
            None if baseline is None else baseline.measurement,
            final_times.host,
            quietest_anchor_s=anchor_s,
            spare_cores=self._spare_cores,
        )
        if final_times.baseline is not None:
            evidence = Evidence(True, quality.noise, quality.unreliable)
            trust = reliability_in_round(final_times.baseline.measurement, evidence)
            self._observe(BaselineMeasured(final_times.baseline, trust))
        times = tuple((trial.id, measurement) for trial, measurement in final_times.times)
        self._store.add_round(self.run.id, TimedRound(quality, times, baseline))
        if final_times.noise is not None:
            self._observe(NoiseMeasured(final_times.noise))

    def _measured_roofline(self) -> Roofline | None:
        self._has_measured_roofline = True
        settings = self.run.settings
        try:
            with self._interruption.waiting():
                return self._source.roofline(settings.problem, settings.threads)
        except TunerError:
            return None

    @property
    def _spare_cores(self) -> int:
        """Returns the number of cores without a timed thread."""
        return self.run.machine.physical_cores - self.run.settings.threads

    def _reliability_alone(self, time: Measurement) -> Reliability:
        """Returns how reliable a time is that was taken alone, by the readings around it."""
        if not self.run.settings.target.has_machine:
            return REPLAYED
        return reliability_alone(time.host, quietest_anchor_s=None, spare_cores=self._spare_cores)

    def _timed_baseline(self) -> Baseline | None:
        """Returns the baseline, timed in a separate process; None where that fails, and for a group."""
        settings = self.run.settings
        if settings.problem.group:
            return None  # no library computes a group of operations
        try:
            with self._interruption.waiting():
                baseline = self._source.baseline(settings.problem, settings.threads, settings.seed)
        except TunerError as error:
            self._observe(BaselineFailed(str(error)))
            return None
        self._observe(BaselineMeasured(baseline, self._reliability_alone(baseline.measurement)))
        return baseline
