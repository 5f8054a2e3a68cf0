"""Where buffers go in one block of memory, when some may share bytes."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Extent:
    """What a buffer needs."""

    bytes: int
    alignment_bytes: int


def place(
    extents: tuple[Extent, ...], overlap: Callable[[int, int], bool], start_bytes: int = 0
) -> tuple[int, ...]:
    """Returns an offset for each; two for which ``overlap(i, j)`` holds in time get no byte in common.

    The largest first, each at the lowest free offset: the same input always gives the same offsets.
    """
    offsets: dict[int, int] = {}
    for index in sorted(range(len(extents)), key=lambda each: (-extents[each].bytes, each)):
        taken = sorted(
            (offsets[other], offsets[other] + extents[other].bytes)
            for other in offsets
            if overlap(index, other)
        )
        offsets[index] = _lowest_free(extents[index], taken, start_bytes)
    return tuple(offsets[index] for index in range(len(extents)))


def total_bytes(extents: tuple[Extent, ...], offsets: tuple[int, ...]) -> int:
    """Returns the end of the last buffer; 0 without any."""
    ends = (offset + extent.bytes for extent, offset in zip(extents, offsets, strict=True))
    return max(ends, default=0)


def align(offset: int, alignment_bytes: int) -> int:
    """Returns the next multiple."""
    return -(-offset // alignment_bytes) * alignment_bytes


def _lowest_free(extent: Extent, taken: list[tuple[int, int]], start_bytes: int) -> int:
    offset = align(start_bytes, extent.alignment_bytes)
    for low, high in taken:  # by their starts: once one begins behind us, all others do
        if offset + extent.bytes <= low:
            break
        offset = max(offset, align(high, extent.alignment_bytes))
    return offset
