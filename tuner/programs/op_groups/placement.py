"""Decides where each tensor of a program lies: in which buffer, from which element on, with which strides.

Reshapes, static slices and transposes that keep the last dimension are views of the same memory. What is
padded, concatenated, inserted or returned is computed where it must lie in the end, if its producer can write
there; otherwise a group copies it. Padding is in its buffer before the first call, and no group writes it.

The program is walked backwards for places that consumers ask for, then forwards for all others.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from tuner.core.grouped_program import ARGUMENT, RESULT, TEMPORARY, WEIGHT, Buffer, TensorType, View
from tuner.mlir.bindings import Op, Value
from tuner.programs.op_groups import views
from tuner.programs.op_groups.op_names import (
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
    is_scalar_op,
    users,
)
from tuner.programs.op_groups.payload import TensorPayload, tensor_type
from tuner.programs.op_groups.stores import insertions, interior_of, number_of, padding_of, parts_of
from tuner.programs.op_groups.view_ops import slice_of, source_of, transposition_of, view_of


@dataclass(frozen=True)
class NeededCopy:
    """A value that a group copies, because no other group can write it where it must lie."""

    source: Value
    target: View


@dataclass
class BufferPlan:
    """The buffers of a program, and where its values lie in them."""

    buffers: list[Buffer] = field(default_factory=list)
    views: dict[Value, View] = field(default_factory=dict)
    copies: dict[Op, list[NeededCopy]] = field(default_factory=dict)  # operation in whose place they run
    moved: set[Op] = field(default_factory=set)  # transposes that are views
    computed: list[Op] = field(default_factory=list)  # operations that groups compute, in order


def placed(payload: TensorPayload, first_weight: int) -> BufferPlan:
    """Returns where the values lie that a program's operations ask for; ``settle`` places the others.

    The program's arguments from ``first_weight`` on are weights.
    """
    plan = BufferPlan()
    for number, argument in enumerate(payload.block.arguments):
        owner, at = (ARGUMENT, number) if number < first_weight else (WEIGHT, number - first_weight)
        plan.views[argument] = _new(plan, owner, at, tensor_type(argument.type))
    for number, value in enumerate(payload.end.operands):
        home = _new(plan, RESULT, number, tensor_type(value.type))
        _send(plan, value, home, payload.end)
    for op in reversed(payload.ops):
        if op.name == PAD and padding_of(op) is not None:
            _place_padded(plan, op)
        elif op.name == CONCAT:
            _place_parts(plan, op)
        elif op.name == INSERT and slice_of(op) is not None:
            _place_insertion(plan, op)
        elif (order := _moved_rows(op)) is not None and op.results[0] not in plan.views:
            _place_transposed(plan, op, order)
    plan.computed = [op for op in payload.ops if _is_computed(op, plan.moved)]
    return plan


def settle(plan: BufferPlan, payload: TensorPayload, outputs: Collection[Value]) -> None:
    """Places the results of groups that nothing has placed, and all views of what is placed, in place."""
    computed = set(plan.computed)
    for op in payload.ops:
        if op in computed:
            for value in op.results:
                if value in outputs and value not in plan.views:
                    plan.views[value] = temporary(plan, tensor_type(value.type))
        elif (op.name in VIEWS or op in plan.moved) and op.results[0] not in plan.views:
            _place_view(plan, op)


def temporary(plan: BufferPlan, kind: TensorType, padding: float | None = None) -> View:
    """Returns the view of a new temporary buffer for a tensor."""
    before = (buffer.number + 1 for buffer in reversed(plan.buffers) if buffer.owner == TEMPORARY)
    number = next(before, 0)
    return _new(plan, TEMPORARY, number, kind, padding)


def _new(plan: BufferPlan, owner: str, number: int, kind: TensorType, padding: float | None = None) -> View:
    plan.buffers.append(Buffer(owner, number, kind, padding))
    return views.whole(len(plan.buffers) - 1, kind)


def _is_computed(op: Op, moved: Collection[Op]) -> bool:
    """Returns whether a group computes an operation's results."""
    if op.name in FREE or op in moved or is_scalar_op(op) or op.name in (EXPAND, COLLAPSE, CONCAT):
        return False
    if op.name in (SLICE, INSERT):
        return slice_of(op) is None
    return op.name != PAD or padding_of(op) is None


