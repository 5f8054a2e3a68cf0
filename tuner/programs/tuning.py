"""Tunes the matmuls, or the fusions, of a program, then runs and times the program with the best scripts.

The steps that compile and run, each in a child process, are passed in as functions.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tuner.analysis.ratios import Comparable, NotComparable
from tuner.core.candidate import TargetName
from tuner.core.errors import TunerError, UsageError
from tuner.core.problem import WEIGHTS_COLD, Problem
from tuner.core.programs import ExplainedFusion, ProgramBaseline, ProgramResult, ProgramSource
from tuner.core.queries import TrialQuery
from tuner.core.records import Measurement, MedianInterval
from tuner.core.reliability import NOT_RECORDED
from tuner.core.requests import RunRequest
from tuner.core.runs import RunSettings
from tuner.core.trials import StoredTrial
from tuner.programs.payload_errors import named_in_errors
from tuner.programs.report import ProgramReport
from tuner.programs.request import ProgramOptions, ProgramRequest
from tuner.programs.service import (
    RunAndTimes,
    find_fusions,
    find_problems,
    in_child,
    run_and_time_in_child,
    run_in_child,
    time_pair,
)
from tuner.programs.speedup import TimedPair
from tuner.programs.tunable_fusions import TunableFusions
from tuner.results.best_trials import best_result
from tuner.results.database_name import which_database
from tuner.targets.backends import Backends
from tuner.targets.registry import real_backends
from tuner.tuning.campaign import begin_campaign, campaign_settings
from tuner.tuning.events import CampaignObserver, Interruption, Observer, ignore_campaign
from tuner.tuning.run import begin
from tuner.tuning.tuned_run import TunedCampaign, TunedRun

if TYPE_CHECKING:
    from tuner.db.store import Store

PROBLEMS_TIMEOUT_S = 60.0
RUN_TIMEOUT_S = 600.0
RequestOnThreads = Callable[[Problem, int], RunRequest]  # takes a fusion and its number of threads
SettingsOf = Callable[[Problem], RunSettings]  # raises UsageError for a problem that no strategy supports
# Seconds of the last phase per second of finding a program's fusions: with timing, and at least, without
RUN_PER_FIND = 5.0
LEAST_RUN_PER_FIND = 3.5
OVERRUN = 0.05  # part of a budget by which timing the untuned program may exceed it
LATEST = 0.1, 3.0  # part of a budget, and seconds: a run of the program may exceed it by the larger of them
LEAST_CAMPAIGN_SHARE = 0.3  # part of a budget that the campaign gets at least
CPU = "cpu"


@dataclass(frozen=True)
class ProgramSteps:
    """The steps of tuning a program's matmuls that run in child processes; tests may replace them."""

    problems: Callable[[str, str | None], tuple[Problem, ...]]  # takes (text, entry)
    run: Callable[[ProgramRequest], ProgramReport]
    time_pair: Callable[[ProgramRequest], TimedPair]  # with and without the request's scripts


@dataclass(frozen=True)
class TunedProblem:
    """One distinct matmul or fusion of a program, with the run that tuned it and the trial of its script."""

    problem: Problem
    tuned: TunedRun | None = None  # None: no strategy supports the problem
    trial: StoredTrial | None = None  # whose script the program uses
    reason: str = ""  # why there is no trial


