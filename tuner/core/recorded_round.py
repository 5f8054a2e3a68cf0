"""The round of timing that an exported script's time is from: what a later check compares relative to."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RecordedRound:
    """Seconds per call of what was timed interleaved in one round; on another day all may be slower."""

    kernel_s: float  # of the script's kernel: lower quartile of its samples
    noise: float  # relative difference between two timings of the same code in the round
    library_s: float | None = None  # of the baseline library: lower quartile; None: not timed in the round
    panel_product_s: float | None = None  # of a product of small panels: lower quartile; None: on a GPU
