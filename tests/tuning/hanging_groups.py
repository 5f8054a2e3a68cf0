"""A compiler whose code of contractions never returns; other campaigns are compiled as they are."""

from dataclasses import replace
from typing import final

from tests.texts import text_beside
from tuner.core.fusions import CONTRACTION
from tuner.core.interfaces import AbstractCompiler, Artifact, Script
from tuner.core.problem import Problem
from tuner.mlir.fusions import fusion_arguments
from tuner.targets.cpu.compiler import CpuCompiler


@final
class HangingCompiler(AbstractCompiler):
    """A compiler of fusions of which contractions hang when they are called."""

    def __init__(self) -> None:
        self._real = CpuCompiler()

    def compile(self, problem: Problem, script: Script) -> Artifact:
        artifact = self._real.compile(problem, script)
        if problem.operation != CONTRACTION:
            return artifact
        count = len(fusion_arguments(problem.fusion))
        code = text_beside(__file__, "forever").format(
            arguments=", ".join(f"%p{number}: !llvm.ptr" for number in range(count))
        )
        packings = artifact.host_code.partition("\n")[0]
        return replace(artifact, host_code=f"{packings}\n{code}")
