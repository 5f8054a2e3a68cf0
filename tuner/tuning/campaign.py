"""Begins or resumes a campaign, many problems under one budget, and measures missing cells of its matrix."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tuner.core.candidate import Candidate
from tuner.core.errors import TunerError, UsageError
from tuner.core.interfaces import AbstractBench, AbstractSampler, Effort
from tuner.core.machine import Machine, Roofline
from tuner.core.problem import Problem
from tuner.core.requests import GroupMember, GroupProposal, GroupSettings, RunGroup, RunRequest
from tuner.core.runs import Run
from tuner.search.samplers import make_sampler
from tuner.space.feasible_set import FeasibleSet
from tuner.targets.backends import Composition, require_runs_here
from tuner.targets.interface import BenchSettings, OutcomeSource, Plan
from tuner.tuning.campaign_session import (
    TOP_TRIALS_OF_GROUP,
    GroupPlan,
    GroupSession,
    LateSampler,
    PoolProblem,
    projected_pool,
)
from tuner.tuning.events import Event, GroupObserver, GroupStarted, Interruption, RunEvent, ignore_group
from tuner.tuning.request import (
    RunLimit,
    require_memory,
    require_same_code,
    require_same_rows,
    require_same_scripts,
    require_workers,
    run_settings,
)
from tuner.tuning.run import machine_of_run, observe_load
from tuner.tuning.run_steps import RunSteps
from tuner.tuning.tuned_run import TunedGroup, tuned_group
from tuner.version import __version__

if TYPE_CHECKING:
    from tuner.db.store import Store


# ------------------------------------------------------------------------------
# Begins a group of runs, or resumes a stored group.


def begin_group(
    settings: GroupSettings,
    members: tuple[GroupMember, ...],
    composition: Composition,
    store: "Store",
    interruption: Interruption,
    observe: GroupObserver = ignore_group,
) -> TunedGroup:
    """Tunes many problems under one budget: stores a new group of runs, works until its end, returns it.

    Args:
        settings: Budget and seed; its columns are replaced by the pool: what the cost model and the space
            file would try first on each problem.
        members: The problems, each once; their runs have one target, seed, and number of threads and workers.
        composition: The replaceable parts of a run.
        store: The results database.
        interruption: A request to end the group.
        observe: Called with the group's events.

    An interrupted group is stored with this status and can be resumed. Raises UsageError, before anything is
    stored, for no problems, too little memory, too many threads, an unknown sampler and a problem that no
    strategy can do.
    """
    if not members:
        raise UsageError("no problem to tune")
    members = tuple(
        replace(each, settings=replace(each.settings, first=(), trials=None, budget_s=None))
        for each in members
    )
    common = members[0].settings
    source = composition.outcomes_of_run(common)
    machine = _checked_machine(members, source, composition)
    plans = tuple(_plan(each, source, machine) for each in members)
    settings = replace(
        settings, columns=_columns(plans), floors_s=_floors_s(members, source, machine, interruption)
    )
    plan = _group_plan(members, plans, settings.columns, machine)
    compiler, load = source.compiler(common.target), composition.load_average()
    group_id = store.begin_group(settings, members, machine, compiler, __version__, load)
    return _session(store.group(group_id), plan, (), source, composition, store, interruption, observe)


def resume_group(
    group_id: int,
    composition: Composition,
    store: "Store",
    interruption: Interruption,
    observe: GroupObserver = ignore_group,
    *,
    limit: RunLimit | None = None,
) -> TunedGroup:
    """Resumes a stored group with its stored settings; returns it with its selected results.

    ``limit`` replaces the stored limits of trials and time of the whole group; the problems are then timed
    again at the end. A finished group without ``limit`` is returned as it is.

    Raises UsageError for an unknown group, a target that cannot run here, a limit that the group exceeds
    already, a run of the group that was extended on its own, and where new times could not be compared with
    the stored ones: another machine, compiler, search space or strategy.
    """
    group = store.group(group_id)
    if group.status == "done" and limit is None:
        return tuned_group(store, group_id)
    common = group.runs[0].settings
    require_runs_here(common.target, composition, "tuner tune --shapes FILE")
    source = composition.outcomes_of_run(common)
    machine = machine_of_run(common, source, composition)
    stored = store.group_proposals(group_id)
    _require_all_stored(group, stored, store)
    members = tuple(_member(place, group) for place in range(len(group.runs)))
    plans = tuple(_plan(each, source, machine) for each in members)
    for run, of_one in zip(group.runs, plans, strict=True):
        of_run = tuple(each.proposal for each in stored if each.run == run.id)
        require_same_code(run, machine, source.compiler(common.target))
        require_same_rows(run, of_one.feasible, of_run)
        bind = source.bind(run.settings.strategies, run.settings.problem, run.settings.threads, machine)
        require_same_scripts(run, bind, of_run)
    if limit is not None:
        _require_longer(group, stored, limit)
        store.extend_group(group_id, limit.trials, limit.budget_s)
    plan = _group_plan(members, plans, group.settings.columns, machine)
    store.set_group_status(group_id, "running")
    return _session(store.group(group_id), plan, stored, source, composition, store, interruption, observe)


def _session(
    group: RunGroup,
    plan: GroupPlan,
    stored: tuple[GroupProposal, ...],
    source: OutcomeSource,
    composition: Composition,
    store: "Store",
    interruption: Interruption,
    observe: GroupObserver,
) -> TunedGroup:
    def observe_first(event: Event) -> None:
        observe(RunEvent(0, event, len(stored), group.seconds))

    observe(GroupStarted(group, len(stored)))
    observe_load(group.runs[0], source, composition, observe_first)
    return GroupSession(group, plan, stored, source, store, interruption, observe).run()


def _checked_machine(
    members: tuple[GroupMember, ...], source: OutcomeSource, composition: Composition
) -> Machine:
    common = members[0].settings
    if source.needs_local_resources:
        require_workers(common.workers, composition.machine())
        for each in members:
            require_memory(each.settings.problem, composition.machine())
    return machine_of_run(common, source, composition)


def _plan(member: GroupMember, source: OutcomeSource, machine: Machine) -> Plan:
    """Returns the plan of one problem's run. Raises UsageError, naming the problem, where it has none."""
    try:
        return source.plan(member.settings, machine)
    except UsageError as error:
        key = member.settings.problem.key
        line = error.message if key in error.message else f"{key}: {error.message}"
        raise UsageError(line, error.hint) from None


