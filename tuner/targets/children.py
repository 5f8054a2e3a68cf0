"""What targets do in child processes: compile, evaluate, apply scripts, measure baselines and rooflines."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tuner.core.candidate import TargetName
from tuner.core.errors import OpPlace
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.roofline import Roofline
from tuner.core.runs import Baseline
from tuner.runtime.timing_lock import TimingLock, holder_text
from tuner.runtime.workers.runner import RunnerProcesses, TrialRunner
from tuner.runtime.workers.services import compile_spec, evaluation_spec
from tuner.targets.target import RunnerChildren, RunnerSettings

if TYPE_CHECKING:
    from tuner.core.interfaces import AbstractRunner, Effort
    from tuner.runtime.workers.limits import Limits
    from tuner.runtime.workers.runner import RunnerOrder


Children = Callable[[TargetName, Problem, int], RunnerChildren]  # (target, problem, threads)


def child_runners(
    children: Children, orders: "tuple[RunnerOrder, ...]", how: "tuple[RunnerSettings, ...]"
) -> "tuple[AbstractRunner, ...]":
    """Starts child processes that compile and measure for one target; returns a runner per order.

    The runners share the processes, whose memory limit is that of the largest problem. ``how``: settings per
    order.
    """
    pairs = tuple(zip(orders, how, strict=True))
    made = [children(order.target, order.problem, settings.threads) for order, settings in pairs]
    limits = _limits(made, how[0])
    # the runners share one measurement worker: it gets the largest team and environment, of which smaller
    # runs use a part
    most, _ = max(zip(made, how, strict=True), key=lambda pair: pair[1].threads)
    exclusive = TimingLock(made[0].device, holder_text(orders[0].problem), how[0].wait)
    processes = RunnerProcesses(
        compile_spec(made[0].compiler),
        evaluation_spec(most.evaluator, most.environment),
        how[0].workers,
        limits,
        exclusive.held,
    )
    return tuple(TrialRunner.in_children(order, processes, settings.seed) for order, settings in pairs)


def _limits(made: "list[RunnerChildren]", how: RunnerSettings) -> "Limits":
    """Returns the limits of the shared processes: of the first order, with the memory of the largest one.

    A time limit or memory that ``how`` gives replaces them.
    """
    memory_bytes = max(children.limits.memory_bytes for children in made)
    limits = replace(made[0].limits, memory_bytes=how.memory_bytes or memory_bytes)
    if how.timeout_s is None:
        return limits
    return replace(limits, compile_timeout_s=how.timeout_s, evaluation_timeout_s=how.timeout_s)


def apply_script(script: str, payload: str, allows_effects: bool, trailing: tuple[str, ...] = ()) -> str:
    """Applies a transform script to a payload, both MLIR text; returns the new payload.

    ``allows_effects``: run passes that write files or start programs; ``trailing``: further arguments of the
    script's entry. Raises CandidateError for text that does not parse, and for a script that fails or leaves
    invalid MLIR.
    """
    from tuner.mlir import bindings, miscompiled, transform  # loads MLIR

    with transform.new_context(), bindings.ir.Location.unknown():
        module = transform.without_schedules(transform.parse(payload, "payload"))
        miscompiled.avoid_miscompilations_by_scripts(module)
        bound = transform.parse(script, "script")
        transform.apply_script(module, bound, allows_effects=allows_effects, trailing=trailing)
        transform.verify(module)
        return str(module)


def find_failing_op(script: str, payload: str) -> OpPlace | None:
    """Applies a script to a payload; returns the transform op that fails, with its location, or None.

    None: see ``tuner.mlir.transform.failing_op``. Call it in a child process, which a crash ends. Raises
    CandidateError(BIND) for a payload that does not parse.
    """
    from tuner.mlir.transform import failing_op  # loads MLIR

    return failing_op(script, payload)


def measure_cpu_baseline(
    problem: Problem, threads: int, effort: "Effort", seed: int, library: str = ""
) -> Baseline:
    """Times a baseline library on a problem; returns its name and times.

    Call it in a child with ``baseline_environment``. ``library``: a key of LIBRARIES, "" for the default.
    Raises TunerError for a missing library or a wrong result.
    """
    from tuner.targets.cpu.baseline import BaselineService  # loads MLIR

    return BaselineService(problem, threads, seed, library).measure(effort)


def measure_cpu_roofline(dtype: str, threads: int, machine: Machine) -> Roofline:
    """Returns the measured flop/s in ``dtype`` and bytes/s of memory that ``threads`` threads reach here."""
    from tuner.runtime.cpu.roofline import measure_roofline  # loads MLIR

    return measure_roofline(dtype, threads, machine)
