"""Measures configurations that a finished campaign has not tried on some of its problems.

The times of a campaign are a matrix, problems x configurations; a cell is missing if its configuration was
not tried on its problem.
"""

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.interfaces import AbstractRunner, Effort
from tuner.space.feasible_set import FeasibleSet
from tuner.targets.backends import Backends
from tuner.tuning import events
from tuner.tuning.campaign_session import TOP_TRIALS_OF_CAMPAIGN
from tuner.tuning.run import machine_of_run, under_compiler
from tuner.tuning.run_steps import RunSteps, Session
from tuner.tuning.same_code import require_same_code, require_same_tools

if TYPE_CHECKING:
    from tuner.db.store import Store


@dataclass(frozen=True)
class MissingCell:
    """A configuration that is still to be measured on one problem of a campaign."""

    index: int  # of the problem in the campaign
    column: Candidate  # before its projection onto the problem
    candidate: Candidate  # after the projection


def measure_cells(
    campaign_id: int,
    cells: tuple[MissingCell, ...],
    backends: Backends,
    store: "Store",
    interruption: events.Interruption,
) -> int:
    """Measures and stores missing cells of a finished campaign; returns how many were measured.

    Afterwards the best trials of the affected problems are timed again. Raises UsageError for a campaign that
    is not finished, or is of another machine or compiler.
    """
    campaign = store.campaign(campaign_id)
    if campaign.status != "done":
        raise UsageError(f"campaign {campaign_id}: is {campaign.status}, so its times are not complete")
    target = backends.target_of_run(campaign.runs[0].settings)
    machine = machine_of_run(campaign.runs[0].settings, target, backends)
    # the next free numbers: some trials may have been pruned
    number = 1 + max((proposal.number for proposal in store.campaign_proposals(campaign_id)), default=-1)
    done = 0
    for index, run in enumerate(campaign.runs):
        wanted = [cell for cell in cells if cell.index == index]
        if not wanted or interruption.is_asked:
            continue
        compiler = target.compiler(run.settings.target)
        require_same_tools(run, machine, compiler)
        feasible = target.plan(run.settings, machine).feasible
        session = Session(run, store.proposals(run.id), target, store, interruption)
        require_same_code(session)
        steps = RunSteps(replace(session, run=under_compiler(run, compiler, store)))
        runner = steps.replaying(target.runner(steps.order, steps.runner_settings))
        try:
            measured = _measure(steps, runner, feasible, wanted, number, interruption)
            if measured and not interruption.is_asked:
                steps.remeasure_top_trials(runner, limit=TOP_TRIALS_OF_CAMPAIGN + measured)
        finally:
            runner.close()
        store.extend_run(run.id, steps.progress.counts.proposed, None)
        number = number + measured
        done = done + measured
    return done


def _measure(
    steps: RunSteps,
    runner: AbstractRunner,
    feasible: FeasibleSet,
    wanted: list[MissingCell],
    in_campaign: int,  # number of the first cell in the campaign
    interruption: events.Interruption,
) -> int:
    started_s = time.monotonic()
    done = 0
    seconds = steps.run.seconds or 0.0
    for cell in wanted:
        row = feasible.row_of(cell.candidate)
        if row is None or interruption.is_asked:  # None: the feasible set is a sample without it
            continue
        number = 1 + max(steps.progress.trial_ids, default=-1)
        steps.propose(number, row, cell.candidate, seconds, (in_campaign + done, cell.column))
        runner.start(number, cell.candidate, Effort())
        try:
            bound = runner.finish()
        except KeyboardInterrupt:
            return done  # the proposal stays without an outcome
        steps.store_outcome(number, bound, seconds + time.monotonic() - started_s)
        done += 1
    return done
