"""Tunes the groups of a program under one budget, then times the program tuned and untuned.

Each distinct group is a run of one group of runs, so an interrupted tuning goes on exactly
(``tuner.tuning.many_shapes``). The trials stay in the database, where every later compilation of a program
finds them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tuner.analysis.comparison import NotComparable
from tuner.core.errors import TunerError
from tuner.core.problem import WEIGHTS_COLD
from tuner.core.program_result import ProgramBaseline, ProgramSource
from tuner.programs.group_times import TimedGroups
from tuner.programs.positions import named_in_errors
from tuner.programs.program_outcome import program_result
from tuner.programs.request import ProgramReport, ProgramRequest
from tuner.programs.tunable_groups import TunableGroups
from tuner.programs.tuning import RUN_TIMEOUT_S, TunedProblem, TunedProgram, with_times
from tuner.tuning.composition import Composition
from tuner.tuning.interruption import Interruption
from tuner.tuning.many_shapes.group_events import GroupObserver
from tuner.tuning.many_shapes.group_request import RequestOf, group_settings
from tuner.tuning.many_shapes.group_run import begin_group
from tuner.tuning.many_shapes.tuned_group import TunedGroup
from tuner.tuning.tuned_run import TunedRun

if TYPE_CHECKING:
    from tuner.db.store import Store

NO_WORK = "no candidate worked: it has its first configuration, or is loops"


def no_baselines(_request: ProgramRequest) -> tuple[ProgramBaseline, ...]:
    """Returns (): nothing else runs the program."""
    return ()


@dataclass(frozen=True)
class GroupParts:
    """The steps that compile and run a program, as functions that tests may replace."""

    groups: Callable[[ProgramRequest, str], TunableGroups]  # takes (request, state of the caches)
    run: Callable[[ProgramRequest], ProgramReport]
    time: Callable[[ProgramRequest], TimedGroups]
    baselines: Callable[[ProgramRequest], tuple[ProgramBaseline, ...]] = no_baselines  # of a model


def child_group_parts() -> GroupParts:
    """Returns the steps as used outside of tests: each in a child process that may take 600 s."""
    from tuner.programs.service import groups_in_child, run_in_child, time_groups_in_child

    return GroupParts(
        groups=lambda request, cache: groups_in_child(request, cache, RUN_TIMEOUT_S),
        run=lambda request: run_in_child(request, RUN_TIMEOUT_S),
        time=lambda request: time_groups_in_child(request, RUN_TIMEOUT_S),
    )


@dataclass(frozen=True)
class GroupTuning:
    """The environment in which programs of groups are tuned."""

    composition: Composition
    parts: GroupParts
    store: "Store"
    database: str  # path or URL of the store, for the child that compiles the tuned program
    interruption: Interruption
    observe: GroupObserver

    def found(self, request: ProgramRequest, name: str, cache: str = WEIGHTS_COLD) -> TunableGroups:
        """Returns the groups of a program that can be tuned; ``why_none`` says why it has none.

        ``name``: of the payload, in messages. Raises UsageError for text that does not parse.
        """
        with named_in_errors(name, request.text):
            return self.parts.groups(request, cache)

    def tune(
        self,
        request: ProgramRequest,
        found: TunableGroups,
        request_of: RequestOf,
        source: str,
        program: ProgramSource | None = None,
    ) -> TunedProgram:
        """Tunes the groups; then runs the program, compares it and times it against the untuned one.

        Args:
            request: the program; its database is replaced.
            found: its groups, at least one.
            request_of: returns the request of a run of one group, with the limits of all runs.
            source: name of the program, stored with the group of runs.
            program: where it comes from, for ``tuner tune --resume``; None of one that no file has.

        After an interruption the result has no report. A failing run of the program is not raised: the result
        has the reason. Raises UsageError for limits and options that are wrong.
        """
        began_s = time.monotonic()
        settings, members = group_settings(found.problems, request_of, self.composition, source)
        settings = replace(settings, program=program)
        tuned = begin_group(settings, members, self.composition, self.store, self.interruption, self.observe)
        return self.finished(request, found, tuned, began_s)

    def finished(
        self, request: ProgramRequest, found: TunableGroups, tuned: TunedGroup, began_s: float
    ) -> TunedProgram:
        """Returns the result of a program whose groups are tuned; runs and times it unless interrupted.

        ``began_s``: when the tuning began, by ``time.monotonic``.
        """
        bound = replace(request, database=self.database, scripts=())
        result = TunedProgram(
            request.target,
            tuple(map(_problem, tuned.runs)),
            bound,
            report=None,
            plain=None,
            seconds=time.monotonic() - began_s,
            run_group=tuned,
            left_out=found.left_out,
        )
        if tuned.is_interrupted:
            return result
        try:
            report = self.parts.run(bound)
        except TunerError as error:
            return replace(result, failure=str(error), seconds=time.monotonic() - began_s)
        timed = self._timed(bound, replace(result, report=report))
        baselines = self.parts.baselines(bound) if bound.baselines else ()
        timed = replace(timed, baselines=baselines, seconds=time.monotonic() - began_s)
        self.store.set_program_result(tuned.group.id, program_result(timed))
        return timed

    def _timed(self, request: ProgramRequest, result: TunedProgram) -> TunedProgram:
        """Returns the result with the times of the tuned and the untuned program, and of each group."""
        report = result.report
        if report is None or report.times is None:
            return result
        try:
            timed = self.parts.time(request)
        except TunerError as error:
            return replace(result, gain=NotComparable(str(error)))
        spare_cores = self.composition.machine().physical_cores - request.options.threads
        return replace(
            result,
            report=with_times(report, timed.pair, timed.pair.bound, spare_cores),
            plain=with_times(report, timed.pair, timed.pair.plain, spare_cores),
            gain=timed.pair.gain(spare_cores),
            groups=timed.groups,
        )


def _problem(tuned: TunedRun) -> TunedProblem:
    best = tuned.best
    return TunedProblem(tuned.run.settings.problem, tuned, best, "" if best is not None else NO_WORK)
