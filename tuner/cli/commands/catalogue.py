"""``tuner strategies``, ``space``, ``targets`` and ``new-strategy``: what there is, and how to add to it.

Each command is followed by the functions that make its document and its lines.
"""

import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.forms import ProblemOptions, RunOptions, read_options
from tuner.cli.main import screen_columns
from tuner.cli.options import (
    backends_of,
    database_option,
    is_typed,
    json_option,
    library_option,
    open_known_store,
    print_found,
    problem_options,
    space_option,
    target_options,
)
from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError, unknown_value
from tuner.core.serialization import count_text, parse_moment
from tuner.results.constraint_suggestions import problem_and_target, suggestions
from tuner.results.output.files import write_atomically
from tuner.results.output.formatting import feasible_text, wrapped
from tuner.space.file.reading import load_space_file
from tuner.space.file.shipped import STRATEGY_SCRIPT, STRATEGY_SPACE
from tuner.space.file.yaml import default_space_file
from tuner.targets.backends import REPLAY_STATUS, resolve_target
from tuner.tuning.pretuned import shipped_text
from tuner.tuning.request import planned_settings

if TYPE_CHECKING:
    from tuner.analysis.constraint_mining import Suggestion
    from tuner.core.problem import Problem
    from tuner.core.requests import RunRequest
    from tuner.space.feasible_set import FeasibleSet
    from tuner.space.file.entries import StrategyEntry
    from tuner.space.search_space import SearchSpace
    from tuner.targets.backends import Backends
    from tuner.targets.target import Plan
PLACEHOLDER = "NAME"  # in the files below tuner/space/scripts/starter
STARTER_FILES = {
    STRATEGY_SCRIPT: STRATEGY_SCRIPT,
    STRATEGY_SPACE: STRATEGY_SPACE,
    "test_strategy.py.txt": "test_{name}.py",
}


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@space_option
@json_option
def strategies(names: tuple[str, ...], space: Path | None, as_json: bool) -> None:
    """Lists the strategies of a search-space file: what each one supports, and its knobs.

    With NAMEs, only those strategies.

    Example: tuner strategies, or tuner strategies matmul_cpu_packed --json
    """
    chosen = load_space_file(space or default_space_file()).strategies
    known = {strategy.name: strategy for strategy in chosen}
    for name in names:
        if name not in known:
            raise unknown_value("strategies", name, known)
    if names:
        chosen = tuple(known[name] for name in dict.fromkeys(names))
    lines = []
    for strategy in chosen:
        uses = (
            f"{', '.join(strategy.operations)}: {', '.join(strategy.dtypes)}; {', '.join(strategy.layouts)}"
        )
        lines += [
            f"{strategy.name}: {strategy.description}" if strategy.description else strategy.name,
            f"  for     {uses}",
            f"  needs   {' or '.join(strategy.isas)}",
            f"  knobs   {', '.join(knob.name for knob in strategy.knobs)}",
        ]
    print_found(as_json, list(map(_strategy_document, chosen)), *wrapped(lines))


def _strategy_document(strategy: "StrategyEntry") -> dict[str, object]:
    return {
        "name": strategy.name,
        "description": strategy.description,
        "ops": list(strategy.operations),
        "dtypes": list(strategy.dtypes),
        "layouts": list(strategy.layouts),
        "epilogues": list(strategy.epilogues),
        "isas": list(strategy.isas),
        "knobs": [knob.name for knob in strategy.knobs],
        "constraints": [constraint.full_text for constraint in strategy.constraints],
        "preferences": [preference.full_text for preference in strategy.preferences],
    }