@dataclass(frozen=True, repr=False)
class TunedProgram:
    """The outcome of tuning a program: its matmuls or fusions, and reports of its runs tuned and untuned."""

    target: TargetName
    problems: tuple[TunedProblem, ...]
    request: ProgramRequest
    report: ProgramReport | None  # None: interrupted, failed, or not run
    plain: ProgramReport | None  # the report of the untuned program; None without times
    seconds: float  # of tuning, running and timing
    failure: str = ""  # why a run of the program failed
    # time of a tuned call relative to an untuned one; None: no times
    gain: Comparable | NotComparable | None = None
    # of a program of fusions: their runs under one budget, the times of each, and those that were not tuned
    campaign: TunedCampaign | None = None
    fusions: tuple[ExplainedFusion, ...] = ()
    left_out: tuple[str, ...] = ()
    baselines: tuple[ProgramBaseline, ...] = ()  # of a model
    not_run: str = ""  # why the tuned program was not run: its budget had ended

    def __repr__(self) -> str:
        """Returns one line: target, number of tuned problems, and the gain or why there is none."""
        if self.failure:
            what = f"failed: {self.failure}"
        elif isinstance(self.gain, Comparable):
            what = f"{self.gain.times_text} as fast as untuned"
        else:
            what = "no gain measured" if self.gain is None else self.gain.reason
        count = len(self.problems) or len(self.fusions)
        return f"TunedProgram(on {self.target}: {count} problems; {what})"

    @property
    def is_interrupted(self) -> bool:
        """Returns whether a matmul's run, or the fusions' campaign, was interrupted; it can be resumed."""
        if self.campaign is not None:
            return self.campaign.is_interrupted
        return any(problem.tuned is not None and problem.tuned.is_interrupted for problem in self.problems)

    @property
    def has_worked(self) -> bool:
        """True if each tuned matmul got a script and the program ran without failure, defect or wrong output.

        True, too, where it was not run because its budget had ended; False after an interruption.
        """
        needed = self.problems if self.campaign is None else ()
        is_found = all(problem.trial is not None for problem in needed if problem.tuned is not None)
        reports = [report for report in (self.report, self.plain) if report is not None]
        is_whole = is_found and (self.report is not None or bool(self.not_run)) and not self.failure
        return is_whole and all(report.is_right for report in reports)

    @property
    def speedup(self) -> float | None:
        """Returns the time of an untuned call divided by that of a tuned one; None if not comparable."""
        if isinstance(self.gain, Comparable):
            return self.gain.speed
        return None


def child_process_steps() -> ProgramSteps:
    """Returns the real steps: child processes that may take 60 s to find matmuls, 600 s for other steps."""
    return ProgramSteps(
        problems=lambda text, entry: in_child(find_problems, text, entry, timeout_s=PROBLEMS_TIMEOUT_S),
        run=lambda request: run_in_child(request, RUN_TIMEOUT_S),
        time_pair=lambda request: in_child(time_pair, request, timeout_s=RUN_TIMEOUT_S),
    )


@dataclass(frozen=True)
class ProgramTuning:
    """What tuning a program's matmuls needs: targets, steps, store, interruption, observer."""

    backends: Backends
    steps: ProgramSteps
    store: "Store"
    interruption: Interruption
    observe: Observer

    def tune(self, request: ProgramRequest, settings_of: SettingsOf, name: str = "payload") -> TunedProgram:
        """Tunes each distinct matmul, then runs the program; where runs are timed, also without scripts.

        ``settings_of`` returns the run settings of a matmul; ``name``: the program's, for error messages.
        After an interruption the result has the matmuls tuned so far and no report. After a failing run it
        has the reason. Raises UsageError for a payload without a matmul that any strategy supports.
        """
        began_s = time.monotonic()
        with named_in_errors(name, request.text):
            of_text = self.steps.problems(request.text, request.entry)
            problems = tuple(problem.multiplied_as(request.options.math) for problem in of_text)
            if not problems:
                raise UsageError("no matmul of static sizes and known types")
        tuned: list[TunedProblem] = []
        for problem in problems:
            tuned.append(self._tune_one(problem, settings_of))
            run = tuned[-1].tuned
            if self.interruption.is_asked or (run is not None and run.is_interrupted):
                return TunedProgram(
                    request.target, tuple(tuned), request, None, None, time.monotonic() - began_s
                )
        if all(problem.tuned is None for problem in tuned):
            raise UsageError(tuned[0].reason)
        scripts = tuple(
            (problem.problem, problem.trial.script_text) for problem in tuned if problem.trial is not None
        )
        bound = replace(request, scripts=scripts)
        report = None
        plain = None
        gain = None
        failure = ""
        try:
            report = self.steps.run(bound)
            if report.times is not None:
                plain = self.steps.run(replace(bound, scripts=None))
                report, plain, gain = self._compared(bound, report, plain)
        except TunerError as error:
            failure = str(error)
        seconds = time.monotonic() - began_s
        return TunedProgram(request.target, tuple(tuned), bound, report, plain, seconds, failure, gain)

    def _compared(
        self, request: ProgramRequest, report: ProgramReport, plain: ProgramReport
    ) -> tuple[ProgramReport, ProgramReport, Comparable | NotComparable]:
        try:
            pair = self.steps.time_pair(request)
        except TunerError as error:
            return report, plain, NotComparable(str(error))
        spare_cores = self.backends.machine().physical_cores - 1  # a program runs in one thread
        report = with_times(report, pair, pair.bound, spare_cores)
        return report, with_times(plain, pair, pair.plain, spare_cores), pair.gain(spare_cores)

    def _tune_one(self, problem: Problem, settings_of: SettingsOf) -> TunedProblem:
        try:
            settings = settings_of(problem)
            tuned = begin(settings, self.backends, self.store, self.interruption, self.observe)
        except UsageError as error:
            return TunedProblem(problem, reason=str(error))
        run = tuned.run
        settings = tuned.run.settings
        if tuned.selected is not None:  # earlier runs may have a faster trial
            machine = run.machine.name
            trial: StoredTrial | None = best_result(
                self.store, settings.problem, machine, settings.target.text, settings.threads
            ).best
        else:
            verified = TrialQuery(run=run.id, status="verified", sort="number", limit=1)
            trial = next(iter(self.store.trials(verified)), None)
        return TunedProblem(problem, tuned, trial, "" if trial else _reason(tuned))