def _columns(plans: tuple[Plan, ...]) -> tuple[Candidate, ...]:
    """Returns what the space file and the cost model would try first on any of the problems, each once."""
    found = (plan.feasible.candidate(row) for plan in plans for row in (*plan.first, *plan.seeds({})))
    return tuple(dict.fromkeys(found))


def _floors_s(
    members: tuple[GroupMember, ...], source: OutcomeSource, machine: Machine, interruption: Interruption
) -> tuple[float, ...]:
    """Returns the least seconds of each problem by the machine's roofline, for groups of a program.

    (): other problems, whose times are all far from it and alike, or a roofline that cannot be measured.
    """
    if not all(each.settings.problem.group for each in members):
        return ()
    rooflines: dict[str, Roofline] = {}  # by dtype
    floors_s = []
    for each in members:
        problem = each.settings.problem
        try:
            if problem.dtype not in rooflines:
                with interruption.waiting():
                    rooflines[problem.dtype] = source.roofline(problem, each.settings.threads)
        except TunerError:
            return ()
        roofline = rooflines[problem.dtype]
        floors_s.append(roofline.least_s(problem.flop, problem.bytes, machine.l3_bytes))
    return tuple(floors_s)


def _group_plan(
    members: tuple[GroupMember, ...],
    plans: tuple[Plan, ...],
    columns: tuple[Candidate, ...],
    machine: Machine,
) -> GroupPlan:
    feasible = tuple(plan.feasible for plan in plans)
    problems = tuple(
        PoolProblem(member.settings.problem, member.count, each.spaces)
        for member, each in zip(members, feasible, strict=True)
    )
    pool = projected_pool(problems, columns, machine, members[0].settings.threads)
    kept = tuple(tuple(_kept(row, each)) for row, each in zip(pool.candidates, feasible, strict=True))
    samplers = tuple(_sampler(member, each) for member, each in zip(members, feasible, strict=True))
    return GroupPlan(replace(pool, candidates=kept), feasible, samplers)


