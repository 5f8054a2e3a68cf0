"""Gives elementwise operations and reductions the shape that their producer has, behind a reshape.

torch-mlir computes a linear layer on 2 dimensions and what follows on 3; a convolution has a batch of 1 that
elementwise operations do without. Of one shape they can be one group:

    %c = linalg.matmul ... -> tensor<64x128xf32>
    %e = tensor.expand_shape %c [[0, 1], [2]] ... into tensor<2x32x128xf32>
    %r = linalg.generic ins(%e) ... -> tensor<2x32x128xf32>
  becomes
    %c = linalg.matmul ... -> tensor<64x128xf32>
    %s = linalg.generic ins(%c) ... -> tensor<64x128xf32>
    %r = tensor.expand_shape %s [[0, 1], [2]] ... into tensor<2x32x128xf32>
"""

from collections.abc import Sequence

from tuner.core.grouped_program import View
from tuner.mlir.bindings import Op, Value, ir
from tuner.programs.op_groups import views
from tuner.programs.op_groups.generics import collapse, expand, maps_attribute, parallel_loops, selecting
from tuner.programs.op_groups.op_names import (
    COLLAPSE,
    CONTRACTIONS,
    EXPAND,
    GENERIC,
    SLICE,
    body_of,
    defining,
    dimensions,
    inputs_of,
    is_free,
    is_identity,
    is_parallel,
    maps_of,
)
from tuner.programs.op_groups.payload import TensorPayload, tensor_type
from tuner.programs.op_groups.view_ops import groups_of, slice_of, view_of
from tuner.programs.op_groups.views import Reassociation

INDEX = "linalg.index"


def take_shapes_of_producers(payload: TensorPayload) -> None:
    """Reshapes generics as the producers of their operands are shaped, in place."""
    for op in payload.ops:
        if _is_reshaped(op) and not _follow(op) and not all(is_parallel(op)):
            _merge_reduced(op)


def _merge_reduced(op: Op) -> None:
    """Merges the last loops of a reduction, if all of them are reduced, as those of a mean over an image."""
    kinds = is_parallel(op)
    first = kinds.index(False)
    if len(kinds) - first > 1 and not any(kinds[first:]):
        _collapsed(op, [*([loop] for loop in range(first)), list(range(first, len(kinds)))])


def _is_reshaped(op: Op) -> bool:
    return (
        op.name == GENERIC
        and len(op.results) == 1
        and all(dimensions(each) is not None for each in maps_of(op))
        and not any(each.name == INDEX for each in body_of(op))
    )


def _follow(op: Op) -> bool:
    """Reshapes an operation as the first of its operands' producers that allows it; says whether one does.

    Contractions come first.
    """
    found = []
    for value, mapping in zip(inputs_of(op), maps_of(op), strict=False):
        reshape = defining(value)
        if reshape is None or reshape.name not in (EXPAND, COLLAPSE) or not is_identity(mapping):
            continue
        producer = defining(reshape.operands[0])
        if producer is not None and producer.name in (GENERIC, *CONTRACTIONS) and not is_free(value):
            found.append((producer.name == GENERIC, len(found), reshape))
    for is_generic, _, reshape in sorted(found, key=lambda each: each[:2]):
        if reshape.name == EXPAND and _collapsed(op, groups_of(reshape)):
            return True
        is_expanded = reshape.name == COLLAPSE and all(is_parallel(op)) and is_identity(maps_of(op)[-1])
        if is_expanded and (not is_generic or all(is_parallel(defining(reshape.operands[0])))):
            _expanded(op, groups_of(reshape), tuple(reshape.operands[0].type.shape))
            return True
    return False


