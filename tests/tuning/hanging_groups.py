"""A compiler whose code of contractions never returns; other campaigns are compiled as they are."""

from dataclasses import replace
from typing import final

from tuner.core.fusions import CONTRACTION
from tuner.core.interfaces import AbstractCompiler, Artifact, Script
from tuner.core.problem import Problem
from tuner.mlir.fusions import fusion_arguments
from tuner.targets.cpu.compiler import CpuCompiler

FOREVER = """module {{
  llvm.func @group({arguments}) attributes {{llvm.emit_c_interface}} {{
    llvm.br ^again
  ^again:
    %seen = llvm.load volatile %p0 : !llvm.ptr -> i8
    llvm.br ^again
  }}
}}
"""


@final
class HangingCompiler(AbstractCompiler):
    """A compiler of fusions of which contractions hang when they are called."""

    def __init__(self) -> None:
        self._real = CpuCompiler()

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Returns the artifact of a campaign."""
        artifact = self._real.compile(problem, script)
        if problem.operation != CONTRACTION:
            return artifact
        count = len(fusion_arguments(problem.fusion))
        code = FOREVER.format(arguments=", ".join(f"%p{number}: !llvm.ptr" for number in range(count)))
        packings = artifact.host_code.partition("\n")[0]
        return replace(artifact, host_code=f"{packings}\n{code}")
