"""The rules of operations on tensors for a dynamic size: shapes of results, and when padding stays apart.

A program of size n runs as one of a greater static size. The invariant of every tensor: its elements at
indices below its sizes for n are those of the program of size n; the others, its padding, may be anything. An
operation keeps it if each element that counts is read from elements that count, at the same indices.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod

from tuner.core.dynamic_sizes import LinearSize, Shape, shape_text, static_size
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.reading import groups_of
from tuner.programs.dynamic.size_analysis import DYNAMIC_SIZE, KnownSizes, reads_size, refusal
from tuner.programs.fusions.operations import body_of, is_tensor

TensorRule = Callable[[Op, KnownSizes], Shape]  # raises UsageError for what padding would make wrong
ONE = static_size(1)


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
        sizes = [divided[dimension] for dimension in group if divided[dimension] != ONE]
        rest = sizes[1:]
        if any(not size.is_static for size in rest):
            line = "a dimension that depends on n is not the first of those that are one dimension"
            raise refusal(op, f"{line}: {shape_text(tuple(sizes))}")
        first = sizes[0] if sizes else ONE
        if first.scaled(prod(size.constant for size in rest)) != merged[index]:
            raise refusal(op, f"found {shape_text(tuple(sizes))} for a dimension of {merged[index].text}")


def _slice(op: Op, known: KnownSizes) -> Shape:
    _, offsets, sizes, strides = segments(op)
    shape = _window(op, known, offsets, sizes, strides)
    dropped = _dropped(op, len(shape), op.results[0].type)
    return tuple(size for dimension, size in enumerate(shape) if dimension not in dropped)


def _window(
    op: Op, known: KnownSizes, offsets: Sequence[Value], sizes: Sequence[Value], strides: Sequence[Value]
) -> Shape:
    for attribute, operands in (("static_offsets", offsets), ("static_strides", strides)):
        for number in known.mixed(op, attribute, operands):
            if not number.is_static:
                raise refusal(op, f"it begins or steps at {number.text}: allowed numbers without n")
    return known.mixed(op, "static_sizes", sizes)


def _dropped(op: Op, rank: int, reduced: ir.RankedTensorType) -> set[int]:
    """Returns the dimensions of size 1 that a slice drops from its result.

    Chosen from the last dimension on, as MLIR chooses them.
    """
    sizes = list(ir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
    dropped: set[int] = set()
    position = reduced.rank - 1
    for dimension in reversed(range(rank)):
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
        if not before.is_static or not after.is_static:
            raise refusal(op, f"it pads by {before.text} and {after.text}: allowed numbers without n")
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
    "tensor.from_elements": _elements,
    "tensor.insert_slice": _insert,
    "tensor.pad": _pad,
    "tensor.splat": _splat,
}
KEEP_ZEROS = ("tensor.cast", "tensor.collapse_shape", "tensor.expand_shape")  # padding of 0 stays 0


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
    if op.name in KEEP_ZEROS and op.operands[0] in known.zero_padded:
        known.zero_padded.add(result)


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
        if after.constant and not sizes[dimension].is_static
    ]
