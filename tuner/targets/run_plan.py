"""The plan of a run: its feasible set, the configurations to propose first, and how scripts are bound.

``plan`` and ``bind`` implement ``Target.plan`` and ``Target.bind`` for compiled targets.
"""

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from tuner.core.candidate import Candidate
from tuner.core.compiled_code import Resources
from tuner.core.errors import Stage
from tuner.core.interfaces import Script
from tuner.core.machine import Machine, variables_of
from tuner.core.problem import Problem
from tuner.core.runs import ChosenStrategy, RunSettings
from tuner.runtime.workers.protocol import CALL, ServiceSpec
from tuner.runtime.workers.worker import Worker
from tuner.search.cost_model.configurations import initial_configurations
from tuner.space.feasible_set import FeasibleSet
from tuner.space.scripts.strategy import Binder, load_chosen
from tuner.targets.target import Bind, InitialModel, Plan

TIMEOUT_S = 10.0  # to fill one custom template; a shipped template takes milliseconds
MEMORY_BYTES = 1 << 30


@final
@dataclass(frozen=True)
class MachineModel(InitialModel):
    """The cost model of a problem on a machine, which proposes initial configurations."""

    settings: RunSettings
    machine: Machine

    def rows(self, feasible: FeasibleSet, resources: Mapping[Candidate, Resources]) -> tuple[int, ...]:
        problem = self.settings.problem
        threads = self.settings.threads
        return initial_configurations(feasible, problem, self.machine, threads, resources)


def plan(settings: RunSettings, machine: Machine) -> Plan:
    """Returns the plan of a run: feasible set, initial configurations and notes on its scripts.

    Raises UsageError if no configuration is feasible, and for an invalid search-space file.
    """
    from tuner.space.file.reading import first_rows, parse_space  # loads YAML
    from tuner.space.scripts import choice  # loads YAML

    space_file = parse_space(settings.space_yaml, settings.space_name)
    variables = variables_of(settings.problem, machine, settings.threads)
    choice.require_exported_for(settings.strategies, settings.problem, settings.target)
    chosen = choice.spaces(settings.strategies, space_file, settings.problem, machine.isa, variables)
    listed = [point for entry in space_file.strategies for point in entry.first_on(machine.isa)]
    feasible = FeasibleSet.of(chosen, (*listed, *(point.candidate for point in settings.first or ())))

    notes = choice.missing_provenance(settings.strategies)
    if settings.target.is_on_cpu:
        notes += choice.appended_bufferization(settings.strategies)
    return Plan(
        feasible, first_rows(space_file, feasible, machine.isa), MachineModel(settings, machine), notes
    )


def bind(
    strategies: tuple[ChosenStrategy, ...],
    problem: Problem,
    threads: int,
    machine: Machine,
    timeout_s: float = TIMEOUT_S,
) -> Bind:
    """Returns a function that binds the scripts of ``strategies`` to a candidate's knobs.

    A user's templates are filled in a child process, each within ``timeout_s`` seconds: they may hang.
    """
    loaded = tuple(map(load_chosen, strategies))
    variables = variables_of(problem, machine, threads)
    here = Binder(loaded, problem, variables, threads)
    pairs = zip(strategies, loaded, strict=True)
    custom = tuple(strategy for chosen, strategy in pairs if chosen.path is not None and strategy.is_template)
    if not custom:
        return here.bind
    names = {strategy.name for strategy in custom}
    there = ChildBinder(Binder(custom, problem, variables, threads), timeout_s)
    return lambda candidate: (there if candidate.strategy in names else here).bind(candidate)


@final
class ChildBinder:
    """Binds candidates in a child process, which starts at the first candidate and ends with this object."""

    def __init__(self, binder: Binder, timeout_s: float) -> None:
        self.worker = Worker(ServiceSpec("bind", binder.bind), MEMORY_BYTES)
        self._timeout_s = timeout_s
        weakref.finalize(self, self.worker.kill)

    def bind(self, candidate: Candidate) -> Script:
        """Returns a candidate's bound script.

        Raises CandidateError(BIND) if the template fails, exceeds the time limit or needs more than
        MEMORY_BYTES; TunerError if the child process cannot start.
        """
        script: Script = self.worker.call(CALL, candidate, stage=Stage.BIND, timeout_s=self._timeout_s)
        return script
