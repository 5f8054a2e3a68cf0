"""Measures configurations on problems of a finished group, as ordinary trials of their runs."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuner.core.bench import AbstractBench
from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.runs import Run
from tuner.core.target import Effort
from tuner.space.feasible_set import FeasibleSet
from tuner.tuning.composition import Composition
from tuner.tuning.events import Event
from tuner.tuning.interruption import Interruption
from tuner.tuning.many_shapes.group_events import GroupObserver, RunEvent, ignore_group
from tuner.tuning.many_shapes.group_session import TOP_TRIALS_OF_GROUP
from tuner.tuning.outcome_source import BenchSettings
from tuner.tuning.run import machine_of_run
from tuner.tuning.run_steps import RunSteps
from tuner.tuning.same_run import require_same_code

if TYPE_CHECKING:
    from tuner.db.store import Store


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
