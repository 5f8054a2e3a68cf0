"""``tuner tune``: searches for the best schedule of a problem, on one machine class or on several."""

import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import click

from tuner.analysis.ratios import Comparable, NotComparable, best_compromise, between_trials
from tuner.cli.main import FAILED, screen_columns
from tuner.cli.operations import added_operations, operation_of, programs
from tuner.cli.options import (
    OF_ONE_PROBLEM,
    CampaignNumber,
    RunOrCampaign,
    backends_of,
    database_option,
    fleet_options,
    is_payload,
    json_option,
    library_option,
    open_known_store,
    open_store,
    popped_fleet,
    popped_problem,
    print_json,
    problem_options,
    remote_runners,
    run_limit,
    run_request,
    space_option,
    target_options,
    typed_options,
)
from tuner.cli.session import exit_code, print_interrupted, print_stored, require_no_arguments, run_session
from tuner.core.candidate import TargetName, candidate_document
from tuner.core.errors import Failure, UsageError
from tuner.core.problem import OPERATIONS
from tuner.core.runs import TrialQuery
from tuner.core.serialization import seconds_text
from tuner.results.output.formatting import knobs_line, wrapped
from tuner.search.samplers import OPTUNA, SAMPLERS

if TYPE_CHECKING:
    from tuner.analysis.ratios import Compromise
    from tuner.cli.operations import TunedOperation
    from tuner.core.requests import FleetRequest
    from tuner.db.store import Store
    from tuner.targets.backends import Backends
    from tuner.tuning.tuned_run import TunedRun


PREDICTED_LIMIT = 8  # trials whose cycles are predicted at the end of a run: half a second each
REASONS_SHOWN = 3
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
    *("warm_start", "warm_files", "baseline", "as_json"),
)
EXAMPLE_SIZES = "512x512x512"
HEADINGS = {  # of the help -> options
    "Problem": "dtype layout epilogue output-dtype align cache constant target cpu entry arg shapes",
    "Search": "strategy library reopen space sampler trials budget seed workers fresh no-warm-start "
    "warm-start resume",
    "Measurement": "threads baseline retime",
    "Output": "db json debug help",
    "GPUs": "chip",
    "Quantized weights": "weights group-size scale-dtype zero-points activations",
    "Fleet": "fleet on machine devices priority",
}


