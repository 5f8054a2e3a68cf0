"""The buffer plan of a program: in which buffer each tensor lies, from which element on, with which strides.

Reshapes, static slices and transposes that keep the last dimension are views of the same memory. What is
padded, concatenated, inserted or returned is computed where it must lie in the end, if its producer can write
there; otherwise a fusion copies it (``copying_fusion``). Padding is in its buffer before the first call, and
no fusion writes it.

The new value of an argument lies in the argument's memory at the end. Writes of rows and slices write there
at once, if each of them alone reads what it overwrites: then no order of the others matters. Any other new
value is computed elsewhere, and copied into the argument after all else.

Two walks over the program make a ``BufferPlan``: backwards for the views that readers ask for (``placed``),
then forwards for all other tensors (``settle``).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tuner.core.fusions import (
    ARGUMENT,
    ELEMENTWISE,
    FUSION_ENTRY,
    RESULT,
    ROOT_ATTRIBUTE,
    TEMPORARY,
    WEIGHT,
    WEIGHT_ATTRIBUTE,
    Buffer,
    Fusion,
    TensorType,
    View,
)
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.operations import (
    COLLAPSE,
    CONCAT,
    EXPAND,
    FILL,
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
from tuner.mlir.ir.building import number_attribute
from tuner.mlir.programs.row_writes import SCATTER
from tuner.models.fusions import views
from tuner.models.fusions.payload import TensorPayload, tensor_type
from tuner.models.fusions.views import (
    collapsed,
    insertions,
    interior_of,
    memref_type,
    number_of,
    padding_number,
    parts_of,
    slice_of,
    source_of,
    transposition_of,
    view_of,
    without,
)


class UnorderedError(Exception):
    """New values of arguments that are each other's old ones: no order of copies keeps them."""


@dataclass(frozen=True)
class NeededCopy:
    """A copy of ``source`` to ``target`` by a fusion of its own: its producer cannot write it there."""

    source: Value
    target: View


@dataclass
class BufferPlan:
    """The buffers of a program, and the view of a buffer in which each of its values lies."""

    buffers: list[Buffer] = field(default_factory=list)
    views: dict[Value, View] = field(default_factory=dict)
    copies: dict[Op, list[NeededCopy]] = field(default_factory=dict)  # operation -> copies run in its place
    viewed_transposes: set[Op] = field(default_factory=set)  # transposes that are views: nothing is moved
    computed: list[Op] = field(default_factory=list)  # operations that fusions compute, in order


def placed(payload: TensorPayload, first_weight: int, paddings: Collection[Op] = ()) -> BufferPlan:
    """Returns a plan with the views of a program's arguments and results, and of tensors that these ask for.

    A tensor that a padding, concatenation, insertion or transpose reads is computed in the view that its
    reader needs, or copied there. All other tensors get their views by ``settle``. Arguments from
    ``first_weight`` on are weights. ``paddings``: the operations ``tensor.pad`` whose results are not in
    memory, since a fusion that reads them computes them.
    """
    plan = BufferPlan()
    for index, argument in enumerate(payload.block.arguments):
        owner, at = (ARGUMENT, index) if index < first_weight else (WEIGHT, index - first_weight)
        plan.views[argument] = _new(plan, owner, at, tensor_type(argument.type))
    new_values = _place_new_values(plan, payload)
    for index, value in enumerate(payload.returned):
        home = _new(plan, RESULT, index, tensor_type(value.type))
        _send(plan, value, home, payload.end)
    plan.copies.setdefault(payload.end, []).extend(new_values)
    for op in reversed(payload.ops):
        if op not in paddings:
            _place_operands(plan, op)
    plan.computed = [op for op in payload.ops if _is_computed(op, plan.viewed_transposes)]
    return plan


def _place_operands(plan: BufferPlan, op: Op) -> None:
    """Places what an operation reads, where that must lie at a certain place, and its result."""
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
    elif op.name == SCATTER:
        _place_row_write(plan, op)
    elif (order := _row_order(op)) is not None and op.results[0] not in plan.views:
        _place_transposed(plan, op, order)


def settle(plan: BufferPlan, payload: TensorPayload, outputs: Collection[Value]) -> None:
    """Completes ``plan`` with views of the tensors that fusions write, and of what reads them as views.

    ``outputs``: the tensors that fusions write. Those without a view get temporary buffers; reshapes, slices
    and transposes that are views get views of their sources.
    """
    computed = set(plan.computed)
    for op in payload.ops:
        if op in computed:
            for value in op.results:
                if value in outputs and value not in plan.views:
                    plan.views[value] = temporary(plan, tensor_type(value.type))
        elif (op.name in VIEWS or op in plan.viewed_transposes) and op.results[0] not in plan.views:
            _place_view(plan, op)


