"""The work of ``tuner tune``, form by form: search on one or several machine classes, resume, campaigns.

``tune_form`` chooses by the form. ``tune_operation`` tunes one problem, on a fleet with --on then on each
further class of machines; what it prints is below its caller.
"""

import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tuner.analysis.ratios import Comparable, NotComparable, between_trials
from tuner.analysis.selected_result import best_compromise
from tuner.cli.commands.tune_shapes import resume_shapes, tune_row_range, tune_shapes
from tuner.cli.forms import OF_WARM_START, ResultOptions, RunOptions, WarmOptions
from tuner.cli.main import FAILED, screen_columns
from tuner.cli.operations import added_operations, operation_of, programs
from tuner.cli.options import (
    CampaignNumber,
    open_known_store,
    open_store,
    print_json,
    remote_runners,
    run_limit,
    typed_options,
)
from tuner.cli.session import exit_code, print_interrupted, print_stored, run_session
from tuner.cli.tune_forms import (
    EXAMPLE_SIZES,
    OperationForm,
    ProgramForm,
    ResumedCampaign,
    ResumedRun,
    ShapesForm,
    TuneForm,
)
from tuner.core.candidate import TargetName, candidate_document
from tuner.core.problem import OPERATIONS
from tuner.core.problem_text import parse_row_range
from tuner.core.queries import TrialQuery
from tuner.core.serialization import seconds_text
from tuner.results.database_name import database_text
from tuner.results.output.formatting import knobs_line, wrapped
from tuner.results.output.json_documents import tune_document
from tuner.results.output.run_result import failure_lines, tune_lines, verified_lines
from tuner.tuning.request import run_settings
from tuner.tuning.run import transfer_settings
from tuner.tuning.untuned import untuned_choice

if TYPE_CHECKING:
    from tuner.analysis.selected_result import Compromise
    from tuner.core.problem import Problem
    from tuner.core.requests import FleetRequest
    from tuner.db.store import Store
    from tuner.targets.backends import Backends
    from tuner.tuning.tuned_run import TunedRun


PREDICTED_LIMIT = 8  # trials whose cycles are predicted at the end of a run: half a second each
# parameters that an export without a search does not take
SEARCH_OPTIONS = (
    *(
        "strategies",
        "reopen",
        "libraries",
        "space",
        "sampler",
        "trials",
        "budget",
        "seed",
        "workers",
        "fresh",
    ),
    *OF_WARM_START,
    "baseline",
    "as_json",
)


def tune_form(form: TuneForm, backends: "Backends") -> int:
    """Does the work of a ``tuner tune`` command line; returns the exit code.

    Raises UsageError for a problem that cannot be tuned here.
    """
    match form:
        case OperationForm():
            return added_or_tuned(form, backends)
        case ProgramForm():
            return programs().tune(form, backends)
        case ResumedRun():
            return _resume_run(form, backends)
        case ShapesForm() | ResumedCampaign():
            return _tune_campaign(form, backends)


def added_or_tuned(form: OperationForm, backends: "Backends") -> int:
    """Tunes the operation of a form, by its extension if it is one of an extension; returns the exit code."""
    name = form.problem.operation
    if name is not None and name not in OPERATIONS and name in added_operations():
        return operation_of(name).tune(form, backends)
    if parse_row_range(form.problem.shape or "") is not None:
        return _tune_campaign(form, backends)
    return tune_operation(form, backends)


def tune_operation(form: OperationForm, backends: "Backends") -> int:
    """Tunes an operation of ``tuner.core``, prints the result, returns the exit code."""
    context = click.get_current_context()
    run = form.run
    fleet = form.fleet.request(form.result.database)
    local_backends = backends
    if fleet is not None:
        run = _run_on_fleet(run, fleet)
        backends = remote_runners().fleet_backends(backends, fleet)
    problem = form.problem.required_problem(context, EXAMPLE_SIZES)
    if run.trials == 0:
        return _print_untuned(problem, run, form.warm, backends, as_json=form.result.as_json)
    settings = run_settings(run.request(problem, form.warm), backends)
    with open_store(form.result.database) as store:
        tuned = run_session(backends, store, settings, None)
        all_tuned = _on_each_class(tuned, fleet, local_backends, store)
        _print_runs(all_tuned, fleet, local_backends, store, form.result)
    print_stored(form.result.database)
    return max(map(exit_code, all_tuned))


