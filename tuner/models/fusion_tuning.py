"""Tunes the fusions of a program under one budget, then times the program tuned and untuned.

Each distinct fusion is a run of one campaign, so an interrupted tuning goes on exactly. The trials stay in
the database, where every later compilation of a program finds them. The steps that compile and run, each in a
child process, are passed in as functions.
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
from tuner.core.problem import WEIGHTS_COLD, NamedProblem, Problem
from tuner.core.programs import (
    NO_GAIN,
    ExplainedFusion,
    ProgramBaseline,
    ProgramSource,
    estimated_s,
    fusion_numbers,
)
from tuner.core.requests import CampaignMember, RunRequest
from tuner.models.compile_work import find_fusions
from tuner.models.payload_errors import named_in_errors
from tuner.models.report import ProgramReport
from tuner.models.request import ProgramOptions, ProgramRequest
from tuner.models.run_work import RunAndTimes
from tuner.models.service import in_child, run_and_time_in_child, run_in_child
from tuner.models.speedup import TimedProcesses
from tuner.models.tunable_fusions import TunableFusions
from tuner.models.tuning import (
    RUN_TIMEOUT_S,
    TunedProblem,
    TunedProgram,
    program_result,
    reason_without_trial,
    with_times,
)
from tuner.results.database_name import which_database
from tuner.targets.backends import Backends
from tuner.targets.registry import real_backends
from tuner.tuning.campaign import begin_campaign, campaign_settings
from tuner.tuning.events import CampaignObserver, Interruption, ignore_campaign
from tuner.tuning.tuned_run import TunedCampaign, TunedRun

if TYPE_CHECKING:
    from tuner.db.store import Store

RequestOnThreads = Callable[[Problem, int], RunRequest]  # takes a fusion and its number of threads
PROCESSES = 3  # in which a program is timed, where the budget allows
# Times a budget: what a tuning takes at most, but for a last step that takes longer than estimated
MOST_BUDGETS = 1.15
SEARCHED_PART = 0.6  # of a budget: the campaign gets it if the rest then ends by MOST_BUDGETS
LEAST_CAMPAIGN_S = 3.0  # with less no fusion gets a trial
# The last steps, over running the untuned program: less is compiled, and more is compared and timed
LAST_PER_UNTUNED = 1.0
BASELINES = 0.1  # part of a budget for timing a model next to other runtimes
NO_WORK = "it has its initial configuration, or is loops"
CPU = "cpu"


@dataclass(frozen=True)
class FusionSteps:
    """The steps of tuning a program's fusions that run in child processes; tests may replace them."""

    fusions: Callable[[ProgramRequest, str], TunableFusions]  # takes (request, state of the caches)
    untuned: Callable[[ProgramRequest], ProgramReport]  # runs the program and times each of its fusions
    run: Callable[[ProgramRequest], RunAndTimes]
    baselines: Callable[[ProgramRequest], tuple[ProgramBaseline, ...]] = lambda _request: ()  # of a model


def child_fusion_steps() -> FusionSteps:
    """Returns the real steps, each in a child process that may take 600 s; without baselines."""
    return FusionSteps(
        fusions=lambda request, cache: in_child(find_fusions, request, cache, timeout_s=RUN_TIMEOUT_S),
        untuned=lambda request: run_in_child(request, RUN_TIMEOUT_S),
        run=lambda request: run_and_time_in_child(request, RUN_TIMEOUT_S),
    )


