"""Begins a group of runs, or resumes a stored group."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tuner.core.candidate import Candidate
from tuner.core.errors import TunerError, UsageError
from tuner.core.machine import Machine, Roofline
from tuner.core.run_groups import GroupMember, GroupProposal, GroupSettings, RunGroup
from tuner.core.sampler import AbstractSampler
from tuner.core.version import __version__
from tuner.samplers import make_sampler
from tuner.space.feasible_set import FeasibleSet
from tuner.tuning.composition import Composition
from tuner.tuning.events import Event
from tuner.tuning.interruption import Interruption
from tuner.tuning.many_shapes.group_events import GroupObserver, GroupStarted, RunEvent, ignore_group
from tuner.tuning.many_shapes.group_session import GroupPlan, GroupSession
from tuner.tuning.many_shapes.late_sampler import LateSampler
from tuner.tuning.many_shapes.projected_pool import PoolProblem, projected_pool
from tuner.tuning.many_shapes.tuned_group import TunedGroup, tuned_group
from tuner.tuning.memory_check import require_memory, require_workers
from tuner.tuning.outcome_source import OutcomeSource, Plan
from tuner.tuning.run import machine_of_run, observe_load
from tuner.tuning.run_limit import RunLimit
from tuner.tuning.same_run import require_same_code, require_same_rows, require_same_scripts
from tuner.tuning.target_choice import require_runs_here

if TYPE_CHECKING:
    from tuner.db.store import Store


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