@click.command()
@click.argument("operation")
@click.argument("shape", metavar="[Bx]MxNxK")
@problem_options
@click.option("--strategy", "strategies", multiple=True, help="Only this strategy; may be repeated.")
@library_option
@target_options
@click.option("--threads", type=int, default=1, show_default=True, help="Threads of the kernel.")
@space_option
@click.option(
    "--suggest",
    is_flag=True,
    help="Constraints that would have saved failed trials, as lines of a search-space file.",
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
    **_options: Any,
) -> None:
    """Prints how many configurations of a problem are feasible, and what rejects the others.

    With --suggest it prints constraints that would have excluded failed trials of the database.

    Example: tuner space matmul 512x512x512 --dtype f32, or tuner space matmul 512x512x512 --suggest
    """
    for name in ("min_support", "since"):
        if not suggest and is_typed(context, name):
            raise UsageError(f"space: --{name.replace('_', '-')} needs --suggest")
    run = read_options(RunOptions, context)
    if suggest and not TargetName.parse(run.target_text).has_machine:
        raise UsageError(f"space --suggest: target {run.target_text} runs no candidates")
    problem = read_options(ProblemOptions, context).problem
    request = run.request(problem)
    feasible = plan_of(backends_of(context), request).feasible
    if suggest:
        resolved = resolve_target(request.target, backends_of(context), request.chip)
        suggest_constraints(feasible.spaces, problem, resolved, database, min_support, since, as_json)
        return
    about = "about " if feasible.is_sample else ""
    total = f"{about}{feasible_text(feasible.total, feasible.cartesian)}"
    lines = (f"{problem.key}: {total}", *_space_lines(feasible))
    print_found(as_json, _space_document(feasible), *wrapped(lines, screen_columns()))


def plan_of(backends: "Backends", request: "RunRequest") -> "Plan":
    """Returns the plan (feasible set, order) of a run that is not started.

    Raises UsageError for a request that no run can have.
    """
    settings = planned_settings(request, backends)
    target = backends.target_of_run(settings)
    return target.plan(settings, target.machine(settings.target))


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


def _space_lines(feasible: "FeasibleSet") -> Iterator[str]:
    if feasible.is_sample:
        yield f"  a search chooses among {feasible.rows} of them, a fixed sample"
    preferred = int(feasible.is_preferred.sum())
    if preferred < feasible.rows:
        late = feasible.rows - preferred
        yield f"  {preferred} meet all preferences; the other {late} are tried after them"
    demoted = feasible.demoted()
    rejected = feasible.rejected()
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
    return sorted(((text, count) for text, count in broken.items() if count), key=lambda pair: -pair[1])


def suggest_constraints(
    spaces: "tuple[SearchSpace, ...]",
    problem: "Problem",
    target: "TargetName",
    database: str | None,
    min_support: int,
    since: str | None,
    as_json: bool,
) -> None:
    """Prints, per strategy, constraints that would have excluded failed trials of ``problem`` on ``target``.

    None of the constraints excludes a success, of any problem. ``min_support``: the fewest failures that a
    constraint excludes. ``database``: path or URL, None: the default. ``since``: only trials from this time
    on, None: all. Raises UsageError for ``min_support`` below 1, and for a ``since`` that is not a time.
    """
    if min_support < 1:
        raise UsageError(f"min-support: found {min_support}, allowed 1 or more")
    moment = None if since is None else parse_moment(since)
    here = problem_and_target(problem, target)
    suggested = {}
    with open_known_store(database) as store:
        for space in spaces:
            suggested[space.strategy] = suggestions(store, space, problem, target, min_support, moment)
    document = []
    for name, several in suggested.items():
        document += [_suggestion_document(name, suggestion, here) for suggestion in several]
    lines = _suggestion_lines(
        {name: several for name, several in suggested.items() if several}, here, min_support
    )
    print_found(as_json, document, *lines)


def _suggestion_document(strategy: str, suggestion: "Suggestion", here: str) -> dict[str, Any]:
    return {
        "strategy": strategy,
        "constraint": suggestion.constraint,
        "stage": suggestion.stage.value,
        "reason": suggestion.reason,
        "trials": suggestion.trials,
        "trials_here": dict(suggestion.problems)[here],
        "problems": len(suggestion.problems),
        "chance": suggestion.chance,
    }


