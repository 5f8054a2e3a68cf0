"""What a machine did while something was timed on its processors."""

from dataclasses import dataclass


@dataclass(frozen=True)
class HostConditions:
    """Readings around a timing. Shares are of its wall time, on each of the timed threads."""

    load_average: float  # of the last minute, when the timing began
    others_cores: float  # processors that other programs kept busy, on average
    waited_share: float  # a timed thread was ready to run, and another ran in its place
    stolen_share: float  # a processor was given away by the hypervisor
    throttled_share: float  # the quota of a control group held the timed processes back
    anchor_s: float  # median time of the anchor, a kernel that is the same in each timing
    anchor_drift: float  # relative, of the anchor's median between parts of the timing
    panel_product_s: float | None = None  # lower quartile of a product of small panels; None: not timed