def _collapsed(op: Op, groups: Reassociation) -> bool:
    """Merges groups of loops into one each, if all operands allow that without a copy; says whether."""
    kinds = is_parallel(op)
    if any(len({kinds[loop] for loop in group}) > 1 for group in groups):
        return False
    cuts = [_cut(dimensions(mapping) or (), groups) for mapping in maps_of(op)]
    for value, cut in zip(op.operands, cuts, strict=True):
        if cut is None or not _can_collapse(value, cut):
            return False
    numbers = {tuple(group): number for number, group in enumerate(groups)}
    merged, maps = [], []
    with ir.InsertionPoint(op), op.location:
        for value, mapping, cut in zip(op.operands, maps_of(op), cuts, strict=True):
            assert cut is not None
            loops = dimensions(mapping) or ()
            is_same = all(len(each) == 1 for each in cut)
            merged.append(value if is_same else collapse(value, cut))
            maps.append(selecting(len(groups), [_number(numbers, loops[each[0]]) for each in cut]))
        iterators = list(ir.ArrayAttr(op.attributes["iterator_types"]))
        kept = ir.ArrayAttr.get([iterators[group[0]] for group in groups])
        new = _changed(op, merged, maps, kept)
    with ir.InsertionPoint.after(new), op.location:
        result, cut = op.results[0], cuts[-1]
        assert cut is not None
        is_same = all(len(each) == 1 for each in cut)
        shaped = new.results[0] if is_same else expand(new.results[0], cut, tuple(result.type.shape))
    result.replace_all_uses_with(shaped)
    op.erase()
    return True


def _number(numbers: dict[tuple[int, ...], int], loop: int) -> int:
    return next(number for group, number in numbers.items() if loop in group)


def _cut(loops: Sequence[int], groups: Reassociation) -> list[list[int]] | None:
    """Returns which dimensions of an operand become one, by the loops that they are; None if it has a part."""
    found: list[list[int]] = []
    at = 0
    while at < len(loops):
        group = next(list(each) for each in groups if loops[at] in each)
        if list(loops[at : at + len(group)]) != group:
            return None
        found.append(list(range(at, at + len(group))))
        at += len(group)
    return found


def _can_collapse(value: Value, groups: Reassociation) -> bool:
    return is_free(value) or views.collapsed(_lies(value), groups) is not None


def _lies(value: Value) -> View:
    """Returns how a value lies in memory if its producer writes it row by row."""
    op = defining(value)
    if op is not None and (op.name in (EXPAND, COLLAPSE) or (op.name == SLICE and slice_of(op) is not None)):
        seen = view_of(op, _lies(op.operands[0]))
        if seen is not None:
            return seen
    return views.whole(0, tensor_type(value.type))


def _expanded(op: Op, groups: Reassociation, shape: Sequence[int]) -> None:
    """Splits each loop into a group of loops of ``shape``, in place."""
    operands, maps = [], []
    with ir.InsertionPoint(op), op.location:
        for value, mapping in zip(op.operands, maps_of(op), strict=True):
            parts = [list(groups[loop]) for loop in dimensions(mapping) or ()]
            if not is_identity(mapping):
                parts = [_without_ones(part, shape) for part in parts]
            loops = [loop for part in parts for loop in part]
            places = iter(range(len(loops)))
            cut = [[next(places) for _ in part] for part in parts]
            is_same = all(len(part) == 1 for part in parts)
            operands.append(value if is_same else expand(value, cut, [shape[loop] for loop in loops]))
            maps.append(selecting(len(shape), loops))
        new = _changed(op, operands, maps, parallel_loops(len(shape)))
    with ir.InsertionPoint.after(new), op.location:
        result = collapse(new.results[0], groups)
    op.results[0].replace_all_uses_with(result)
    op.erase()


def _without_ones(loops: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Returns loops without those of one iteration, but at least one."""
    return [loop for loop in loops if shape[loop] != 1] or [loops[-1]]


def _changed(op: Op, operands: Sequence[Value], maps: Sequence[ir.AffineMap], loops: ir.Attribute) -> Op:
    """Creates a copy of a generic with other operands and loops; the result is shaped as the last operand."""
    new = op.clone()
    for number, value in enumerate(operands):
        new.operands[number] = value
    new.attributes["indexing_maps"] = maps_attribute(maps)
    new.attributes["iterator_types"] = loops
    new.results[0].set_type(operands[-1].type)
    return new