@final
class UnderHeadings(click.Command):
    """A command whose help lists its options under HEADINGS."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, names in HEADINGS.items():
            flags = {f"--{name}" for name in names.split()}
            chosen = (each for each in self.get_params(context) if not flags.isdisjoint(each.opts))
            with formatter.section(heading):
                formatter.write_dl([record for each in chosen if (record := each.get_help_record(context))])


@click.command(cls=UnderHeadings)
@click.argument("operation", required=False)
@click.argument("shape", required=False, metavar="[Bx]MxNxK")
@problem_options
@target_options
@click.option(
    "--strategy", "strategies", multiple=True, help="Strategy to try; may be repeated. Default: all that fit."
)
@library_option
@click.option(
    "--reopen",
    is_flag=True,
    help="With a script of --strategy that selects values of its knobs, as exported ones do: opens its knobs "
    "again, so that all their options are searched.",
)
@space_option
@click.option(
    "--sampler",
    help=f"How to choose: {', '.join(SAMPLERS)}, or {OPTUNA}NAME, one of Optuna's own. "
    "Default: tpe; random where nothing is timed.",
)
@click.option(
    "--trials",
    type=int,
    help="Ends after so many. Default: 100 without --budget. 0: prints the configuration to use untuned.",
)
@click.option(
    "--budget",
    metavar="TIME",
    help="Ends after 60s, 5m or 1h, with its final re-measurement.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Equal seeds propose equal trials.")
@click.option("--threads", type=int, default=1, show_default=True, help="Threads of the kernel.")
@click.option("--workers", type=int, help="Candidates compiled at once. Default: the cores, at most 4.")
@click.option("--fresh", is_flag=True, help="Measure again what earlier runs have measured.")
@click.option(
    "--no-warm-start",
    "warm_start",
    flag_value=False,
    default=True,
    help="Begin with nothing that was best for other problems.",
)
@click.option(
    "--warm-start",
    "warm_files",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Begin with the best of a recorded space (T4 file), too; may be repeated.",
)
@click.option(
    "--baseline",
    default="",
    metavar="LIBRARY",
    help="Of a CPU: openblas, mkl, blis, onednn, onednn-torch, or best: the fastest of those installed. "
    "Default: openblas; for bf16 and i8 oneDNN if installed, else openblas on f32. With --weights: "
    "onnxruntime, openvino, zentorch, torch-int4pack, or best, the default. Of a PyTorch model: all, "
    "eager, torch.compile or none. Default: all.",
)
@fleet_options
@click.option("--entry", metavar="NAME", help="Function of a payload. Default: the only public one.")
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="N=[SIZES]CONTENT",
    help="An argument of a payload, as for tuner run; others are random.",
)
@click.option(
    "--shapes",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Tune all problems of a file as a campaign: one budget for all, a run for each. .yaml or .csv with "
    "shape, count and name, or .mlir.",
)
@click.option(
    "--resume",
    type=RunOrCampaign(),
    metavar="RUN",
    help="Continue a run, or a campaign (campaign:N, the runs of --shapes or of a program), by its stored "
    "settings, or to another --trials or --budget.",
)
@click.option(
    "--retime",
    is_flag=True,
    help="With --resume: re-measure the best. Each round is kept; the quietest one selects the result.",
)
@database_option
@json_option
@click.pass_context
def tune(
    context: click.Context,
    /,
    shapes: Path | None,
    resume: int | None,
    retime: bool,
    database: str | None,
    as_json: bool,
    **arguments: Any,
) -> None:
    """Tunes one operation at one size, or each matmul of a program or file; every trial is stored.

    OPERATION is matmul, of the shape MxNxK (C = A B, A of M x K), or batch_matmul, of BxMxNxK; or the path
    of a program, without a shape. --weights and --constant are of matmul.

    Ctrl-C ends the run without loss; a second one kills at once. A program is a .mlir file: its matmuls are
    tuned one after another, then it runs as a whole. With --shapes, many problems share one budget: those of
    a file, or all contractions of a model.

    Example: tuner tune matmul 512x512x512 --dtype f32 --budget 60s
    """
    from tuner.tuning.request import run_settings  # not at start-up

    backends = backends_of(context)
    fleet = popped_fleet(arguments, database)
    is_campaign = _checked_campaign(shapes, resume, retime, fleet)
    local_backends = backends
    if fleet is not None:
        fleet = fleet_of_run(fleet, resume, database)
        backends = _on_fleet(backends, fleet, arguments)
    if is_campaign:
        parts = (context, backends, database, as_json, fleet is not None)
        context.exit(_tune_campaign(parts, shapes, resume, arguments))
    operation = None if resume is not None else _operation(arguments["operation"])
    if operation is not None:
        context.exit(operation.tune(context, backends, database, as_json, **arguments))
    _reject_program_options(context, entry=arguments.pop("entry"), arg=arguments.pop("arguments"))
    if resume is None and arguments["trials"] == 0:
        context.exit(_print_untuned(context, backends, arguments, as_json=as_json))
    if resume is None:
        problem = popped_problem(context, arguments, EXAMPLE_SIZES)
        settings = run_settings(run_request(problem, **arguments), backends)
        limit = None
    else:
        settings = None
        limit = run_limit(arguments.pop("trials"), arguments.pop("budget"))
        require_no_arguments(context, arguments)
    opened = open_store if resume is None else open_known_store
    with opened(database) as store:
        tuned = run_session(backends, store, settings, resume, retime, limit)
        all_tuned = (tuned, *(() if fleet is None else _transfer_runs(local_backends, fleet, tuned, store)))
        resume_with = _resume_text(tuned.run.id, fleet, database)
        if fleet is not None and fleet.on and as_json:
            print_json(several_document(all_tuned, store))
        else:
            for each in all_tuned:
                _print(local_backends, each, store, as_json, database, resume_with)
            if len(all_tuned) > 1:
                print("\n".join(wrapped(compromise_lines(all_tuned, store), screen_columns())))
    print_stored(database)
    if retime and tuned.lost and not tuned.is_interrupted:
        print(f"run {tuned.run.id}: --retime gained no round: {tuned.lost}", file=sys.stderr)
        context.exit(FAILED)
    context.exit(max(map(exit_code, all_tuned)))


def _operation(name: str | None) -> "TunedOperation | None":
    """Returns the operation of an extension, or what tunes programs; None for one of ``tuner.core``."""
    if is_payload(name):
        return programs()
    is_added = name is not None and name not in OPERATIONS and name in added_operations()
    return operation_of(name) if is_added and name else None


def _print_untuned(
    context: click.Context, backends: "Backends", arguments: dict[str, Any], *, as_json: bool
) -> int:
    """Prints what would be used without a search; nothing is timed or stored."""
    from tuner.tuning.request import run_settings  # not at start-up
    from tuner.tuning.untuned import untuned_choice  # not at start-up

    given = typed_options(context, SEARCH_OPTIONS)
    problem = popped_problem(context, arguments, EXAMPLE_SIZES)
    request = run_request(problem, **arguments | {"trials": 1})
    choice = untuned_choice(run_settings(request, backends), backends)
    if as_json:
        print_json(choice.document)
        return 0
    export = f"tuner export {problem.operation} {problem.shape}{given} --untuned -o best.mlir"
    knobs = knobs_line(choice.candidate.choices)
    lines = (
        f"{problem.key}: {choice.text}",
        f"strategy  {choice.candidate.strategy}",
        knobs,
        f"export    {export}",
    )
    print("\n".join(wrapped(lines, screen_columns())))
    return 0


def _tune_campaign(
    parts: "tuple[click.Context, Backends, str | None, bool, bool]",  # ..., database, as_json, is_on_fleet
    shapes: Path | None,
    campaign: int | None,
    arguments: dict[str, Any],
) -> int:
    # only here: the help of ``tune`` waits for neither programs nor campaigns
    from tuner.cli.commands.tune_shapes import resume_shapes, tune_shapes  # not at start-up

    if shapes is not None:
        return tune_shapes(*parts, shapes, **arguments)
    assert campaign is not None
    return resume_shapes(*parts, campaign, **arguments)


def _checked_campaign(
    shapes: Path | None, resume: int | None, retime: bool, fleet: "FleetRequest | None"
) -> bool:
    # whether a campaign is asked for; UsageError for options that do not go with one
    if retime and resume is None and shapes is None:
        raise UsageError("--retime needs a run", "--resume RUN")
    if shapes is None and not isinstance(resume, CampaignNumber):
        return False
    campaign = "--shapes" if shapes is not None else f"--resume campaign:{resume}"
    if shapes is not None and resume is not None:
        raise UsageError("--resume cannot be combined with --shapes: a campaign has its stored problems")
    if fleet is not None and fleet.on:
        line = f"{campaign} cannot be combined with --on: a campaign is measured on one class of machine"
        raise UsageError(line, "tuner tune --shapes FILE --fleet --machine NAME")
    if retime:
        line = f"{campaign} cannot be combined with --retime, which times one run again"
        raise UsageError(line, "tuner tune --resume RUN --retime")
    return True


def _on_fleet(backends: "Backends", fleet: "FleetRequest", arguments: dict[str, Any]) -> "Backends":
    """Returns backends that let a fleet's nodes do the work; with --on, sets the target in ``arguments``."""
    operation = arguments["operation"]
    if is_payload(operation):
        raise UsageError(f"--fleet cannot be combined with {operation}: programs run on this machine")
    if operation is not None and fleet.on:
        arguments["target"] = _first_target(fleet, arguments["target"])
    return remote_runners().fleet_backends(backends, fleet)


