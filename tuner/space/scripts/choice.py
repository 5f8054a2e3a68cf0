"""Chooses the strategies that a run tries, by name or file, and makes their search spaces.

Also binds the script of a fusion's initial configuration, without a search.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from tuner.core.candidate import Candidate, TargetName, Value
from tuner.core.errors import CandidateError, UsageError, unknown_strategy
from tuner.core.interfaces import Script
from tuner.core.machine import Machine, variables_of
from tuner.core.problem import Problem
from tuner.core.runs import ChosenStrategy
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import SpaceFile, load_space_file, spaces_for
from tuner.space.file.shipped import OR_SCRIPT, PLAIN_SUFFIX, SCRIPTS, STRATEGY_SCRIPT, TEMPLATE_SUFFIX
from tuner.space.file.yaml import default_space_file
from tuner.space.projection import projected
from tuner.space.scripts.header import is_exported, provenance_file, read_provenance
from tuner.space.scripts.strategy import Binder, Strategy, load_chosen
from tuner.space.search_space import SearchSpace

if TYPE_CHECKING:
    from tuner.space.scripts.schedule import Schedule


MAIN = "__transform_main"  # the sequence that the interpreter runs
COMMENT = re.compile("//.*")
SEQUENCE = re.compile(r"^[^/\n]*\btransform\.named_sequence\s+@([\w$.]+)", re.MULTILINE)
BUFFERS = re.compile(r"bufferiz|tuner\.quantized_matmul")  # in a script that leaves no tensors


def choose(
    options: tuple[str, ...],
    space_file: SpaceFile,
    *,
    reopens: bool = False,
    libraries: tuple[Path, ...] = (),
) -> tuple[ChosenStrategy, ...]:
    """Returns the strategies that the values of --strategy name; () means all of the search-space file.

    A value is a name in the file, or the path of a script. ``reopens``: knobs whose value a script selects
    get all their options again. ``libraries``: scripts whose sequences the scripts use. Raises UsageError for
    a value that is neither, for a script that cannot be read, for a template that the file does not describe,
    for two strategies of one name, for ``libraries`` without a plain script, and, with ``reopens``, for no
    value, or one that is not a plain script or whose knobs have one option each.
    """
    if libraries and not any(option.endswith(PLAIN_SUFFIX) for option in options):
        raise UsageError("--library: there is no script that uses it", "--strategy FILE.mlir")
    if reopens and not options:
        raise UsageError("--reopen: there is no script whose knobs it reopens", "--strategy FILE.mlir")
    if not options:
        return tuple(_named(entry.name, space_file) for entry in space_file.strategies)
    chosen = tuple(_of_option(option, space_file, libraries) for option in dict.fromkeys(options))
    names = [strategy.name for strategy in chosen]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"strategy: found two of the name {name}, allowed one", "rename a file")
    if reopens:
        return tuple(map(_reopened, chosen))
    return chosen


def with_seed_scripts(
    chosen: tuple[ChosenStrategy, ...], seeds: tuple[Candidate | Path, ...], space_file: SpaceFile
) -> tuple[tuple[ChosenStrategy, ...], tuple[Candidate, ...]]:
    """Returns (``chosen`` and a strategy for each script in ``seeds``, the seeds as configurations).

    ``seeds``: configurations to try first, or paths of scripts; they stay in order. A script is a strategy of
    one configuration: each of its knobs has one option. Raises UsageError for a file that is not such a
    script, and for one with the name of another strategy.
    """
    by_name = dict(zip(map(attrgetter("name"), chosen), chosen, strict=True))
    configurations = []
    for seed in seeds:
        if isinstance(seed, Candidate):
            configurations.append(seed)
            continue
        strategy = _of_option(str(seed), space_file, ())
        if by_name.setdefault(strategy.name, strategy) != strategy:
            raise UsageError(
                f"{seed}: there is another strategy of the name {strategy.name}", "rename the file"
            )
        configurations.append(_only_configuration(strategy, seed))
    return tuple(by_name.values()), tuple(configurations)


def _only_configuration(strategy: ChosenStrategy, file: Path) -> Candidate:
    if not _is_plain(strategy):
        raise UsageError(f"{file}: is a template, a seed is a script with all choices made")
    values = {}
    for knob in _schedule(strategy).knobs:
        if len(knob.choices) > 1:
            line = f"{file}: knob {knob.name!r} is open, a seed has all choices made"
            raise UsageError(line, f"tuner tune --strategy {file}")
        values[knob.name] = knob.choices[0]
    return Candidate.of(strategy.name, values)


def spaces(
    chosen: tuple[ChosenStrategy, ...],
    space_file: SpaceFile,
    problem: Problem,
    isa: str,
    variables: tuple[tuple[str, Value], ...],
) -> tuple[SearchSpace, ...]:
    """Returns the search spaces of the chosen strategies that support a problem.

    Spaces of the file come first, in its order. A script that the file does not describe has the knobs that
    it declares, and supports every problem. ``isa``: of the machine; ``variables``: (name, value) pairs for
    constraints. Raises UsageError if none of the file's chosen strategies supports the problem, and for a
    script that cannot be read or parsed.
    """
    known = {entry.name for entry in space_file.strategies}
    schedules = {strategy.name: _schedule(strategy) for strategy in chosen if _is_plain(strategy)}
    declared = {name: schedule.knobs for name, schedule in schedules.items()}
    in_file = tuple(strategy.name for strategy in chosen if strategy.name in known)
    described = spaces_for(space_file, problem, isa, variables, in_file, declared) if in_file else ()
    result = []
    for space in described:
        if space.strategy in schedules:  # a plain script, which may assert constraints of its own
            constraints = space.constraints + schedules[space.strategy].constraints
            result.append(replace(space, constraints=constraints))
        else:
            result.append(space)
    for name in (strategy.name for strategy in chosen if strategy.name not in known):
        schedule = schedules[name]
        # ``idle`` keeps a knob at its first choice where only ops that do not run use it
        result.append(SearchSpace(name, schedule.knobs, schedule.constraints + schedule.idle, variables))
    return tuple(result)


def require_exported_for(chosen: tuple[ChosenStrategy, ...], problem: Problem, target: TargetName) -> None:
    """Raises UsageError for a script that was exported for another problem, or for another kind of target.

    Its guard would refuse the payload of each trial. Alignment and cache state may differ, as they are
    conditions of a measurement. A script without its provenance file is not refused.
    """
    for script in _plain_scripts(chosen):
        if not provenance_file(script.path).is_file():
            continue
        exported = read_provenance(script.path, script.text)
        own_problem = replace(exported.problem, align=problem.align, cache=problem.cache)
        if own_problem != problem or exported.target.is_on_cpu != target.is_on_cpu:
            raise UsageError(
                f"strategy {script.path.name}: was exported for {own_problem.key} on {exported.target.kind}, "
                f"the run is for {problem.key} on {target.kind}",
                "tuner tune without --strategy searches all strategies for it",
            )


def missing_provenance(chosen: tuple[ChosenStrategy, ...]) -> tuple[str, ...]:
    """Returns a note for each exported script without its provenance file, which says its problem."""
    return tuple(
        f"{script.path.name}: found no {provenance_file(script.path).name} next to it: "
        "whether the script is for this problem is not known"
        for script in _plain_scripts(chosen)
        if is_exported(script.text) and not provenance_file(script.path).is_file()
    )


def appended_bufferization(chosen: tuple[ChosenStrategy, ...]) -> tuple[str, ...]:
    """Returns a note for each script that does not bufferize: upstream's pass is then appended to it."""
    return tuple(
        f"{script.path.name} leaves tensors: upstream's one-shot-bufferize is appended to it"
        for script in _plain_scripts(chosen)
        if not BUFFERS.search(COMMENT.sub("", script.text))
    )


