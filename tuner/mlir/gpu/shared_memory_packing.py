"""Offsets of buffers in one block of memory, in which buffers of disjoint lifetimes may share bytes."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class AllocationRequest:
    """Size and alignment, both in bytes, of one buffer to place in a block of memory."""

    bytes: int
    alignment_bytes: int


def first_fit_offsets(
    requests: tuple[AllocationRequest, ...], interfere: Callable[[int, int], bool], start_bytes: int = 0
) -> tuple[int, ...]:
    """Returns an offset in bytes per request, such that buffers in use at the same time share no byte.

    ``interfere(i, j)`` is true where requests number i and j must not share bytes. No offset is below
    ``start_bytes``. Greedy by size: the largest first, each at its lowest free offset (Pisarchyk and Lee,
    "Efficient Memory Management for Deep Neural Net Inference", 2020, offset calculation). Deterministic.
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
    """Returns the size in bytes of a block that holds all buffers at their ``offsets``; 0 without buffers."""
    ends = (offset + request.bytes for request, offset in zip(requests, offsets, strict=True))
    return max(ends, default=0)


def align(offset: int, alignment_bytes: int) -> int:
    """Returns the least multiple of ``alignment_bytes`` that is not below ``offset``."""
    return -(-offset // alignment_bytes) * alignment_bytes


def _lowest_free(request: AllocationRequest, taken: list[tuple[int, int]], start_bytes: int) -> int:
    """Returns the first aligned gap that is large enough between (start, end) ranges sorted by start."""
    offset = align(start_bytes, request.alignment_bytes)
    for low, high in taken:
        if offset + request.bytes <= low:  # later ranges start no earlier
            break
        offset = max(offset, align(high, request.alignment_bytes))
    return offset
