"""The calls of a kernel's thread partitions."""

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class PartitionCalls:
    """The calls that run a CPU kernel once: one (function address, argument address) per thread partition.

    ``operands`` are the addresses of the arrays A, B[, bias], C. ``keeps`` refers to the memory at all these
    addresses, so that it is not freed.
    """

    calls: tuple[tuple[int, int], ...]
    operands: tuple[int, ...]
    keeps: object
