"""One session of a run, from the first proposal to the answer; what is known is stored at once."""

import contextlib
import functools
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tuner.answer import Answer, answer_of
from tuner.bench import AbstractBench
from tuner.errors import Stage, TunerError
from tuner.feasible import FeasibleSet
from tuner.machine import Roofline
from tuner.record import Record
from tuner.runs import Counts, ReuseKey, Run, StoredTrial, TrialQuery, Vendor
from tuner.sampler import AbstractSampler
from tuner.search import Trial, search
from tuner.space import Candidate
from tuner.tuning.composition import BenchSettings, Bind, Composition
from tuner.tuning.events import (
    FinalsStarted,
    NoiseMeasured,
    Observer,
    TrialDone,
    VendorFailed,
    VendorMeasured,
)
from tuner.tuning.finals import Finals, choose_finalists, time_finalists
from tuner.tuning.hopeless import Hopeless, hopeless_before
from tuner.tuning.interruption import Interruption
from tuner.tuning.own_records import OwnRecords
from tuner.tuning.replay import ReplayingBench, ReplayingSampler
from tuner.workers.ticket import Order

if TYPE_CHECKING:
    from tuner.db.store import Store

JUDGING = tuple(stage.value for stage in (Stage.LOAD, Stage.RUN, Stage.VERIFY, Stage.MEASURE))


@dataclass(frozen=True)
class TunedRun:
    """A run, what became of its trials, and its answer."""

    run: Run
    counts: Counts
    answer: Answer | None  # None: no candidate has a time
    seconds: float  # of all sessions
    roofline: Roofline | None = None  # measured with the answer; None: interrupted, or it failed

    @property
    def best(self) -> StoredTrial | None:
        """Returns the trial to use."""
        return None if self.answer is None else self.answer.best

    @property
    def has_worked(self) -> bool:
        """Says whether a candidate was right: timed, or verified where nothing is timed."""
        return self.answer is not None or self.counts.verified > 0

    @property
    def is_interrupted(self) -> bool:
        """Says whether the run can be gone on with."""
        return self.run.status == "interrupted"


@dataclass
class _Progress:
    """What one session keeps in mind between trials."""

    trial_ids: dict[int, int]  # by trial number
    counts: Counts  # outcomes: of the trials that went through the loop
    best: Record | None = None
    judged_s: float = 0.0  # of this session: the measuring worker's time for its trials


