"""Begins a run, resumes a stored run, or has a run follow the candidates of another machine's run."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError
from tuner.core.machine import Machine
from tuner.core.requests import tune_command
from tuner.core.round_quality import is_pressed
from tuner.core.runs import (
    WARM_START,
    InitialConfiguration,
    Run,
    RunQuery,
    RunSettings,
    TaskQuery,
    TrialQuery,
)
from tuner.search.samplers import make_sampler
from tuner.targets.backends import Backends, require_runs_here
from tuner.targets.interface import MeasurementBackend, Plan
from tuner.tuning.earlier_results import planned, rows_of_first
from tuner.tuning.events import Interruption, MachineBusy, Observer, RunStarted, ignore
from tuner.tuning.request import (
    RunLimit,
    require_longer,
    require_memory,
    require_same_code,
    require_same_rows,
    require_same_scripts,
    require_threads,
    require_whole,
    require_workers,
)
from tuner.tuning.session import TuningSession
from tuner.tuning.tuned_run import TunedRun, tuned_run
from tuner.version import __version__

if TYPE_CHECKING:
    from tuner.db.store import Store


SOURCE: Final = "run {}"  # source of each initial configuration


def transfer_settings(
    source_run: Run, target: TargetName, backends: Backends, store: "Store"
) -> tuple[RunSettings | None, int | None]:
    """Returns (settings, None) for a transfer run; (None, id) if one is stored for the target's machine.

    A transfer run proposes the feasible candidates of ``source_run``, in order. Raises UsageError for none.
    """
    settings = replace(source_run.settings, target=target)
    source = backends.measurement_of_run(settings)
    machine = source.machine(target)
    name = SOURCE.format(source_run.id)
    for run in store.matching_runs(RunQuery(TaskQuery(machine=machine.name))):
        if run.id > source_run.id and run.settings.first and run.settings.first[0].source == name:
            return None, run.id
    first = tuple(
        InitialConfiguration(trial.record.candidate, WARM_START, name)
        for trial in store.trials(TrialQuery(run=source_run.id, sort="number"))
    )
    settings = replace(settings, first=first, warm_start=False, budget_s=None)
    rows = rows_of_first(settings, source.plan(settings, machine))
    if not rows:
        raise UsageError(
            f"run {source_run.id}: found no candidate that is feasible on {machine.name!r}, allowed 1 or more"
        )
    return replace(settings, trials=len(rows)), None


def begin(
    settings: RunSettings,
    backends: Backends,
    store: "Store",
    interruption: Interruption,
    observe: Observer = ignore,
    *,
    began_s: float | None = None,
) -> TunedRun:
    """Tunes: stores a new run, works until its end, returns it with its selected result.

    ``observe`` is called with events. ``began_s``: when the command began, by the monotonic clock; a budget
    counts from there, else from the start of the search. Raises UsageError, before anything is stored, for
    what cannot run.
    """
    source = backends.measurement_of_run(settings)
    if source.needs_local_resources:
        require_workers(settings.workers, backends.machine())
        require_memory(settings.problem, backends.machine())
    machine = machine_of_run(settings, source, backends)
    settings, plan = planned(settings, machine, source, store)
    sampler = make_sampler(settings.sampler, plan.feasible, settings.seed, rows_of_first(settings, plan))
    compiler = source.compiler(settings.target)
    run_id = store.begin_run(settings, machine, compiler, __version__, backends.load_average())
    run = store.run(run_id)
    _observe_start(run, plan, 0, observe)
    observe_load(run, source, backends, observe)
    before_s = 0.0 if began_s is None else time.monotonic() - began_s
    return TuningSession(
        run, (), plan.feasible, sampler, source, store, interruption, observe, before_s=before_s
    ).run()


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

    ``retime``: one more final re-measurement. ``limit`` replaces the stored limits. Without both a finished
    run is returned as it is. Raises UsageError where new times could not be compared with the stored ones.
    """
    run = store.run(run_id)
    if run.elsewhere is not None:
        raise UsageError(f"run {run_id}: was measured from a bundle and cannot be continued")
    if run.campaign is not None and run.status != "done":
        line = f"run {run_id}: belongs to campaign {run.campaign.campaign}, whose runs share one budget"
        raise UsageError(line, f"tuner tune --resume campaign:{run.campaign.campaign}")
    if run.status == "done" and not retime and limit is None:
        return tuned_run(store, run_id)
    command = tune_command(TaskQuery.of(run.settings.problem))
    require_runs_here(run.settings.target, backends, command)
    if run.settings.baseline_library:
        backends.kind(run.settings.target).require_baseline(
            run.settings.baseline_library, run.settings.problem
        )
    source = backends.measurement_of_run(run.settings)
    machine = machine_of_run(run.settings, source, backends)
    require_same_code(run, machine, source.compiler(run.settings.target))
    plan = source.plan(run.settings, machine)
    stored = store.proposals(run_id)
    require_whole(run, stored)
    require_same_rows(run, plan.feasible, stored)
    bind = source.bind(run.settings.strategies, run.settings.problem, run.settings.threads, machine)
    require_same_scripts(run, bind, stored)
    first = rows_of_first(run.settings, plan)
    sampler = make_sampler(run.settings.sampler, plan.feasible, run.settings.seed, first)
    if limit is not None:
        require_longer(run, stored, limit)
        store.extend_run(run_id, limit.trials, limit.budget_s)
        run = replace(run, settings=limit.applied(run.settings))
    store.resume_run(run_id)
    _observe_start(run, plan, len(stored), observe)
    observe_load(run, source, backends, observe)
    return TuningSession(
        run, stored, plan.feasible, sampler, source, store, interruption, observe, retime
    ).run()


def machine_of_run(settings: RunSettings, source: MeasurementBackend, backends: Backends) -> Machine:
    """Returns the machine of a run. Raises UsageError for more threads than processors."""
    machine = source.machine(settings.target)
    if source.needs_local_resources:
        require_threads(settings.threads, machine, backends.processors())
    return machine


def observe_load(run: Run, source: MeasurementBackend, backends: Backends, observe: Observer) -> None:
    """Reports, before anything is timed, if other programs or the hypervisor leave too few processors."""
    if not source.times_processors:
        return
    load, usable = backends.present_load(), backends.processors().usable
    if is_pressed(load, min(usable, run.machine.physical_cores), run.settings.threads):
        observe(MachineBusy(run.id, load, usable))


def _observe_start(run: Run, plan: Plan, proposed_before: int, observe: Observer) -> None:
    feasible = plan.feasible
    sizes = (feasible.cartesian, feasible.rows, proposed_before, (*feasible.empty(), *plan.notes))
    observe(RunStarted(run.id, run.settings, run.machine, *sizes))
