"""Campaigns: many problems tuned under one budget; begins a new one, or resumes a stored one.

``begin_campaign`` chooses the common configurations and stores the campaign, ``resume_campaign`` checks a
stored one; both then work in a ``CampaignSession``. The choice of configurations is below them, and
``campaign_settings``, which makes settings of a request, is at the end.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from tuner.analysis.warm_start import Known, TuningTask, is_same_product, warm_points
from tuner.core.candidate import AUTO, Candidate, TargetName
from tuner.core.errors import TunerError, UsageError
from tuner.core.machine import Machine
from tuner.core.problem import NamedProblem, Problem, distinct_problems
from tuner.core.problem_classes import MatmulProblem, TextProblem
from tuner.core.requests import Campaign, CampaignMember, CampaignProposal, CampaignSettings, RunRequest
from tuner.core.roofline import Roofline
from tuner.core.runs import SHIPPED, InitialConfiguration
from tuner.runtime.timing_lock import LockWait
from tuner.search.samplers import make_sampler
from tuner.space.feasible_set import FeasibleSet
from tuner.targets.backends import Backends, require_runs_here
from tuner.targets.target import Plan, Target
from tuner.tuning import events
from tuner.tuning.campaign_session import CampaignPlan, CampaignSession, LateSampler
from tuner.tuning.earlier_results import EarlierRuns
from tuner.tuning.pool import PoolProblem, projected_pool
from tuner.tuning.pretuned import shipped_picks, shipped_rule
from tuner.tuning.request import (
    RunLimit,
    require_memory,
    require_more,
    require_same_rows,
    require_workers,
    run_settings,
)
from tuner.tuning.rule import ProblemSpaces
from tuner.tuning.run import machine_of_run, observe_load, under_compiler
from tuner.tuning.run_steps import Session
from tuner.tuning.same_code import require_same_code, require_same_tools
from tuner.tuning.tuned_run import TunedCampaign, tuned_campaign
from tuner.version import __version__

if TYPE_CHECKING:
    from tuner.db.store import Store
TRIALS_EACH = 8  # of each problem on average, where neither trials nor a budget is given
RequestOf = Callable[[Problem], RunRequest]  # raises UsageError


def begin_campaign(
    settings: CampaignSettings,
    members: tuple[CampaignMember, ...],
    backends: Backends,
    store: "Store",
    interruption: events.Interruption,
    observe: events.CampaignObserver = events.ignore_campaign,
    *,
    began_s: float | None = None,
) -> TunedCampaign:
    """Tunes many problems under one budget: stores a new campaign, works until its end, returns it.

    ``members``: each problem once; all have the same target, seed and workers. The configurations to try on
    every problem (``CampaignSettings.columns``) are chosen here. ``began_s``: when the command began, by the
    monotonic clock; the budget counts from there. Raises UsageError, before anything is stored, if a problem
    cannot be tuned on this machine.
    """
    if not members:
        raise UsageError("no problem to tune")
    members = tuple(
        replace(member, settings=replace(member.settings, first=(), trials=None, budget_s=None))
        for member in members
    )
    common = max((member.settings for member in members), key=attrgetter("threads"))
    target = backends.target_of_run(common)
    if target.needs_local_resources:
        require_workers(common.workers, backends.machine())
        for member in members:
            require_memory(member.settings.problem, backends.machine())
    machine = machine_of_run(common, target, backends)
    members = tuple(map(partial(_with_first, machine=machine, store=store), members))
    plans = _plans(members, target, machine)
    floors_s = _floors_s(members, target, machine, interruption, LockWait(limit_s=settings.budget_s))
    settings = replace(settings, floors_s=floors_s)
    columns = _columns(members, plans, machine, are_fusions=settings.are_fusions)
    settings = replace(settings, columns=columns)
    plan = _campaign_plan(members, plans, settings.columns, machine)
    compiler = target.compiler(common.target)
    load = backends.load_average()
    campaign_id = store.begin_campaign(settings, members, machine, compiler, __version__, load)
    return _session(
        store.campaign(campaign_id), plan, (), target, backends, store, interruption, observe, began_s
    )


def resume_campaign(
    campaign_id: int,
    backends: Backends,
    store: "Store",
    interruption: events.Interruption,
    observe: events.CampaignObserver = events.ignore_campaign,
    *,
    limit: RunLimit | None = None,
) -> TunedCampaign:
    """Resumes a stored campaign with its settings; returns it with its selected results.

    ``limit`` replaces the campaign's limits; if it is None, a finished campaign is returned as it is. Raises
    UsageError if ``limit`` is exceeded already, if trials were pruned or one of its runs was extended alone,
    and if the machine, the tools or the code of a trial has changed.
    """
    campaign = store.campaign(campaign_id)
    if campaign.status == "done" and limit is None:
        return tuned_campaign(store, campaign_id)
    common = max((run.settings for run in campaign.runs), key=attrgetter("threads"))
    require_runs_here(common.target, backends, "tuner tune --shapes FILE")
    target = backends.target_of_run(common)
    machine = machine_of_run(common, target, backends)
    stored = store.campaign_proposals(campaign_id)
    _require_all_stored(campaign, stored, store)
    # limits that the finished run got for itself do not count within the campaign
    members = tuple(
        CampaignMember(
            replace(run.settings, trials=None, budget_s=None), run.campaign.name, run.campaign.count
        )
        for run in campaign.runs
        if run.campaign is not None
    )
    plans = _plans(members, target, machine)
    compiler = target.compiler(common.target)
    for index, (run, plan_of_run) in enumerate(zip(campaign.runs, plans, strict=True)):

        def report_compiling(event: events.Event, index: int = index) -> None:
            observe(events.RunEvent(index, event, len(stored), campaign.seconds))

        of_run = tuple(proposal.proposal for proposal in stored if proposal.run == run.id)
        require_same_tools(run, machine, compiler)
        require_same_rows(run, plan_of_run.feasible, of_run)
        require_same_code(Session(run, of_run, target, store, interruption, report_compiling))
        under_compiler(run, compiler, store)
    if limit is not None:
        require_more(f"campaign {campaign_id}", len(stored), campaign.search_s, limit)
        store.extend_campaign(campaign_id, limit.trials, limit.budget_s)
    plan = _campaign_plan(members, plans, campaign.settings.columns, machine)
    store.set_campaign_status(campaign_id, "running")
    campaign = store.campaign(campaign_id)
    ends_early = limit is None  # else more is asked for, whether there is something to gain or not
    return _session(
        campaign, plan, stored, target, backends, store, interruption, observe, ends_early=ends_early
    )


def _columns(
    members: tuple[CampaignMember, ...], plans: tuple[Plan, ...], machine: Machine, *, are_fusions: bool
) -> tuple[Candidate, ...]:
    """Returns the configurations to try on every problem, each once.

    These are the first choices of the search-space file and of the cost model, the configurations of untuned
    fusions, and the configurations of the shipped results.
    """
    columns: list[Candidate] = []
    for plan in plans:
        columns += map(plan.feasible.candidate, (*plan.first, *plan.seeds({})))
    if are_fusions:
        columns += map(_untuned, members, plans)
    columns += _shipped_columns(members, machine)
    return tuple(dict.fromkeys(columns))


def _shipped_columns(members: tuple[CampaignMember, ...], machine: Machine) -> Iterator[Candidate]:
    """Yields the configurations of the shipped results for the members' types; none on a GPU."""
    if machine.chip:
        return
    chosen = {strategy.name for member in members for strategy in member.settings.strategies}
    types = dict.fromkeys(
        (member.settings.problem.multiplied_dtype, member.settings.threads) for member in members
    )
    for dtype, threads in types:
        shipped = shipped_rule(machine, dtype, threads)
        columns = () if shipped is None else shipped.rule.columns
        yield from (column for column in columns if column.strategy in chosen)


