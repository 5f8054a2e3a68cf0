"""Plans the arena: one block of memory in which a program's temporary buffers lie, by their lifetimes."""

from dataclasses import dataclass

from tuner.core.dtypes import number_type
from tuner.core.fusions import TEMPORARY, FusedProgram, Fusion, View
from tuner.models.run.fused_code import Fill
from tuner.models.run.program_weights import aligned_size

# After the last buffer: vectors may read past the end of a padded buffer, whose last rows they do not use.
SLACK_BYTES = 4096


@dataclass(frozen=True)
class MemoryPlan:
    """The offset of each buffer in the arena, the arena's size, and its contents before the first call."""

    offsets_bytes: tuple[int | None, ...]  # one for each buffer; None: not in the arena
    arena_bytes: int
    fills: tuple[Fill, ...]


@dataclass(frozen=True)
class BufferLifetime:
    """The first and the last fusion, by number, that reads or writes a buffer."""

    first: int
    last: int

    def overlaps(self, other: "BufferLifetime") -> bool:
        """Returns whether a fusion is in both lifetimes."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class _Block:
    """A range of bytes of the arena, and the fusions during which a buffer occupies it.

    Buffers with padding occupy their bytes during all fusions.
    """

    start: int
    stop: int
    lifetime: BufferLifetime


def memory_plan(program: FusedProgram) -> MemoryPlan:
    """Assigns each temporary buffer that a fusion touches an offset in the arena; returns the plan.

    A buffer lives from the first fusion that touches it to the last one, and gets the lowest offset that is
    free for all of that time (first fit). A buffer with padding is filled once, before the first call. So it
    shares memory only with buffers of the same type and padding, whose interior lies at the same offsets.
        fusion 0 writes %a, fusion 1 reads %a and writes %b, fusion 2 reads %b and writes %c
        %a  0..4096      %b  4096..8192      %c  0..4096

    Raises ValueError for a temporary without padding that is read before it is written, and for a view that
    writes outside of its buffer.
    """
    lives = lifetimes(program)
    for number, lifetime in lives.items():
        is_written = any(view.buffer == number for view in program.fusions[lifetime.first].outputs)
        if program.buffers[number].padding is None and not is_written:
            message = f"buffer {number}: fusion {lifetime.first} reads what no fusion has written"
            raise ValueError(message)
    offsets: dict[int, int] = {}
    top, fills = _place_padded(program, lives, offsets)
    whole = BufferLifetime(0, len(program.fusions))
    stop = top
    blocks = [_Block(0, top, whole)] if top else []
    for number in sorted(lives, key=lambda buffer: lives[buffer].first):
        if number in offsets:
            continue
        lifetime = lives[number]
        size = extent_bytes(program, number, lifetime)
        # blocks that end before this buffer begins are free for all later buffers too, in this order
        blocks = [block for block in blocks if block.lifetime.overlaps(lifetime)]
        start = 0
        for block in sorted(blocks, key=lambda block: block.start):
            if start + size <= block.start:
                break
            start = max(start, block.stop)
        blocks.append(_Block(start, start + size, lifetime))
        offsets[number], stop = start, max(stop, start + size)
    places = tuple(map(offsets.get, range(len(program.buffers))))
    return MemoryPlan(places, stop + SLACK_BYTES, fills)


def lifetimes(program: FusedProgram) -> dict[int, BufferLifetime]:
    """Returns the lifetime of each temporary buffer that a fusion touches, by the buffer's index."""
    lives: dict[int, BufferLifetime] = {}
    for index, fusion in enumerate(program.fusions):
        for view in (*fusion.inputs, *fusion.outputs):
            if program.buffers[view.buffer].owner == TEMPORARY:
                first = lives[view.buffer].first if view.buffer in lives else index
                lives[view.buffer] = BufferLifetime(first, index)
    return lives


def extent_bytes(program: FusedProgram, number: int, lifetime: BufferLifetime | None = None) -> int:
    """Returns the bytes to allocate for a buffer, aligned: its size, or more if views read past its end.

    ``number``: the buffer's index. ``lifetime``: only views of fusions in it count; None: views of all
    fusions. Raises ValueError for a view that writes past the end.
    """
    buffer = program.buffers[number]
    item_bytes = number_type(buffer.type.element).bytes
    size = buffer.type.bytes
    if any(view_end(view) * item_bytes > size for view in _outputs(program, number, lifetime)):
        raise ValueError(f"buffer {number}: a fusion writes past the end of its {size} bytes")
    end = size
    for fusion in _living(program, lifetime):
        for view in fusion.inputs:
            if view.buffer == number:
                end = max(end, view_end(view) * item_bytes)
    return aligned_size(end)


def view_end(view: View) -> int:
    """Returns the number of elements of the buffer up to the last one of a view; 0 for an empty view."""
    if 0 in view.type.shape:
        return 0
    steps = zip(view.type.shape, view.strides, strict=True)
    return view.offset + sum((size - 1) * stride for size, stride in steps) + 1


def _place_padded(
    program: FusedProgram, lives: dict[int, BufferLifetime], offsets: dict[int, int]
) -> tuple[int, tuple[Fill, ...]]:
    top = 0
    fills: list[Fill] = []
    shared: list[tuple[object, int, int]] = []  # key that sharing buffers have in common, offset, last fusion
    for number in sorted(lives, key=lambda buffer: lives[buffer].first):
        buffer = program.buffers[number]
        if buffer.padding is None:
            continue
        size = extent_bytes(program, number, lives[number])
        written = _outputs(program, number, lives[number])
        places = frozenset((view.offset, view.type.shape, view.strides) for view in written)
        key = (buffer.type, repr(buffer.padding), size, places)  # -0.0 is not 0.0
        first = lives[number].first
        free = next((memory for memory in shared if memory[0] == key and memory[2] < first), None)
        if free is not None:
            shared.remove(free)
            offset = free[1]
        else:
            offset = top
            top = top + size
            fills.append(Fill(offset, buffer.type, buffer.padding))
        offsets[number] = offset
        shared.append((key, offset, lives[number].last))
    return top, tuple(fills)


def _living(program: FusedProgram, lifetime: BufferLifetime | None) -> tuple[Fusion, ...]:
    if lifetime is None:
        return program.fusions
    return program.fusions[lifetime.first : lifetime.last + 1]


def _outputs(program: FusedProgram, number: int, lifetime: BufferLifetime | None) -> tuple[View, ...]:
    fusions = _living(program, lifetime)
    return tuple(view for fusion in fusions for view in fusion.outputs if view.buffer == number)
