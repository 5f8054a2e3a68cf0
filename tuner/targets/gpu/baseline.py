"""Times the GPU baseline, cuBLAS, alone: verified and timed like tuned kernels."""

from dataclasses import replace

import numpy as np

from tuner.core.errors import CandidateError, TunerError
from tuner.core.problem import Problem
from tuner.core.runs import Baseline
from tuner.core.target import Effort
from tuner.runtime.cuda.probe import describe_gpu
from tuner.targets.gpu.evaluator import GpuEvaluator


def evaluator_here() -> GpuEvaluator:
    """Returns a new evaluator for this machine's first GPU.

    Raises DeviceError on a machine without a GPU, UsageError for a GPU of an unknown chip.
    """
    return GpuEvaluator(describe_gpu().facts.chip)


def time_cublas(evaluator: GpuEvaluator, problem: Problem, effort: Effort, seed: int) -> Baseline:
    """Times cuBLAS's matmul of a problem, without an epilogue, alone on this machine's GPU.

    ``seed`` seeds the random inputs. Raises TunerError where cuBLAS is missing, its result is wrong or the
    GPU fails.
    """
    rng = np.random.default_rng(seed)
    try:
        (library,) = evaluator.load_baselines(problem, rng)
        measurement = evaluator.measure(replace(problem, epilogue="none"), library.work, effort, rng)
    except CandidateError as error:
        raise TunerError(error.reason) from error
    return Baseline(library.name, 0, measurement)
