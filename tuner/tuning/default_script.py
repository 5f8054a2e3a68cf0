"""The script that a problem gets where nobody tuned it: the first that the search space would try."""

from tuner.errors import UsageError
from tuner.feasible import FeasibleSet
from tuner.machine import Machine
from tuner.problem import Problem
from tuner.space import Candidate, SearchSpace
from tuner.target import Script


def default_script(problem: Problem, machine: Machine) -> Script | None:
    """Binds the first point of the shipped search space that is feasible for a problem on a machine.

    Points that the file wants tried first come before any other. None where no strategy can do the problem.
    """
    from tuner.config import default_space_file, load_space_file
    from tuner.strategy import Binder
    from tuner.tuning.parts import variables_of
    from tuner.tuning.scripts import choose, spaces

    space_file = load_space_file(default_space_file())
    chosen = choose((), space_file)
    variables = variables_of(problem, machine, threads=1)
    try:
        able = spaces(chosen, space_file, problem, machine.isa, variables)
    except UsageError:
        return None  # the type, or the layout, is nobody's
    point = _first(able, tuple(point for entry in space_file.strategies for point in entry.first))
    strategies = tuple(one.load() for one in chosen)
    return None if point is None else Binder(strategies, problem, variables, threads=1).bind(point)


def _first(able: tuple[SearchSpace, ...], wanted: tuple[Candidate, ...]) -> Candidate | None:
    for space in able:
        for point in wanted:
            if space.contains(point) and space.violated(point) is None:
                return point
    for space in able:
        try:
            return FeasibleSet.of((space,)).candidate(0)
        except UsageError:
            continue  # this strategy has no point for the problem; another may
    return None