def temporary(plan: BufferPlan, type_: TensorType, padding: float | None = None) -> View:
    """Adds a temporary buffer for a tensor of type ``type_`` to ``plan``; returns a view of all of it.

    ``padding``: the number that surrounds what fusions write; None without padding.
    """
    before = (buffer.number + 1 for buffer in reversed(plan.buffers) if buffer.owner == TEMPORARY)
    number = next(before, 0)
    return _new(plan, TEMPORARY, number, type_, padding)


def _new(plan: BufferPlan, owner: str, number: int, type_: TensorType, padding: float | None = None) -> View:
    plan.buffers.append(Buffer(owner, number, type_, padding))
    return views.whole(len(plan.buffers) - 1, type_)


def _is_computed(op: Op, viewed_transposes: Collection[Op]) -> bool:
    """Returns whether a fusion computes the result of ``op``.

    False for views, free constants and scalars, and for results that the producers of the operands write.
    """
    if (
        op.name in FREE
        or op in viewed_transposes
        or is_scalar_op(op)
        or op.name in (EXPAND, COLLAPSE, CONCAT)
    ):
        return False
    if op.name in (SLICE, INSERT):
        return slice_of(op) is None
    return op.name != PAD or padding_number(op) is None


def _send(plan: BufferPlan, value: Value, target: View, reader: Op) -> None:
    """Lets ``value`` be computed in ``target``; if it cannot be, plans a copy into ``target``.

    ``reader``: the operation that needs the value there; the copy runs at its position in the program.
    """
    if not _computes_in(plan, value, target, reader):
        plan.copies.setdefault(reader, []).append(NeededCopy(value, target))


def _computes_in(plan: BufferPlan, value: Value, target: View, reader: Op) -> bool:
    """Makes ``target`` the view of ``value`` in ``plan`` if its producer can write there; returns whether.

    Of a reshape, or a transpose that keeps the last dimension, the source gets a view of ``target`` too.
    False, and nothing is changed, if the value has a view already, is an argument or constant, if ``target``
    has gaps within its rows, or if an operation other than ``reader`` cannot read the value there.
    """
    op = defining(value)
    has_rows = not target.strides or target.type.shape[-1] == 1 or target.strides[-1] == 1
    if op is None or value in plan.views or is_free(value) or not has_rows:
        return False
    others = [user for user in users(value) if user != reader]
    if not all(_can_read(value, target, other) for other in others):
        return False
    if op.name in (EXPAND, COLLAPSE):
        source = source_of(op, target)
        is_placed = source is not None and _computes_in(plan, op.operands[0], source, op)
    elif (order := _row_order(op)) is not None and _computes_in(
        plan, op.operands[0], views.permuted(target, _inverse(order)), op
    ):
        plan.viewed_transposes.add(op)
        is_placed = True
    elif op.name == INSERT:
        is_placed = slice_of(op) is not None
    else:
        is_placed = op.name == CONCAT or _is_computed(op, plan.viewed_transposes)
    if is_placed:
        plan.views[value] = target
    return is_placed


def _can_read(value: Value, view: View, user: Op) -> bool:
    """Returns whether ``user`` can read ``value`` from ``view``, which need not be contiguous.

    A reshape can if its result is a view too that all of its users can read; quantized operations read only
    contiguous memory.
    """
    if is_quantized(user):
        return view.is_contiguous
    if user.name not in VIEWS or user.operands[0] != value:
        return True
    seen = view_of(user, view)
    return user.name != COLLAPSE if seen is None else _is_readable(user.results[0], seen)


def _is_readable(value: Value, view: View) -> bool:
    return all(_can_read(value, view, user) for user in users(value))


def _row_order(op: Op) -> tuple[int, ...] | None:
    """Returns the order of the source's dimensions in the result of a transpose that keeps the last one.

    Rows are then moved as a whole, and a view of the source can stand for the result. None for another op.
    """
    order = transposition_of(op)
    if order and order[-1] == len(order) - 1:
        return order
    return None


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(order.index, range(len(order))))


def _place_transposed(plan: BufferPlan, op: Op, order: tuple[int, ...]) -> None:
    """Makes a transpose a view where that is possible, without moving elements.

    Either its source is written through a view of the result's new buffer, or its result is read through a
    view of the source. ``order``: of ``_row_order``. Where neither is possible, a fusion computes it.
    """
    result = op.results[0]
    source = op.operands[0]
    count = len(plan.buffers)
    target = temporary(plan, tensor_type(result.type))
    if _computes_in(plan, source, views.permuted(target, _inverse(order)), op):
        plan.views[result] = target
        plan.viewed_transposes.add(op)
        return
    del plan.buffers[count:]
    expected = _expected_view(plan, source)
    if expected is not None and _is_readable(result, views.permuted(expected, order)):
        plan.viewed_transposes.add(op)


