"""Times the baseline of GPUs, cuBLAS, alone: verified and timed as our kernels are."""

from dataclasses import replace

import numpy as np

from tuner.core.errors import CandidateError, TunerError
from tuner.core.problem import Problem
from tuner.core.runs import Baseline
from tuner.core.target import Effort
from tuner.runtime.cuda.probe import describe_gpu
from tuner.targets.gpu.judge import GpuJudge


def judge_here() -> GpuJudge:
    """Returns the judge of the GPU of this machine. Raises DeviceError where there is none."""
    return GpuJudge(describe_gpu().facts.chip)


def time_cublas(judge: GpuJudge, problem: Problem, effort: Effort, seed: int) -> Baseline:
    """Times cuBLAS's matmul, without an epilogue. Raises TunerError where the library is missing or wrong."""
    rng = np.random.default_rng(seed)
    try:
        name, library = judge.load_baseline(problem, rng)
        measurement = judge.measure(replace(problem, epilogue="none"), library, effort, rng)
    except CandidateError as error:
        raise TunerError(error.reason) from error
    return Baseline(name, 0, measurement)