class Session:
    """Runs one session of a stored run: searches, times the finalists, answers."""

    def __init__(
        self,
        run: Run,
        stored: tuple[StoredTrial, ...],  # of earlier sessions, by number
        feasible: FeasibleSet,
        sampler: AbstractSampler,
        composition: Composition,
        store: "Store",
        interruption: Interruption,
        observe: Observer,
    ) -> None:
        self._run = run
        self._settings = run.settings
        self._feasible = feasible
        self._sampler = sampler
        self._composition = composition
        self._store = store
        self._interruption = interruption
        self._observe = observe
        self._stored = stored
        ids = {trial.number: trial.id for trial in stored}
        self._progress = _Progress(ids, Counts(proposed=len(stored)))
        self._hopeless = Hopeless() if run.settings.fresh else hopeless_before(store, run)
        self._own = OwnRecords()
        self._bind: Bind = functools.lru_cache(maxsize=None)(composition.bind(run.settings, run.machine))
        self._roofline: Roofline | None = None
        self._elapsed_before_s = elapsed_s(run, stored)
        self._stored_s = run.seconds or 0.0
        self._started_s = time.monotonic()

    def run(self) -> TunedRun:
        """Works until the budget is spent or the user interrupts; what was measured is stored in any case."""
        bench = self._bench()
        status = "interrupted"
        try:
            status = self._work(bench)
        except KeyboardInterrupt:
            pass  # the status tells
        finally:
            bench.close()
            self._store.finish_run(self._run.id, status, self._unstored_s())
        return replace(tuned_run(self._store, self._run.id), roofline=self._roofline)

    def _bench(self) -> AbstractBench:
        settings = self._settings
        order = Order(settings.problem, settings.target, self._bind, self._recall, self._script_text)
        how = BenchSettings(settings.threads, settings.workers, settings.seed)
        records = tuple(trial.record for trial in self._stored)
        return ReplayingBench(self._composition.bench(order, how), records, self._interruption)

    def _work(self, bench: AbstractBench) -> str:
        """Searches and times the finalists; returns the status of the run."""
        if self._run.vendor is None and self._composition.is_timed(self._settings.target):
            self._measure_vendor()
        self._search(bench)
        if self._interruption.is_asked:
            return "interrupted"
        finals = self._time_finalists(bench)
        if finals is not None:
            if finals.vendor is None:
                self._measure_vendor()  # again, in the same minute as the answer
            else:
                self._keep_vendor(finals.vendor)  # from between the finalists' samples
            self._measure_roofline()
        return "done"

    def _search(self, bench: AbstractBench) -> None:
        """Tries candidates until the budget is spent; stores how long that took, however it ends."""
        started_s = time.monotonic()
        try:
            for trial in self._trials(bench):
                self._keep(trial)
        finally:
            search_s = time.monotonic() - started_s
            self._store.add_search(self._run.id, search_s, max(0.0, search_s - self._progress.judged_s))

    def _trials(self, bench: AbstractBench) -> Iterator[Trial]:
        settings = self._settings
        return search(
            ReplayingSampler(self._sampler, tuple(trial.row for trial in self._stored)),
            self._feasible.candidate,
            bench,
            self._is_over,
            self._propose,
            pending_limit=settings.workers + 1,  # one is timed while the workers compile the next
        )

    def _is_over(self, proposed: int) -> bool:
        settings = self._settings
        if proposed < len(self._stored):
            return False
        if self._interruption.is_asked or (settings.trials is not None and proposed >= settings.trials):
            return True
        return settings.budget_s is not None and self._elapsed_s() >= settings.budget_s

    def _propose(self, number: int, row: int, candidate: Candidate) -> None:
        if number not in self._progress.trial_ids:
            trial_id = self._store.propose(self._run.id, number, row, candidate)
            self._progress.trial_ids[number] = trial_id
            self._progress.counts = replace(self._progress.counts, proposed=number + 1)

    def _recall(self, script_sha256: str, artifact_sha256: str) -> Record | None:
        """Returns what became of the same script or code in an earlier trial; None if that is not known."""
        hopeless = self._hopeless.find(script_sha256 or artifact_sha256)
        if hopeless is not None or self._settings.fresh:
            return hopeless or self._own.find(script_sha256 or artifact_sha256)
        known = self._store.recall(self._reuse_key(), script_sha256 or None, artifact_sha256 or None)
        if known is None or known.record is None:
            return None
        return replace(known.record, reused_from=known.record.reused_from or known.id)

    def _reuse_key(self) -> ReuseKey:
        settings, run = self._settings, self._run
        return ReuseKey(
            settings.problem, settings.target, settings.threads, run.machine.name, run.compiler.fingerprint
        )

    def _keep(self, trial: Trial) -> None:
        """Stores a trial unless it was, and tells of it."""
        progress, record = self._progress, trial.record
        if record.median_s is not None and is_faster(record, progress.best):
            progress.best = record
        progress.counts = with_outcome(progress.counts, record)
        self._hopeless.add(progress.trial_ids[trial.number], record)
        self._own.add(progress.trial_ids[trial.number], record)
        if trial.number < len(self._stored) and self._stored[trial.number].record is not None:
            return
        progress.judged_s += judged_s(record)
        trial_id = progress.trial_ids[trial.number]
        elapsed_s = self._elapsed_s()
        self._store.record(trial_id, record, self._script_text(record), elapsed_s)
        self._stored_s = elapsed_s
        self._observe(TrialDone(trial_id, trial.number, record, progress.counts, progress.best, elapsed_s))

    def _script_text(self, record: Record) -> str:
        """Returns the script of a record; "" for one that could not be bound."""
        return self._bind(record.candidate).text if record.script_sha256 else ""

    def _time_finalists(self, bench: AbstractBench) -> Finals | None:
        """Times the fastest trials again and stores that; returns None where there was none."""
        finalists = choose_finalists(self._store.trials(TrialQuery(run=self._run.id, sort="number")))
        if not finalists:
            return None
        self._observe(FinalsStarted(len(finalists)))
        finals = time_finalists(bench, finalists)
        for trial, measurement in finals.times:
            self._store.set_final(trial.id, measurement)
        if finals.noise is not None:
            self._store.set_noise(self._run.id, finals.noise)
            self._observe(NoiseMeasured(finals.noise))
        return finals

    def _measure_vendor(self) -> None:
        """Times the vendor library in its own process; the run goes on without it when that fails."""
        settings = self._settings
        try:
            with self._interruption.waiting():
                vendor = self._composition.vendor(
                    settings.problem, settings.threads, settings.seed, settings.target
                )
        except TunerError as error:
            self._observe(VendorFailed(str(error)))
            return
        self._keep_vendor(vendor)

    def _keep_vendor(self, vendor: Vendor) -> None:
        self._store.set_vendor(self._run.id, vendor)
        self._observe(VendorMeasured(vendor))

    def _measure_roofline(self) -> None:
        """Measures what the machine can do at most; an answer without it is an answer too."""
        settings = self._settings
        with self._interruption.waiting(), contextlib.suppress(TunerError):
            self._roofline = self._composition.roofline(settings.problem, settings.threads, settings.target)

    def _unstored_s(self) -> float:
        """Returns the seconds since the last outcome was stored."""
        return self._elapsed_s() - self._stored_s

    def _elapsed_s(self) -> float:
        return self._elapsed_before_s + time.monotonic() - self._started_s


def tuned_run(store: "Store", run_id: int) -> TunedRun:
    """Returns a stored run with its answer."""
    run = store.run(run_id)
    answer = answer_of(store.trials(TrialQuery(run=run_id, sort="number")), run.noise)
    return TunedRun(run, store.counts(run_id), answer, run.seconds or 0.0)


def with_outcome(counts: Counts, record: Record) -> Counts:
    """Returns the counts with one more outcome."""
    return Counts(
        counts.proposed,
        counts.measured + (record.status == "measured"),
        counts.verified + (record.status == "verified"),
        counts.failed + (record.status == "failed"),
        counts.reused + (record.reused_from is not None),
    )


def judged_s(record: Record) -> float:
    """Returns the seconds that the measuring worker had a candidate."""
    return sum(seconds for stage, seconds in record.stage_s if stage in JUDGING)


def is_faster(record: Record, best: Record | None) -> bool:
    """Says whether a measured record beats the best so far."""
    if record.median_s is None or best is None or best.median_s is None:
        return record.median_s is not None
    return record.median_s < best.median_s


def elapsed_s(run: Run, trials: tuple[StoredTrial, ...]) -> float:
    """Returns the wall time of a run's earlier sessions; of a killed one, until its last proposal."""
    if run.seconds is not None or not trials:
        return run.seconds or 0.0
    return max(0.0, (max(trial.created for trial in trials) - run.created).total_seconds())
