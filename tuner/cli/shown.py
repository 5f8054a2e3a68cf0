"""The output of ``tuner show``, ``diff`` and ``explain`` on stored trials, runs and campaigns."""

from typing import TYPE_CHECKING

import click

from tuner.analysis.coverage import UntriedValues, untried_values
from tuner.analysis.importance import TooFew, ablate
from tuner.cli.commands.catalogue import plan_of
from tuner.cli.forms import RunOptions, read_options
from tuner.cli.main import screen_columns
from tuner.cli.options import backends_of, print_found, print_json
from tuner.core.errors import TunerError, UsageError
from tuner.core.queries import TrialQuery
from tuner.core.requests import Campaign
from tuner.core.runs import JUDGED, Run
from tuner.core.trials import NOT_TIMED, StoredTrial
from tuner.results.best_trials import other_winners
from tuner.results.database_name import database_text
from tuner.results.differences import FIRST, difference_document, difference_lines, trial_difference
from tuner.results.explanations import explain_document, explain_lines, failed_ops, pass_seconds
from tuner.results.output.ablation import ablation_document, ablation_lines
from tuner.results.output.campaign_tables import campaign_lines, shown_campaign_document
from tuner.results.output.formatting import wrapped
from tuner.results.output.json_documents import run_document, trial_document
from tuner.results.output.program_tables import stored_program_lines
from tuner.results.output.run_result import other_cache_lines
from tuner.results.output.tables import pass_lines, run_lines, untried_lines
from tuner.results.output.trial_facts import predicted_lines, trial_lines
from tuner.results.script_stages import trial_stages
from tuner.tuning.tuned_run import tuned_campaign, tuned_run

if TYPE_CHECKING:
    from tuner.core.candidate import Candidate
    from tuner.core.problem import Problem
    from tuner.db.store import Store
    from tuner.targets.backends import Backends

Stored = StoredTrial | Run | Campaign


def show_difference(
    context: click.Context,
    store: "Store",
    first: Stored,
    second: Stored,
    shown: tuple[str, ...],
    as_json: bool,
) -> None:
    """Prints how two trials differ (``tuner diff``); a run stands for its best trial.

    ``shown``: stages whose diffs are printed; "first" is the first stage that differs, () means ("first",).
    """
    backends = backends_of(context)
    ours = _trial(store, first)
    theirs = _trial(store, second)
    run = store.run(theirs.run)
    our_stages, their_stages = (tuple(trial_stages(backends, store, trial)) for trial in (ours, theirs))
    difference = trial_difference(run, ours, theirs, our_stages, their_stages)
    lines = difference_lines(difference, shown or (FIRST,), screen_columns())
    print_found(as_json, difference_document(difference), *lines)


def _trial(store: "Store", stored: Stored) -> StoredTrial:
    if isinstance(stored, StoredTrial):
        return stored
    best = tuned_run(store, stored.id).best
    if best is None:
        raise UsageError(f"run {stored.id}: has no successful trial", f"tuner history --run {stored.id}")
    return best


def show_stored(
    context: click.Context,
    store: "Store",
    stored: Stored,
    database: str | None,
    *,
    ablation: bool,
    passes: bool,
    as_json: bool,
) -> None:
    """Prints a stored trial, run or campaign (``tuner show``).

    ``ablation``: for a run, how much slower it is without each knob; ``passes``: for a trial, the seconds of
    each compiler pass.
    """
    match stored:
        case Campaign():
            _show_campaign(store, stored.id, database_text(database), as_json)
        case Run() if ablation:
            _show_ablation(store, stored, as_json)
        case Run():
            _show_run(backends_of(context), store, stored.id, database_text(database), as_json)
        case StoredTrial() if passes:
            _show_passes(backends_of(context), store, stored, as_json)
        case StoredTrial():
            _show_trial(backends_of(context), store, stored, as_json)


def _show_campaign(store: "Store", campaign: int, database_options: str, as_json: bool) -> None:
    """Prints a campaign and, if it tuned the fusions of a program, the program."""
    tuned = tuned_campaign(store, campaign)
    result = tuned.campaign.result
    lines = campaign_lines(tuned, screen_columns(), database_options)
    lines += [] if result is None else ["", *stored_program_lines(result, screen_columns())]
    print_found(as_json, shown_campaign_document(tuned), *wrapped(lines, screen_columns()))


