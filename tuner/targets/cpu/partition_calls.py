"""The calls of a kernel's panels."""

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class PartitionCalls:
    """Addresses of the function and the arguments of each panel, and the objects that keep them alive."""

    calls: tuple[tuple[int, int], ...]
    keeps: object
