"""Places the temporary buffers of a program in one block of memory, its arena, by their lifetimes.

A buffer lives from the first group that touches it to the last one. Buffers whose lifetimes do not overlap
share memory: each gets the lowest place that is free for all of its lifetime (first fit). A buffer with
padding is filled once, before the first call, and no group writes its padding. So it shares memory only with
buffers of the same type, with equal paddings, into which groups write at the same places.

    group 0 writes %a, group 1 reads %a and writes %b, group 2 reads %b and writes %c
    %a  0..4096      %b  4096..8192      %c  0..4096
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tuner.core.element_types import number_type
from tuner.core.grouped_program import TEMPORARY, Buffer, GroupedProgram, OpGroup, View
from tuner.programs.run.grouped_code import Fill
from tuner.programs.run.result_pool import ALIGNMENT_BYTES

# After the last buffer: vectors may read past the end of a padded buffer, whose last rows they do not use.
SLACK_BYTES = 4096


@dataclass(frozen=True)
class MemoryPlan:
    """Where each buffer of a program lies in the arena, the size of the arena, and its contents at first."""

    offsets_bytes: tuple[int | None, ...]  # one for each buffer; None: not in the arena
    arena_bytes: int
    fills: tuple[Fill, ...]


@dataclass(frozen=True)
class BufferLifetime:
    """The first and the last group, by number, that reads or writes a buffer."""

    first: int
    last: int

    def overlaps(self, other: "BufferLifetime") -> bool:
        """Returns whether some group needs both buffers."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class _Block:
    """Bytes of the arena that buffers occupy; buffers with padding keep them for all groups."""

    start: int
    stop: int
    lifetime: BufferLifetime


def memory_plan(program: GroupedProgram) -> MemoryPlan:
    """Returns a place in the arena for each temporary buffer that a group touches.

    Raises ValueError for a temporary without padding that is read before it is written, and for a view that
    writes outside of its buffer.
    """
    lives = lifetimes(program)
    _require_written_before_read(program, lives)
    offsets: dict[int, int] = {}
    top, fills = _place_padded(program, lives, offsets)
    whole = BufferLifetime(0, len(program.groups))
    stop, blocks = top, [_Block(0, top, whole)] if top else []
    for number in sorted(lives, key=lambda each: lives[each].first):
        if number in offsets:
            continue
        lifetime = lives[number]
        size = extent_bytes(program, number, lifetime)
        blocks = [each for each in blocks if each.lifetime.overlaps(lifetime)]  # of later buffers, too
        start = _first_fit(blocks, size)
        blocks.append(_Block(start, start + size, lifetime))
        offsets[number], stop = start, max(stop, start + size)
    places = tuple(offsets.get(number) for number in range(len(program.buffers)))
    return MemoryPlan(places, stop + SLACK_BYTES, fills)


def lifetimes(program: GroupedProgram) -> dict[int, BufferLifetime]:
    """Returns the lifetime of each temporary buffer that a group touches, by the buffer's index."""
    found: dict[int, BufferLifetime] = {}
    for number, group in enumerate(program.groups):
        for view in (*group.inputs, *group.outputs):
            if program.buffers[view.buffer].owner == TEMPORARY:
                first = found[view.buffer].first if view.buffer in found else number
                found[view.buffer] = BufferLifetime(first, number)
    return found


def extent_bytes(program: GroupedProgram, number: int, lifetime: BufferLifetime | None = None) -> int:
    """Returns the bytes of a buffer, and of what views read past its end, aligned.

    Only groups of its lifetime touch a buffer; None: all groups are looked at.

    Raises ValueError for a view that writes past the end.
    """
    buffer = program.buffers[number]
    item_bytes = number_type(buffer.type.element).bytes
    size = buffer.type.bytes
    if any(view_end(view) * item_bytes > size for view in _outputs(program, number, lifetime)):
        raise ValueError(f"buffer {number}: a group writes past the end of its {size} bytes")
    groups = _living(program, lifetime)
    reads = (view for group in groups for view in group.inputs if view.buffer == number)
    return _aligned(max([size, *(view_end(view) * item_bytes for view in reads)]))


def view_end(view: View) -> int:
    """Returns the number of elements of the buffer up to the last one of a view; 0 for an empty view."""
    if 0 in view.type.shape:
        return 0
    steps = zip(view.type.shape, view.strides, strict=True)
    return view.offset + sum((size - 1) * stride for size, stride in steps) + 1


def _place_padded(
    program: GroupedProgram, lives: dict[int, BufferLifetime], offsets: dict[int, int]
) -> tuple[int, tuple[Fill, ...]]:
    """Places the buffers with padding from 0 on; returns where they end and how they are filled."""
    top = 0
    fills: list[Fill] = []
    shared: list[tuple[object, int, int]] = []  # what must be equal, offset, last group
    for number in sorted(lives, key=lambda each: lives[each].first):
        buffer = program.buffers[number]
        if buffer.padding is None:
            continue
        size = extent_bytes(program, number, lives[number])
        key = _padding_key(buffer, _outputs(program, number, lives[number]), size)
        free = next((each for each in shared if each[0] == key and each[2] < lives[number].first), None)
        if free is not None:
            shared.remove(free)
            offset = free[1]
        else:
            offset, top = top, top + size
            fills.append(Fill(offset, buffer.type, buffer.padding))
        offsets[number] = offset
        shared.append((key, offset, lives[number].last))
    return top, tuple(fills)


def _padding_key(buffer: Buffer, written: Iterable[View], size: int) -> object:
    """Returns what buffers that share their padding have in common: all but their lifetimes."""
    places = frozenset((view.offset, view.type.shape, view.strides) for view in written)
    return (buffer.type, buffer.padding, size, places)


def _living(program: GroupedProgram, lifetime: BufferLifetime | None) -> tuple[OpGroup, ...]:
    return program.groups if lifetime is None else program.groups[lifetime.first : lifetime.last + 1]


def _outputs(program: GroupedProgram, number: int, lifetime: BufferLifetime | None) -> tuple[View, ...]:
    groups = _living(program, lifetime)
    return tuple(view for group in groups for view in group.outputs if view.buffer == number)


def _require_written_before_read(program: GroupedProgram, lives: dict[int, BufferLifetime]) -> None:
    for number, lifetime in lives.items():
        group = program.groups[lifetime.first]
        is_written = any(view.buffer == number for view in group.outputs)
        if program.buffers[number].padding is None and not is_written:
            raise ValueError(f"buffer {number}: group {lifetime.first} reads what no group has written")


def _first_fit(taken: list[_Block], size: int) -> int:
    start = 0
    for block in sorted(taken, key=lambda each: each.start):
        if start + size <= block.start:
            break
        start = max(start, block.stop)
    return start


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