def _plain_scripts(chosen: tuple[ChosenStrategy, ...]) -> Iterator[Strategy]:
    return (load_chosen(replace(strategy, reopens=False)) for strategy in chosen if _is_plain(strategy))


def _of_option(option: str, space_file: SpaceFile, libraries: tuple[Path, ...]) -> ChosenStrategy:
    if any(entry.name == option for entry in space_file.strategies):
        return _named(option, space_file)
    if not option.endswith(SCRIPTS):
        known = [entry.name for entry in space_file.strategies]
        raise unknown_strategy("strategy", option, known, OR_SCRIPT)
    path = Path(option).absolute()
    file_name = path.name
    if file_name == STRATEGY_SCRIPT:  # of a strategy in the folder of its name
        file_name = path.parent.name
    name = re.sub(r"\W", "_", file_name.removesuffix(TEMPLATE_SUFFIX).removesuffix(PLAIN_SUFFIX))
    chosen = ChosenStrategy(name, path)
    if not _is_plain(chosen) and all(entry.name != name for entry in space_file.strategies):
        raise UsageError(
            f"strategy {option!r}: its knobs are missing in {space_file.name}",
            f"describe strategies.{name} there",
        )
    if _is_plain(chosen):
        chosen = replace(chosen, libraries=libraries)
    text = load_chosen(chosen).text
    named = SEQUENCE.search(text)
    if not text.strip() or (_is_plain(chosen) and MAIN not in text):
        raise UsageError(
            f"strategy {option!r}: found no sequence @{MAIN}, which a transform script begins with",
            f"rename @{named[1]}, if the script begins there" if named else "tuner new-strategy NAME",
        )
    return chosen