def _session(
    campaign: Campaign,
    plan: CampaignPlan,
    stored: tuple[CampaignProposal, ...],
    target: Target,
    backends: Backends,
    store: "Store",
    interruption: events.Interruption,
    observe: events.CampaignObserver,
    began_s: float | None = None,
    *,
    ends_early: bool = True,
) -> TunedCampaign:
    def observe_first(event: events.Event) -> None:
        observe(events.RunEvent(0, event, len(stored), campaign.seconds))

    feasible = sum(map(attrgetter("rows"), plan.feasible))
    observe(events.CampaignStarted(campaign, len(stored), feasible))
    observe_load(campaign.runs[0], target, backends, observe_first)
    before_s = 0.0 if began_s is None else time.monotonic() - began_s
    session = CampaignSession(
        campaign, plan, stored, target, store, interruption, observe, before_s, ends_early=ends_early
    )
    return session.run()


def _plans(members: tuple[CampaignMember, ...], target: Target, machine: Machine) -> tuple[Plan, ...]:
    plans = []
    for member in members:
        with _errors_name(member.settings.problem):
            plans.append(target.plan(member.settings, machine))
    return tuple(plans)


def _floors_s(
    members: tuple[CampaignMember, ...],
    target: Target,
    machine: Machine,
    interruption: events.Interruption,
    wait: LockWait,
) -> tuple[float, ...]:
    """Returns for each member the least seconds that the machine's roofline allows; () where it is not known.

    Also () if a member is not a fusion: other problems are as far from their roofline as each other.
    """
    if not all(isinstance(member.settings.problem, TextProblem) for member in members):
        return ()
    rooflines: dict[tuple[str, int], Roofline] = {}  # by dtype and number of threads
    floors_s = []
    for member in members:
        problem = member.settings.problem
        threads = member.settings.threads
        try:
            if (problem.multiplied_dtype, threads) not in rooflines:
                with interruption.waiting():
                    rooflines[problem.multiplied_dtype, threads] = target.roofline(problem, threads, wait)
        except TunerError:
            return ()
        roofline = rooflines[problem.multiplied_dtype, threads]
        floors_s.append(roofline.least_s(problem.flop, problem.bytes, machine.l3_bytes))
    return tuple(floors_s)


