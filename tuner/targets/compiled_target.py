"""What targets whose candidates are compiled and run in child processes have in common."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tuner.core.candidate import TargetName
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import TunerError, UsageError
from tuner.core.interfaces import AbstractCompiler, Script
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.roofline import Roofline
from tuner.core.runs import Baseline, ChosenStrategy, RunSettings
from tuner.core.trials import StoredTrial
from tuner.payload.cpu import payload_mlir
from tuner.payload.partitions import partitions_in
from tuner.runtime.timing_lock import LockWait
from tuner.targets.children import child_runners
from tuner.targets.run_plan import bind, plan
from tuner.targets.target import Bind, Plan, RunnerSettings, Target

if TYPE_CHECKING:
    from tuner.core.compiled_code import PredictedCycles
    from tuner.core.interfaces import AbstractRunner
    from tuner.runtime.workers.runner import RunnerOrder


class CompiledTarget(Target):
    """A target whose candidates are compiled and run in child processes of this machine.

    A subclass has a ``name``, and the methods ``status``, ``machine``, ``compiler`` and ``children``: it then
    tunes by the strategies of the search-space file. What it does not override refuses with the target's name
    (a baseline, a roofline, a function of arrays), or says that there is nothing (tools, assembly).
    """

    def tools(self) -> str:
        return ""

    def is_timed(self) -> bool:
        return self.status().is_timed

    def require_types(self, problem: Problem, target: TargetName) -> None:
        """Allows each problem: the strategies of the search-space file name the types that they take."""

    def plan(self, settings: RunSettings, machine: Machine) -> Plan:
        return plan(settings, machine)

    def bind(
        self, strategies: tuple[ChosenStrategy, ...], problem: Problem, threads: int, machine: Machine
    ) -> Bind:
        return bind(strategies, problem, threads, machine)

    def runners(
        self, orders: "tuple[RunnerOrder, ...]", how: tuple[RunnerSettings, ...]
    ) -> "tuple[AbstractRunner, ...]":
        return child_runners(self.children, orders, how)

    def baseline(self, problem: Problem, threads: int, seed: int, wait: LockWait) -> Baseline:
        raise TunerError(f"target {self.name}: has no library to compare with")

    def roofline(self, problem: Problem, threads: int, wait: LockWait) -> Roofline:
        raise TunerError(f"target {self.name}: its highest flop/s and bytes/s are not measured")

    def source(self, problem: Problem, script: str) -> str:
        """Returns the payload as CPUs take it: an operation on tensors in a function."""
        return payload_mlir(problem, partitions_in(script, problem))

    def load(self, problem: Problem, trial: StoredTrial, program: KernelCode | None) -> Callable[..., object]:
        raise UsageError(f"trial {trial.id}: target {self.name} has no functions that Python can call")

    def code(self, target: TargetName, problem: Problem, script: Script) -> str:
        """Compiles the script in this process; returns its code, LLVM dialect or PTX."""
        compiler: AbstractCompiler = self.children(target, problem, 1).compiler.build()
        return str(compiler.compile(problem, script).code.text)

    def assembly(self, code: str, program: KernelCode | None) -> str:
        return ""

    def predicted(self, problem: Problem, program: KernelCode) -> "PredictedCycles | None":
        return None
