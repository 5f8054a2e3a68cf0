"""Feasible set and binding of candidates for the strategies of a search space file."""

from collections.abc import Mapping

from tuner.core.candidate import Candidate
from tuner.core.chosen_strategy import ChosenStrategy
from tuner.core.kernel_program import Resources
from tuner.core.machine import Machine, variables_of
from tuner.core.problem import Problem
from tuner.core.runs import RunSettings
from tuner.tuning.outcome_source import Bind, Plan


def plan(settings: RunSettings, machine: Machine) -> Plan:
    """Returns what a run may try: the feasible set, the rows of the space file's first points, and seeds.

    Seeds are rows that a cost model prefers. Raises UsageError for an empty feasible set, and for a space
    file that is not valid.
    """
    from tuner.cost_model.seed_rows import seed_rows
    from tuner.scripts.chosen import spaces
    from tuner.space.feasible_set import FeasibleSet
    from tuner.space.file.reading import first_rows, parse_space

    space_file = parse_space(settings.space_yaml, settings.space_name)
    variables = variables_of(settings.problem, machine, settings.threads)
    found = spaces(settings.strategies, space_file, settings.problem, machine.isa, variables)
    listed = [point for entry in space_file.strategies for point in entry.first]
    feasible = FeasibleSet.of(found, (*listed, *(point.candidate for point in settings.first or ())))

    def seeds(resources: Mapping[Candidate, Resources]) -> tuple[int, ...]:
        return seed_rows(feasible, settings.problem, machine, settings.threads, resources)

    return Plan(feasible, first_rows(space_file, feasible), seeds)


def bind(strategies: tuple[ChosenStrategy, ...], problem: Problem, threads: int, machine: Machine) -> Bind:
    """Returns a function that fills a candidate's knob values into its strategy's script.

    Raises UsageError for a strategy that cannot be read.
    """
    from tuner.tuning.parts.child_binder import binding

    return binding(strategies, problem, variables_of(problem, machine, threads), threads)