def _reason(tuned: TunedRun) -> str:
    if tuned.why_not_worked:
        return f"no candidate worked: {tuned.why_not_worked}"
    return "no candidate was tried"


def with_times(report: ProgramReport, pair: TimedPair, time: Measurement, spare_cores: int) -> ProgramReport:
    """Returns a report with ``time`` as the time of its calls, and the reliability of ``pair``.

    Returns the report unchanged if it has no times. ``spare_cores``: number of cores without a timed thread.
    """
    if report.times is None:
        return report
    times = replace(
        report.times,
        call_s=time.median_s,
        interval_s=time.interval_s,
        reliability=pair.reliability(spare_cores),
    )
    return replace(report, times=times)


def program_result(tuned: TunedProgram) -> ProgramResult:
    """Returns the times, fusions and baselines of a tuned program of fusions, as the database stores them."""
    gain = tuned.gain
    times, plain = (None if report is None else report.times for report in (tuned.report, tuned.plain))
    if isinstance(gain, Comparable):
        speed = MedianInterval(gain.speed, *gain.speed_interval)
    else:
        speed = None
    return ProgramResult(
        None if times is None else times.call_s,
        None if plain is None else plain.call_s,
        speed,
        tuned.fusions,
        tuned.left_out,
        tuned.baselines,
        NOT_RECORDED if times is None else times.reliability,
        gain.reason if isinstance(gain, NotComparable) else "",
    )


# Tunes the fusions of a program under one budget, then times the program tuned and untuned.
#
# Each distinct fusion is a run of one campaign, so an interrupted tuning goes on exactly. The trials stay in
# the database, where every later compilation of a program finds them.


@dataclass(frozen=True)
class FusionSteps:
    """The steps of tuning a program's fusions that run in child processes; tests may replace them."""

    fusions: Callable[[ProgramRequest, str], TunableFusions]  # takes (request, state of the caches)
    run: Callable[[ProgramRequest, float | None], RunAndTimes]  # takes (request, end on time.monotonic)
    baselines: Callable[[ProgramRequest], tuple[ProgramBaseline, ...]] = lambda _request: ()  # of a model


def campaign_budget_s(budget_s: float | None, search_s: float) -> float | None:
    """Returns how many of a program's ``budget_s`` seconds its tuning campaign may take; None: no budget.

    ``search_s``: seconds that finding the fusions took. What the campaign leaves over, if anything, is for
    running the program.
    """
    if budget_s is None:
        return None
    if search_s + LEAST_CAMPAIGN_SHARE * budget_s > latest_run_s(budget_s, search_s):
        return max(0.0, budget_s - search_s)  # the program will not be run
    return max(LEAST_CAMPAIGN_SHARE * budget_s, budget_s - (1 + RUN_PER_FIND) * search_s)