def _expected_view(plan: BufferPlan, value: Value) -> View | None:
    """Returns the view that ``value`` has in ``plan``, or will have if no reader asks for another one.

    A tensor without a buffer yet has the view of a whole buffer -1: only its strides count. None for a
    reshape that needs a copy.
    """
    op = defining(value)
    if value in plan.views:
        return plan.views[value]
    if op is not None and (op.name in (EXPAND, COLLAPSE) or (op.name == SLICE and slice_of(op) is not None)):
        source = _expected_view(plan, op.operands[0])
        if source is None:
            return None
        return view_of(op, source)
    return views.whole(-1, tensor_type(value.type))


def _place_insertion(plan: BufferPlan, op: Op) -> None:
    """Gives views to the result and both operands of a ``tensor.insert_slice``.

    Both operands are computed in the result's buffer where no other write touches the slice; else they are
    copied there, the inserted slice last.
    """
    source, into = op.operands
    result = op.results[0]
    slice_ = slice_of(op)
    assert slice_ is not None
    padding = None if result in plan.views else number_of(into)
    if result not in plan.views:
        plan.views[result] = temporary(plan, tensor_type(result.type), padding)
    home = plan.views[result]
    inserted = views.without(views.sliced(home, slice_.offsets, slice_.sizes, slice_.steps), slice_.dropped)
    if padding is not None or insertions(op) is not None:  # nothing else writes the slice
        base = defining(into)
        if base is not None and base.name == INSERT:
            _send(plan, into, home, op)
        _send(plan, source, inserted, op)
        return
    _begin_with(plan, into, home, op)
    plan.copies.setdefault(op, []).append(NeededCopy(source, inserted))


def _place_row_write(plan: BufferPlan, op: Op) -> None:
    """Places a write of rows: its result, the tensor that it begins with, and rows that are constants."""
    rows, into, positions = op.operands
    result = op.results[0]
    if result not in plan.views:
        plan.views[result] = temporary(plan, tensor_type(result.type))
    _begin_with(plan, into, plan.views[result], op)
    for value in (rows, positions):
        if is_free(value) and value not in plan.views:
            plan.views[value] = temporary(plan, tensor_type(value.type), number_of(value))


def _begin_with(plan: BufferPlan, into: Value, home: View, op: Op) -> None:
    """Lets a tensor lie at ``home``, where ``op`` writes parts of it; else plans a copy before ``op``."""
    if _expected_view(plan, into) == home:
        return
    if not (_is_read_once(plan, into, op) and _computes_in(plan, into, home, op)):
        plan.copies.setdefault(op, []).append(NeededCopy(into, home))


def _place_new_values(plan: BufferPlan, payload: TensorPayload) -> list[NeededCopy]:
    """Places the new values of arguments; returns the copies into arguments that are made last.

    Raises UnorderedError for an argument whose new value is what another one that is copied to was.
    """
    results = list(payload.end.operands)
    copies = []
    copied = set()
    for index, number in payload.new_values.items():
        argument = payload.block.arguments[index]
        value = results[number]
        home = plan.views[argument]
        if value == argument:
            continue
        if not (_writes_in_place(value, argument) and _computes_in(plan, value, home, payload.end)):
            copies.append(NeededCopy(value, home))
            copied.add(argument)
    for copy in copies:
        if _viewed(copy.source) in copied:
            raise UnorderedError
    return copies


def _viewed(value: Value) -> Value:
    """Returns the value of which a value is a view, by any number of reshapes, slices and transposes."""
    op = defining(value)
    while op is not None and (op.name in VIEWS or _row_order(op) is not None):
        value = op.operands[0]
        op = defining(value)
    return value


def _writes_in_place(value: Value, argument: Value) -> bool:
    """Returns whether ``value`` is ``argument`` with parts written, by the only readers of what was there.

    Reshapes between the writes are views, so what is read through them counts, too.
    """
    is_written = False
    while value != argument:
        op = defining(value)
        if op is None or op.name not in (EXPAND, COLLAPSE, INSERT, SCATTER):
            return False
        before = op.operands[1 if op.name in (INSERT, SCATTER) else 0]
        is_written |= op.name in (INSERT, SCATTER)
        if is_written and (users(before) != [op] or list(op.operands).count(before) > 1):
            return False
        if op.name == INSERT and slice_of(op) is None:
            return False
        value = before
    return is_written


def _is_read_once(plan: BufferPlan, value: Value, reader: Op) -> bool:
    """Returns whether a fusion computes ``value`` and ``reader`` alone reads it: its memory can be reused.

    The value of a reshape is that of its source, which the reshape alone must read. False for a transpose
    that keeps the last dimension.
    """
    op = defining(value)
    if op is None or users(value) != [reader]:
        return False
    if op.name in (EXPAND, COLLAPSE):
        return _is_read_once(plan, op.operands[0], op)
    return _is_computed(op, plan.viewed_transposes) and _row_order(op) is None