@dataclass(frozen=True)
class ProgramBudget:
    """A budget of seconds for finding the fusions of a program, its campaign, and timing it at the end."""

    budget_s: float | None  # None: no limit
    began_s: float  # by the monotonic clock

    def campaign_s(self, now_s: float, last_s: float) -> float | None:
        """Returns the seconds for the campaign; 0.0 if fewer than LEAST_CAMPAIGN_S are left; None: no limit.

        ``now_s``: the time on the monotonic clock; ``last_s``: estimated seconds of running and timing at the
        end. The campaign gets what is left of the budget without these, but at least SEARCHED_PART
        of the budget, unless all would then take more than MOST_BUDGETS times the budget.
        """
        if self.budget_s is None:
            return None
        others_s = (now_s - self.began_s) + last_s
        wanted_s = max(self.budget_s - others_s, SEARCHED_PART * self.budget_s)
        campaign_s = min(wanted_s, MOST_BUDGETS * self.budget_s - others_s)
        return campaign_s if campaign_s >= LEAST_CAMPAIGN_S else 0.0

    def left_s(self, now_s: float) -> float:
        """Returns the seconds until MOST_BUDGETS times the budget, < 0 after that; inf without a budget."""
        if self.budget_s is None:
            return math.inf
        return self.began_s + MOST_BUDGETS * self.budget_s - now_s


def heaviest_first(
    members: tuple[CampaignMember, ...], fusions: tuple[ExplainedFusion, ...]
) -> tuple[CampaignMember, ...]:
    """Returns the fusions of a campaign by descending share of the untuned program's time.

    ``fusions``: those of the untuned program, in its order. Shares are estimated unless all times are
    reliable.
    """
    weights_s = [fusion.time_s for fusion in fusions if fusion.time_s and fusion.reliability.is_reliable]
    if len(weights_s) < len(fusions):
        weights_s = [estimated_s(fusion.fusion) for fusion in fusions]

    def weight_s(member: CampaignMember) -> float:
        return sum(weights_s[number] for number in fusion_numbers(member.name) if number < len(weights_s))

    return tuple(sorted(members, key=weight_s, reverse=True))


@dataclass(frozen=True)
class ComparedProgram:
    """A run of a program with the schedules that it keeps, and its times in several processes."""

    ran: RunAndTimes
    timed: TimedProcesses | None  # of the tuned schedules, next to the untuned program; None: not timed
    keeps_initial: bool = False  # the tuned schedules are not faster, so that it does not have them


@dataclass(frozen=True)
class Comparing:
    """Compares a tuned program with the untuned one, and keeps what is faster.

    A fusion that is slower with its tuned schedule than with its initial configuration gets the initial one
    back. If the whole program is not faster, all fusions do: tuning makes no program slower.
    """

    run: Callable[[ProgramRequest], RunAndTimes]
    problems: tuple[NamedProblem, ...]
    clock: Callable[[], float] = time.monotonic

    def compare(self, request: ProgramRequest, ends_s: float = math.inf) -> ComparedProgram:
        """Runs and times a tuned program in several processes; returns the run to keep, and times.

        Fusions that are reliably slower than untuned get their initial configurations back, unless that makes
        the program slower. After the first process, one that times the program begins only if it should end
        before ``ends_s``, a time of ``clock``, by the first one's duration. If tuning made the program no
        faster, it is run once more with initial configurations, even after ``ends_s``. A run that could not
        be timed is returned without times. Raises TunerError where the program fails.
        """
        began_s = self.clock()
        ran = self.run(request)
        if ran.times is None:
            return ComparedProgram(ran, None)
        process_s = self.clock() - began_s
        changed = ran.times.changed
        if ran.times.slower and self.clock() + process_s < ends_s:
            request, ran = self._without_slower(request, ran)
        assert ran.times is not None
        pairs = [ran.times.pair]
        while len(pairs) < PROCESSES and self.clock() + process_s < ends_s:
            again = self.run(replace(request, is_compared=False))
            if again.times is None:
                break
            pairs.append(again.times.pair)
        timed = TimedProcesses(tuple(pairs))
        if not changed or timed.is_faster:
            return ComparedProgram(ran, timed)
        initial = self.run(replace(request, kept=self._named(changed)))
        return ComparedProgram(initial, timed, keeps_initial=True)

    def _without_slower(
        self, request: ProgramRequest, ran: RunAndTimes
    ) -> tuple[ProgramRequest, RunAndTimes]:
        """Returns the request and the run in which slower fusions have their initial configurations.

        Returns the given ones where the program is not faster so.
        """
        assert ran.times is not None
        mixed = replace(request, kept=self._named(ran.times.slower))
        again = self.run(mixed)
        if again.times is None or again.times.pair.ratio > ran.times.pair.ratio:
            return request, ran
        return mixed, again

    def _named(self, numbers: frozenset[int]) -> tuple[Problem, ...]:
        return tuple(
            named.problem for named in self.problems if numbers.intersection(fusion_numbers(named.name))
        )


