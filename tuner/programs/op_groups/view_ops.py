"""Reads the operations that only change a tensor's type: reshapes, static slices, transposes."""

from dataclasses import dataclass

from tuner.core.grouped_program import View
from tuner.mlir.bindings import Op, ir
from tuner.programs.op_groups import views
from tuner.programs.op_groups.op_names import (
    COLLAPSE,
    EXPAND,
    GENERIC,
    SLICE,
    body_of,
    dimensions,
    inputs_of,
    is_free,
    is_identity,
    is_parallel,
    maps_of,
)


@dataclass(frozen=True)
class Slice:
    """Static places of a slice, and which dimensions of size 1 the result does not have."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    dropped: tuple[int, ...]


def view_of(op: Op, source: View) -> View | None:
    """Returns how the result of a reshape or a slice lies, given its source; None where it needs a copy."""
    if op.name == EXPAND:
        return views.expanded(source, tuple(op.results[0].type.shape), groups_of(op))
    if op.name == COLLAPSE:
        return views.collapsed(source, groups_of(op))
    place = slice_of(op)
    if place is None:
        return None
    cut = views.sliced(source, place.offsets, place.sizes, place.steps)
    return views.without(cut, place.dropped)


def source_of(op: Op, result: View) -> View | None:
    """Returns how the source of a reshape must lie for the result to lie at ``result``; None if it cannot."""
    if op.name == EXPAND:
        return views.collapsed(result, groups_of(op))
    if op.name == COLLAPSE:
        return views.expanded(result, tuple(op.operands[0].type.shape), groups_of(op))
    return None


def groups_of(op: Op) -> list[list[int]]:
    """Returns the reassociation of a reshape: groups of dimensions of the larger rank."""
    return [
        [ir.IntegerAttr(each).value for each in ir.ArrayAttr(group)]
        for group in ir.ArrayAttr(op.attributes["reassociation"])
    ]


def slice_of(op: Op) -> Slice | None:
    """Returns the places of a slice that is extracted or inserted; None if they are not static."""
    is_extracted = op.name == SLICE
    if len(op.operands) > (1 if is_extracted else 2):
        return None
    offsets, sizes, steps = (
        tuple(op.attributes[name]) for name in ("static_offsets", "static_sizes", "static_strides")
    )
    part = op.results[0] if is_extracted else op.operands[0]
    return Slice(offsets, sizes, steps, _dropped(sizes, tuple(part.type.shape)))


def _dropped(sizes: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns which sizes, all of them 1, a rank-reduced shape leaves out."""
    found, at = [], 0
    for number, size in enumerate(sizes):
        if at < len(shape) and size == shape[at]:
            at += 1
        else:
            found.append(number)
    return tuple(found)


def transposition_of(op: Op) -> tuple[int, ...] | None:
    """Returns, per dimension of the result, which one of the source it is; None for other operations.

    Only ``linalg.generic`` that yields its single input and permutes its dimensions is a transposition.
    """
    if op.name != GENERIC or len(op.results) != 1 or len(inputs_of(op)) != 1 or not all(is_parallel(op)):
        return None
    (end,), block = body_of(op)[-1:], op.regions[0].blocks[0]
    source, result = maps_of(op)
    loops = dimensions(source)
    is_moved = len(body_of(op)) == 1 and end.operands[0] == block.arguments[0] and is_identity(result)
    if not is_moved or loops is None or len(loops) != source.n_dims or is_free(op.operands[0]):
        return None
    return tuple(loops.index(number) for number in range(len(loops)))