def _kept(row: tuple[Candidate | None, ...], feasible: FeasibleSet) -> Iterator[Candidate | None]:
    """Yields projections that are in the feasible set, else None: the set may be a sample of too many."""
    for candidate in row:
        is_in = candidate is not None and feasible.row_of(candidate) is not None
        yield candidate if is_in else None


def _sampler(member: GroupMember, feasible: FeasibleSet) -> AbstractSampler:
    settings = member.settings
    return LateSampler(partial(make_sampler, settings.sampler, feasible, settings.seed))


def _member(place: int, group: RunGroup) -> GroupMember:
    run = group.runs[place]
    assert run.group is not None
    # limits that the finished run got for itself do not count within the group
    settings = replace(run.settings, trials=None, budget_s=None)
    return GroupMember(settings, run.group.name, run.group.count)


def _require_all_stored(group: RunGroup, stored: tuple[GroupProposal, ...], store: "Store") -> None:
    """Raises UsageError where trials of the group were pruned, or a run has trials beyond the group's."""
    if [each.number for each in stored] != [*range(len(stored))]:
        raise UsageError(f"group {group.id}: some of its trials were pruned; start a new group")
    for run in group.runs:
        proposed = store.counts(run.id).proposed
        if proposed != sum(each.run == run.id for each in stored):
            raise UsageError(f"group {group.id}: run {run.id} was extended on its own; start a new group")


def _require_longer(group: RunGroup, stored: tuple[GroupProposal, ...], limit: RunLimit) -> None:
    if limit.trials is not None and limit.trials < len(stored):
        raise UsageError(
            f"trials: found {limit.trials}, but group {group.id} has {len(stored)} trials already"
        )
    if limit.budget_s is not None and limit.budget_s < group.search_s:
        raise UsageError(
            f"budget: found {limit.budget_s:g} s, but group {group.id} has searched for "
            f"{group.search_s:.1f} s already"
        )


# ------------------------------------------------------------------------------
# Measures configurations on problems of a finished group, as ordinary trials of their runs.


@dataclass(frozen=True)
class MissingCell:
    """A configuration to be measured on one problem of a group."""

    place: int  # of the problem in the group
    column: Candidate  # before its projection onto the problem
    candidate: Candidate  # after it


def measure_cells(
    group_id: int,
    cells: tuple[MissingCell, ...],
    composition: Composition,
    store: "Store",
    interruption: Interruption,
    observe: GroupObserver = ignore_group,
) -> int:
    """Measures cells of a finished group and stores them as trials; returns how many were measured.

    The best trials of each problem are then timed again, interleaved, with the new ones among them where they
    are fast. Nothing is early-stopped. An interruption ends the work; what was measured is stored. Raises
    UsageError for a group that is not finished, and for another machine or compiler than the group's.
    """
    group = store.group(group_id)
    if group.status != "done":
        raise UsageError(f"group {group_id}: is {group.status}, so its times are not complete")
    source = composition.outcomes_of_run(group.runs[0].settings)
    machine = machine_of_run(group.runs[0].settings, source, composition)
    number, done = len(store.group_proposals(group_id)), 0
    for place, run in enumerate(group.runs):
        wanted = [cell for cell in cells if cell.place == place]
        if not wanted or interruption.is_asked:
            continue
        require_same_code(run, machine, source.compiler(run.settings.target))
        feasible = source.plan(run.settings, machine).feasible

        def report(event: Event, place: int = place, number: int = number) -> None:
            observe(RunEvent(place, event, number, 0.0))

        steps = RunSteps(run, store.proposals(run.id), source, store, interruption, report)
        bench = steps.replaying(source.bench(steps.order, _bench_settings(run)))
        try:
            measured = _measure(steps, bench, feasible, wanted, number, interruption)
            if measured and not interruption.is_asked:
                steps.remeasure_top_trials(bench, limit=TOP_TRIALS_OF_GROUP + measured)
        finally:
            bench.close()
        store.extend_run(run.id, steps.progress.counts.proposed, None)
        number, done = number + measured, done + measured
    return done


