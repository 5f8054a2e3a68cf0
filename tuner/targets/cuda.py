"""The CUDA target: scripts to GPU programs, verified and timed on the GPU of this machine if it has one."""

from collections.abc import Callable
from typing import final

import numpy as np

from tuner.chips import chip_of
from tuner.cuda_tools.ptxas import Ptxas, find_ptxas
from tuner.device import DeviceError
from tuner.machine import Compiler, Machine
from tuner.problem import Problem
from tuner.record import Measurement, Verdict
from tuner.runtime.cublas import find_cublas
from tuner.runtime.gpu_probe import GpuHere, describe_gpu, machine_of
from tuner.target import AbstractTarget, AbstractVendorSource, Artifact, Effort, Script
from tuner.targets.gpu_compiler import GpuCompiler
from tuner.targets.gpu_here import Gpu, open_gpu
from tuner.targets.gpu_judge import GpuJudge


@final
class CudaTarget(AbstractTarget, AbstractVendorSource):
    """An NVIDIA GPU. The process that compiles opens none; the one that judges keeps it open."""

    name = "cuda"

    def __init__(
        self,
        chip: str,
        find: Callable[[], Ptxas | None] = find_ptxas,
        describe: Callable[[], GpuHere] = describe_gpu,
        open_: Callable[[GpuHere], Gpu] = open_gpu,
        find_library: Callable[[], str] = find_cublas,
    ) -> None:
        """Takes the chip to make code for, and what finds the assembler, the GPU and cuBLAS.

        Raises UsageError for a chip that is not known.
        """
        self._chip = chip_of(chip)
        self._compiler = GpuCompiler(self._chip, find)
        self._judge = GpuJudge(chip, describe, open_, find_library=find_library)

    def machine(self) -> Machine:
        """Returns the GPU here; where none runs the code, one of which only the chip is known."""
        try:
            return machine_of(self._chip, self._judge.usable().facts)
        except DeviceError:
            return machine_of(self._chip, None)

    def compiler(self) -> Compiler:
        """Returns the pinned wheel, the assembler and the lowering pipeline."""
        return self._compiler.compiler()

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Transforms, lowers and assembles; what cannot be launched is refused."""
        return self._compiler.compile(problem, script)

    def load(self, problem: Problem, artifact: Artifact) -> object:
        """Loads the code and allocates its scratch memory."""
        return self._judge.load(problem, artifact)

    def load_vendor(self, problem: Problem, rng: np.random.Generator) -> tuple[str, object]:
        """Loads cuBLAS and compares its answer as a program's."""
        return self._judge.load_vendor(problem, rng)

    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        """Runs once on fresh inputs into a poisoned, guarded C and compares every element."""
        return self._judge.verify(problem, loaded, rng)

    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        """Times runs on inputs that stay in place, between two looks at the sensors; judges the last one."""
        return self._judge.measure(problem, loaded, effort, rng)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        """Times several programs on the same arrays, sample by sample."""
        return self._judge.measure_together(problem, loaded, effort, rng)
