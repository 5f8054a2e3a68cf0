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
    """Returns the evaluator of this machine's GPU. Raises DeviceError on a machine without a GPU."""
    return GpuEvaluator(describe_gpu().facts.chip)


def time_cublas(evaluator: GpuEvaluator, problem: Problem, effort: Effort, seed: int) -> Baseline:
    """Times cuBLAS's matmul, without an epilogue. Raises TunerError where the library is missing or wrong."""
    rng = np.random.default_rng(seed)
    try:
        name, library = evaluator.load_baseline(problem, rng)
        measurement = evaluator.measure(replace(problem, epilogue="none"), library, effort, rng)
    except CandidateError as error:
        raise TunerError(error.reason) from error
    return Baseline(name, 0, measurement)
