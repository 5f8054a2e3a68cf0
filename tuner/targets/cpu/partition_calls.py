"""The calls of a kernel's thread partitions."""

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class PartitionCalls:
    """The calls that run a CPU kernel once: one (function address, argument address) per thread partition.

    ``operands`` are the addresses of the arrays A, B[, bias], C. ``keeps`` refers to the memory at all these
    addresses, so that it is not freed. ``weights``: arrays of a group's weights, packed for its code.
    """

    calls: tuple[tuple[int, int], ...]
    operands: tuple[int, ...]
    keeps: object
    weights: tuple[npt.NDArray[Any], ...] = ()
