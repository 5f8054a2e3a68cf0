"""cuBLAS timed on a problem, in a child process or in this one; imports neither compiler nor strategies.

``tuner measure`` runs this on a machine that has nothing but Python, numpy and a driver.
"""

from functools import partial

from tuner.core.interfaces import Effort
from tuner.core.problem import Problem
from tuner.core.runs import Baseline
from tuner.runtime.workers.limits import REFERENCE_FLOP_PER_S
from tuner.runtime.workers.services import gpu_library_environment
from tuner.runtime.workers.worker import call_in_child, child_memory_bytes

# A generous limit, not measured, for CUDA's start and the timing; in addition to the float64 reference.
BASELINE_TIMEOUT_S = 180.0


def time_cublas_in_child(problem: Problem, effort: Effort, seed: int) -> Baseline:
    """Times cuBLAS on a problem without its epilogue, in a child process; returns its name and times.

    Raises TunerError if cuBLAS is missing, its result is wrong, or the child fails.
    """
    timeout_s = BASELINE_TIMEOUT_S + problem.flop / REFERENCE_FLOP_PER_S
    work = partial(time_cublas_here, problem, effort, seed)
    memory_bytes = child_memory_bytes(problem)
    environment = gpu_library_environment()
    return call_in_child("baseline", work, timeout_s, memory_bytes, environment, is_named=False)


def time_cublas_here(problem: Problem, effort: Effort, seed: int) -> Baseline:
    """Times cuBLAS on a problem without its epilogue, in this process; returns its name and times.

    Raises TunerError if cuBLAS or the GPU is missing, or the result is wrong.
    """
    from tuner.gpu.target.evaluator import evaluator_here, time_cublas  # loads ml_dtypes

    return time_cublas(evaluator_here(), problem, effort, seed)
