"""Reads the operations that make a tensor a part of a larger one: padding, concatenation, insertion."""

from collections.abc import Iterator

from tuner.core.grouped_program import View
from tuner.mlir.bindings import Op, Value, ir
from tuner.programs.op_groups import views
from tuner.programs.op_groups.op_names import CONSTANT, EMPTY, FILL, INSERT, defining, users
from tuner.programs.op_groups.view_ops import Slice, slice_of

YIELD = "tensor.yield"


def padding_of(op: Op) -> float | None:
    """Returns the number that ``tensor.pad`` puts around a tensor; None where it is no single constant."""
    if len(op.operands) > 1 or min((*op.attributes["static_low"], *op.attributes["static_high"])) < 0:
        return None
    yields = [each.operation for each in op.regions[0].blocks[0].operations if each.operation.name == YIELD]
    return _number(yields[0].operands[0])


def number_of(value: Value) -> float | None:
    """Returns the number that ``linalg.fill`` fills a tensor with; None where it is no constant."""
    op = defining(value)
    return None if op is None or op.name != FILL else _number(op.operands[0])


def _number(value: Value) -> float | None:
    op = defining(value)
    if op is None or op.name != CONSTANT:
        return None
    attribute = op.attributes["value"]
    is_known = isinstance(attribute, ir.FloatAttr | ir.IntegerAttr)
    return float(attribute.value) if is_known else None


def interior_of(op: Op, home: View) -> View:
    """Returns where the tensor lies that ``tensor.pad`` pads, inside of the padded one."""
    shape = tuple(op.operands[0].type.shape)
    return views.sliced(home, tuple(op.attributes["static_low"]), shape, (1,) * len(shape))


def parts_of(op: Op, home: View) -> Iterator[tuple[Value, View]]:
    """Yields the parts of ``tensor.concat``, each with its place in the whole."""
    along = ir.IntegerAttr(op.attributes["dim"]).value
    start = 0
    for part in op.operands:
        shape = tuple(part.type.shape)
        offsets = tuple(start if number == along else 0 for number in range(len(shape)))
        yield part, views.sliced(home, offsets, shape, (1,) * len(shape))
        start += shape[along]


def insertions(op: Op) -> list[Slice] | None:
    """Returns the places of insertions, one after the other into an empty tensor, the last one first.

    None where the first of them inserts into other than an empty tensor, where two of them write the same
    element, and where something else reads a tensor between them.
    """
    found: list[Slice] = []
    while True:
        place = slice_of(op)
        if place is None or any(_overlap(place, other) for other in found):
            return None
        found.append(place)
        base = defining(op.operands[1])
        if base is None or base.name not in (INSERT, EMPTY):
            return None
        if base.name == EMPTY:
            return found
        if len(users(base.results[0])) != 1:
            return None
        op = base


def _overlap(one: Slice, other: Slice) -> bool:
    """Returns whether two slices may have an element in common."""
    ranges = zip(
        zip(one.offsets, one.sizes, one.steps, strict=True),
        zip(other.offsets, other.sizes, other.steps, strict=True),
        strict=True,
    )
    return all(
        first < start + (count - 1) * step + 1 and start < first + (size - 1) * stride + 1
        for (first, size, stride), (start, count, step) in ranges
    )