def _resume_text(run: int, fleet: "FleetRequest | None", database: str | None) -> str:
    from tuner.results.database_name import database_text  # not at start-up

    on_fleet = " --fleet" if fleet is not None else ""
    on = f" --on {shlex.quote(','.join(fleet.on))}" if fleet is not None and fleet.on else ""
    return f"tuner tune --resume {run}{on_fleet}{on}{database_text(database)}"


def _reject_program_options(context: click.Context, **arguments: object) -> None:
    for name, given in arguments.items():
        if given:
            line = f"--{name} needs a program: a file of MLIR in place of an operation and a shape"
            options = typed_options(context, (*OF_ONE_PROBLEM, "threads"))
            raise UsageError(line, f"tuner tune payload.mlir{options}")


def _print(
    backends: "Backends",
    tuned: "TunedRun",
    store: "Store",
    as_json: bool,
    database: str | None,
    resume_with: str,
) -> None:
    from tuner.results.best_trials import other_winners  # not at start-up
    from tuner.results.database_name import database_text  # not at start-up
    from tuner.results.output.json_documents import tune_document  # not at start-up
    from tuner.results.output.run_result import (  # not at start-up
        failure_lines,
        other_cache_lines,
        result_lines,
        verified_lines,
    )

    arguments = database_text(database)
    if as_json:
        print_json(tune_document(tuned.run, tuned.counts, tuned.selected, tuned.seconds))
    elif tuned.selected is not None:
        others = other_winners(store, tuned.selected.best)
        lines = result_lines(tuned, tuned.selected, arguments) + other_cache_lines(others)
        print("\n".join(wrapped(lines)))
    elif tuned.has_worked:
        from tuner.search.cost_model.untimed import deciding_facts, predicted_first  # not at start-up

        pending = store.pending(TrialQuery(run=tuned.run.id))
        promising = predicted_first(pending, backends.predicted, PREDICTED_LIMIT)
        facts = deciding_facts(promising[0]) if promising else ""
        print("\n".join(wrapped(verified_lines(tuned, promising, arguments, facts))))
    if tuned.is_interrupted:
        print_interrupted(resume_with)
    elif not tuned.has_worked:
        failed = store.trials(TrialQuery(run=tuned.run.id, status="failed"))
        failures = [each.record.outcome for each in failed if isinstance(each.record.outcome, Failure)]
        reasons = Counter(f"{failure.stage.value}: {failure.reason}" for failure in failures)
        lines = failure_lines(tuned, reasons.most_common(REASONS_SHOWN), arguments)
        print("\n".join(lines), file=sys.stderr)