def _reopened(chosen: ChosenStrategy) -> ChosenStrategy:
    if not _is_plain(chosen):
        raise UsageError(
            f"--reopen: {chosen.name} is not a script with selected knobs", "--strategy best.mlir"
        )
    if not any(len(knob.choices) > 1 for knob in _schedule(replace(chosen, reopens=True)).knobs):
        raise UsageError(f"--reopen: {chosen.name}: no knob of the script has more than one option")
    return replace(chosen, reopens=True)


def _named(name: str, space_file: SpaceFile) -> ChosenStrategy:
    path = space_file.script(name)
    return ChosenStrategy(name, None if path is None else path.absolute())


def _is_plain(chosen: ChosenStrategy) -> bool:
    return chosen.path is not None and not chosen.path.name.endswith(TEMPLATE_SUFFIX)


def _schedule(chosen: ChosenStrategy) -> "Schedule":
    from tuner.space.scripts.schedule import Schedule  # loads MLIR

    strategy = load_chosen(chosen)
    return Schedule(strategy.text, strategy.path.name)


def default_script(problem: Problem, machine: Machine) -> Script | None:
    """Returns the script of the first preferred configuration for a problem, for one thread.

    None if no strategy supports the problem on the machine, or none of these has a feasible configuration.
    """
    configuration = first_configuration(problem, machine)
    if configuration is None:
        return None
    return configuration[1]


def first_configuration(
    problem: Problem, machine: Machine, skipped: int = 0
) -> tuple[Candidate, Script] | None:
    """Returns the first preferred configuration of the shipped search space, and its script for one thread.

    The order: first the feasible ones, without a broken preference, that the file lists under ``first``; then
    of each strategy with a feasible configuration the first one without a broken preference, else its first
    one. ``skipped``: number of configurations to skip in this order, because they did not compile in time.
    None if no strategy supports the problem on the machine, or no configuration is left.
    """
    space_file = load_space_file(default_space_file())
    chosen = choose((), space_file)
    variables = variables_of(problem, machine, threads=1)
    try:
        able = spaces(chosen, space_file, problem, machine.isa, variables)
    except UsageError:
        return None  # no strategy supports the type or the layout
    of_entries = (entry.first_on(machine.isa) for entry in space_file.strategies)
    listed = tuple(chain.from_iterable(of_entries))
    configuration = next(islice(_preferred(able, listed), skipped, None), None)
    if configuration is None:
        return None
    strategies = tuple(map(load_chosen, chosen))
    return configuration, Binder(strategies, problem, variables, threads=1).bind(configuration)


def why_no_strategy(problem: Problem, machine: Machine) -> str:
    """Returns the reason that is reported if no strategy supports a fusion's problem on a machine."""
    what = f"{problem.operation} of {problem.dtype} of these sizes"
    return f"no strategy is for {what} on {machine.processor}"


def _preferred(able: tuple[SearchSpace, ...], listed: tuple[Candidate, ...]) -> Iterator[Candidate]:
    """Yields the listed configurations that break no preference, by search space.

    Then, of each search space that is not empty, its first preferred configuration, else its first one.
    """
    yielded = set()
    for space in able:
        for candidate in listed:
            if space.contains(candidate) and not (space.violated(candidate) or space.demoted_by(candidate)):
                yielded.add(candidate)
                yield candidate
    for space in able:
        try:
            first = FeasibleSet.of((space,)).first_preferred
        except UsageError:
            continue  # this strategy has no feasible configuration; another may have one
        if first not in yielded:
            yield first


def projected_script(
    candidate: Candidate, problem: Problem, machine: Machine
) -> tuple[Candidate, Script] | None:
    """Returns the configuration that ``candidate`` becomes on a problem, and its script for one thread.

    That is its projection (``projection.Projection``) into the shipped search space. None if the strategy is
    not in that space or does not support the problem, if no configuration is found to be allowed, or if its
    script cannot be bound.
    """
    space_file = load_space_file(default_space_file())
    variables = variables_of(problem, machine, threads=1)
    try:
        chosen = choose((candidate.strategy,), space_file)
        (space,) = spaces(chosen, space_file, problem, machine.isa, variables)
        configuration = projected(candidate, space)
        if configuration is None:
            return None
        strategies = tuple(map(load_chosen, chosen))
        return configuration, Binder(strategies, problem, variables, threads=1).bind(configuration)
    except (UsageError, CandidateError):
        return None
