"""Times of the same configurations on other machines, as prior knowledge of a search.

They are stored with a run as a text of one digit per configuration.
"""

import string
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from tuner.core.errors import UsageError

# A run keeps what it knew of other machines when it began, one character per configuration: a resumed run
# proposes as before, although more is known by then.

DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase + "+/"  # the fastest is 0
UNKNOWN = "-"  # without a time on another machine
SLOW_QUANTILE = 0.5  # of a machine's times: how slow a slow one is matters little

Array = npt.NDArray[np.float64]


def encoded(machines: Iterable[Array]) -> str:
    """Returns a digit per configuration: 0 is the fastest, the last digit the median or slower.

    The level is computed from the logarithm of the time on each machine, and averaged over the machines that
    timed the configuration. ``machines``: per machine an array (configurations,) of seconds, NaN for no time,
    not all NaN. "" for no machine.
    """
    levels = list(map(_levels, machines))
    if not levels:
        return ""
    is_known = ~np.isnan(levels)
    total = np.where(is_known, levels, 0.0).sum(axis=0)
    count = is_known.sum(axis=0)
    digits = np.rint((len(DIGITS) - 1) * total / np.maximum(count, 1)).astype(int)
    return "".join(
        DIGITS[digit] if times else UNKNOWN
        for digit, times in zip(digits.tolist(), count.tolist(), strict=True)
    )


def decoded(text: str, rows: int) -> Array:
    """Returns per configuration 0 (fast) to 1 (slow), NaN if unknown, from a text that ``encoded`` made.

    Raises UsageError if ``text`` has another length than ``rows``, or other characters.
    """
    values = {digit: level / (len(DIGITS) - 1) for level, digit in enumerate(DIGITS)} | {UNKNOWN: np.nan}
    if len(text) != rows or not set(text) <= set(values):
        raise UsageError(f"prior: found {len(text)} characters, allowed {rows} of base64; it is damaged")
    return np.array([values[digit] for digit in text])


def _levels(times_s: Array) -> Array:
    logs = np.log(times_s)
    fastest = np.nanmin(logs)
    slow = np.nanquantile(logs, SLOW_QUANTILE)
    levels: Array = np.minimum(logs - fastest, slow - fastest) / ((slow - fastest) or 1.0)
    return levels
