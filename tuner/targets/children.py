"""What targets do in child processes: compile, evaluate, bind, measure baselines; and the plan of a run."""

import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn, final

from tuner.core.candidate import Candidate, ChosenStrategy, TargetName, Value
from tuner.core.errors import OpPlace, Stage, TunerError
from tuner.core.gpu_code import Resources
from tuner.core.interfaces import Script
from tuner.core.machine import Compiler, Machine, Roofline, variables_of
from tuner.core.problem import Problem
from tuner.core.runs import Baseline, RunSettings
from tuner.runtime.cuda.probe import describe_gpu, gpu_roofline
from tuner.runtime.workers.processes import TimingLock, holder_text
from tuner.runtime.workers.protocol import CALL, ServiceSpec
from tuner.runtime.workers.runner import RunnerProcesses, WorkerRunner
from tuner.runtime.workers.services import compile_spec, evaluation_spec
from tuner.runtime.workers.worker import Worker
from tuner.search.cost_model.configurations import initial_configurations
from tuner.space.feasible_set import FeasibleSet
from tuner.space.scripts.strategy import Binder, load_strategy
from tuner.targets.interface import (
    Bind,
    MeasurementBackend,
    Plan,
    RunnerChildren,
    RunnerSettings,
    RunnersFactory,
)

if TYPE_CHECKING:
    from tuner.core.interfaces import AbstractRunner, Effort
    from tuner.runtime.workers.runner import RunnerOrder


Children = Callable[[TargetName, Problem, int], RunnerChildren]  # (target, problem, threads)
RunnerFactory = Callable[["RunnerOrder", RunnerSettings], "AbstractRunner"]


def child_runner(children: Children) -> RunnerFactory:
    """Returns a function that creates a runner on child processes, which it starts at once."""
    several = child_runners(children)
    return lambda order, how: several((order,), (how,))[0]


def child_runners(children: Children) -> RunnersFactory:
    """Returns a function that creates runners on shared children; the largest problem sets their memory."""

    def runners(
        orders: "tuple[RunnerOrder, ...]", how: "tuple[RunnerSettings, ...]"
    ) -> "tuple[AbstractRunner, ...]":
        made = [
            children(order.target, order.problem, each.threads)
            for order, each in zip(orders, how, strict=True)
        ]
        memory_bytes = max(each.limits.memory_bytes for each in made)
        # fusions of one thread run on a team of several, too
        most, _ = max(zip(made, how, strict=True), key=lambda pair: pair[1].threads)
        exclusive = TimingLock(made[0].device, holder_text(orders[0].problem), how[0].report_waiting)
        processes = RunnerProcesses(
            compile_spec(made[0].compiler),
            evaluation_spec(most.evaluator, most.environment),
            how[0].workers,
            replace(made[0].limits, memory_bytes=memory_bytes),
            exclusive.held,
        )
        return tuple(
            WorkerRunner(order, processes, each.seed) for order, each in zip(orders, how, strict=True)
        )

    return runners


# Binds candidates; those of a user's custom templates in a child process, since templates may hang.

TIMEOUT_S = 10.0  # per candidate; a shipped template takes milliseconds
MEMORY_BYTES = 1 << 30


def binding(
    chosen: tuple[ChosenStrategy, ...],
    problem: Problem,
    variables: tuple[tuple[str, Value], ...],  # sizes and device limits
    threads: int,
    timeout_s: float = TIMEOUT_S,
) -> Bind:
    """Returns a function that fills scripts with knobs, in a child: a template may run for ``timeout_s``."""
    strategies = tuple(load_strategy(one.name, one.path, reopens=one.reopens) for one in chosen)
    here = Binder(strategies, problem, variables, threads)
    foreign = tuple(
        strategy
        for one, strategy in zip(chosen, strategies, strict=True)
        if one.path is not None and strategy.is_template
    )
    if not foreign:
        return here.bind
    names = {strategy.name for strategy in foreign}
    there = ChildBinder(Binder(foreign, problem, variables, threads), timeout_s)
    return lambda candidate: (there if candidate.strategy in names else here).bind(candidate)


