"""The CUDA target: compiles scripts to GPU programs, verifies and times them on the GPU of this machine."""

from collections.abc import Callable
from typing import final

import numpy as np

from tuner.core.chips import chip_of
from tuner.core.problem import Problem
from tuner.core.record import Measurement, Verdict
from tuner.core.target import AbstractBaselineSource, AbstractTarget, Artifact, Effort, Script
from tuner.runtime.cuda.cublas import find_cublas
from tuner.runtime.cuda.probe import GpuHere, describe_gpu
from tuner.targets.gpu.compiler import GpuCompiler
from tuner.targets.gpu.judge import GpuJudge
from tuner.targets.gpu.local_gpu import LocalGpu, open_gpu
from tuner.targets.gpu.ptxas import Ptxas, find_ptxas


@final
class CudaTarget(AbstractTarget, AbstractBaselineSource):
    """An NVIDIA GPU. A process that compiles does not open it; one that verifies keeps it open."""

    name = "cuda"

    def __init__(
        self,
        chip: str,
        find: Callable[[], Ptxas | None] = find_ptxas,
        describe: Callable[[], GpuHere] = describe_gpu,
        open_: Callable[[GpuHere], LocalGpu] = open_gpu,
        find_library: Callable[[], str] = find_cublas,
    ) -> None:
        """Takes the chip to make code for, and what finds the assembler, the GPU and cuBLAS.

        Raises UsageError for a chip that is not known.
        """
        self._chip = chip_of(chip)
        self._compiler = GpuCompiler(self._chip, find)
        self._judge = GpuJudge(chip, describe, open_, find_library=find_library)

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Transforms, lowers and assembles; what cannot be launched is refused."""
        return self._compiler.compile(problem, script)

    def load(self, problem: Problem, artifact: Artifact) -> object:
        """Loads the code and allocates its scratch memory."""
        return self._judge.load(problem, artifact)

    def load_baseline(self, problem: Problem, rng: np.random.Generator) -> tuple[str, object]:
        """Loads cuBLAS and compares its answer as a program's."""
        return self._judge.load_baseline(problem, rng)

    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        """Runs once on new inputs into a C of NaN between guard bands; compares every element."""
        return self._judge.verify(problem, loaded, rng)

    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        """Times runs on fixed inputs between two readings of the sensors, then compares the last result."""
        return self._judge.measure(problem, loaded, effort, rng)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        """Times several programs on the same arrays, sample by sample."""
        return self._judge.measure_together(problem, loaded, effort, rng)
