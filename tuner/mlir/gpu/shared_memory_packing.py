"""Offsets of buffers in one block of memory, in which buffers of disjoint lifetimes may share bytes."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class AllocationRequest:
    """Size and alignment of one buffer."""

    bytes: int
    alignment_bytes: int


def first_fit_offsets(
    requests: tuple[AllocationRequest, ...], interfere: Callable[[int, int], bool], start_bytes: int = 0
) -> tuple[int, ...]:
    """Returns an offset per request; two for which ``interfere(i, j)`` is true share no byte.

    Greedy by size: the largest first, each at its lowest free offset (Pisarchyk and Lee, "Efficient Memory
    Management for Deep Neural Net Inference", 2020, offset calculation). Deterministic.
    """
    offsets: dict[int, int] = {}
    for index in sorted(range(len(requests)), key=lambda each: (-requests[each].bytes, each)):
        taken = sorted(
            (offsets[other], offsets[other] + requests[other].bytes)
            for other in offsets
            if interfere(index, other)
        )
        offsets[index] = _lowest_free(requests[index], taken, start_bytes)
    return tuple(offsets[index] for index in range(len(requests)))


def total_bytes(requests: tuple[AllocationRequest, ...], offsets: tuple[int, ...]) -> int:
    """Returns the end of the last buffer in bytes; 0 without buffers."""
    ends = (offset + request.bytes for request, offset in zip(requests, offsets, strict=True))
    return max(ends, default=0)


def align(offset: int, alignment_bytes: int) -> int:
    """Returns the least multiple of the alignment that is not below ``offset``."""
    return -(-offset // alignment_bytes) * alignment_bytes


def _lowest_free(request: AllocationRequest, taken: list[tuple[int, int]], start_bytes: int) -> int:
    """Returns the first aligned gap that is large enough between (start, end) ranges sorted by start."""
    offset = align(start_bytes, request.alignment_bytes)
    for low, high in taken:
        if offset + request.bytes <= low:  # later ranges start no earlier
            break
        offset = max(offset, align(high, request.alignment_bytes))
    return offset