def _measure(
    steps: RunSteps,
    bench: AbstractBench,
    feasible: FeasibleSet,
    wanted: list[MissingCell],
    in_group: int,
    interruption: Interruption,
) -> int:
    """Measures the cells of one problem; returns how many. ``in_group``: number of the first in the group."""
    started_s, done = time.monotonic(), 0
    seconds = steps.run.seconds or 0.0
    for cell in wanted:
        row = feasible.row_of(cell.candidate)
        if row is None or interruption.is_asked:  # None: the feasible set is a sample without it
            continue
        number = steps.progress.counts.proposed
        steps.propose(number, row, cell.candidate, seconds, (in_group + done, cell.column))
        bench.start(number, cell.candidate, Effort())
        try:
            bound = bench.finish()
        except KeyboardInterrupt:
            return done  # the proposal stays without an outcome
        steps.keep(number, bound, seconds + time.monotonic() - started_s)
        done += 1
    return done


def _bench_settings(run: Run) -> BenchSettings:
    settings = run.settings
    return BenchSettings(settings.threads, settings.workers, settings.seed, run=run.uuid)


# ------------------------------------------------------------------------------
# A problem with a name and a count, as a shapes file or a model gives it; and groups' settings from them.


COUNT_LIMIT = 10**9


@dataclass(frozen=True)
class NamedProblem:
    """A problem to tune together with others: what it is called, and how often it occurs."""

    problem: Problem
    name: str = ""  # of a layer or a function
    count: int = 1

    def __post_init__(self) -> None:
        """Raises UsageError for a count that is no integer from 1 to 10**9."""
        if type(self.count) is not int or not 1 <= self.count <= COUNT_LIMIT:
            raise UsageError(f"count: found {self.count!r}, allowed 1..{COUNT_LIMIT}")


def combined(problems: tuple[NamedProblem, ...]) -> tuple[NamedProblem, ...]:
    """Returns each problem once, in order of occurrence: counts are added, names joined by a comma."""
    found: dict[Problem, NamedProblem] = {}
    for each in problems:
        known = found.get(each.problem)
        if known is None:
            found[each.problem] = each
            continue
        names = dict.fromkeys((*known.name.split(", "), each.name))
        joined = ", ".join(name for name in names if name)
        found[each.problem] = replace(known, name=joined, count=known.count + each.count)
    return tuple(found.values())


# ------------------------------------------------------------------------------
# Converts a request for many problems to the settings of a group and of its runs.


TRIALS_EACH = 8  # of each problem on average, where neither trials nor a budget is given

RequestOf = Callable[[Problem], RunRequest]  # raises UsageError


def group_settings(
    problems: tuple[NamedProblem, ...], request_of: RequestOf, composition: Composition, source: str = ""
) -> tuple[GroupSettings, tuple[GroupMember, ...]]:
    """Returns the settings of a group that tunes ``problems``, and its members, each problem once.

    Args:
        problems: At least one; equal problems become one, with the sum of their counts.
        request_of: Returns the request of a run of one problem, whose limits are those of the whole group.
        composition: The replaceable parts of a run.
        source: Name of the file that the problems come from; "" for none.

    Raises UsageError for no problem, for an invalid request, and, naming the problem, for one that the target
    cannot do.
    """
    distinct = combined(problems)
    if not distinct:
        raise UsageError("no problem to tune")
    request = request_of(distinct[0].problem)
    trials = request.trials
    if trials is None and request.budget_s is None:
        trials = TRIALS_EACH * len(distinct)
    members = tuple(_requested_member(each, request_of, composition) for each in distinct)
    return GroupSettings(source, trials, request.budget_s, request.seed, ()), members


def _requested_member(named: NamedProblem, request_of: RequestOf, composition: Composition) -> GroupMember:
    try:
        settings = run_settings(request_of(named.problem), composition)
    except UsageError as error:
        key = named.problem.key
        line = error.message if key in error.message else f"{key}: {error.message}"
        raise UsageError(line, error.hint) from None
    return GroupMember(settings, named.name, named.count)