def _suggestion_lines(
    suggested: "dict[str, tuple[Suggestion, ...]]", here: str, min_support: int
) -> list[str]:
    if not suggested:
        support = count_text(min_support, "failure")
        return [
            f"# {here}:",
            f"# nothing to suggest: no constraint explains {support} or more, and no success, beyond chance",
        ]
    lines = [
        "# p-value: the chance that such failures, and no success, break a constraint where knobs have no",
        "# effect, corrected for all constraints that were tried",
        "strategies:",
    ]
    for strategy, several in suggested.items():
        lines += [f"  {strategy}:", "    constraints:"]
        for suggestion in several:
            saved = f"would have saved {count_text(suggestion.trials, 'failed trial')}"
            problems = count_text(len(suggestion.problems), "problem")
            where = f"{dict(suggestion.problems)[here]} of them here, {problems}"
            lines += [
                f"      # {saved} ({where}); p-value: {suggestion.chance:.1g}",
                f"      # {suggestion.stage.value}: {' '.join(suggestion.reason.split())}",
                f'      - "{suggestion.constraint}"',
            ]
    return lines


@click.command()
@json_option
@click.pass_context
def targets(context: click.Context, as_json: bool) -> None:
    """Lists the targets: whether each is available on this machine, and why or why not; shipped results.

    Example: tuner targets
    """
    backends = backends_of(context)
    known_targets = tuple(backends.targets.values())
    cross_compiled = (target.cross_compiled for target in known_targets if target.cross_compiled is not None)
    known = [(target.status(), target.tools()) for target in known_targets]
    known += [(REPLAY_STATUS, ""), *((target.status(), "") for target in cross_compiled)]
    document = []
    lines = []
    for status, tools in known:
        available = "available" if status.is_available else "not available"
        reason = "; ".join(filter(None, (status.reason, tools)))
        lines.append(f"{status.name}: {available}: {reason}")
        document.append({"name": status.name, "available": status.is_available, "reason": reason})
        if status.is_timed and TargetName(status.name).is_on_cpu:
            shipped = shipped_text(backends.machine())
            lines.append(f"{status.name}: {shipped}")
            document[-1]["shipped"] = shipped
    print_found(as_json, document, *wrapped(lines))


@click.command("new-strategy")
@click.argument("name", metavar="NAME")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Where to write the folder NAME. Default: the current folder.",
)
@json_option
def new_strategy(name: str, folder: Path, as_json: bool) -> None:
    """Writes a custom strategy that works, a folder of three files: script template, search space, test.

    Example: tuner new-strategy my_tiles
    """
    shipped = load_space_file(default_space_file()).strategies
    own = folder / name
    files = {own / file.name: file.text for file in starter_files(name, tuple(e.name for e in shipped))}
    for path in files:
        if path.exists():
            raise UsageError(f"{path}: exists, and is not replaced")
    if not folder.is_dir():
        raise UsageError(f"--folder: no such folder: {folder}")
    if own.exists() and not own.is_dir():
        raise UsageError(f"{own}: exists, and is not a folder")
    own.mkdir(exist_ok=True)
    for path, text in files.items():
        write_atomically(path, text.encode())
        print(f"wrote {path}", file=sys.stderr)
    space, test = (shlex.quote(str(own / file)) for file in (STRATEGY_SPACE, f"test_{name}.py"))
    print_found(
        as_json,
        {"strategy": name, "files": list(map(str, files))},
        f"next  tuner tune matmul 64x64x64 --space {space} --strategy {name} --trials 4",
        f"      python -m pytest {test}    # needs: pip install pytest",
    )


@dataclass(frozen=True)
class StarterFile:
    """A starter file of a custom strategy: its file name, and its text."""

    name: str
    text: str


def starter_files(name: str, taken: tuple[str, ...]) -> tuple[StarterFile, ...]:
    """Returns the three starter files of a custom strategy ``name``.

    Raises UsageError for a name that is in ``taken`` or is not an identifier.
    """
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is None:
        raise UsageError(f"NAME: found {name!r}, allowed letters, digits and _, no digit first")
    if name in taken:
        raise UsageError(f"NAME: {name!r} is a shipped strategy", "choose another name")
    starter = files("tuner") / "space" / "scripts" / "starter"
    return tuple(
        StarterFile(written.format(name=name), (starter / kept).read_text("utf-8").replace(PLACEHOLDER, name))
        for kept, written in STARTER_FILES.items()
    )
