"""Predicted cycles of a compiled program from its machine code; needs nvdisasm."""

import subprocess
from functools import cache

from tuner.core.errors import TunerError
from tuner.core.kernel_program import KernelProgram
from tuner.core.problem import Problem
from tuner.targets.gpu.cuda_tools import Tool, locate
from tuner.targets.gpu.machine_code.prediction import PredictedCycles, predict_cycles

nvdisasm = cache(lambda: locate("nvdisasm"))


def predicted(problem: Problem, program: KernelProgram) -> PredictedCycles | None:
    """Returns the cycles that a model predicts for a compiled program, from its machine code.

    None without nvdisasm or cubin, and for code that cannot be analysed.
    """
    tool: Tool | None = nvdisasm()
    if tool is None or not program.cubin:
        return None
    try:
        return predict_cycles(problem, program, tool.path)
    except (TunerError, subprocess.SubprocessError):
        return None
