"""Tunes each distinct matmul of a program once, then runs the program with the best scripts."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tuner.analysis.comparison import Comparable, NotComparable
from tuner.core.errors import TunerError, UsageError
from tuner.core.explained_group import ExplainedGroup
from tuner.core.problem import Problem
from tuner.core.program_result import ProgramBaseline
from tuner.core.record import Measurement
from tuner.core.runs import RunSettings, StoredTrial, TrialQuery
from tuner.core.target_name import TargetName
from tuner.programs.gain import TimedPair
from tuner.programs.positions import named_in_errors
from tuner.programs.request import ProgramReport, ProgramRequest, without_scripts
from tuner.tuning.composition import Composition
from tuner.tuning.events import Observer
from tuner.tuning.interruption import Interruption
from tuner.tuning.many_shapes.tuned_group import TunedGroup
from tuner.tuning.run import begin
from tuner.tuning.tuned_run import TunedRun

if TYPE_CHECKING:
    from tuner.db.store import Store

PROBLEMS_TIMEOUT_S = 60.0
RUN_TIMEOUT_S = 600.0
SettingsOf = Callable[[Problem], RunSettings]  # raises UsageError for a problem that no strategy supports


@dataclass(frozen=True)
class ProgramParts:
    """The steps of tuning a program that compile and run, as functions that tests may replace."""

    problems: Callable[[str, str | None], tuple[Problem, ...]]  # takes (text, entry)
    run: Callable[[ProgramRequest], ProgramReport]
    time_pair: Callable[[ProgramRequest], TimedPair]  # with and without the request's scripts


@dataclass(frozen=True)
class TunedProblem:
    """One distinct matmul of a program, and the trial that provides its script."""

    problem: Problem
    tuned: TunedRun | None = None  # None: no strategy supports the problem
    trial: StoredTrial | None = None  # whose script the program uses
    reason: str = ""  # why there is no trial


@dataclass(frozen=True)
class TunedProgram:
    """A program with tuned matmuls, and the reports of its runs with and without the tuned scripts."""

    target: TargetName
    problems: tuple[TunedProblem, ...]
    request: ProgramRequest
    report: ProgramReport | None  # None: interrupted, or failed
    plain: ProgramReport | None  # the report of the run without scripts; None without times
    seconds: float
    failure: str = ""  # why a run of the program failed
    # of a call with scripts relative to one without; None: no times
    gain: Comparable | NotComparable | None = None
    # of a program of groups: their runs under one budget, the times of each, and those that were not tuned
    run_group: TunedGroup | None = None
    groups: tuple[ExplainedGroup, ...] = ()
    left_out: tuple[str, ...] = ()
    baselines: tuple[ProgramBaseline, ...] = ()  # of a model

    @property
    def is_interrupted(self) -> bool:
        """Returns whether the tuning run of a matmul was interrupted; that run can be resumed."""
        if self.run_group is not None:
            return self.run_group.is_interrupted
        return any(each.tuned is not None and each.tuned.is_interrupted for each in self.problems)

    @property
    def has_worked(self) -> bool:
        """True if each matmul that was tuned got a script and all runs of the program gave right outputs.

        False where the program did not run. A group none of whose candidates worked keeps its first
        configuration.
        """
        needed = self.problems if self.run_group is None else ()
        is_found = all(each.trial is not None for each in needed if each.tuned is not None)
        reports = [report for report in (self.report, self.plain) if report is not None]
        is_whole = is_found and self.report is not None and not self.failure
        return is_whole and all(report.is_right for report in reports)

    @property
    def speedup(self) -> float | None:
        """Returns the time of a call without scripts divided by that of a call with scripts.

        None where no times were taken or the times are not comparable.
        """
        return self.gain.speed if isinstance(self.gain, Comparable) else None


def child_process_parts() -> ProgramParts:
    """Returns the steps as used outside of tests: each runs in a child process with a time limit.

    The limit is 60 s to find the matmuls, and 600 s for each run and for the timed pair.
    """
    from tuner.programs.service import problems_in_child, run_in_child, time_pair_in_child

    return ProgramParts(
        problems=lambda text, entry: problems_in_child(text, entry, PROBLEMS_TIMEOUT_S),
        run=lambda request: run_in_child(request, RUN_TIMEOUT_S),
        time_pair=lambda request: time_pair_in_child(request, RUN_TIMEOUT_S),
    )


@dataclass(frozen=True)
class ProgramTuning:
    """The environment in which programs are tuned: steps, store, interruption, observer."""

    composition: Composition
    parts: ProgramParts
    store: "Store"
    interruption: Interruption
    observe: Observer

    def tune(self, request: ProgramRequest, settings_of: SettingsOf, name: str = "payload") -> TunedProgram:
        """Tunes each distinct matmul, then runs the program; where the run is timed, also without scripts.

        After an interruption, the result has the matmuls tuned so far and no report. A failing run of the
        program is not raised: the result has the reason.

        Args:
            request: the program; its scripts are replaced by the best known ones.
            settings_of: returns the run settings of a matmul.
            name: the payload's name in messages.

        Raises UsageError for a payload without a matmul, or without a matmul that any strategy supports.
        """
        began_s = time.monotonic()
        with named_in_errors(name, request.text):
            problems = self.parts.problems(request.text, request.entry)
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
        if all(each.tuned is None for each in tuned):
            raise UsageError(tuned[0].reason)
        scripts = tuple((each.problem, each.trial.script_text) for each in tuned if each.trial is not None)
        bound = replace(request, scripts=scripts)
        report, plain, failure = self._run(bound)
        gain = None
        if report is not None and plain is not None:
            report, plain, gain = self._compared(bound, report, plain)
        seconds = time.monotonic() - began_s
        return TunedProgram(request.target, tuple(tuned), bound, report, plain, seconds, failure, gain)

    def _run(self, request: ProgramRequest) -> tuple[ProgramReport | None, ProgramReport | None, str]:
        """Returns the reports with and without scripts, and why a run failed; tuned scripts are kept."""
        report = None
        try:
            report = self.parts.run(request)
            plain = None if report.times is None else self.parts.run(without_scripts(request))
        except TunerError as error:
            return report, None, str(error)
        return report, plain, ""

    def _compared(
        self, request: ProgramRequest, report: ProgramReport, plain: ProgramReport
    ) -> tuple[ProgramReport, ProgramReport, Comparable | NotComparable]:
        """Returns the reports with the times of interleaved calls, and the comparison of these times."""
        try:
            pair = self.parts.time_pair(request)
        except TunerError as error:
            return report, plain, NotComparable(str(error))
        spare_cores = self.composition.machine().physical_cores - 1  # a program runs in one thread
        report = with_times(report, pair, pair.bound, spare_cores)
        return report, with_times(plain, pair, pair.plain, spare_cores), pair.gain(spare_cores)

    def _tune_one(self, problem: Problem, settings_of: SettingsOf) -> TunedProblem:
        try:
            settings = settings_of(problem)
            tuned = begin(settings, self.composition, self.store, self.interruption, self.observe)
        except UsageError as error:
            return TunedProblem(problem, reason=str(error))
        trial = self._best(tuned)
        return TunedProblem(problem, tuned, trial, "" if trial else "no candidate worked")

    def _best(self, tuned: TunedRun) -> StoredTrial | None:
        """Returns the fastest known trial, earlier runs included.

        Where none is timed, the first verified trial.
        """
        from tuner.run_history.best_known import best_result

        run = tuned.run
        if tuned.selected is not None:
            settings = run.settings
            known = best_result(
                self.store, settings.problem, run.machine.name, settings.target.text, settings.threads
            )
            return known.best
        verified = TrialQuery(run=run.id, status="verified", sort="number", limit=1)
        return next(iter(self.store.trials(verified)), None)


def with_times(report: ProgramReport, pair: TimedPair, time: Measurement, spare_cores: int) -> ProgramReport:
    """Returns a report with the time of its calls in a pair, and how reliable it is; unchanged if untimed."""
    if report.times is None:
        return report
    times = replace(
        report.times,
        call_s=time.median_s,
        interval_s=time.interval_s,
        reliability=pair.reliability(spare_cores),
    )
    return replace(report, times=times)