def latest_run_s(budget_s: float | None, search_s: float) -> float:
    """Returns how long after its start a tuning may still run the program, in seconds; inf without a budget.

    ``search_s``: seconds that finding the fusions took, from which the time of a run is estimated.
    """
    if budget_s is None:
        return math.inf
    part, least_s = LATEST
    return budget_s + max(part * budget_s, least_s) - LEAST_RUN_PER_FIND * search_s


def child_fusion_steps() -> FusionSteps:
    """Returns the real steps, each in a child process that may take 600 s; without baselines."""
    return FusionSteps(
        fusions=lambda request, cache: in_child(find_fusions, request, cache, timeout_s=RUN_TIMEOUT_S),
        run=lambda request, until_s: run_and_time_in_child(request, until_s, RUN_TIMEOUT_S),
    )


@dataclass(frozen=True)
class FusionTuning:
    """What tuning a program's fusions needs: targets, steps, store, interruption, observer."""

    backends: Backends
    steps: FusionSteps
    store: "Store"
    database: str  # path or URL of the store, for the child that compiles the tuned program
    interruption: Interruption
    observe: CampaignObserver

    def find(self, request: ProgramRequest, name: str, cache: str = WEIGHTS_COLD) -> TunableFusions:
        """Returns the tunable fusions of a program; of others, ``why_none`` or ``left_out`` has the reasons.

        ``name``: the program's, for error messages. ``cache``: state of the CPU caches in which fusions are
        timed, as in ``Problem.cache``. Raises UsageError for a program that is not valid.
        """
        began_s = time.monotonic()
        with named_in_errors(name, request.text):
            fusions = self.steps.fusions(request, cache)
        return replace(fusions, seconds=time.monotonic() - began_s)

    def tune(
        self,
        request: ProgramRequest,
        fusions: TunableFusions,
        request_of: RequestOnThreads,
        source: str,
        program: ProgramSource | None = None,
        command_began_s: float | None = None,
    ) -> TunedProgram:
        """Tunes the fusions; then runs the program, compares it, and times it against the untuned program.

        Args:
            request: the program and how to run it.
            fusions: its tunable fusions.
            request_of: returns the request of a run of one fusion, given its problem and number of threads.
            source: name of the program in the campaign.
            program: where the program comes from, for ``tuner tune --resume``.
            command_began_s: time on ``time.monotonic`` from which a budget counts; None: from the search for
                fusions on.

        After an interruption the result has no report; after a failing run it has the reason. Raises
        UsageError for wrong limits and options.
        """
        began_s = time.monotonic()
        threads = min(request.options.threads, self.backends.processors().usable)

        def request_of_one(problem: Problem) -> RunRequest:
            return request_of(problem, fusions.threads_of(problem, threads))

        settings, members = campaign_settings(fusions.problems, request_of_one, self.backends, source)
        budget_s = settings.budget_s
        budget_began_s = began_s - fusions.seconds
        if budget_s is not None and command_began_s is not None:
            budget_s = max(0.0, budget_s - (budget_began_s - command_began_s))
        until_s = None if budget_s is None else budget_began_s + (1 + OVERRUN) * budget_s
        latest_s = budget_began_s + latest_run_s(budget_s, fusions.seconds)
        settings = replace(settings, program=program, budget_s=campaign_budget_s(budget_s, fusions.seconds))
        tuned = begin_campaign(settings, members, self.backends, self.store, self.interruption, self.observe)
        return self.run_and_time(request, fusions, tuned, began_s, until_s, latest_s)

    def run_and_time(
        self,
        request: ProgramRequest,
        fusions: TunableFusions,
        tuned: TunedCampaign,
        began_s: float,
        until_s: float | None = None,
        latest_s: float = math.inf,
    ) -> TunedProgram:
        """Runs and times a program whose fusions are tuned, unless interrupted; stores the result of a run.

        The program is not run after ``latest_s`` of ``time.monotonic``. It is run, but not timed against the
        untuned program, after ``until_s``.
        """
        bound = replace(request, database=self.database, scripts=())
        result = TunedProgram(
            request.target,
            tuple(
                TunedProblem(run.run.settings.problem, run, run.best, "" if run.best else _reason(run))
                for run in tuned.runs
            ),
            bound,
            report=None,
            plain=None,
            seconds=time.monotonic() - began_s,
            campaign=tuned,
            left_out=fusions.left_out,
        )
        if tuned.is_interrupted:
            return result
        if time.monotonic() > latest_s:
            return replace(result, not_run="the budget ended before; its fusions are tuned and stored")
        try:
            ran = self.steps.run(bound, until_s)
        except TunerError as error:
            return replace(result, failure=str(error), seconds=time.monotonic() - began_s)
        timed = self._timed(bound, result, ran)
        baselines = self.steps.baselines(bound) if bound.baselines else ()
        timed = replace(timed, baselines=baselines, seconds=time.monotonic() - began_s)
        self.store.set_program_result(tuned.campaign.id, program_result(timed))
        return timed

    def _timed(self, request: ProgramRequest, result: TunedProgram, ran: RunAndTimes) -> TunedProgram:
        if ran.times is None:
            why = NotComparable(ran.why_untimed) if ran.why_untimed else None
            return replace(result, report=ran.report, gain=why, fusions=ran.fusions)
        pair = ran.times.pair
        spare_cores = self.backends.machine().physical_cores - request.options.threads
        return replace(
            result,
            report=with_times(ran.report, pair, pair.bound, spare_cores),
            plain=with_times(ran.report, pair, pair.plain, spare_cores),
            gain=pair.gain(spare_cores),
            fusions=ran.times.fusions,
        )


