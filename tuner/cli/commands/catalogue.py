"""``tuner strategies``, ``space`` and ``targets``: which strategies, configurations and targets there are."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from tuner.cli.options import (
    composition_of,
    database_option,
    json_option,
    print_found,
    problem_options,
    run_request,
    taken_problem,
    target_options,
)
from tuner.cli.screen import screen_columns
from tuner.core.errors import UsageError
from tuner.core.target_name import TargetName
from tuner.output.formatting import count_text, wrapped

if TYPE_CHECKING:
    from tuner.space.feasible_set import FeasibleSet
    from tuner.space.file.entries import StrategyEntry
    from tuner.tuning.composition import Composition
    from tuner.tuning.outcome_source import Plan
    from tuner.tuning.run_request import RunRequest

space_option = click.option(
    "--space", type=click.Path(path_type=Path), help="Search space file. Default: the one shipped."
)


@click.command()
@space_option
@json_option
def strategies(space: Path | None, as_json: bool) -> None:
    """Lists the strategies of a search space file: what each one supports, and its knobs.

    Example: tuner strategies --json
    """
    from tuner.space.file.reading import load_space_file
    from tuner.space.file.shipped import default_space_file

    entries = load_space_file(space or default_space_file()).strategies
    lines = wrapped(line for entry in entries for line in _strategy_lines(entry))
    print_found(as_json, [_strategy_document(entry) for entry in entries], *lines)


def _strategy_document(entry: "StrategyEntry") -> dict[str, object]:
    return {
        "name": entry.name,
        "description": entry.description,
        "ops": list(entry.operations),
        "dtypes": list(entry.dtypes),
        "layouts": list(entry.layouts),
        "epilogues": list(entry.epilogues),
        "isas": list(entry.isas),
        "knobs": [knob.name for knob in entry.knobs],
        "constraints": [constraint.full_text for constraint in entry.constraints],
        "preferences": [preference.full_text for preference in entry.preferences],
    }


def _strategy_lines(entry: "StrategyEntry") -> tuple[str, ...]:
    title = f"{entry.name}: {entry.description}" if entry.description else entry.name
    uses = f"{', '.join(entry.operations)}: {', '.join(entry.dtypes)}; {', '.join(entry.layouts)}"
    needs, knobs = " or ".join(entry.isas), ", ".join(knob.name for knob in entry.knobs)
    return title, f"  for     {uses}", f"  needs   {needs}", f"  knobs   {knobs}"


@click.command()
@click.argument("operation")
@click.argument("shape", metavar="[Bx]MxNxK")
@problem_options
@click.option("--strategy", "strategies", multiple=True, help="Only this strategy; may be repeated.")
@target_options
@click.option("--threads", type=int, default=1, show_default=True)
@space_option
@click.option(
    "--suggest",
    is_flag=True,
    help="Constraints that would have saved failed trials, as lines of such a file.",
)
@click.option(
    "--min-support", type=int, default=5, show_default=True, help="Failed points that a suggestion explains."
)
@click.option("--since", metavar="DATE", help="Suggest from trials since then, UTC: 2026-01-31.")
@database_option
@json_option
@click.pass_context
def space(
    context: click.Context,
    /,
    suggest: bool,
    min_support: int,
    since: str | None,
    database: str | None,
    as_json: bool,
    **arguments: Any,
) -> None:
    """Prints how many configurations of a problem are feasible, and what rejects the others.

    With --suggest it prints constraints that would have excluded failed trials of the database.

    Example: tuner space matmul 512x512x512 --dtype f32, or tuner space matmul 512x512x512 --suggest
    """
    if not suggest:
        _reject_suggest_options(context)
    elif not TargetName.parse(arguments["target"]).has_machine:
        found = arguments["target"]
        raise UsageError(f"space --suggest: target {found} runs no candidates")
    problem = taken_problem(arguments)
    request = run_request(problem, **arguments)
    feasible = plan_of(composition_of(context), request).feasible
    if suggest:
        from tuner.cli.commands.suggest import suggest_constraints
        from tuner.tuning.target_choice import resolve_target

        resolved = resolve_target(request.target, composition_of(context), request.chip)
        suggest_constraints(feasible.spaces, problem, resolved, database, min_support, since, as_json)
        return
    lines = (f"{problem.key}: {_feasible_text(feasible)}", *_space_lines(feasible))
    print_found(as_json, _space_document(feasible), *wrapped(lines, screen_columns()))


def _space_document(feasible: "FeasibleSet") -> dict[str, object]:
    return {
        "cartesian": feasible.cartesian,
        "feasible": feasible.total,
        "rejected": feasible.rejected(),
        "is_estimate": feasible.is_estimate,
        "rows": feasible.rows,
        "preferred": int(feasible.is_preferred.sum()),
        "demoted": feasible.demoted(),
    }


def _feasible_text(feasible: "FeasibleSet") -> str:
    about = "about " if feasible.is_sample else ""
    return f"{about}{feasible.total} of {feasible.cartesian} combinations are feasible"


def _space_lines(feasible: "FeasibleSet") -> Iterator[str]:
    """Yields lines on the search: sample size, preferences that demote and constraints that reject."""
    if feasible.is_sample:
        yield f"  a search chooses among {feasible.rows} of them, a fixed sample"
    preferred = int(feasible.is_preferred.sum())
    if preferred < feasible.rows:
        late = feasible.rows - preferred
        yield f"  {preferred} meet all preferences; the other {late} are tried after them"
    demoted, rejected = feasible.demoted(), feasible.rejected()
    for preference, count in _counted(demoted):
        yield f"  {count} come last by {preference}"
    about = "about " if feasible.is_estimate else ""
    for constraint, count in _counted(rejected):
        yield f"  {about}{count} rejected by {constraint}"
    idle = {"preference": list(demoted.values()).count(0), "constraint": list(rejected.values()).count(0)}
    counts = [count_text(count, noun) for noun, count in idle.items() if count]
    if counts:
        yield f"  {' and '.join(counts)} that nothing breaks here"


def _counted(broken: "Mapping[str, int]") -> list[tuple[str, int]]:
    """Returns the constraints or preferences with a count above 0, the largest count first."""
    return sorted(((text, count) for text, count in broken.items() if count), key=lambda pair: -pair[1])


def _reject_suggest_options(context: click.Context) -> None:
    for name in ("min_support", "since"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"space: --{name.replace('_', '-')} needs --suggest")


@click.command()
@json_option
@click.pass_context
def targets(context: click.Context, as_json: bool) -> None:
    """Lists the targets: whether each is available on this machine, and why or why not.

    Example: tuner targets
    """
    composition = composition_of(context)
    described = (kind.described for kind in composition.kinds.values())
    known = (*composition.targets(), *(kind.status() for kind in described if kind is not None))
    document = [
        {"name": status.name, "available": status.is_available, "reason": status.reason} for status in known
    ]
    lines = (
        f"{status.name}: {'available' if status.is_available else 'not available'}: {status.reason}"
        for status in known
    )
    print_found(as_json, document, *wrapped(lines))


def plan_of(composition: "Composition", request: "RunRequest") -> "Plan":
    """Returns the plan of a requested run, with its feasible configurations; does not start the run.

    Raises UsageError for a request that no run can have, such as an unknown strategy.
    """
    from tuner.tuning.settings import planned_settings

    settings = planned_settings(request, composition)
    source = composition.outcomes_of_run(settings)
    return source.plan(settings, source.machine(settings.target))
