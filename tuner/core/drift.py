"""How steady repeated timings of the same work were."""

import itertools
import statistics

PARTS = 4  # of a timing, whose medians are compared
LEAST_OF_PART = 3  # samples: the median of fewer is a sample itself


def drift(samples_s: tuple[float, ...]) -> float:
    """Returns by how much the median of samples differs at most between parts of a timing, relatively."""
    parts = min(PARTS, len(samples_s) // LEAST_OF_PART)
    if parts < 2:
        return 0.0
    bounds = [len(samples_s) * part // parts for part in range(parts + 1)]
    medians = [statistics.median(samples_s[low:high]) for low, high in itertools.pairwise(bounds)]
    return max(medians) / min(medians) - 1
