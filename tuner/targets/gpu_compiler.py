"""Scripts to GPU programs: transformed, lowered to PTX, assembled where there is a ptxas."""

import time
from collections.abc import Callable
from typing import Final, final

from tuner.chips import Chip
from tuner.cuda_tools.ptxas import Ptxas
from tuner.errors import CandidateError, Failure, Stage, failing_at
from tuner.gpu_payload import gpu_payload_mlir, views_in
from tuner.kernel import KernelProgram, code_sha256
from tuner.kernel_buffers import buffers_of
from tuner.launchable import require_launchable
from tuner.machine import Compiler
from tuner.mlir import bindings, gpu_lowering, interpreter, wheels
from tuner.problem import Problem
from tuner.target import Artifact, Script

BINDINGS: Final = "numba-cuda-mlir"  # the wheel that makes PTX


@final
class GpuCompiler:
    """Compiles for one chip; without a ptxas to PTX only."""

    def __init__(self, chip: Chip, find_ptxas: Callable[[], Ptxas | None]) -> None:
        """Takes the chip, and what finds the assembler."""
        self._chip = chip
        self._find_ptxas = find_ptxas
        self._context: bindings.ir.Context | None = None

    def compiler(self) -> Compiler:
        """Returns what makes the code. Raises UsageError for a chip that the ptxas found does not know."""
        ptxas = self._find_ptxas()
        if ptxas is not None:
            ptxas.require(self._chip)
        makers = tuple(package for package in wheels.packages() if package[0] == BINDINGS)
        assembler = ("ptxas", "none" if ptxas is None else ptxas.version)
        return Compiler(wheels.llvm_version(), (*makers, assembler), gpu_lowering.gpu_pipeline_sha256())

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Returns the program with its resources; one that cannot be launched, or spills, is refused."""
        with failing_at(Stage.BIND):
            views = views_in(script.text, problem)
        start = time.perf_counter()
        self._context = self._context or interpreter.new_context()
        with self._context, bindings.ir.Location.unknown():
            module = interpreter.parse(gpu_payload_mlir(problem, views), "payload")
            interpreter.apply_script(module, interpreter.parse(script.text, "script"))
            transformed = time.perf_counter()
            program = gpu_lowering.lower_to_program(module, self._chip, buffers_of(problem))
        lowered = time.perf_counter()
        ptxas = self._find_ptxas()
        if ptxas is not None:
            program = ptxas.assemble(program)
        stages = (
            ("transform", transformed - start),
            ("lower", lowered - transformed),
            ("assemble", time.perf_counter() - lowered),
        )
        return Artifact(program.ptx, code_sha256(program), (), stages, program, refusal_of(program))


def refusal_of(program: KernelProgram) -> Failure | None:
    """Returns why a program is not worth loading; None for one that may be."""
    try:
        require_launchable(program)
    except CandidateError as error:
        return error.failure
    return None
