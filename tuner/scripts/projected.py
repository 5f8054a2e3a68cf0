"""A configuration of one problem as a script for another one."""

from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, UsageError
from tuner.core.machine import Machine, variables_of
from tuner.core.problem import Problem
from tuner.core.target import Script
from tuner.scripts.chosen import choose, spaces
from tuner.scripts.strategy import Binder, load_strategy
from tuner.space.file.reading import load_space_file
from tuner.space.file.shipped import default_space_file
from tuner.space.projection import projected


def projected_script(
    candidate: Candidate, problem: Problem, machine: Machine
) -> tuple[Candidate, Script] | None:
    """Returns what a configuration becomes on a problem, with its script for one thread.

    Takes the shipped search space; see ``tuner.space.projection``. None for a strategy that is not in it or
    does not support the problem, and where no configuration of the strategy is allowed.
    """
    space_file = load_space_file(default_space_file())
    variables = variables_of(problem, machine, threads=1)
    try:
        chosen = choose((candidate.strategy,), space_file)
        (space,) = spaces(chosen, space_file, problem, machine.isa, variables)
        found = projected(candidate, space)
        if found is None:
            return None
        strategies = tuple(load_strategy(one.name, one.path) for one in chosen)
        return found, Binder(strategies, problem, variables, threads=1).bind(found)
    except (UsageError, CandidateError):
        return None