def _show_passes(backends: "Backends", store: "Store", trial: StoredTrial, as_json: bool) -> None:
    seconds = pass_seconds(backends, store, trial)
    document = {"trial": trial.id, "passes": list(map(vars, seconds))}
    print_found(as_json, document, *pass_lines(seconds, screen_columns()))


def _show_run(backends: "Backends", store: "Store", run: int, database_options: str, as_json: bool) -> None:
    tuned = tuned_run(store, run)
    untried = _untried(backends, store, tuned.run)
    document = run_document(tuned.run, tuned.counts, tuned.selected, tuned.rounds, untried)
    lines = [*run_lines(tuned, database_options), *untried_lines(untried)]
    if tuned.selected is not None:
        lines += other_cache_lines(other_winners(store, tuned.selected.best))
    print_found(as_json, document, *wrapped(lines))


def _untried(backends: "Backends", store: "Store", run: Run) -> tuple[UntriedValues, ...]:
    """Returns the values of a run's knobs that no trial has.

    () for scripts that were given, and where the run's search space is not known here any more.
    """
    if run.settings.sampler == JUDGED:
        return ()
    try:
        plan = backends.target_of_run(run.settings).plan(run.settings, run.machine)
    except TunerError:
        return ()
    trials = store.trials(TrialQuery(run=run.id))
    return untried_values(plan.feasible, (trial.record.candidate for trial in trials))


def _show_ablation(store: "Store", run: Run, as_json: bool) -> None:
    ablation = ablate(store.trials(TrialQuery(run=run.id, sort="number")))
    if isinstance(ablation, TooFew) and len(ablation.strategies) < 2:
        raise TunerError(f"run {run.id}: {ablation.reason}")
    best = tuned_run(store, run.id).best
    reliability = NOT_TIMED if best is None else best.reliability
    lines = ablation_lines(run, ablation, reliability, screen_columns())
    print_found(as_json, ablation_document(run, ablation), *lines)


def _show_trial(backends: "Backends", store: "Store", trial: StoredTrial, as_json: bool) -> None:
    if as_json:
        print_json(trial_document(trial))
        return
    program = store.code(trial.id)
    cycles = None if program is None else backends.predicted(trial.record.problem, program)
    lines = [] if cycles is None else predicted_lines(cycles)  # None: no readable machine code
    print("\n".join(wrapped((*trial_lines(trial), *lines))))


def show_failure(context: click.Context, trial: StoredTrial, database: str | None, *, as_json: bool) -> None:
    """Prints why a trial failed (``tuner explain ID``)."""
    failed = failed_ops(backends_of(context), trial)
    lines = explain_lines(trial, failed, database_text(database))
    print_found(as_json, explain_document(trial, failed), *lines)


def show_feasibility(
    context: click.Context, problem: "Problem", candidate: "Candidate", *, as_json: bool
) -> None:
    """Prints whether a configuration of a problem is feasible, and which constraint rejects it."""
    request = read_options(RunOptions, context).request(problem)
    feasible = plan_of(backends_of(context), request).feasible
    missing = feasible.missing(candidate)
    if missing:
        count = feasible.count_of(candidate)
        of = " of a sample" if feasible.is_sample else ""
        explained = [
            f"{candidate.text} is in {count} feasible combinations{of} for {problem.key}",
            f"it leaves out {', '.join(missing)}: with these, explain names what rejects it",
        ]
        document = {"candidate": candidate.text, "missing": list(missing), "feasible_combinations": count}
        print_found(as_json, document, *wrapped(explained, screen_columns()))
        return
    violated = feasible.violated(candidate)
    demoted_by = feasible.demoted_by(candidate)
    document = {
        "candidate": candidate.text,
        "feasible": violated is None,
        "constraint": None if violated is None else violated.text,
        "preference": None if demoted_by is None else demoted_by.text,
    }
    line = f"{candidate.text} is feasible for {problem.key}"
    if violated is not None:
        line = f"{candidate.text} is not feasible for {problem.key}: {violated.where}: {violated.text}"
    elif demoted_by is not None:
        line += f", and comes last: {demoted_by.where}: {demoted_by.text}"
    print_found(as_json, document, *wrapped([line], screen_columns()))
