"""Load, steal time and throttling of a machine during a measurement on its processors."""

from dataclasses import dataclass


@dataclass(frozen=True)
class HostConditions:
    """Load of the machine while something was timed on its processors.

    Shares are fractions (0 to 1) of the measurement's wall time, per timed thread.
    """

    load_average: float  # of the last minute, when the measurement began
    others_cores: float  # processors that other programs kept busy, on average
    waited_share: float  # a timed thread was ready to run, and another ran in its place
    stolen_share: float  # a processor was given away by the hypervisor
    throttled_share: float  # the quota of a control group held the timed processes back
    anchor_s: float  # median time of the reference kernel (canary), the same code in each measurement
    anchor_drift: float  # relative, of the reference kernel's median between parts of the measurement
    panel_product_s: float | None = None  # lower quartile, a product of small packed panels; None: not timed
