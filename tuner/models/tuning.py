"""Tunes the matmuls of a program, then runs and times the program with the best scripts.

The steps that compile and run, each in a child process, are passed in as functions. The outcome is that of a
program of fusions, too (``tuner.models.fusion_tuning``).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tuner.analysis.ratios import Comparable, NotComparable
from tuner.core.candidate import TargetName
from tuner.core.errors import TunerError, UsageError
from tuner.core.problem import Problem
from tuner.core.programs import ExplainedFusion, ProgramBaseline, ProgramResult
from tuner.core.queries import TrialQuery
from tuner.core.records import MedianInterval
from tuner.core.reliability import NOT_RECORDED
from tuner.core.runs import RunSettings
from tuner.core.trials import StoredTrial
from tuner.models.compile_work import find_problems
from tuner.models.payload_errors import named_in_errors
from tuner.models.report import ProgramReport
from tuner.models.request import ProgramRequest
from tuner.models.run_work import time_pair
from tuner.models.service import in_child, run_in_child
from tuner.models.speedup import TimedPair, TimedProcesses
from tuner.results.best_trials import best_result
from tuner.targets.backends import Backends
from tuner.tuning.events import Interruption, Observer
from tuner.tuning.run import begin
from tuner.tuning.tuned_run import TunedCampaign, TunedRun

if TYPE_CHECKING:
    from tuner.db.store import Store

PROBLEMS_TIMEOUT_S = 60.0
RUN_TIMEOUT_S = 600.0
SettingsOf = Callable[[Problem], RunSettings]  # raises UsageError for a problem that no strategy supports


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
        """Returns whether each tuned matmul got a script and the program ran without failure or wrong output.

        A defect that the simulator reports counts as a failure. True also if the program was not run because
        its budget had ended; False after an interruption.
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
        timed = TimedProcesses((pair,))
        report = with_times(report, timed, timed.tuned_s, spare_cores)
        return report, with_times(plain, timed, timed.untuned_s, spare_cores), timed.gain(spare_cores)

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
        return TunedProblem(problem, tuned, trial, "" if trial else reason_without_trial(tuned))


def reason_without_trial(tuned: TunedRun) -> str:
    """Returns why a run has no trial that a program could use."""
    if tuned.why_not_worked:
        return f"no candidate worked: {tuned.why_not_worked}"
    return "no candidate was tried"


def with_times(
    report: ProgramReport, timed: TimedProcesses, time: MedianInterval, spare_cores: int
) -> ProgramReport:
    """Returns a report with ``time`` as the time of its calls, and the reliability of ``timed``.

    Returns the report unchanged if it has no times. ``spare_cores``: number of cores without a timed thread.
    """
    if report.times is None:
        return report
    times = replace(
        report.times,
        call_s=time.median,
        interval_s=(time.low, time.high),
        reliability=timed.reliability(spare_cores),
        processes=len(timed.pairs),
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
