"""A GPU made of the stand-in for libcuda and the PTX simulator, which takes PTX only."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.stub_driver import StubDriver, stub_library
from tuner.core.problem import Problem
from tuner.elsewhere.bundle.session import Gpu as Here
from tuner.gpu.driver.probe import describe_gpu
from tuner.gpu.target import event_timing
from tuner.gpu.target.evaluator import GpuEvaluator, LocalGpu
from tuner.payload.comparison import compare_sampled
from tuner.runtime.timing_lock import LockWait, TimingLock
from tuner.runtime.workers.protocol import Factory

FEW = 2  # samples: simulated runs are slow, and what they take is not looked at
CACHE_BYTES = 4096


class PtxDriver(StubDriver):
    """A driver that finds no kernel in machine code."""

    def _describe(self, image: bytes, name: bytes, sizes: Any) -> int:
        return -1 if image.startswith(b"\x7fELF") else super()._describe(image, name, sizes)


def evaluator(chip: str, library: str) -> GpuEvaluator:
    """Returns the evaluator on it, in a child process."""
    event_timing.MIN_SAMPLES = event_timing.COLD_SAMPLES = FEW
    stub = PtxDriver(library=library)
    describe = lambda: describe_gpu(stub.path)  # noqa: E731
    return GpuEvaluator(chip, describe, lambda here: LocalGpu(stub.open(), CACHE_BYTES), compare_sampled)


def here(baseline: Any) -> Here:
    """Returns what the command is given in place of the GPU of this machine. Skips without a C compiler."""
    library = str(stub_library())
    facts = describe_gpu(library).facts

    def timing_lock(problem: Problem, report: Callable[[str], None]) -> TimingLock:
        # a folder that takes no file: no lock
        return TimingLock("stub", "a test", LockWait(report), Path("/nowhere"))

    def factory(chip: str) -> Factory:
        return Factory("tests.elsewhere.bundle.simulated_gpu:evaluator", (chip, library))

    return Here(facts, timing_lock, factory, baseline)