def tune_text(
    text: str,
    *,
    trials: int | None = None,
    budget_s: float | None = None,
    seed: int = 0,
    workers: int | None = None,
    database: str | Path | None = None,
    source: str = "",
    observe: CampaignObserver = ignore_campaign,
    threads: int = 1,
) -> TunedProgram:
    """Tunes the fusions of an MLIR program on this processor under one budget; times it tuned and untuned.

    Args:
        text: MLIR text of a function on tensors, with its constants.
        trials: candidates of all fusions together; None: as the budget allows, or 8 per fusion without one.
        budget_s: seconds of the tuning, with running and timing the program at its end.
        seed: of the order of trials and of random inputs.
        workers: candidates compiled at once.
        database: path or URL of the results database; None: the default one.
        source: name of the program, stored with the runs.
        observe: called with each event.
        threads: of the program; a fusion that the program divides is tuned on all of them, others on one.

    Raises UsageError for a program that has no fusions to tune, with the reason, and for wrong limits.
    """
    from tuner.results.database import open_or_create  # loads SQLAlchemy

    def request_of(problem: "Problem", threads: int) -> RunRequest:
        return RunRequest(
            *(problem, CPU),
            threads=threads,
            trials=trials,
            budget_s=budget_s,
            seed=seed,
            workers=workers,
            warm_start=False,
        )

    request = ProgramRequest(
        text,
        TargetName(CPU),
        options=ProgramOptions(seed=seed, threads=threads),
        is_compared=False,
    )
    with open_or_create(database) as store:
        tuning = FusionTuning(
            real_backends(), child_fusion_steps(), store, which_database(database), Interruption(), observe
        )
        fusions = tuning.find(request, source or "program")
        if not fusions.problems:
            reason = fusions.why_none or "; ".join(fusions.left_out) or "it has no operations"
            raise UsageError(f"{source or 'program'}: has no fusions to tune: {reason}")
        return tuning.tune(request, fusions, request_of, source)


def store_result(tuned: TunedProgram) -> None:
    """Stores the result of a tuned program again, with baselines that were timed after the tuning."""
    from tuner.results.database import open_or_create  # loads SQLAlchemy

    assert tuned.campaign is not None
    with open_or_create(tuned.request.database) as store:
        store.set_program_result(tuned.campaign.campaign.id, program_result(tuned))