@dataclass(frozen=True)
class FusionTuning:
    """Finds the fusions of a program that can be tuned (``find``), and tunes them (``tune``)."""

    backends: Backends
    steps: FusionSteps
    store: "Store"
    database: str  # path or URL of the store, for the child that compiles the tuned program
    interruption: Interruption
    observe: CampaignObserver
    clock: Callable[[], float] = time.monotonic

    def find(self, request: ProgramRequest, name: str, cache: str = WEIGHTS_COLD) -> TunableFusions:
        """Returns the tunable fusions of a program; ``why_none``, ``left_out``: why others are not tuned.

        ``name``: the program's, for error messages. ``cache``: state of the CPU caches in which fusions are
        timed, as in ``Problem.cache``. Raises UsageError for a program that is not valid.
        """
        began_s = self.clock()
        with named_in_errors(name, request.text):
            fusions = self.steps.fusions(request, cache)
        return replace(fusions, seconds=self.clock() - began_s)

    def tune(
        self,
        request: ProgramRequest,
        fusions: TunableFusions,
        request_of: RequestOnThreads,
        source: str,
        program: ProgramSource | None = None,
        command_began_s: float | None = None,
    ) -> TunedProgram:
        """Times the untuned program, tunes its fusions, the heaviest first, and times it again.

        Args:
            request: the program and how to run it.
            fusions: its tunable fusions.
            request_of: returns the request of a run of one fusion, given its problem and number of threads.
            source: name of the program in the campaign.
            program: where the program comes from, for ``tuner tune --resume``.
            command_began_s: time on the clock from which a budget counts; None: from the search for fusions
                on.

        After an interruption the result has no report; after a failing run it has the reason. Where the
        budget is too short for a trial, it has the untuned program alone. Raises UsageError for wrong limits
        and options.
        """
        began_s = self.clock()
        threads = min(request.options.threads, self.backends.processors().usable)

        def request_of_one(problem: Problem) -> RunRequest:
            return request_of(problem, fusions.threads_of(problem, threads))

        settings, members = campaign_settings(fusions.problems, request_of_one, self.backends, source)
        if command_began_s is None:
            command_began_s = began_s - fusions.seconds
        budget = ProgramBudget(settings.budget_s, command_began_s)
        untuned = self._untuned(request)
        last_s = LAST_PER_UNTUNED * (self.clock() - began_s)
        if request.baselines:
            last_s += BASELINES * (settings.budget_s or 0.0)
        campaign_s = budget.campaign_s(self.clock(), last_s)
        if campaign_s == 0.0:
            return self._not_tuned(request, fusions, untuned, budget, began_s)
        if untuned is not None:
            members = heaviest_first(members, untuned.fusions)
        settings = replace(settings, program=program, budget_s=campaign_s)
        tuned = begin_campaign(
            *(settings, members, self.backends, self.store, self.interruption, self.observe),
            began_s=time.monotonic(),  # the machine is measured before the search
        )
        return self.run_and_time(request, fusions, tuned, began_s, budget)

    def run_and_time(
        self,
        request: ProgramRequest,
        fusions: TunableFusions,
        tuned: TunedCampaign,
        began_s: float,
        budget: ProgramBudget | None = None,
    ) -> TunedProgram:
        """Runs and times a program whose fusions are tuned, unless interrupted; stores the result.

        The program keeps its initial configurations where the tuned schedules are not faster. ``budget``:
        after its end the program is timed in no further process, and next to no further baseline; None: no
        limit.
        """
        budget = budget or ProgramBudget(None, began_s)
        bound = replace(request, database=self.database, scripts=(), campaign=tuned.campaign.id)
        result = TunedProgram(
            request.target,
            tuple(map(_tuned_problem, tuned.runs)),
            bound,
            report=None,
            plain=None,
            seconds=self.clock() - began_s,
            campaign=tuned,
            left_out=fusions.left_out,
        )
        if tuned.is_interrupted:
            return result
        comparing = Comparing(self.steps.run, fusions.problems, self.clock)
        try:
            compared = comparing.compare(bound, self.clock() + budget.left_s(self.clock()))
        except TunerError as error:
            return replace(result, failure=str(error), seconds=self.clock() - began_s)
        timed = self._timed(request, result, compared)
        self.store.set_program_result(tuned.campaign.id, program_result(timed))  # baselines are compiled so
        if bound.baselines:
            left_s = budget.left_s(self.clock())
            baselines = self.steps.baselines(
                replace(bound, baselines_s=None if left_s == math.inf else left_s)
            )
            timed = replace(timed, baselines=baselines)
            self.store.set_program_result(tuned.campaign.id, program_result(timed))
        return replace(timed, seconds=self.clock() - began_s)

    def _untuned(self, request: ProgramRequest) -> ProgramReport | None:
        """Returns a run of the untuned program, with the times of its fusions; None where it fails.

        The tuned program then fails as well, and the result says so.
        """
        request = replace(request, scripts=(), database="", is_compared=False, is_explained=True)
        try:
            return self.steps.untuned(request)
        except TunerError:
            return None

    def _not_tuned(
        self,
        request: ProgramRequest,
        fusions: TunableFusions,
        untuned: ProgramReport | None,
        budget: ProgramBudget,
        began_s: float,
    ) -> TunedProgram:
        spent_s = self.clock() - budget.began_s
        spent = f"finding its fusions and timing it took {spent_s:.0f} of {budget.budget_s:.0f} s"
        return TunedProgram(
            request.target,
            (),
            replace(request, database=self.database, scripts=()),
            report=None,
            plain=untuned,
            seconds=self.clock() - began_s,
            fusions=() if untuned is None else untuned.fusions,
            left_out=fusions.left_out,
            not_run=f"no fusion was tried: {spent}; a longer budget tunes it",
        )

    def _timed(
        self, request: ProgramRequest, result: TunedProgram, compared: ComparedProgram
    ) -> TunedProgram:
        ran = compared.ran
        timed = compared.timed
        if timed is None:
            why = NotComparable(ran.why_untimed) if ran.why_untimed else None
            return replace(result, report=ran.report, gain=why)
        spare_cores = self.backends.machine().physical_cores - request.options.threads
        plain = with_times(ran.report, timed, timed.untuned_s, spare_cores)
        report = with_times(ran.report, timed, timed.tuned_s, spare_cores)
        gain = timed.gain(spare_cores)
        if compared.keeps_initial:
            report = plain
            gain = _no_gain(gain)
        return replace(
            result,
            report=report,
            plain=plain,
            gain=gain,
            fusions=() if ran.times is None else ran.times.fusions,
        )


def _no_gain(gain: Comparable | NotComparable) -> NotComparable:
    if isinstance(gain, Comparable):
        text = f"{NO_GAIN}with the tuned schedules it is {gain.faster_text}"
    elif gain.is_equal:
        text = f"{NO_GAIN}{gain.reason}"
    else:
        text = gain.reason
    return NotComparable(f"{text}; it keeps its initial configurations")


def _tuned_problem(run: TunedRun) -> TunedProblem:
    reason = ""
    if run.best is None:
        reason = f"{reason_without_trial(run)}; {NO_WORK}"
    return TunedProblem(run.run.settings.problem, run, run.best, reason)


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
    arguments: tuple[str, ...] = (),
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
        arguments: contents of the program's arguments, as of ``make_arguments``; others are random.

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
        arguments=arguments,
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
    """Stores the result of a tuned program again, with baselines that were timed after the tuning.

    Nothing is stored of a program without a trial.
    """
    from tuner.results.database import open_or_create  # loads SQLAlchemy

    if tuned.campaign is None:
        return
    with open_or_create(tuned.request.database) as store:
        store.set_program_result(tuned.campaign.campaign.id, program_result(tuned))
