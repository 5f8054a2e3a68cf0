"""Places the tensors of a program in buffers, and the temporary buffers in one block of memory, its arena."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from tuner.core.dtypes import number_type
from tuner.core.fusions import (
    ARGUMENT,
    RESULT,
    TEMPORARY,
    WEIGHT,
    Buffer,
    FusedProgram,
    Fusion,
    TensorType,
    View,
)
from tuner.mlir.bindings import Op, Value
from tuner.programs.fusions import views
from tuner.programs.fusions.operations import (
    COLLAPSE,
    CONCAT,
    EXPAND,
    FREE,
    INSERT,
    PAD,
    SLICE,
    VIEWS,
    defining,
    is_free,
    is_quantized,
    is_scalar_op,
    users,
)
from tuner.programs.fusions.payload import TensorPayload, tensor_type
from tuner.programs.fusions.views import (
    insertions,
    interior_of,
    number_of,
    padding_number,
    parts_of,
    slice_of,
    source_of,
    transposition_of,
    view_of,
)
from tuner.programs.run.fused_code import ALIGNMENT_BYTES, Fill

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
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class _Block:
    """Bytes of the arena that buffers occupy; buffers with padding keep them for all fusions."""

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
    for number, fusion in enumerate(program.fusions):
        for view in (*fusion.inputs, *fusion.outputs):
            if program.buffers[view.buffer].owner == TEMPORARY:
                first = lives[view.buffer].first if view.buffer in lives else number
                lives[view.buffer] = BufferLifetime(first, number)
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
    return -(-end // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


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
        free = next((entry for entry in shared if entry[0] == key and entry[2] < lives[number].first), None)
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


# Decides where each tensor of a program lies: in which buffer, from which element on, with which strides.
#
# Reshapes, static slices and transposes that keep the last dimension are views of the same memory. What is
# padded, concatenated, inserted or returned is computed where it must lie in the end, if its producer can
# write there; otherwise a fusion copies it. Padding is in its buffer before the first call, and no fusion
# writes it.
#
# The program is walked backwards for places that consumers ask for, then forwards for all others.


@dataclass(frozen=True)
class NeededCopy:
    """A copy that a separate fusion makes: no fusion can write the value directly to where it has to lie."""

    source: Value
    target: View


@dataclass
class BufferPlan:
    """The buffers of a program, and the view of a buffer in which each of its values lies."""

    buffers: list[Buffer] = field(default_factory=list)
    views: dict[Value, View] = field(default_factory=dict)
    copies: dict[Op, list[NeededCopy]] = field(default_factory=dict)  # operation -> copies run in its place
    moved: set[Op] = field(default_factory=set)  # transposes that are views
    computed: list[Op] = field(default_factory=list)  # operations that fusions compute, in order


def placed(payload: TensorPayload, first_weight: int) -> BufferPlan:
    """Returns the plan with places for arguments and results, and for values that a reader needs at a place.

    The arguments from ``first_weight`` on are weights. Readers that need a place are paddings,
    concatenations, insertions and transposes. Other values get their places by ``settle``.
    """
    plan = BufferPlan()
    for number, argument in enumerate(payload.block.arguments):
        owner, at = (ARGUMENT, number) if number < first_weight else (WEIGHT, number - first_weight)
        plan.views[argument] = _new(plan, owner, at, tensor_type(argument.type))
    for number, value in enumerate(payload.end.operands):
        home = _new(plan, RESULT, number, tensor_type(value.type))
        _send(plan, value, home, payload.end)
    for op in reversed(payload.ops):
        if op.name == PAD and padding_number(op) is not None:
            home = temporary(plan, tensor_type(op.results[0].type), padding_number(op))
            plan.views[op.results[0]] = home
            _send(plan, op.operands[0], interior_of(op, home), op)
        elif op.name == CONCAT:
            home = plan.views.get(op.results[0]) or temporary(plan, tensor_type(op.results[0].type))
            plan.views[op.results[0]] = home
            for part, view in parts_of(op, home):
                _send(plan, part, view, op)
        elif op.name == INSERT and slice_of(op) is not None:
            _place_insertion(plan, op)
        elif (order := _moved_rows(op)) is not None and op.results[0] not in plan.views:
            _place_transposed(plan, op, order)
    plan.computed = [op for op in payload.ops if _is_computed(op, plan.moved)]
    return plan


def settle(plan: BufferPlan, payload: TensorPayload, outputs: Collection[Value]) -> None:
    """Adds to ``plan`` the places of ``outputs`` that have no place yet, and of all views of values.

    ``outputs``: the values that fusions write.
    """
    computed = set(plan.computed)
    for op in payload.ops:
        if op in computed:
            for value in op.results:
                if value in outputs and value not in plan.views:
                    plan.views[value] = temporary(plan, tensor_type(value.type))
        elif (op.name in VIEWS or op in plan.moved) and op.results[0] not in plan.views:
            _place_view(plan, op)


def temporary(plan: BufferPlan, kind: TensorType, padding: float | None = None) -> View:
    """Adds a temporary buffer for a tensor of type ``kind`` to ``plan``; returns a view of all of it.

    ``padding``: the number that surrounds what fusions write; None without padding.
    """
    before = (buffer.number + 1 for buffer in reversed(plan.buffers) if buffer.owner == TEMPORARY)
    number = next(before, 0)
    return _new(plan, TEMPORARY, number, kind, padding)


def _new(plan: BufferPlan, owner: str, number: int, kind: TensorType, padding: float | None = None) -> View:
    plan.buffers.append(Buffer(owner, number, kind, padding))
    return views.whole(len(plan.buffers) - 1, kind)


def _is_computed(op: Op, moved: Collection[Op]) -> bool:
    if op.name in FREE or op in moved or is_scalar_op(op) or op.name in (EXPAND, COLLAPSE, CONCAT):
        return False
    if op.name in (SLICE, INSERT):
        return slice_of(op) is None
    return op.name != PAD or padding_number(op) is None


def _send(plan: BufferPlan, value: Value, target: View, at: Op) -> None:
    """Lets a value be computed at ``target``; else plans a copy to ``target`` in the place of ``at``."""
    if not _place(plan, value, target, at):
        plan.copies.setdefault(at, []).append(NeededCopy(value, target))


def _place(plan: BufferPlan, value: Value, target: View, reader: Op) -> bool:
    """Places a value, and what it is a view of, if its producer can write there; says whether it can."""
    op = defining(value)
    has_rows = not target.strides or target.type.shape[-1] == 1 or target.strides[-1] == 1
    if op is None or value in plan.views or is_free(value) or not has_rows:
        return False
    others = [user for user in users(value) if user != reader]
    if not all(_can_read(value, target, other) for other in others):
        return False
    if op.name in (EXPAND, COLLAPSE):
        source = source_of(op, target)
        is_placed = source is not None and _place(plan, op.operands[0], source, op)
    elif (order := _moved_rows(op)) is not None and _place(
        plan, op.operands[0], views.permuted(target, _inverse(order)), op
    ):
        plan.moved.add(op)
        is_placed = True
    elif op.name == INSERT:
        is_placed = slice_of(op) is not None
    else:
        is_placed = op.name == CONCAT or _is_computed(op, plan.moved)
    if is_placed:
        plan.views[value] = target
    return is_placed


def _can_read(value: Value, view: View, user: Op) -> bool:
    """Returns whether ``user`` can read a value that lies as ``view``, which need not be contiguous."""
    if is_quantized(user):
        return views.is_contiguous(view)
    if user.name not in VIEWS or user.operands[0] != value:
        return True
    seen = view_of(user, view)
    return user.name != COLLAPSE if seen is None else _is_readable(user.results[0], seen)


def _is_readable(value: Value, view: View) -> bool:
    return all(_can_read(value, view, user) for user in users(value))


def _moved_rows(op: Op) -> tuple[int, ...] | None:
    order = transposition_of(op)
    if order and order[-1] == len(order) - 1:
        return order
    return None


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(order.index, range(len(order))))


def _place_transposed(plan: BufferPlan, op: Op, order: tuple[int, ...]) -> None:
    """Lets the source be written as the result lies, or the result be read as the source lies."""
    result = op.results[0]
    source = op.operands[0]
    count = len(plan.buffers)
    target = temporary(plan, tensor_type(result.type))
    if _place(plan, source, views.permuted(target, _inverse(order)), op):
        plan.views[result] = target
        plan.moved.add(op)
        return
    del plan.buffers[count:]
    natural = _natural(plan, source)
    if natural is not None and _is_readable(result, views.permuted(natural, order)):
        plan.moved.add(op)


def _natural(plan: BufferPlan, value: Value) -> View | None:
    op = defining(value)
    if value in plan.views:
        return plan.views[value]
    if op is not None and (op.name in (EXPAND, COLLAPSE) or (op.name == SLICE and slice_of(op) is not None)):
        source = _natural(plan, op.operands[0])
        if source is None:
            return None
        return view_of(op, source)
    return views.whole(-1, tensor_type(value.type))  # -1: no buffer yet, only the strides count


def _place_insertion(plan: BufferPlan, op: Op) -> None:
    """Places an insertion's result, target and part; the last two are copied if writes may overlap."""
    source, into = op.operands
    result = op.results[0]
    place = slice_of(op)
    assert place is not None
    padding = None if result in plan.views else number_of(into)
    if result not in plan.views:
        plan.views[result] = temporary(plan, tensor_type(result.type), padding)
    home = plan.views[result]
    part = views.without(views.sliced(home, place.offsets, place.sizes, place.steps), place.dropped)
    if padding is not None or insertions(op) is not None:  # nothing else writes the part's place
        base = defining(into)
        if base is not None and base.name == INSERT:
            _send(plan, into, home, op)
        _send(plan, source, part, op)
        return
    copies = plan.copies.setdefault(op, [])
    if not (_is_read_once(plan, into, op) and _place(plan, into, home, op)):
        copies.append(NeededCopy(into, home))
    copies.append(NeededCopy(source, part))


def _is_read_once(plan: BufferPlan, value: Value, reader: Op) -> bool:
    """Returns whether a fusion computes a value that nothing else reads: its memory can be written again."""
    op = defining(value)
    if op is None or users(value) != [reader]:
        return False
    if op.name in (EXPAND, COLLAPSE):
        return _is_read_once(plan, op.operands[0], op)
    return _is_computed(op, plan.moved) and _moved_rows(op) is None


def _place_view(plan: BufferPlan, op: Op) -> None:
    source = op.operands[0]
    if is_free(source):
        number = number_of(source)
        plan.views[source] = temporary(plan, tensor_type(source.type), number)
    source_view = plan.views[source]
    if op in plan.moved:
        order = transposition_of(op)
        assert order is not None
        plan.views[op.results[0]] = views.permuted(source_view, order)
        return
    view = view_of(op, source_view)
    if view is None:
        target = temporary(plan, tensor_type(source.type))
        plan.copies.setdefault(op, []).append(NeededCopy(source, target))
        view = view_of(op, target)
    assert view is not None
    plan.views[op.results[0]] = view
