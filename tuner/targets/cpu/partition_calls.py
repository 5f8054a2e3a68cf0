"""The calls of a kernel's thread partitions."""

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class PartitionCalls:
    """``calls``: addresses of function and arguments of each thread partition; ``keeps`` keeps both alive."""

    calls: tuple[tuple[int, int], ...]
    keeps: object
