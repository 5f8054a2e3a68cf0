"""A tuning run: begins a new one, or resumes a stored one; makes the settings of a transfer run.

A run searches, then times its best trials again, interleaved (final re-measurement).
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tuner.core import queries, runs
from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError
from tuner.core.machine import Machine
from tuner.core.problem_text import tune_command
from tuner.core.round_quality import is_pressed
from tuner.core.runs import Compiler
from tuner.search.samplers import make_sampler
from tuner.targets.backends import Backends, require_runs_here
from tuner.targets.target import Plan, Target
from tuner.tuning.earlier_results import planned, rows_of_first
from tuner.tuning.events import Interruption, MachineBusy, Observer, RunStarted, ignore
from tuner.tuning.request import (
    RunLimit,
    require_longer,
    require_memory,
    require_same_rows,
    require_threads,
    require_whole,
    require_workers,
    searched_s,
)
from tuner.tuning.run_steps import Session
from tuner.tuning.same_code import require_same_code, require_same_tools
from tuner.tuning.tuned_run import TunedRun, tuned_run
from tuner.tuning.tuning_session import TuningSession
from tuner.version import __version__

if TYPE_CHECKING:
    from tuner.db.store import Store

SOURCE: Final = "run {}"  # source of each initial configuration


def transfer_settings(
    source_run: runs.Run, target: TargetName, backends: Backends, store: "Store"
) -> tuple[runs.RunSettings | None, int | None]:
    """Returns (settings, None) for a new transfer run; (None, id) if the target's machine has one stored.

    A transfer run tries the candidates of ``source_run``, a run of another machine, in their order. Raises
    UsageError if none of these candidates is feasible on the target.
    """
    settings = replace(source_run.settings, target=target)
    known = backends.target_of_run(settings)
    machine = known.machine(target)
    name = SOURCE.format(source_run.id)
    for run in store.matching_runs(queries.RunQuery(queries.TaskQuery(machine=machine.name))):
        if run.id > source_run.id and run.settings.first and run.settings.first[0].source == name:
            return None, run.id
    first = tuple(
        runs.InitialConfiguration(trial.record.candidate, runs.WARM_START, name)
        for trial in store.trials(queries.TrialQuery(run=source_run.id, sort="number"))
    )
    settings = replace(settings, first=first, prior="", warm_start=False, budget_s=None)
    rows = rows_of_first(settings, known.plan(settings, machine))
    if not rows:
        raise UsageError(
            f"run {source_run.id}: found no candidate that is feasible on {machine.name!r}, allowed 1 or more"
        )
    return replace(settings, trials=len(rows)), None


def begin(
    settings: runs.RunSettings,
    backends: Backends,
    store: "Store",
    interruption: Interruption,
    observe: Observer = ignore,
    *,
    began_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> TunedRun:
    """Tunes: stores a new run, works until its end, returns it with its selected result.

    ``observe`` is called with events. ``began_s``: when the command began, by ``clock``; a budget counts
    from there, else from the start of the session. Raises UsageError, before anything is stored, for
    settings that cannot run here.
    """
    target = backends.target_of_run(settings)
    if target.needs_local_resources:
        require_workers(settings.workers, backends.machine())
        require_memory(settings.problem, backends.machine())
    machine = machine_of_run(settings, target, backends)
    settings, plan = planned(settings, machine, target, store)
    first = rows_of_first(settings, plan)
    sampler = make_sampler(settings.sampler, plan.feasible, settings.seed, first, settings.prior)
    compiler = target.compiler(settings.target)
    run_id = store.begin_run(settings, machine, compiler, __version__, backends.load_average())
    session = Session(store.run(run_id), (), target, store, interruption, observe, clock)
    _observe_start(session, plan)
    observe_load(session.run, target, backends, observe)
    before_s = 0.0 if began_s is None else clock() - began_s
    return TuningSession(session, plan.feasible, sampler, before_s=before_s).run()


def resume(
    run_id: int,
    backends: Backends,
    store: "Store",
    interruption: Interruption,
    observe: Observer = ignore,
    *,
    retime: bool = False,
    limit: RunLimit | None = None,
) -> TunedRun:
    """Resumes a stored run with its settings; returns it with its selected result.

    ``retime``: make one more final re-measurement. ``limit`` replaces the stored limits, None: they stay.
    Without both a finished run is returned as it is. Raises UsageError for a run of a bundle or of an
    unfinished campaign, a ``limit`` that is exceeded already, pruned trials, and for another machine, other
    tools or other code.
    """
    run = store.run(run_id)
    if run.elsewhere is not None:
        raise UsageError(f"run {run_id}: was measured from a bundle and cannot be continued")
    if run.campaign is not None and run.status != "done":
        line = f"run {run_id}: belongs to campaign {run.campaign.campaign}, whose runs share one budget"
        raise UsageError(line, f"tuner tune --resume campaign:{run.campaign.campaign}")
    if run.status == "done" and not retime and limit is None:
        return tuned_run(store, run_id)
    if run.settings.sampler == runs.JUDGED:
        raise UsageError(
            f"run {run_id}: has no search to continue: its scripts were given to tuner judge",
            f'tuner judge SCRIPT --problem "{run.settings.problem.key}"',
        )
    command = tune_command(queries.TaskQuery.of(run.settings.problem))
    require_runs_here(run.settings.target, backends, command)
    if run.settings.baseline_library:
        backends.target(run.settings.target).require_baseline(
            run.settings.baseline_library, run.settings.problem
        )
    target = backends.target_of_run(run.settings)
    machine = machine_of_run(run.settings, target, backends)
    compiler = target.compiler(run.settings.target)
    require_same_tools(run, machine, compiler)
    plan = target.plan(run.settings, machine)
    session = Session(run, store.proposals(run_id), target, store, interruption, observe)
    require_whole(run, session.stored)
    require_same_rows(run, plan.feasible, session.stored)
    require_same_code(session)
    first = rows_of_first(run.settings, plan)
    sampler = make_sampler(run.settings.sampler, plan.feasible, run.settings.seed, first, run.settings.prior)
    if limit is not None:
        require_longer(run, session.stored, limit)
        store.extend_run(run_id, limit.trials, limit.budget_s)
        run = replace(run, settings=limit.applied(run.settings))
    store.resume_run(run_id)
    run = under_compiler(run, compiler, store)
    session = replace(session, run=run)
    _observe_start(session, plan)
    observe_load(run, target, backends, observe)
    return TuningSession(session, plan.feasible, sampler, retime=retime).run()


def under_compiler(run: runs.Run, compiler: Compiler, store: "Store") -> runs.Run:
    """Stores ``compiler``, which makes the same code, as the compiler of the run; returns the changed run."""
    if compiler != run.compiler:
        store.set_compiler(run.id, compiler)
    return replace(run, compiler=compiler)


def machine_of_run(settings: runs.RunSettings, target: Target, backends: Backends) -> Machine:
    """Returns the machine of a run's target. Raises UsageError if it has fewer processors than threads."""
    machine = target.machine(settings.target)
    if target.needs_local_resources:
        require_threads(settings.threads, machine, backends.processors())
    return machine


def observe_load(run: runs.Run, target: Target, backends: Backends, observe: Observer) -> None:
    """Reports, before anything is timed, if other programs or the hypervisor leave too few processors."""
    if not target.times_processors:
        return
    load = backends.present_load()
    usable = backends.processors().usable
    if is_pressed(load, min(usable, run.machine.physical_cores), run.settings.threads):
        observe(MachineBusy(run.id, load, usable))


def _observe_start(session: Session, plan: Plan) -> None:
    run = session.run
    feasible = plan.feasible
    target = run.settings.target
    machine = target.detail if target.has_machine else run.machine.name
    notes = (*feasible.empty(machine), *plan.notes)
    sizes = (feasible.cartesian, feasible.rows, len(session.stored), notes)
    remeasured_s = (run.seconds or 0.0) - searched_s(run)
    session.observe(RunStarted(run.id, run.settings, run.machine, *sizes, remeasured_s))
