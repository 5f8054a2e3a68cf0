"""The device that programs of a target run on."""

from typing import TYPE_CHECKING, cast

from tuner.errors import UsageError
from tuner.target_name import TargetName

if TYPE_CHECKING:
    from tuner.device import AbstractDevice
    from tuner.runtime.simulated.lazy_streams import Order


KINDS = ("cpu", "simulator", "cuda")


def require_program_target(target: TargetName) -> None:
    """Raises UsageError for a target that knows single operations only."""
    if target.kind not in KINDS:
        raise UsageError(f"target: found {target.text}, allowed for programs: {', '.join(KINDS)}")


def open_device(target: TargetName, order: str = "fifo", seed: int = 0) -> "AbstractDevice":
    """Returns a new simulated GPU, or the GPU of this machine. Raises UsageError where there is none.

    ``order`` and ``seed`` decide what a simulated GPU does first of what may run.
    """
    if target.kind == "simulator":
        from tuner.runtime.simulated_device import SimulatedDevice

        return SimulatedDevice(target.chip, cast("Order", order), seed)
    if target.kind == "cuda":
        from tuner.runtime.cuda.opening import open_device as open_gpu

        return open_gpu()
    raise UsageError(f"target: found {target.text}, allowed simulator or cuda: programs run on devices there")
