"""The device of the GPU check: the GPU here, the simulated one, or the stub of the driver."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.gpu_check.checks import CHECK_LIMIT_S
from tuner.core.candidate import TargetName
from tuner.core.errors import DeviceError

if TYPE_CHECKING:
    from tuner.core.device import AbstractDevice
    from tuner.gpu.driver.probe import GpuHere
    from tuner.gpu.target.evaluator import LocalGpu

CUDA, SIMULATOR, STUB = "cuda", "simulator", "stub"
DEVICES = (CUDA, SIMULATOR, STUB)
# The stand-in for the driver records tensor maps as words of its own, which its simulator does not read.
STAND_IN_CHIPS = {SIMULATOR: "sm_90a", STUB: "sm_90"}


@dataclass(frozen=True)
class Bed:
    """One device under check."""

    device: str  # of DEVICES
    chip: str
    is_quick: bool = False  # a few small checks of each part
    limit_s: float = CHECK_LIMIT_S  # of the part
    earlier: Path | None = None  # results file: what passed there with the same code is not asked again

    @property
    def is_hardware(self) -> bool:
        """True if the device is a GPU, so that times are meaningful."""
        return self.device == CUDA

    @property
    def target(self) -> TargetName:
        """Returns the target of compilation: machine code on hardware with ptxas, else PTX."""
        return TargetName(CUDA if self.is_hardware else SIMULATOR, self.chip)

    def open(self, seed: int = 0) -> "AbstractDevice":
        """Opens the device; a simulated one runs ready device work in a random order. Raises DeviceError."""
        if self.device == SIMULATOR:
            from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice

            return SimulatedDevice(self.chip, "random", seed)
        if self.device == STUB:
            from tests.support.stub_driver import StubDriver

            return StubDriver().open()
        from tuner.gpu.driver.probe import open_device

        return open_device()

    def here(self) -> "GpuHere | None":
        """Returns the driver's description of the GPU; None on the simulator. Raises DeviceError."""
        from tuner.gpu.driver.probe import describe_gpu

        if self.device == SIMULATOR:
            return None
        if self.device == STUB:
            from tests.support.stub_driver import StubDriver

            return describe_gpu(StubDriver().path)
        return describe_gpu()

    def gpu(self) -> "LocalGpu":
        """Opens the GPU with its sensors. Raises DeviceError where there is none."""
        from tuner.gpu.target.evaluator import open_gpu

        here = self.here()
        if here is None or not self.is_hardware:
            raise DeviceError(f"device: found {self.device}, allowed {CUDA}: no clock")
        return open_gpu(here)


def bed_of(device: str, is_quick: bool = False) -> Bed:
    """Returns the device by its name. Raises DeviceError for no device, and for an unknown chip."""
    from tuner.core.gpu import CHIPS, most_specific

    here = Bed(device, "").here() if device == CUDA else None
    chip = STAND_IN_CHIPS.get(device, "") if here is None else most_specific(here.facts.chip)
    if chip not in CHIPS:
        raise DeviceError(
            f"GPU: found {here.facts.name if here else chip}, {chip}, allowed {', '.join(CHIPS)}"
        )
    return Bed(device, chip, is_quick)