def _resume_run(form: ResumedRun, backends: "Backends") -> int:
    database = form.result.database
    fleet = form.fleet.request(database)
    local_backends = backends
    if fleet is not None:
        fleet = fleet_of_run(fleet, form.resume, database)
        backends = remote_runners().fleet_backends(backends, fleet)
    limit = run_limit(form.trials, form.budget)
    with open_known_store(database) as store:
        tuned = run_session(backends, store, None, form.resume, form.retime, limit)
        all_tuned = _on_each_class(tuned, fleet, local_backends, store)
        _print_runs(all_tuned, fleet, local_backends, store, form.result)
    print_stored(database)
    if form.retime and tuned.lost and not tuned.is_interrupted:
        print(f"run {tuned.run.id}: --retime gained no round: {tuned.lost}", file=sys.stderr)
        return FAILED
    return max(map(exit_code, all_tuned))


def _tune_campaign(form: OperationForm | ShapesForm | ResumedCampaign, backends: "Backends") -> int:
    fleet = form.fleet.request(form.result.database)
    if fleet is not None:
        resumed = form.resume if isinstance(form, ResumedCampaign) else None
        fleet = fleet_of_run(fleet, resumed, form.result.database)
        backends = remote_runners().fleet_backends(backends, fleet)
    if isinstance(form, ResumedCampaign):
        return resume_shapes(form, backends)
    if fleet is not None:
        form = replace(form, run=_run_on_fleet(form.run, fleet))
    if isinstance(form, OperationForm):
        return tune_row_range(form, backends)
    return tune_shapes(form, backends)


def _run_on_fleet(run: RunOptions, fleet: "FleetRequest") -> RunOptions:
    """Returns the options of a run on a fleet: the target of the first class of --on, and more workers.

    ``workers``, if not given, becomes one less than the trials that may be pending on so many devices.
    """
    if run.workers is None:
        run = replace(run, workers=remote_runners().pending_limit(fleet.devices) - 1)
    if fleet.on:
        run = replace(run, target=_first_target(fleet, run.target_text), cpu="")
    return run


def _on_each_class(
    tuned: "TunedRun", fleet: "FleetRequest | None", backends: "Backends", store: "Store"
) -> "tuple[TunedRun, ...]":
    """Returns ``tuned``, and the runs that it is transferred to on the further machine classes of --on."""
    if fleet is None:
        return (tuned,)
    return (tuned, *_transfer_runs(backends, fleet, tuned, store))


def _print_runs(
    all_tuned: "tuple[TunedRun, ...]",
    fleet: "FleetRequest | None",
    backends: "Backends",
    store: "Store",
    result: ResultOptions,
) -> None:
    if fleet is not None and fleet.on and result.as_json:
        print_json(several_document(all_tuned, store))
        return
    resume_with = _resume_text(all_tuned[0].run.id, fleet, result.database)
    for tuned in all_tuned:
        _print(backends, tuned, store, result, resume_with)
    if len(all_tuned) > 1:
        print("\n".join(wrapped(compromise_lines(all_tuned, store), screen_columns())))


def _print_untuned(
    problem: "Problem", run: RunOptions, warm: WarmOptions, backends: "Backends", *, as_json: bool
) -> int:
    """Prints what would be used without a search; nothing is timed or stored."""
    request = replace(run, trials=1).request(problem, warm)
    choice = untuned_choice(run_settings(request, backends), backends)
    if as_json:
        print_json(choice.document)
        return 0
    options = typed_options(click.get_current_context(), SEARCH_OPTIONS)
    export = f"tuner export {problem.operation} {problem.shape}{options} --untuned -o best.mlir"
    lines = (
        f"{problem.key}: {choice.text}",
        f"strategy  {choice.candidate.strategy}",
        knobs_line(choice.candidate.choices),
        f"export    {export}",
    )
    print("\n".join(wrapped(lines, screen_columns())))
    return 0


def _resume_text(run: int, fleet: "FleetRequest | None", database: str | None) -> str:
    on_fleet = " --fleet" if fleet is not None else ""
    on = f" --on {shlex.quote(','.join(fleet.on))}" if fleet is not None and fleet.on else ""
    return f"tuner tune --resume {run}{on_fleet}{on}{database_text(database)}"


def _print(
    backends: "Backends",
    tuned: "TunedRun",
    store: "Store",
    result: ResultOptions,
    resume_with: str,
) -> None:
    arguments = database_text(result.database)
    if result.as_json:
        print_json(tune_document(tuned.run, tuned.counts, tuned.selected, tuned.seconds))
    elif tuned.selected is not None:
        print("\n".join(wrapped(tune_lines(tuned, tuned.selected, arguments))))
    elif tuned.has_worked:
        print("\n".join(wrapped(_verified_lines(backends, tuned, store, arguments))))
    if tuned.is_interrupted:
        print_interrupted(resume_with)
    elif not tuned.has_worked:
        print("\n".join(wrapped(failure_lines(tuned, arguments))), file=sys.stderr)


def _verified_lines(backends: "Backends", tuned: "TunedRun", store: "Store", arguments: str) -> list[str]:
    order = backends.target_of_run(tuned.run.settings).untimed
    if order is None:
        return verified_lines(tuned, (), arguments)
    promising = order.promising(store, tuned.run.id, backends.predicted, PREDICTED_LIMIT)
    facts = order.facts(promising[0]) if promising else ""
    return verified_lines(tuned, promising, arguments, facts)


