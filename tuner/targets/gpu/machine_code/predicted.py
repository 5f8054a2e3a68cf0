"""What a compiled program would cost by its machine code, where nvdisasm is installed."""

import subprocess
from functools import cache

from tuner.core.errors import TunerError
from tuner.core.kernel_program import KernelProgram
from tuner.core.problem import Problem
from tuner.targets.gpu.cuda_tools import Tool, locate
from tuner.targets.gpu.machine_code.prediction import PredictedCycles, predict_cycles

nvdisasm = cache(lambda: locate("nvdisasm"))


def predicted(problem: Problem, program: KernelProgram) -> PredictedCycles | None:
    """Returns the model's cycles; None without nvdisasm or cubin, and for code that cannot be looked at."""
    tool: Tool | None = nvdisasm()
    if tool is None or not program.cubin:
        return None
    try:
        return predict_cycles(problem, program, tool.path)
    except (TunerError, subprocess.SubprocessError):
        return None
