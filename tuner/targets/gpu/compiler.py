"""Compiles scripts to GPU programs: transformed, lowered to PTX, assembled where ptxas is installed."""

import time
from collections.abc import Callable
from typing import Final, final

from tuner.core.chips import Chip
from tuner.core.errors import CandidateError, Failure, Stage, failing_at
from tuner.core.kernel_program import KernelProgram, buffers_of, code_sha256
from tuner.core.machine import Compiler
from tuner.core.problem import Problem
from tuner.core.target import AbstractCompiler, Artifact, Script
from tuner.cost_model.launch_limits import require_launchable
from tuner.mlir import bindings, interpreter, wheels
from tuner.mlir.fingerprint import Sources, sources_sha256
from tuner.mlir.gpu import lowering as gpu_lowering
from tuner.payload.gpu import gpu_payload_mlir, scratch_in
from tuner.targets.gpu.ptxas import Ptxas, find_ptxas

BINDINGS: Final = "numba-cuda-mlir"  # the wheel that makes PTX


def gpu_compiler_build(chip: Chip, ptxas: Ptxas | None, sources: Sources) -> Compiler:
    """Returns the identity of the build that compiles for a chip: versions of tools, hash of sources.

    Versions of LLVM, of the wheel with MLIR and of ptxas. ``ptxas`` None: not installed. ``sources``: the
    files to hash, relative to the package. Raises UsageError for a chip that ``ptxas`` does not know.
    """
    if ptxas is not None:
        ptxas.require(chip)
    compiler_builds = tuple(package for package in wheels.packages() if package[0] == BINDINGS)
    assembler = ("ptxas", "none" if ptxas is None else ptxas.version)
    return Compiler(wheels.llvm_version(), (*compiler_builds, assembler), sources_sha256(sources))


@final
class GpuCompiler(AbstractCompiler):
    """A compiler of scripts to GPU programs for one chip: to a cubin, without ptxas to PTX only."""

    def __init__(self, chip: Chip, find: Callable[[], Ptxas | None] = find_ptxas) -> None:
        """Takes the chip, and a function that finds ptxas (None: not installed)."""
        self._chip = chip
        self._find = find
        self._context: bindings.ir.Context | None = None

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Returns an artifact with the GPU program, and why that cannot be launched, if so.

        Raises CandidateError where binding, the script, the lowering or ptxas fails, UsageError for a ptxas
        that cannot run or does not know the chip, MachineError where the disk has no space for the cubin.
        """
        with failing_at(Stage.BIND):
            scratch = scratch_in(script.text, problem)
        start = time.perf_counter()
        self._context = self._context or interpreter.new_context()
        with self._context, bindings.ir.Location.unknown():
            module = interpreter.parse(gpu_payload_mlir(problem, scratch), "payload")
            interpreter.apply_script(module, interpreter.parse(script.text, "script"))
            transformed = time.perf_counter()
            program = gpu_lowering.lower_to_program(
                module, self._chip, buffers_of(problem.one), problem.batch
            )
        lowered = time.perf_counter()
        ptxas = self._find()
        if ptxas is not None:
            program = ptxas.assemble(program)
        stages = (
            ("transform", transformed - start),
            ("lower", lowered - transformed),
            ("assemble", time.perf_counter() - lowered),
        )
        return Artifact("", code_sha256(program), (), stages, program, refusal_of(program))


def refusal_of(program: KernelProgram) -> Failure | None:
    """Returns why a program cannot be launched on its chip, such as too much shared memory; else None."""
    try:
        require_launchable(program)
    except CandidateError as error:
        return error.failure
    return None
