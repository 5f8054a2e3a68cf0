"""CUDA's ports on the stand-in for libcuda, with scripts that misbehave; built in child processes.

A script's first line may say what happens: ``// deed: beyond`` launches more blocks than there are tiles.
"""

import re
from dataclasses import replace

import numpy as np

from tests.forwarding import ForwardingTarget
from tests.gpu.driver.stub_cublas import stub_cublas
from tests.support.stub_driver import StubDriver, stub_library
from tuner.core.gpu import chip_of
from tuner.core.interfaces import AbstractBaselineSource, Artifact, LoadedLibrary, Script
from tuner.core.problem import Problem
from tuner.gpu.driver.probe import describe_gpu
from tuner.gpu.target import event_timing
from tuner.gpu.target.compiler import GpuCompiler
from tuner.gpu.target.evaluator import GpuEvaluator, LocalGpu
from tuner.runtime.workers.protocol import Factory

FEW = 2  # samples: simulated runs are slow, and what they take is not looked at
CACHE_BYTES = 4096
ILLEGAL_ADDRESS, OUT_OF_MEMORY = 700, 2
REFUSALS = {  # deed -> call of the driver, its result
    "lost at load": ("cuModuleLoadData", ILLEGAL_ADDRESS),
    "lost while timed": ("cuGraphLaunch", ILLEGAL_ADDRESS),
    "no memory": ("cuMemAllocAsync", OUT_OF_MEMORY),
}


class StubTarget(ForwardingTarget, AbstractBaselineSource):
    """Compiles PTX, and runs it by a driver that refuses where the script says so."""

    def __init__(self, library: str, cublas: str) -> None:
        """Takes the stand-ins for the driver and for cuBLAS as the parent has built them."""
        event_timing.MIN_SAMPLES = event_timing.COLD_SAMPLES = FEW
        self._stub = StubDriver(library=library)
        self._gpu = GpuEvaluator(
            "sm_90",
            describe=lambda: describe_gpu(self._stub.path),
            open_=lambda here: LocalGpu(self._stub.open(), CACHE_BYTES),
            find_library=lambda: cublas,
        )
        super().__init__(GpuCompiler(chip_of("sm_90"), lambda: None), self._gpu)  # PTX is simulated

    def compile(self, problem: Problem, script: Script) -> Artifact:
        artifact = super().compile(problem, script)
        deed = re.match("// deed: (.*)", script.text)
        program = artifact.code
        if deed is None:
            return artifact
        if deed[1] == "beyond":
            (launch,) = program.launches
            return replace(artifact, code=replace(program, launches=(replace(launch, grid=(9, 9, 1)),)))
        return replace(artifact, code=replace(program, text=f"{program.text}\n{deed[0]}\n"))

    def load(self, problem: Problem, artifact: Artifact) -> object:
        deed = re.search("// deed: (.*)", artifact.code.text)
        if deed is not None:
            self._stub.fail(*REFUSALS[deed[1]])
        return super().load(problem, artifact)

    def load_baselines(self, problem: Problem, rng: np.random.Generator) -> tuple[LoadedLibrary, ...]:
        return self._gpu.load_baselines(problem, rng)


def stub_factory() -> Factory:
    """Describes both. Skips without a C compiler."""
    return Factory("tests.gpu.target.stub_cuda:StubTarget", (str(stub_library()), stub_cublas()))