# With --fleet: the machine class of a resumed run; with --on: a run on each class, and the compromise.


def fleet_of_run(fleet: "FleetRequest", resumed: int | None, database: str | None) -> "FleetRequest":
    """Returns ``fleet`` with a machine class: its own, else the one of the run ``resumed``, if any."""
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
    first, *_ = [target_on(fleet, given, wanted.kind).text for given in fleet.on]
    return first if wanted.has_machine else target


def _transfer_runs(
    backends: "Backends", fleet: "FleetRequest", source_run: "TunedRun", store: "Store"
) -> "Iterator[TunedRun]":
    """Tunes on each further machine class of --on, one after another, and yields its run."""
    from tuner.tuning.run import transfer_settings  # not at start-up

    tuned = source_run
    runners = remote_runners()
    for given in fleet.on[1:]:
        if tuned.is_interrupted or not tuned.has_worked:
            return
        target = runners.target_on(fleet, given, source_run.run.settings.target.kind)
        there = runners.fleet_backends(backends, replace(fleet, machine=given, on=()))
        settings, begun = transfer_settings(source_run.run, target, there, store)
        tuned = run_session(there, store, settings, begun)
        yield tuned


def compromise_lines(all_tuned: "tuple[TunedRun, ...]", store: "Store") -> list[str]:
    """Returns lines on the candidate with the least worst-case slowdown over the machines of --on."""
    compromise, compared = _compromise(all_tuned, store)
    if compromise is None:
        return ["compromise: no candidate has a time on each machine"]
    first = compromise.trials[0].record.candidate
    worst = max((each.longer for each in compared if isinstance(each, Comparable)), default=0.0)
    is_known = all(isinstance(each, Comparable) or each.is_equal for each in compared)
    slower = f"at most {worst:.1%} slower than" if worst > 0 else "not distinguishable from"
    most = f", {slower} the best" if is_known else ""
    lines = [f"compromise {first.strategy}{most}", knobs_line(first.choices)]
    for tuned, trial, one in zip(all_tuned, compromise.trials, compared, strict=True):
        time = f"{seconds_text(trial.best_s or 0.0)} on {tuned.run.machine.name}"
        phrase = one.longer_text if isinstance(one, Comparable) else f"no ratio to the best: {one.reason}"
        lines.append(f"          {time}: {phrase}, trial {trial.id}")
    return lines


def several_document(all_tuned: "tuple[TunedRun, ...]", store: "Store") -> dict[str, Any]:
    """Returns the JSON document of ``tuner tune --on A,B --json``: the runs and the compromise."""
    from tuner.results.output.json_documents import tune_document  # not at start-up

    compromise, compared = _compromise(all_tuned, store)
    runs = [tune_document(each.run, each.counts, each.selected, each.seconds) for each in all_tuned]
    if compromise is None:
        return {"runs": runs, "compromise": None}
    return {
        "runs": runs,
        "compromise": {
            **candidate_document(compromise.trials[0].record.candidate),
            "trials": [trial.id for trial in compromise.trials],
            "slowdowns": [
                max(0.0, each.longer) if isinstance(each, Comparable) else None for each in compared
            ],
            "slowdowns_unknown": [
                each.reason if isinstance(each, NotComparable) else None for each in compared
            ],
        },
    }


def _compromise(
    all_tuned: "tuple[TunedRun, ...]", store: "Store"
) -> "tuple[Compromise | None, list[Comparable | NotComparable]]":
    compromise = best_compromise(tuple(store.trials(TrialQuery(run=each.run.id)) for each in all_tuned))
    if compromise is None:
        return None, []
    trios = zip(all_tuned, compromise.trials, compromise.fastest, strict=True)
    return compromise, [between_trials(tuned.run, trial, fastest) for tuned, trial, fastest in trios]
