"""The default script of a problem that was not tuned: the first configuration of the search space."""

from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.machine import Machine, variables_of
from tuner.core.problem import Problem
from tuner.core.target import Script
from tuner.scripts.chosen import choose, spaces
from tuner.scripts.strategy import Binder, load_strategy
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import load_space_file
from tuner.space.file.shipped import default_space_file
from tuner.space.search_space import SearchSpace


def default_script(problem: Problem, machine: Machine) -> Script | None:
    """Returns the script of ``first_configuration``; None where there is none."""
    found = first_configuration(problem, machine)
    return None if found is None else found[1]


def first_configuration(problem: Problem, machine: Machine) -> tuple[Candidate, Script] | None:
    """Returns the first preferred configuration of the shipped search space, and its script for one thread.

    That is the first feasible one listed under ``first`` in the file that breaks no preference. Without such:
    of the first strategy with a feasible configuration, its first that breaks no preference, else its first.
    None where no strategy supports the problem on the machine, or none has a feasible configuration.
    """
    space_file = load_space_file(default_space_file())
    chosen = choose((), space_file)
    variables = variables_of(problem, machine, threads=1)
    try:
        able = spaces(chosen, space_file, problem, machine.isa, variables)
    except UsageError:
        return None  # no strategy supports the type or the layout
    point = _first(able, tuple(point for entry in space_file.strategies for point in entry.first))
    if point is None:
        return None
    strategies = tuple(load_strategy(one.name, one.path) for one in chosen)
    return point, Binder(strategies, problem, variables, threads=1).bind(point)


def no_strategy(problem: Problem, machine: Machine) -> str:
    """Returns the reason why a group of operations has no first configuration on a machine."""
    what = f"{problem.operation} of {problem.dtype} of these sizes"
    return f"no strategy is for {what} on {machine.processor}"


def _first(able: tuple[SearchSpace, ...], wanted: tuple[Candidate, ...]) -> Candidate | None:
    for space in able:
        for point in wanted:
            if space.contains(point) and not (space.violated(point) or space.demoted_by(point)):
                return point
    for space in able:
        try:
            feasible = FeasibleSet.of((space,))
            return feasible.candidate(int(feasible.is_preferred.argmax()))
        except UsageError:
            continue  # this strategy has no feasible configuration; another may have one
    return None
