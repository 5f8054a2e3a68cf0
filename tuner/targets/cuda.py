"""The CUDA target without a driver: compiles for a GPU that is elsewhere, and says so."""

from collections.abc import Callable

import numpy as np

from tuner.chips import chip_of
from tuner.cuda_tools.ptxas import Ptxas, find_ptxas
from tuner.errors import CandidateError, Stage
from tuner.machine import Compiler, Machine, gpu_machine
from tuner.problem import Problem
from tuner.record import Measurement, Verdict
from tuner.target import AbstractTarget, Artifact, Effort, Script
from tuner.targets.gpu_compiler import GpuCompiler

COMPILED_ONLY = "compiled only: kernels are not run on GPUs here; --target simulator verifies them"


class CudaTarget(AbstractTarget):
    """Makes code for NVIDIA GPUs; nothing is run."""

    name = "cuda"

    def __init__(self, chip: str, find: Callable[[], Ptxas | None] = find_ptxas) -> None:
        """Takes the chip that code is made for, and what finds the assembler. Raises UsageError."""
        self._chip = chip_of(chip)
        self._compiler = GpuCompiler(self._chip, find)

    def machine(self) -> Machine:
        """Returns a GPU of which only the chip is known."""
        return gpu_machine(self.name, self._chip, "NVIDIA GPU")

    def compiler(self) -> Compiler:
        """Returns the pinned wheel, the assembler and the lowering pipeline."""
        return self._compiler.compiler()

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Transforms, lowers and assembles; what cannot be launched is refused."""
        return self._compiler.compile(problem, script)

    def load(self, problem: Problem, artifact: Artifact) -> object:
        """Raises CandidateError: there is nothing to load code into."""
        raise CandidateError(Stage.LOAD, COMPILED_ONLY)

    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        """Raises CandidateError, as ``load`` does."""
        raise CandidateError(Stage.LOAD, COMPILED_ONLY)

    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        """Raises CandidateError, as ``load`` does."""
        raise CandidateError(Stage.LOAD, COMPILED_ONLY)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        """Raises CandidateError, as ``load`` does."""
        raise CandidateError(Stage.LOAD, COMPILED_ONLY)
