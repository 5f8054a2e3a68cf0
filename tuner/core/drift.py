"""How steady repeated timings of the same work were."""

import itertools
import statistics

PARTS = 4  # of one measurement, whose medians are compared
LEAST_OF_PART = 3  # samples: a median of fewer says no more than a sample


def drift(samples_s: tuple[float, ...]) -> float:
    """Returns by how much timings of the same work drifted, as a relative difference of medians.

    ``samples_s`` are seconds in the order of time. The samples are split into two to four parts, whose
    medians are compared: 0.1 means that the slowest part is 10 % above the fastest. Fewer than six samples
    give 0.
    """
    parts = min(PARTS, len(samples_s) // LEAST_OF_PART)
    if parts < 2:
        return 0.0
    bounds = [len(samples_s) * part // parts for part in range(parts + 1)]
    medians = [statistics.median(samples_s[low:high]) for low, high in itertools.pairwise(bounds)]
    return max(medians) / min(medians) - 1