# With --fleet: the machine class of a resumed run; with --on: a run on each class, and the compromise.


def fleet_of_run(fleet: "FleetRequest", resumed: int | None, database: str | None) -> "FleetRequest":
    """Returns ``fleet`` with a machine class: the given class, else that of the resumed run or campaign.

    ``fleet`` is returned as it is if it names a class or nothing is resumed.
    """
    if resumed is None or fleet.machine:
        return fleet
    with open_known_store(database) as store:
        is_campaign = isinstance(resumed, CampaignNumber)
        run = store.campaign(resumed).runs[0] if is_campaign else store.run(resumed)
        return replace(fleet, machine=run.machine.name)


def _first_target(fleet: "FleetRequest", target: str) -> str:
    """Returns the target of the first machine class in --on, as text; for a recording ``target`` itself."""
    wanted = TargetName.parse(target)
    target_on = remote_runners().target_on
    first, *_ = [target_on(fleet, machine, wanted.kind).text for machine in fleet.on]
    if wanted.has_machine:
        return first
    return target


def _transfer_runs(
    backends: "Backends", fleet: "FleetRequest", source_run: "TunedRun", store: "Store"
) -> "Iterator[TunedRun]":
    """Tunes on each further machine class of --on, one after another, and yields its run.

    ``source_run``: that of the first class. Ends after a run that was interrupted or had no success.
    """
    tuned = source_run
    runners = remote_runners()
    for machine in fleet.on[1:]:
        if tuned.is_interrupted or not tuned.has_worked:
            return
        target = runners.target_on(fleet, machine, source_run.run.settings.target.kind)
        there = runners.fleet_backends(backends, replace(fleet, machine=machine, on=()))
        settings, begun = transfer_settings(source_run.run, target, there, store)
        tuned = run_session(there, store, settings, begun)
        yield tuned


def compromise_lines(all_tuned: "tuple[TunedRun, ...]", store: "Store") -> list[str]:
    """Returns lines on the candidate whose largest slowdown over the machines of --on is the least."""
    compromise, compared = _compromise(all_tuned, store)
    if compromise is None:
        return ["compromise: no candidate has a time on each machine"]
    first = compromise.trials[0].record.candidate
    worst = max((ratio.longer for ratio in compared if isinstance(ratio, Comparable)), default=0.0)
    is_known = all(isinstance(ratio, Comparable) or ratio.is_equal for ratio in compared)
    slower = f"at most {worst:.1%} slower than" if worst > 0 else "not distinguishable from"
    most = f", {slower} the best" if is_known else ""
    lines = [f"compromise {first.strategy}{most}", knobs_line(first.choices)]
    for tuned, trial, ratio in zip(all_tuned, compromise.trials, compared, strict=True):
        time = f"{seconds_text(trial.best_s or 0.0)} on {tuned.run.machine.name}"
        if isinstance(ratio, Comparable):
            phrase = ratio.longer_text
        else:
            phrase = f"no ratio to the best: {ratio.reason}"
        lines.append(f"          {time}: {phrase}, trial {trial.id}")
    return lines


def several_document(all_tuned: "tuple[TunedRun, ...]", store: "Store") -> dict[str, Any]:
    """Returns the JSON document of ``tuner tune --on A,B --json``: the runs and the compromise."""
    compromise, compared = _compromise(all_tuned, store)
    runs = [tune_document(tuned.run, tuned.counts, tuned.selected, tuned.seconds) for tuned in all_tuned]
    if compromise is None:
        return {"runs": runs, "compromise": None}
    slowdowns: list[float | None] = []
    reasons: list[str | None] = []
    for ratio in compared:
        if isinstance(ratio, Comparable):
            slowdowns.append(max(0.0, ratio.longer))
            reasons.append(None)
        else:
            slowdowns.append(None)
            reasons.append(ratio.reason)
    document = {
        **candidate_document(compromise.trials[0].record.candidate),
        "trials": [trial.id for trial in compromise.trials],
        "slowdowns": slowdowns,
        "slowdowns_unknown": reasons,
    }
    return {"runs": runs, "compromise": document}


def _compromise(
    all_tuned: "tuple[TunedRun, ...]", store: "Store"
) -> "tuple[Compromise | None, list[Comparable | NotComparable]]":
    compromise = best_compromise(tuple(store.trials(TrialQuery(run=tuned.run.id)) for tuned in all_tuned))
    if compromise is None:
        return None, []
    trios = zip(all_tuned, compromise.trials, compromise.fastest, strict=True)
    return compromise, [between_trials(tuned.run, trial, fastest) for tuned, trial, fastest in trios]