def _place_view(plan: BufferPlan, op: Op) -> None:
    """Gives the result of a reshape, slice or transpose a view of its source; copies the source if needed."""
    source = op.operands[0]
    if is_free(source):
        number = number_of(source)
        plan.views[source] = temporary(plan, tensor_type(source.type), number)
    source_view = plan.views[source]
    if op in plan.viewed_transposes:
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


def copying_fusion(copy: NeededCopy, view_of_value: Mapping[Value, View], weights: Collection[int]) -> Fusion:
    """Returns the fusion that copies a value to a view; it fills the view if the value is a filled tensor.

    ``view_of_value``: where values lie in memory; ``weights``: indices of the buffers that are weights.
    """
    if is_free(copy.source):
        return _filling(copy)
    source, target = _without_unit_dimensions(view_of_value[copy.source], copy.target)
    mark = f" {{{WEIGHT_ATTRIBUTE}}}" if source.buffer in weights else ""
    element = source.type.element
    rank = len(source.type.shape)
    tensor = _tensor(source)
    loops = ", ".join(f"d{number}" for number in range(rank))
    identity = f"affine_map<({loops}) -> ({loops})>"
    kinds = ", ".join(['"parallel"'] * rank)
    text = f"""func.func @{FUSION_ENTRY}(%0: {memref_type(source)}{mark}, %1: {memref_type(target)}) {{
      %t0 = bufferization.to_tensor %0 restrict : {memref_type(source)} to {tensor}
      %t1 = bufferization.to_tensor %1 restrict writable : {memref_type(target)} to {tensor}
      %r = linalg.generic {{indexing_maps = [{identity}, {identity}], iterator_types = [{kinds}]}}
        ins(%t0 : {tensor}) outs(%t1 : {tensor}) attrs = {{{ROOT_ATTRIBUTE}}} {{
      ^bb0(%x: {element}, %y: {element}):
        linalg.yield %x : {element}
      }} -> {tensor}
      bufferization.materialize_in_destination %r in restrict writable %1
        : ({tensor}, {memref_type(target)}) -> ()
      return
    }}"""
    return Fusion(ELEMENTWISE, str(ir.Module.parse(text)), (source,), (target,), ("linalg.copy",))


def _filling(copy: NeededCopy) -> Fusion:
    """Returns the fusion that fills ``copy.target`` with the number that fills its source.

    Where the source is a ``tensor.empty``, whose contents are arbitrary, it fills the target with 0.
    """
    fill = defining(copy.source)
    assert fill is not None
    type_ = memref_type(copy.target)
    tensor = _tensor(copy.target)
    element = copy.target.type.element
    number = number_attribute(copy.source.type.element_type, 0)  # of an empty tensor, whose contents are any
    if fill.name == FILL and (constant := defining(fill.operands[0])) is not None:
        number = constant.attributes["value"]
    text = f"""func.func @{FUSION_ENTRY}(%0: {type_}) {{
      %c = arith.constant {number}
      %t0 = bufferization.to_tensor %0 restrict writable : {type_} to {tensor}
      %r = linalg.fill {{{ROOT_ATTRIBUTE}}} ins(%c : {element}) outs(%t0 : {tensor}) -> {tensor}
      bufferization.materialize_in_destination %r in restrict writable %0 : ({tensor}, {type_}) -> ()
      return
    }}"""
    return Fusion(ELEMENTWISE, str(ir.Module.parse(text)), (), (copy.target,), ("linalg.fill",))


def _tensor(view: View) -> str:
    return "tensor<" + "".join(f"{size}x" for size in view.type.shape) + f"{view.type.element}>"


def _without_unit_dimensions(source: View, target: View) -> tuple[View, View]:
    """Returns both views without dimensions of size 1, and with neighbouring dimensions merged.

    Dimensions are merged where both views can be collapsed without a copy.
    """
    dropped = [index for index, size in enumerate(source.type.shape) if size == 1]
    cut = [without(view, dropped) for view in (source, target)]
    rank = len(cut[0].strides)
    groups: list[list[int]] = []
    for number in range(rank):
        merged = [*groups[:-1], [*groups[-1], number]] if groups else [[number]]
        # can this dimension join the last group, while those after it stay alone?
        rest = [[dimension] for dimension in range(number + 1, rank)]
        if groups and all(collapsed(view, [*merged, *rest]) is not None for view in cut):
            groups = merged
        else:
            groups.append([number])
    first, second = (collapsed(view, groups) for view in cut)
    assert first is not None
    assert second is not None
    return first, second