@final
class ChildBinder:
    """Binds candidates in a child process, which starts at the first candidate and ends with this object."""

    def __init__(self, binder: Binder, timeout_s: float) -> None:
        self.worker = Worker(ServiceSpec("bind", binder.bind), MEMORY_BYTES)
        self._timeout_s = timeout_s
        weakref.finalize(self, self.worker.kill)

    def bind(self, candidate: Candidate) -> Script:
        """Returns a candidate's script as plain MLIR.

        Raises CandidateError(BIND) where the template fails, exceeds the time limit or takes more than 1 GiB;
        TunerError if the child process cannot start.
        """
        script: Script = self.worker.call(CALL, candidate, stage=Stage.BIND, timeout_s=self._timeout_s)
        return script


def apply_script(script: str, payload: str, allows_effects: bool, trailing: tuple[str, ...] = ()) -> str:
    """Applies a script as ``Apply`` does; CandidateError for a script that fails or leaves invalid MLIR."""
    from tuner.mlir import bindings, transform  # loads MLIR

    with transform.new_context(), bindings.ir.Location.unknown():
        module = transform.without_schedules(transform.parse(payload, "payload"))
        bound = transform.parse(script, "script")
        transform.apply_script(module, bound, allows_effects=allows_effects, trailing=trailing)
        transform.verify(module)
        return str(module)


def find_failing_op(script: str, payload: str) -> OpPlace | None:
    """Returns a script's op that fails on a payload, with its location, or None; raises CandidateError."""
    from tuner.mlir.transform import failing_op  # loads MLIR

    return failing_op(script, payload)


def measure_cpu_baseline(
    problem: Problem, threads: int, effort: "Effort", seed: int, library: str = ""
) -> Baseline:
    """Times a CPU's library, in a child with ``baseline_environment``; raises as ``BaselineService`` does."""
    from tuner.targets.cpu.baseline import BaselineService  # loads MLIR

    return BaselineService(problem, threads, seed, library).measure(effort)


def measure_cpu_roofline(dtype: str, threads: int, machine: Machine) -> Roofline:
    """Returns the flop/s in ``dtype`` and the bytes/s that ``threads`` threads reach, measured here."""
    from tuner.runtime.cpu.roofline import measure_roofline  # loads MLIR

    return measure_roofline(dtype, threads, machine)


def measure_gpu_roofline(dtype: str) -> Roofline:
    """Returns this GPU's documented peak flop/s in ``dtype``, and bytes/s of copies; raises TunerError."""
    from tuner.targets.gpu.evaluator import open_gpu  # loads ml_dtypes

    here = describe_gpu()
    return gpu_roofline(open_gpu(here).device, here.facts, dtype)


def plan(settings: RunSettings, machine: Machine) -> Plan:
    """Returns what a run may try. Raises UsageError for an empty feasible set, and an invalid space file."""
    from tuner.space.file.reading import first_rows, parse_space  # loads pydantic
    from tuner.space.scripts import choice  # loads pydantic

    space_file = parse_space(settings.space_yaml, settings.space_name)
    variables = variables_of(settings.problem, machine, settings.threads)
    choice.require_exported_for(settings.strategies, settings.problem, settings.target)
    chosen = choice.spaces(settings.strategies, space_file, settings.problem, machine.isa, variables)
    listed = [point for entry in space_file.strategies for point in entry.first]
    feasible = FeasibleSet.of(chosen, (*listed, *(point.candidate for point in settings.first or ())))

    def seeds(resources: Mapping[Candidate, Resources]) -> tuple[int, ...]:
        return initial_configurations(feasible, settings.problem, machine, settings.threads, resources)

    notes = choice.appended_bufferization(settings.strategies) if settings.target.is_on_cpu else ()
    return Plan(feasible, first_rows(space_file, feasible), seeds, notes)


def bind(strategies: tuple[ChosenStrategy, ...], problem: Problem, threads: int, machine: Machine) -> Bind:
    """Returns ``binding`` with the machine's variables."""
    return binding(strategies, problem, variables_of(problem, machine, threads), threads)


def untimed_measurement(
    machine: Callable[[TargetName], Machine],
    compiler: Callable[[TargetName], Compiler],
    children: Children,
    why: str,
) -> MeasurementBackend:
    """Returns what verifies in ``children``; its baseline and roofline raise TunerError with ``why``."""

    def refuse(*_arguments: object) -> NoReturn:
        raise TunerError(why)

    return MeasurementBackend(
        machine=machine,
        compiler=compiler,
        plan=plan,
        bind=bind,
        runner=child_runner(children),
        baseline=refuse,
        roofline=refuse,
        children=children,
        is_timed=lambda: False,
    )
