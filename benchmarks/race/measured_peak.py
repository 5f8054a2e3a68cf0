"""The peak of one core, measured in a process of its own."""

import os

from tuner.runtime.cpu.host import describe_machine
from tuner.runtime.cpu.roofline import measure_roofline


def peak_flop_per_s(dtype: str, core: int) -> float:
    """Returns the flop/s of multiply-adds in registers that one thread reaches on a core."""
    os.sched_setaffinity(0, {core})
    return measure_roofline(dtype, 1, describe_machine()).flop_per_s
