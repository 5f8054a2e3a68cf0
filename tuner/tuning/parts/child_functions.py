"""Functions that targets call in a child process; only the child imports the heavy modules."""

from typing import TYPE_CHECKING

from tuner.core.machine import Machine, Roofline
from tuner.core.problem import Problem
from tuner.core.runs import Baseline
from tuner.mlir.op_place import OpPlace

if TYPE_CHECKING:
    from tuner.core.target import Effort  # which imports numpy: a child that applies a script needs none


def apply_script(script: str, payload: str, allows_effects: bool) -> str:
    """Applies a transform script to a payload; returns the payload's new text. Arguments are MLIR text.

    ``allows_effects``: run passes that write files or start programs. Raises CandidateError for a script that
    fails.
    """
    from tuner.mlir import bindings, interpreter

    with interpreter.new_context(), bindings.ir.Location.unknown():
        module = interpreter.parse(payload, "payload")
        bound = interpreter.parse(script, "script")
        interpreter.apply_script(module, bound, allows_effects=allows_effects)
        return str(module)


def find_failing_op(script: str, payload: str) -> OpPlace | None:
    """Returns the op of a transform script that fails on a payload, with its location in the script.

    None where the script succeeds, does not parse, has no entry sequence, or is rejected before its first op
    runs. Raises CandidateError(BIND) for a payload that does not parse.
    """
    from tuner.mlir.failing_op import failing_op

    return failing_op(script, payload)


def measure_cpu_baseline(
    problem: Problem, threads: int, effort: "Effort", seed: int, library: str = ""
) -> Baseline:
    """Times a CPU's baseline library on a problem, without an epilogue; returns its name and time.

    Call it in a child with ``baseline_environment(library, threads)``: libraries take their number of threads
    from there. ``library`` is a key of ``baseline_libraries.LIBRARIES``; "": the default of the type. Raises
    TunerError where the library is missing or its result is wrong.
    """
    from tuner.targets.cpu.baseline import BaselineService

    return BaselineService(problem, threads, seed, library).measure(effort)


def measure_gpu_baseline(problem: Problem, effort: "Effort", seed: int) -> Baseline:
    """Times cuBLAS on a problem, without an epilogue, on this machine's GPU; returns its name and time.

    Raises TunerError where cuBLAS or the GPU is missing, or cuBLAS's result is wrong.
    """
    from tuner.targets.gpu.baseline import evaluator_here, time_cublas

    return time_cublas(evaluator_here(), problem, effort, seed)


def measure_cpu_roofline(dtype: str, threads: int, machine: Machine) -> Roofline:
    """Returns the flop/s in ``dtype`` and the bytes/s that ``threads`` threads reach, measured here."""
    from tuner.runtime.cpu.roofline import measure_roofline

    return measure_roofline(dtype, threads, machine)


def measure_gpu_roofline(dtype: str) -> Roofline:
    """Returns the documented peak flop/s of this machine's GPU in ``dtype``, and the bytes/s of copies.

    Raises TunerError where the GPU or its documented peak is missing.
    """
    from tuner.runtime.cuda.probe import describe_gpu
    from tuner.runtime.cuda.roofline import gpu_roofline
    from tuner.targets.gpu.local_gpu import open_gpu

    here = describe_gpu()
    return gpu_roofline(open_gpu(here).device, here.facts, dtype)
