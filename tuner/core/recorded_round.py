"""Times of one timing round in the header of an exported script, with which ``tuner check`` compares."""

from dataclasses import dataclass
from typing import Annotated

from tuner.core.dataclass_json import number

SECONDS_LIMIT = 1e6  # of one call: eleven days
SHARE_LIMIT = 1e6  # of the noise: two timings of the same code, all processes paused during one of the two
SECONDS_TEXT = f"seconds, more than 0 and up to {SECONDS_LIMIT:.0f}"
Seconds = Annotated[float, number(SECONDS_TEXT, lambda found: 0 < found <= SECONDS_LIMIT)]
Share = Annotated[
    float, number(f"a number from 0 to {SHARE_LIMIT:.0f}", lambda found: 0 <= found <= SHARE_LIMIT)
]


@dataclass(frozen=True)
class RecordedRound:
    """Times of an exported script's kernel and of other codes, timed interleaved in one timing round.

    ``tuner check`` later compares with them. Seconds are per call; on another day all codes may be slower.
    """

    kernel_s: Seconds  # of the script's kernel: lower quartile of its samples
    noise: Share  # relative difference between two timings of the same code in the round
    library_s: Seconds | None = None  # of the baseline library: lower quartile; None: not timed in the round
    panel_product_s: Seconds | None = None  # lower quartile, a product of small packed panels; None: on a GPU