def _campaign_plan(
    members: tuple[CampaignMember, ...],
    plans: tuple[Plan, ...],
    columns: tuple[Candidate, ...],
    machine: Machine,
) -> CampaignPlan:
    feasible = tuple(plan.feasible for plan in plans)
    problems = []
    samplers = []
    for member, own in zip(members, feasible, strict=True):
        settings = member.settings
        problems.append(PoolProblem(settings.problem, member.count, own.spaces))
        samplers.append(LateSampler(partial(make_sampler, settings.sampler, own, settings.seed)))
    pool = projected_pool(tuple(problems), columns, machine, members[0].settings.threads)
    kept = tuple(map(_only_feasible, pool.candidates, feasible))
    index_of = {column: index for index, column in enumerate(columns)}
    firsts = tuple(map(index_of.get, map(_untuned, members, plans)))
    return CampaignPlan(replace(pool, candidates=kept, firsts=firsts), feasible, tuple(samplers))


def _only_feasible(
    candidates: tuple[Candidate | None, ...], feasible: FeasibleSet
) -> tuple[Candidate | None, ...]:
    """Returns the projections with None for each that is not in a feasible set, which may be a sample."""
    kept: list[Candidate | None] = []
    for candidate in candidates:
        is_feasible = candidate is not None and feasible.row_of(candidate) is not None
        kept.append(candidate if is_feasible else None)
    return tuple(kept)


def _with_first(member: CampaignMember, machine: Machine, store: "Store") -> CampaignMember:
    return replace(member, settings=replace(member.settings, first=_first(member, machine, store)))


def _first(member: CampaignMember, machine: Machine, store: "Store") -> tuple[InitialConfiguration, ...]:
    """Returns the initial configurations of a fusion that is a matmul; () for other problems.

    These are the fusion's best stored trials, then the choice of the shipped results. For other problems a
    campaign uses no earlier trials.
    """
    settings = member.settings
    problem = settings.problem
    if problem.runs_alone or not isinstance(problem.scheduled_as, MatmulProblem):
        return ()
    known = EarlierRuns(store).known_tasks(replace(settings, warm_start=True), machine)

    def is_same(earlier: Known) -> bool:
        return is_same_product(problem, earlier.task.problem)

    points = warm_points(TuningTask(problem, machine, settings.threads), tuple(filter(is_same, known)))
    picks = shipped_picks(ProblemSpaces.shipped(machine, threads=1), problem)
    if picks is None:
        return points
    return (*points, InitialConfiguration(picks.candidates[0], SHIPPED))


def _untuned(member: CampaignMember, plan: Plan) -> Candidate:
    """Returns the configuration with which a problem runs before the campaign has tuned it.

    It is the first feasible one of the member's initial configurations; else the first of the search-space
    file; else the first that keeps the preferences. ``pretuned.initial_configuration`` chooses in the same
    order.
    """
    feasible = plan.feasible
    for point in member.settings.first or ():
        if feasible.row_of(point.candidate) is not None:
            return point.candidate
    if plan.first:
        return feasible.candidate(plan.first[0])
    return feasible.first_preferred


def _require_all_stored(campaign: Campaign, stored: tuple[CampaignProposal, ...], store: "Store") -> None:
    if [proposal.number for proposal in stored] != [*range(len(stored))]:
        raise UsageError(f"campaign {campaign.id}: some of its trials were pruned; start a new campaign")
    for run in campaign.runs:
        proposed = store.counts(run.id).proposed
        if proposed != sum(proposal.run == run.id for proposal in stored):
            raise UsageError(
                f"campaign {campaign.id}: run {run.id} was extended on its own; start a new campaign"
            )


def require_on_cpu(row_range: str, target: str) -> None:
    """Raises UsageError for a range of rows on a target that is not a CPU; ``row_range``: its text."""
    if target != AUTO and not TargetName.parse(target).is_on_cpu:
        line = f"{row_range}: kernels of a CPU serve a range of m, not those of {target}"
        raise UsageError(line, "--target cpu")


def campaign_settings(
    problems: tuple[NamedProblem, ...], request_of: RequestOf, backends: Backends, source: str = ""
) -> tuple[CampaignSettings, tuple[CampaignMember, ...]]:
    """Returns the settings of a campaign of ``problems``, and its members: each problem once, with its count.

    ``request_of`` returns the request for one problem; its limits are those of the whole campaign.
    ``source``: name of the file with the problems. Raises UsageError for no problem, and, naming it, for a
    problem that the target cannot do.
    """
    distinct = distinct_problems(problems)
    if not distinct:
        raise UsageError("no problem to tune")
    request = request_of(distinct[0].problem)
    trials = request.trials
    if trials is None and request.budget_s is None:
        trials = TRIALS_EACH * len(distinct)
    members = []
    for named in distinct:
        with _errors_name(named.problem):
            member = run_settings(request_of(named.problem), backends)
        members.append(CampaignMember(member, named.name, named.count))
    return CampaignSettings(source, trials, request.budget_s, request.seed, ()), tuple(members)


@contextlib.contextmanager
def _errors_name(problem: Problem) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        line = error.message if problem.key in error.message else f"{problem.key}: {error.message}"
        raise UsageError(line, error.hint) from None
