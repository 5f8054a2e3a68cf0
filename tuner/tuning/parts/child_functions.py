"""Functions that targets call in a child process; only the child imports the heavy modules."""

from typing import TYPE_CHECKING

from tuner.core.machine import Machine, Roofline
from tuner.core.problem import Problem
from tuner.core.runs import Baseline
from tuner.mlir.op_place import OpPlace

if TYPE_CHECKING:
    from tuner.core.target import Effort  # which imports numpy: a child that applies a script needs none


def apply_script(script: str, payload: str, allows_effects: bool) -> str:
    """Returns the payload's text after the script. Raises CandidateError for a script that fails."""
    from tuner.mlir import bindings, interpreter

    with interpreter.new_context(), bindings.ir.Location.unknown():
        module = interpreter.parse(payload, "payload")
        bound = interpreter.parse(script, "script")
        interpreter.apply_script(module, bound, allows_effects=allows_effects)
        return str(module)


def find_failing_op(script: str, payload: str) -> OpPlace | None:
    """Returns the operation of the script that fails on the payload; None where the script succeeds."""
    from tuner.mlir.failing_op import failing_op

    return failing_op(script, payload)


def measure_cpu_baseline(problem: Problem, threads: int, effort: "Effort", seed: int) -> Baseline:
    """Returns the CPU baseline's name and time. Raises TunerError when no library supports the problem."""
    from tuner.targets.cpu.baseline import BaselineService

    return BaselineService(problem, threads, seed).measure(effort)


def measure_gpu_baseline(problem: Problem, effort: "Effort", seed: int) -> Baseline:
    """Returns cuBLAS's name and time. Raises TunerError where cuBLAS or the GPU is missing."""
    from tuner.targets.gpu.baseline import evaluator_here, time_cublas

    return time_cublas(evaluator_here(), problem, effort, seed)


def measure_cpu_roofline(dtype: str, threads: int, machine: Machine) -> Roofline:
    """Returns flop/s and bytes/s that ``threads`` threads reach on this machine."""
    from tuner.runtime.cpu.roofline import measure_roofline

    return measure_roofline(dtype, threads, machine)


def measure_gpu_roofline(dtype: str) -> Roofline:
    """Returns the documented flop/s of this machine's GPU, and the bytes/s that copies reach."""
    from tuner.runtime.cuda.probe import describe_gpu
    from tuner.runtime.cuda.roofline import gpu_roofline
    from tuner.targets.gpu.local_gpu import open_gpu

    here = describe_gpu()
    return gpu_roofline(open_gpu(here).device, here.facts, dtype)