def _send(plan: BufferPlan, value: Value, target: View, at: Op) -> None:
    """Lets a value be computed at ``target``; else it is copied there where the program has ``at``."""
    if not _place(plan, value, target, at):
        plan.copies.setdefault(at, []).append(NeededCopy(value, target))


def _place(plan: BufferPlan, value: Value, target: View, reader: Op) -> bool:
    """Places a value, and what it is a view of, if its producer can write there; says whether it can."""
    op = defining(value)
    if op is None or value in plan.views or is_free(value) or not _has_rows(target):
        return False
    others = [each for each in users(value) if each != reader]
    if not all(_can_read(value, target, each) for each in others):
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


def _has_rows(view: View) -> bool:
    """Returns whether the elements of the last dimension lie next to each other."""
    return not view.strides or view.type.shape[-1] == 1 or view.strides[-1] == 1


def _can_read(value: Value, view: View, user: Op) -> bool:
    """Returns whether a user of a value can read it in other strides than those of a contiguous tensor."""
    if user.name == COLLAPSE and user.operands[0] == value:
        seen = view_of(user, view)
        return seen is not None and _is_readable(user.results[0], seen)
    if user.name in (EXPAND, SLICE) and user.operands[0] == value:
        seen = view_of(user, view)
        return seen is None or _is_readable(user.results[0], seen)
    return True


def _is_readable(value: Value, view: View) -> bool:
    return all(_can_read(value, view, user) for user in users(value))


def _moved_rows(op: Op) -> tuple[int, ...] | None:
    """Returns the order of the dimensions of a transposition that keeps the last one; else None."""
    order = transposition_of(op)
    return order if order and order[-1] == len(order) - 1 else None


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(order.index(number) for number in range(len(order)))


def _place_transposed(plan: BufferPlan, op: Op, order: tuple[int, ...]) -> None:
    """Lets the source be written as the result lies, or the result be read as the source lies."""
    result, source = op.results[0], op.operands[0]
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
    """Returns how a value lies as far as that is decided; None where it is copied."""
    op = defining(value)
    if value in plan.views:
        return plan.views[value]
    if op is not None and (op.name in (EXPAND, COLLAPSE) or (op.name == SLICE and slice_of(op) is not None)):
        source = _natural(plan, op.operands[0])
        return None if source is None else view_of(op, source)
    return views.whole(-1, tensor_type(value.type))


def _place_padded(plan: BufferPlan, op: Op) -> None:
    home = temporary(plan, tensor_type(op.results[0].type), padding_of(op))
    plan.views[op.results[0]] = home
    _send(plan, op.operands[0], interior_of(op, home), op)


def _place_parts(plan: BufferPlan, op: Op) -> None:
    home = plan.views.get(op.results[0]) or temporary(plan, tensor_type(op.results[0].type))
    plan.views[op.results[0]] = home
    for part, view in parts_of(op, home):
        _send(plan, part, view, op)


def _place_insertion(plan: BufferPlan, op: Op) -> None:
    """Places the tensor that is inserted into, then the part, where nothing else is written there."""
    source, into = op.operands
    result, place = op.results[0], slice_of(op)
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
    """Returns whether a group computes a value that nothing else reads: its memory can be written again."""
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
    lies = plan.views[source]
    if op in plan.moved:
        order = transposition_of(op)
        assert order is not None
        plan.views[op.results[0]] = views.permuted(lies, order)
        return
    view = view_of(op, lies)
    if view is None:
        target = temporary(plan, tensor_type(source.type))
        plan.copies.setdefault(op, []).append(NeededCopy(source, target))
        view = view_of(op, target)
    assert view is not None
    plan.views[op.results[0]] = view
