"""One session of a run, from the first proposal to the final re-measurement; stores each outcome at once."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tuner.analysis.reliability import round_quality
from tuner.core.bench import AbstractBench
from tuner.core.candidate import Candidate
from tuner.core.errors import TunerError
from tuner.core.runs import Baseline, Proposal, Run, TrialQuery
from tuner.core.sampler import AbstractSampler
from tuner.core.timing_round import RoundQuality, TimedRound
from tuner.space.feasible_set import FeasibleSet
from tuner.tuning.ask_tell import Trial, search
from tuner.tuning.events import (
    BaselineFailed,
    BaselineMeasured,
    NoiseMeasured,
    Observer,
    RemeasurementStarted,
    RoundLost,
    TrialDone,
    WaitsForLock,
    WaitsForNode,
)
from tuner.tuning.interruption import Interruption
from tuner.tuning.known_outcomes import KnownOutcomes
from tuner.tuning.outcome_source import BenchSettings, OutcomeSource
from tuner.tuning.progress import Progress
from tuner.tuning.remeasurement import (
    Remeasurement,
    bound_record,
    choose_top_trials,
    quietest_anchor_s,
    remeasure_top_trials,
)
from tuner.tuning.resumption import ReplayingBench, ReplayingSampler
from tuner.tuning.run_limit import searched_s
from tuner.tuning.tuned_run import TunedRun, tuned_run
from tuner.workers.in_flight import BenchOrder

if TYPE_CHECKING:
    from tuner.db.store import Store


class TuningSession:
    """One session of a stored run, new or resumed: search, final re-measurement, selected result."""

    def __init__(
        self,
        run: Run,
        stored: tuple[Proposal, ...],  # of earlier sessions, by number
        feasible: FeasibleSet,
        sampler: AbstractSampler,
        source: OutcomeSource,
        store: "Store",
        interruption: Interruption,
        observe: Observer,
        retime: bool = False,  # re-measure although a round is stored
    ) -> None:
        self._run = run
        self._settings = settings = run.settings
        self._feasible = feasible
        self._sampler = sampler
        self._source = source
        self._store = store
        self._interruption = interruption
        self._observe = observe
        self._must_time = retime
        self._stored = stored
        self._progress = Progress(stored)
        self._known = KnownOutcomes(store, run)
        self._bind = source.bind(settings.strategies, settings.problem, settings.threads, run.machine)
        self._elapsed_before_s = run.seconds or 0.0  # of earlier sessions, by the monotonic clock
        self._searched_before_s = searched_s(run)
        self._stored_s = self._elapsed_before_s
        self._started_s = time.monotonic()

    def run(self) -> TunedRun:
        """Works until the run's end or until the user interrupts; returns the run with its selected result.

        The search ends when the budget is spent or every candidate is tried. Each outcome is stored as soon
        as it is known. An interruption raises nothing: the run's status says so.
        """
        bench = self._bench()
        status = "interrupted"
        try:
            status = self._work(bench)
        except KeyboardInterrupt:
            pass  # the status says so
        finally:
            bench.close()
            self._store.finish_run(self._run.id, status, self._unstored_s())
        return tuned_run(self._store, self._run.id)

    def _bench(self) -> AbstractBench:
        settings = self._settings
        order = BenchOrder(settings.problem, settings.target, self._bind, self._known.recall)
        how = BenchSettings(
            settings.threads,
            settings.workers,
            settings.seed,
            lambda who: self._observe(WaitsForLock(who)),
            self._run.uuid,
            lambda why: self._observe(WaitsForNode(why)),
        )
        records = tuple(None if each.trial is None else bound_record(each.trial) for each in self._stored)
        return ReplayingBench(self._source.bench(order, how), records, self._interruption)

    def _work(self, bench: AbstractBench) -> str:
        """Searches and re-measures the top-k trials; returns the status of the run."""
        if self._run.baseline is None and self._source.is_timed():
            self._measure_baseline()
        self._search(bench)
        if self._interruption.is_asked:
            return "interrupted"
        if self._must_time or not self._has_round():
            self._remeasure_top_trials(bench)
        return "done"

    def _has_round(self) -> bool:
        """Returns whether a round over all trials gave times; a round before an extension covers fewer."""
        rounds = self._store.rounds(self._run.id)
        proposed = self._progress.counts.proposed
        return any(not each.quality.is_lost and each.of_trials >= proposed for each in rounds)

    def _search(self, bench: AbstractBench) -> None:
        """Tries candidates until the budget is spent; stores the seconds of the search in any case."""
        started_s = time.monotonic()
        try:
            for trial in self._trials(bench):
                self._keep(trial)
        finally:
            search_s = time.monotonic() - started_s
            self._store.add_search(self._run.id, search_s, max(0.0, search_s - self._progress.evaluated_s))

    def _trials(self, bench: AbstractBench) -> Iterator[Trial]:
        settings = self._settings
        return search(
            ReplayingSampler(self._sampler, tuple(each.row for each in self._stored)),
            self._feasible.candidate,
            bench,
            self._is_over,
            self._propose,
            pending_limit=settings.workers + 1,  # one is timed while the workers compile the next ones
        )

    def _is_over(self, proposed: int) -> bool:
        settings = self._settings
        if proposed < len(self._stored):
            return False
        if self._interruption.is_asked or (settings.trials is not None and proposed >= settings.trials):
            return True
        return settings.budget_s is not None and self._searched_s() >= settings.budget_s

    def _propose(self, number: int, row: int, candidate: Candidate) -> None:
        if number in self._progress.trial_ids:
            return
        elapsed_s = self._elapsed_s()
        self._progress.propose(number, self._store.propose(self._run.id, number, row, candidate, elapsed_s))
        self._stored_s = elapsed_s

    def _keep(self, trial: Trial) -> None:
        """Stores and reports a trial, unless an earlier session stored it."""
        progress, record = self._progress, trial.bound.record
        trial_id = progress.trial_ids[trial.number]
        self._known.add(trial_id, record)
        if not progress.take(trial.number, record):
            return
        elapsed_s = self._elapsed_s()
        self._store.record(trial_id, record, trial.bound.script.text, elapsed_s)
        self._must_time = True
        self._stored_s = elapsed_s
        self._observe(TrialDone(trial_id, trial.number, record, progress.counts, progress.best, elapsed_s))

    def _remeasure_top_trials(self, bench: AbstractBench) -> None:
        """Times the fastest trials again; stores a new round with these times and the baseline's."""
        trials = self._store.trials(TrialQuery(run=self._run.id, sort="number"))
        top_trials = choose_top_trials(trials)
        if not top_trials:
            return
        self._observe(RemeasurementStarted(len(top_trials)))
        final_times = remeasure_top_trials(bench, top_trials)
        if not final_times.times:
            self._lose_round(final_times.reason)
            return
        baseline = final_times.baseline or self._timed_baseline()  # or alone, in the same minute
        if final_times.baseline is not None:
            self._observe(BaselineMeasured(final_times.baseline))
        self._keep_round(final_times, baseline, quietest_anchor_s(trials))
        self._measure_roofline()

    def _lose_round(self, reason: str) -> None:
        """Stores and reports a round that gave no times."""
        self._observe(RoundLost(reason))
        self._store.add_round(self._run.id, TimedRound(RoundQuality.lost(reason), (), None))

    def _keep_round(
        self, final_times: Remeasurement, baseline: Baseline | None, anchor_s: float | None
    ) -> None:
        quality = round_quality(
            final_times.noise,
            None if baseline is None else baseline.measurement,
            final_times.host,
            quietest_anchor_s=anchor_s,
            spare_cores=self._run.machine.physical_cores - self._settings.threads,
        )
        times = tuple((trial.id, measurement) for trial, measurement in final_times.times)
        self._store.add_round(self._run.id, TimedRound(quality, times, baseline))
        if final_times.noise is not None:
            self._observe(NoiseMeasured(final_times.noise))

    def _measure_baseline(self) -> None:
        baseline = self._timed_baseline()
        if baseline is not None:
            self._store.set_baseline(self._run.id, baseline)

    def _timed_baseline(self) -> Baseline | None:
        """Returns the baseline, timed in a separate process; None where that fails."""
        settings = self._settings
        try:
            with self._interruption.waiting():
                baseline = self._source.baseline(settings.problem, settings.threads, settings.seed)
        except TunerError as error:
            self._observe(BaselineFailed(str(error)))
            return None
        self._observe(BaselineMeasured(baseline))
        return baseline

    def _measure_roofline(self) -> None:
        """Measures and stores the machine's roofline; without one the result is complete too."""
        settings = self._settings
        try:
            with self._interruption.waiting():
                roofline = self._source.roofline(settings.problem, settings.threads)
        except TunerError:
            return
        self._store.set_roofline(self._run.id, roofline)

    def _unstored_s(self) -> float:
        """Returns the seconds since the last outcome was stored."""
        return self._elapsed_s() - self._stored_s

    def _elapsed_s(self) -> float:
        return self._elapsed_before_s + time.monotonic() - self._started_s

    def _searched_s(self) -> float:
        """Returns the seconds that count for the budget, over all sessions."""
        return self._searched_before_s + time.monotonic() - self._started_s
