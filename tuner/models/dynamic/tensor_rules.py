"""The rules of operations on tensors for a dynamic size: shapes of results, and when padding stays apart.

A program of size n runs as one of a greater static size. The invariant of every tensor: its elements at
indices below its sizes for n are those of the program of size n; the others, its padding, may be anything. An
operation keeps it if each element that counts is read from elements that count, at the same indices.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod

from tuner.core.dynamic_sizes import LinearSize, Shape, shape_text, static_size
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.operations import COLLAPSE, CONSTANT, EXPAND, body_of, defining, is_tensor
from tuner.mlir.ir.reading import groups_of
from tuner.models.dynamic.padding_facts import note_view
from tuner.models.dynamic.size_analysis import DYNAMIC_SIZE, KnownSizes, reads_size, refusal

TensorRule = Callable[[Op, KnownSizes], Shape]  # raises UsageError for what padding would make wrong
FROM_ELEMENTS = "tensor.from_elements"
RESHAPE = "tensor.reshape"
ReshapeGroup = tuple[list[int], list[int]]  # dimensions of the source, and of the result
ONE = static_size(1)
NOTHING = static_size(0)


def segments(op: Op) -> list[list[Value]]:
    """Returns the operands of an operation, by the groups of its attribute ``operandSegmentSizes``."""
    operands = list(op.operands)
    groups = []
    for size in ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]):
        groups.append(operands[:size])
        operands = operands[size:]
    return groups


def _empty(op: Op, known: KnownSizes) -> Shape:
    return _typed(op, known, list(op.operands))


def _typed(op: Op, known: KnownSizes, operands: Sequence[Value]) -> Shape:
    """Returns the shape of the result: static sizes of its type, and operands where these are dynamic."""
    type_ = op.results[0].type
    dynamic = iter(operands)
    return tuple(
        known.number(op, next(dynamic)) if size == DYNAMIC_SIZE else static_size(size) for size in type_.shape
    )


def _splat(op: Op, known: KnownSizes) -> Shape:
    _require_data(op, known, op.operands[0])
    return _typed(op, known, list(op.operands)[1:])


def _require_data(op: Op, known: KnownSizes, *values: Value) -> None:
    if any(reads_size(value, known) for value in values):
        raise refusal(op, "its number depends on the size n, which only linalg operations may read")


def _cast(op: Op, known: KnownSizes) -> Shape:
    shape = known.shape(op.operands[0])
    for size, known_size in zip(op.results[0].type.shape, shape, strict=True):
        if size not in (DYNAMIC_SIZE, known_size.constant) or (size != DYNAMIC_SIZE and known_size.of_n):
            raise refusal(op, f"found {shape_text(shape)}, which is not {op.results[0].type} at every n")
    return shape


def _expand(op: Op, known: KnownSizes) -> Shape:
    source = known.shape(op.operands[0])
    shape = known.mixed(op, "static_output_shape", list(op.operands)[1:])
    _require_outermost(op, groups_of(op), shape, source)
    return shape


def _collapse(op: Op, known: KnownSizes) -> Shape:
    source = known.shape(op.operands[0])
    groups = groups_of(op)
    shape = []
    for group in groups:
        size = ONE
        for dimension in group:
            product = size.times(source[dimension])
            if product is None:
                raise refusal(op, f"a dimension of n x n in {shape_text(source)}")
            size = product
        shape.append(size)
    _require_outermost(op, groups, source, tuple(shape))
    return tuple(shape)


def _require_outermost(op: Op, groups: list[list[int]], divided: Shape, merged: Shape) -> None:
    """Raises UsageError unless a reshape keeps the position of elements if n becomes greater.

    That is so if, in each group of dimensions, only dimensions of size 1 precede the one that depends on n.
    """
    for index, group in enumerate(groups):
        sizes = [divided[dimension] for dimension in group]
        if _require_first(op, sizes) != merged[index]:
            raise refusal(op, f"found {shape_text(tuple(sizes))} for a dimension of {merged[index].text}")


def _require_first(op: Op, factors: Sequence[LinearSize]) -> LinearSize:
    """Returns the product of sizes that are one dimension in another shape.

    Raises UsageError where one that depends on n follows a size other than 1.
    """
    sizes = [size for size in factors if size != ONE]
    rest = sizes[1:]
    if any(not size.is_static for size in rest):
        line = "a dimension that depends on n is not the first of those that are one dimension"
        raise refusal(op, f"{line}: {shape_text(tuple(sizes))}")
    first = sizes[0] if sizes else ONE
    return first.scaled(prod(size.constant for size in rest))


def _reshape(op: Op, known: KnownSizes) -> Shape:
    source, shape_operand = op.operands
    sizes = defining(shape_operand)
    if sizes is not None and sizes.name == FROM_ELEMENTS:
        shape = tuple(known.number(op, size) for size in sizes.operands)
    elif sizes is not None and sizes.name == CONSTANT:
        shape = tuple(map(static_size, ir.DenseIntElementsAttr(sizes.attributes["value"])))
    else:
        raise refusal(op, "its shape is computed: allowed sizes that are multiples of n, plus a constant")
    before = known.shape(source)
    for read, made in reshape_groups(op, before, shape):
        _require_first(op, list(map(before.__getitem__, read)))
        _require_first(op, list(map(shape.__getitem__, made)))
    return shape


def reshape_groups(op: Op, source: Shape, target: Shape) -> list[ReshapeGroup]:
    """Returns the groups of dimensions of a ``tensor.reshape`` that have the same elements, in order.

    Raises UsageError unless the products of the sizes of each group are equal at each n.
    """
    groups: list[ReshapeGroup] = []
    left = [*enumerate(source)][::-1]
    right = [*enumerate(target)][::-1]
    while left and right:
        group: ReshapeGroup = ([], [])
        before = _grown(op, ONE, left, group[0])
        after = _grown(op, ONE, right, group[1])
        while before != after:
            if left and (not right or _order(before) < _order(after)):
                before = _grown(op, before, left, group[0])
            elif right:
                after = _grown(op, after, right, group[1])
            else:
                raise refusal(op, f"found {shape_text(source)}, which is not {shape_text(target)} at each n")
        groups.append(group)
    for rest, side in ((left, 0), (right, 1)):
        for dimension, size in reversed(rest):
            if size != ONE or not groups:
                raise refusal(op, f"found {shape_text(source)}, which is not {shape_text(target)} at each n")
            groups[-1][side].append(dimension)
    return groups


def _order(size: LinearSize) -> tuple[int, ...]:
    return size.of_n, size.of_m, size.constant


def _grown(op: Op, size: LinearSize, rest: list[tuple[int, LinearSize]], group: list[int]) -> LinearSize:
    """Moves the next dimension of ``rest`` into a group; returns the product of its size and ``size``."""
    dimension, factor = rest.pop()
    group.append(dimension)
    product = size.times(factor)
    if product is None:
        raise refusal(op, f"a dimension of {size.text} x {factor.text}")
    return product


def _slice(op: Op, known: KnownSizes) -> Shape:
    """Returns the shape of a slice, which may begin at a place that depends on n, as the last rows do."""
    (source,), offsets, sizes, strides = segments(op)
    shape = known.mixed(op, "static_sizes", sizes)
    steps = known.mixed(op, "static_strides", strides)
    places = known.mixed(op, "static_offsets", offsets)
    for size, place, step, whole in zip(shape, places, steps, known.shape(source), strict=True):
        if not step.is_static:
            raise refusal(op, f"it steps by {step.text}: allowed numbers without n")
        if not place.is_static and (not size.is_static or step != ONE):
            line = f"{size.text} elements from {place.text} on, in steps of {step.text}"
            raise refusal(op, f"{line}: allowed a number of elements without n, in steps of 1")
        rest = whole.minus(place).minus(size.scaled(step.constant)).plus(static_size(step.constant - 1))
        if known.limits(place)[0] < 0 or known.limits(rest)[0] < 0:
            line = f"elements {place.text} to {place.plus(size).text} of {whole.text}"
            raise refusal(op, f"{line}, which do not exist at each n from {known.least} on")
    dropped = dropped_dimensions(op)
    return tuple(size for dimension, size in enumerate(shape) if dimension not in dropped)


def is_at_n(op: Op, known: KnownSizes) -> bool:
    """Returns whether a ``tensor.extract_slice`` begins at a place that depends on n."""
    places = known.mixed(op, "static_offsets", segments(op)[1])
    return not all(place.is_static for place in places)


def _window(
    op: Op, known: KnownSizes, offsets: Sequence[Value], sizes: Sequence[Value], strides: Sequence[Value]
) -> Shape:
    for attribute, operands in (("static_offsets", offsets), ("static_strides", strides)):
        for number in known.mixed(op, attribute, operands):
            if not number.is_static:
                raise refusal(op, f"it begins or steps at {number.text}: allowed numbers without n")
    return known.mixed(op, "static_sizes", sizes)


def dropped_dimensions(op: Op) -> set[int]:
    """Returns the dimensions of size 1 that a slice drops from its result.

    Chosen from the last dimension on, as MLIR chooses them.
    """
    sizes = list(ir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
    reduced = op.results[0].type
    dropped: set[int] = set()
    position = reduced.rank - 1
    for dimension in reversed(range(len(sizes))):
        if position >= 0 and reduced.shape[position] == sizes[dimension]:
            position -= 1
        elif sizes[dimension] == 1:
            dropped.add(dimension)
        else:
            position -= 1
    return dropped


def _insert(op: Op, known: KnownSizes) -> Shape:
    _, (target,), offsets, sizes, strides = segments(op)
    shape = known.shape(target)
    window = _window(op, known, offsets, sizes, strides)
    places = known.mixed(op, "static_offsets", offsets)
    steps = known.mixed(op, "static_strides", strides)
    for size, place, step, whole in zip(window, places, steps, shape, strict=True):
        if not size.is_static and (step != ONE or place.plus(size) != whole):
            line = f"{size.text} elements at {place.text} of {whole.text}: its padding would overwrite others"
            raise refusal(op, line)
    return shape


def _concat(op: Op, known: KnownSizes) -> Shape:
    dimension = ir.IntegerAttr(op.attributes["dim"]).value
    shapes = [known.shape(operand) for operand in op.operands]
    for shape in shapes[:-1]:
        if not shape[dimension].is_static:
            raise refusal(op, f"only the last part may have a size that depends on n: {shape_text(shape)}")
    total = static_size(0)
    for shape in shapes:
        total = total.plus(shape[dimension])
    return (*shapes[0][:dimension], total, *shapes[0][dimension + 1 :])


def _pad(op: Op, known: KnownSizes) -> Shape:
    (source,), low, high = segments(op)
    for inner in body_of(op):
        if inner.name not in ("arith.constant", "tensor.yield"):
            raise refusal(op, "it pads with numbers that it computes: allowed a constant")
    shape = []
    pairs = zip(
        known.shape(source),
        known.mixed(op, "static_low", low),
        known.mixed(op, "static_high", high),
        strict=True,
    )
    for size, before, after in pairs:
        if not before.is_static:
            raise refusal(op, f"it pads by {before.text} in front: allowed numbers without n")
        if known.limits(after)[0] < 0:
            raise refusal(op, f"it pads by {after.text}, which is below 0 at some n up to {known.size}")
        shape.append(before.plus(size).plus(after))
    return tuple(shape)


def _element(op: Op, known: KnownSizes) -> Shape:
    _require_data(op, known, *list(op.operands)[1:])
    return ()


def _elements(op: Op, known: KnownSizes) -> Shape:
    _require_data(op, known, *op.operands)
    return tuple(map(static_size, op.results[0].type.shape))


# Operation on tensors outside of linalg -> its rule. An operation that is not here is refused.
TENSOR_RULES: Mapping[str, TensorRule] = {
    "tensor.cast": _cast,
    "tensor.collapse_shape": _collapse,
    "tensor.concat": _concat,
    "tensor.empty": _empty,
    "tensor.expand_shape": _expand,
    "tensor.extract": _element,
    "tensor.extract_slice": _slice,
    FROM_ELEMENTS: _elements,
    "tensor.insert_slice": _insert,
    "tensor.pad": _pad,
    RESHAPE: _reshape,
    "tensor.splat": _splat,
}
KEEP_ZEROS = ("tensor.cast", "tensor.collapse_shape", "tensor.expand_shape", RESHAPE)  # padding of 0 stays 0


def note_tensor(op: Op, known: KnownSizes) -> None:
    """Records in ``known`` the shape of the result of an operation on tensors that is not of linalg.

    Raises UsageError for an operation without a rule, and where its rule does not hold.
    """
    rule = TENSOR_RULES.get(op.name)
    if rule is None:
        raise refusal(op, "there is no rule by which its result is right at a padded size")
    shape = rule(op, known)
    (result,) = op.results
    if not is_tensor(result):
        return
    known.shapes[result] = shape
    if op.name in KEEP_ZEROS:
        if op.operands[0] in known.zero_padded:
            known.zero_padded.add(result)
        note_view(op.operands[0], result, _groups(op, known), known)


def _groups(op: Op, known: KnownSizes) -> list[ReshapeGroup]:
    """Returns the groups of dimensions of a reshape's or a cast's source and result that are the same."""
    source = known.shape(op.operands[0])
    if op.name == RESHAPE:
        return reshape_groups(op, source, known.shape(op.results[0]))
    ones = [[dimension] for dimension in range(len(source))]
    if op.name == COLLAPSE:
        groups = groups_of(op)
        return list(zip(groups, ones, strict=False))
    if op.name == EXPAND:
        return list(zip(ones, groups_of(op), strict=True))
    return list(zip(ones, ones, strict=True))


def pads_after(op: Op, known: KnownSizes) -> list[tuple[int, LinearSize]]:
    """Returns the dimensions of a ``tensor.pad`` that depend on n and are padded at the end.

    Each with the size of the source along it, as a function of n.
    """
    (source,), _, high = segments(op)
    sizes = known.shape(source)
    numbers = known.mixed(op, "static_high", high)
    return [
        (dimension, sizes[dimension])
        for dimension, after in enumerate(numbers)
        if after != NOTHING and not sizes[dimension].is_static
    ]
