"""A GPU made of the stand-in for libcuda and the PTX simulator, which takes PTX only."""

from pathlib import Path
from typing import Any

from tests.runtime import stub_driver
from tuner.measuring.session import Gpu as Here
from tuner.runtime.gpu_probe import describe_gpu
from tuner.sampled_reference import compare_sampled
from tuner.targets import gpu_timing
from tuner.targets.gpu_here import Gpu
from tuner.targets.gpu_judge import GpuJudge
from tuner.workers.protocol import Factory

FEW = 2  # samples: simulated runs are slow, and what they take is not looked at
CACHE_BYTES = 4096


class PtxDriver(stub_driver.StubDriver):
    """A driver that finds no kernel in machine code."""

    def _describe(self, image: bytes, name: bytes, sizes: Any) -> int:
        return -1 if image.startswith(b"\x7fELF") else super()._describe(image, name, sizes)


def judge(chip: str, library: str) -> GpuJudge:
    """Returns the judge on it, in a child process."""
    setattr(stub_driver, "stub_library", lambda: Path(library))  # noqa: B010 - mypy: it is a cached function
    gpu_timing.MIN_SAMPLES = gpu_timing.COLD_SAMPLES = FEW
    stub = PtxDriver()
    describe = lambda: describe_gpu(stub.path)  # noqa: E731
    return GpuJudge(chip, describe, lambda here: Gpu(stub.open(), CACHE_BYTES), compare_sampled)


def here(vendor: Any) -> Here:
    """Returns what the command is given in place of the GPU of this machine. Skips without a C compiler."""
    library = str(stub_driver.stub_library())
    facts = describe_gpu(library).facts
    return Here(facts, lambda chip: Factory("tests.measuring.simulated_gpu:judge", (chip, library)), vendor)
