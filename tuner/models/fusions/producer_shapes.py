"""Gives elementwise operations and reductions the shape of their producer, where a reshape is in between.

torch-mlir computes a linear layer on 2 dimensions and what follows on 3; a convolution has a batch of 1 that
elementwise operations do without. Operations of the same shape can be one fusion:

    %c = linalg.matmul ... -> tensor<64x128xf32>
    %e = tensor.expand_shape %c [[0, 1], [2]] ... into tensor<2x32x128xf32>
    %r = linalg.generic ins(%e) ... -> tensor<2x32x128xf32>
  becomes
    %c = linalg.matmul ... -> tensor<64x128xf32>
    %s = linalg.generic ins(%c) ... -> tensor<64x128xf32>
    %r = tensor.expand_shape %s [[0, 1], [2]] ... into tensor<2x32x128xf32>
"""

from collections.abc import Sequence
from itertools import chain, islice

from tuner.core.fusions import View
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.operations import (
    COLLAPSE,
    CONTRACTIONS,
    EXPAND,
    GENERIC,
    PAD,
    SLICE,
    body_of,
    defining,
    dimensions,
    inputs_of,
    is_free,
    is_identity,
    is_parallel,
    is_reduction,
    users,
)
from tuner.mlir.ir.reading import groups_of, maps_in, op_of
from tuner.models.fusions import views
from tuner.models.fusions.formation import OPS_LIMIT
from tuner.models.fusions.generics import collapse, expand, maps_attribute, parallel_loops, selecting
from tuner.models.fusions.matmul_forms import is_broadcast, is_extension
from tuner.models.fusions.payload import TensorPayload, tensor_type
from tuner.models.fusions.views import Reassociation, slice_of, view_of

INDEX = "linalg.index"


def take_shapes_of_producers(payload: TensorPayload) -> None:
    """Moves reshapes after the generics that read them, in place, so that these have their producer's shape.

    Only where no copy is needed. A broadcast takes the shape that a reshape gives its result. The last loops
    of a reduction become one, if all are reduced.
    """
    for op in payload.ops:  # a broadcast of the shape that a reshape gives it can join its reader's fusion
        source = defining(op.operands[0]) if op.name in (EXPAND, COLLAPSE) else None
        if source is None or not is_broadcast(source):
            continue
        if op.name == EXPAND:
            reshaped: Op | None = _expanded(source, groups_of(op), tuple(op.results[0].type.shape))
        else:
            reshaped = _collapsed(source, groups_of(op))
        if reshaped is not None:  # the next reshape is one of a broadcast, too
            op.results[0].replace_all_uses_with(reshaped.results[0])
            op.erase()
    for op in payload.ops:
        if not _can_be_reshaped(op) or _widens_into_padding(op):
            continue
        has_changed = _reshape_like_producer(op)
        if has_changed or all(is_parallel(op)):
            continue
        # last loops that are all reduced, as those of a mean over an image, become one
        loops = is_parallel(op)
        first = loops.index(False)
        if len(loops) - first > 1 and not any(loops[first:]):
            _collapsed(op, [*([loop] for loop in range(first)), list(range(first, len(loops)))])


def _widens_into_padding(op: Op) -> bool:
    """True for an extf or extsi of a product whose only users are pads, which keep their dimensions."""
    source = op_of(op.operands[0], EXPAND)
    if source is None or not is_extension(op) or any(user.name != PAD for user in users(op.results[0])):
        return False
    shape = source.results[0].type.shape
    return any(sum(shape[dimension] != 1 for dimension in group) > 1 for group in groups_of(source))


def _can_be_reshaped(op: Op) -> bool:
    return (
        op.name == GENERIC
        and len(op.results) == 1
        and all(dimensions(mapping) is not None for mapping in maps_in(op))
        and not any(inner.name == INDEX for inner in body_of(op))
    )


def _reshape_like_producer(op: Op) -> bool:
    """Gives ``op`` the shape of the producer of an operand, contractions preferred.

    Returns whether it changed.
    """
    pairs = zip(inputs_of(op), maps_in(op), strict=False)
    read = [value for value, mapping in pairs if is_identity(mapping) and _is_computed(_unshaped(value))]
    if not any(map(_is_reshape, read)):
        return False
    if len(read) > 1:
        read.sort(key=lambda operand: (not _ends_contraction(_unshaped(operand)), _is_reshape(operand)))
    for value in read:
        if not _is_reshape(value):  # an operand that already has its producer's shape wins: ``op`` stays
            return False
        reshape = value.owner.operation
        earlier = defining(reshape.operands[0]) if _drops_units_of_reshape(reshape) else None
        reshaped = _with_source_shape(op, reshape)
        if reshaped is not None:
            if earlier is not None:
                _with_source_shape(reshaped, earlier)
            return True
    return False


def _with_source_shape(op: Op, reshape: Op) -> Op | None:
    """Gives ``op``, which reads the result of ``reshape``, the shape of the reshape's source.

    Returns the new operation; None where ``op`` cannot have that shape without a copy.
    """
    groups = groups_of(reshape)
    shape = tuple(reshape.operands[0].type.shape)
    if reshape.name == EXPAND:
        return _collapsed(op, groups)
    result = maps_in(op)[-1]
    if all(is_parallel(op)):
        fits = is_identity(result)
    else:  # reduces its last loop, which stays one loop
        is_of_rows = is_parallel(op).index(False) == len(groups) - 1
        fits = is_of_rows and _is_row(result) and all(shape[loop] == 1 for loop in groups[-1][:-1])
    if fits:
        return _expanded(op, groups, shape)
    return None


def _is_row(mapping: ir.AffineMap) -> bool:
    return dimensions(mapping) == tuple(range(mapping.n_dims - 1))


def _is_reshape(value: Value) -> bool:
    op = defining(value)
    return op is not None and op.name in (EXPAND, COLLAPSE)


def _unshaped(value: Value) -> Value:
    """Returns the source of a reshape, or of two reshapes of which the second drops dimensions of size 1.

    A value that is not the result of a reshape is returned as it is.
    """
    if not _is_reshape(value):
        return value
    source = value.owner.operation.operands[0]
    if _drops_units_of_reshape(value.owner.operation):
        return source.owner.operation.operands[0]
    return source


def _drops_units_of_reshape(reshape: Op) -> bool:
    """Returns whether a reshape drops dimensions of size 1 of another reshape."""
    source = reshape.operands[0]
    if reshape.name != COLLAPSE or not _is_reshape(source):
        return False
    for group in groups_of(reshape):
        units = list(map(source.type.shape.__getitem__, group)).count(1)
        if len(group) - units > 1:
            return False
    return True


def _ends_contraction(value: Value) -> bool:
    """Returns whether a value is a contraction's result, or elementwise operations after one.

    Only as many operations are followed as a fusion may have.
    """
    for _ in range(OPS_LIMIT):
        op = defining(value)
        if op is None or op.name != GENERIC or is_reduction(op):
            return op is not None and op.name in CONTRACTIONS
        inputs = zip(inputs_of(op), maps_in(op), strict=False)
        read = [value for value, mapping in inputs if is_identity(mapping)]
        # an operation that was given another shape reads a reshape of its producer's reshape
        producers = list(filter(_is_computed, map(_unshaped, map(_unshaped, read))))
        if not producers:
            return False
        value = producers[0]
    return False


def _is_computed(value: Value) -> bool:
    op = defining(value)
    return op is not None and op.name in (GENERIC, *CONTRACTIONS)


def _collapsed(op: Op, groups: Reassociation) -> Op | None:
    """Replaces a generic by one in which each group of loops is one loop; returns the new operation.

    None where a group has both parallel and reduced loops, or an operand would need a copy.
    """
    loops_are_parallel = is_parallel(op)
    for group in groups:
        if len({loops_are_parallel[loop] for loop in group}) > 1:
            return None
    operand_groups = [_dimension_groups(dimensions(mapping) or (), groups) for mapping in maps_in(op)]
    for value, own_groups in zip(op.operands, operand_groups, strict=True):
        if own_groups is None:
            return None
        if not is_free(value) and views.collapsed(_layout_of(value), own_groups) is None:
            return None
    # loop of the old op -> loop of the new one
    numbers: dict[int, int] = {}
    for index, group in enumerate(groups):
        numbers |= dict.fromkeys(group, index)
    merged = []
    maps = []
    with ir.InsertionPoint(op), op.location:
        for value, mapping, own_groups in zip(op.operands, maps_in(op), operand_groups, strict=True):
            assert own_groups is not None
            loops = dimensions(mapping) or ()
            is_same = all(len(own_group) == 1 for own_group in own_groups)
            merged.append(value if is_same else collapse(value, own_groups))
            maps.append(selecting(len(groups), [numbers[loops[own_group[0]]] for own_group in own_groups]))
        iterators = list(ir.ArrayAttr(op.attributes["iterator_types"]))
        kept = ir.ArrayAttr.get([iterators[group[0]] for group in groups])
        new = _changed(op, merged, maps, kept)
    with ir.InsertionPoint.after(new), op.location:
        result = op.results[0]
        own_groups = operand_groups[-1]
        assert own_groups is not None
        is_same = all(len(own_group) == 1 for own_group in own_groups)
        if is_same:
            shaped = new.results[0]
        else:
            shaped = expand(new.results[0], own_groups, tuple(result.type.shape))
    result.replace_all_uses_with(shaped)
    op.erase()
    return new


def _dimension_groups(loops: Sequence[int], groups: Reassociation) -> list[list[int]] | None:
    """Returns the groups of an operand's dimensions that become one dimension each if loops are merged.

    ``loops``: loop of each dimension; ``groups``: groups of loops to merge. None if the operand is indexed by
    only some loops of a group, or by these in another order.
    """
    own_groups: list[list[int]] = []
    at = 0
    while at < len(loops):
        group = next(list(loop_group) for loop_group in groups if loops[at] in loop_group)
        if list(loops[at : at + len(group)]) != group:
            return None
        own_groups.append(list(range(at, at + len(group))))
        at += len(group)
    return own_groups


def _layout_of(value: Value) -> View:
    """Returns the view of memory in which a value lies if its producer writes contiguous memory.

    Of reshapes and slices it is the view of their source's memory.
    """
    op = defining(value)
    if op is not None and (op.name in (EXPAND, COLLAPSE) or (op.name == SLICE and slice_of(op) is not None)):
        seen = view_of(op, _layout_of(op.operands[0]))
        if seen is not None:
            return seen
    return views.whole(0, tensor_type(value.type))


def _expanded(op: Op, groups: Reassociation, shape: Sequence[int]) -> Op:
    """Replaces a generic by one with a loop per dimension of ``shape``; returns the new operation.

    ``groups``: for each old loop, the new loops that it is split into.
    """
    operands = []
    maps = []
    operand_groups = []
    with ir.InsertionPoint(op), op.location:
        for value, mapping in zip(op.operands, maps_in(op), strict=True):
            parts = _split(mapping, groups, shape)
            loops = list(chain.from_iterable(parts))
            places = iter(range(len(loops)))
            numbered = [list(islice(places, len(part))) for part in parts]
            operand_groups.append(numbered[: value.type.rank])
            is_same = len(loops) == value.type.rank
            sizes = [shape[loop] for loop in loops]
            operands.append(value if is_same else expand(value, operand_groups[-1], sizes))
            maps.append(selecting(len(shape), loops))
        kinds = list(ir.ArrayAttr(op.attributes["iterator_types"]))
        last = kinds[-1:]  # an operation on one number has none
        before = list(ir.ArrayAttr(parallel_loops(len(shape) - len(last))))
        new = _changed(op, operands, maps, ir.ArrayAttr.get([*before, *last]))
    with ir.InsertionPoint.after(new), op.location:
        is_same = new.results[0].type == op.results[0].type
        result = new.results[0] if is_same else collapse(new.results[0], operand_groups[-1])
    op.results[0].replace_all_uses_with(result)
    op.erase()
    return new


def _split(mapping: ir.AffineMap, groups: Reassociation, shape: Sequence[int]) -> list[list[int]]:
    """Returns, per dimension of an operand, the new loops that index the dimensions it is split into."""
    if not groups:  # one number becomes a tensor of one element
        return [list(range(len(shape)))]
    loops = dimensions(mapping) or ()
    parts = [list(groups[loop]) for loop in loops]
    before = list(groups[-1])[:-1]
    if is_identity(mapping):  # loops (6, 10) of shape (6, 2, 5): 6x10 becomes 6x2x5
        return parts
    # loops (6, 5) of shape (6, 1, 5): a bias of 5 stays 5, without the loop of size 1
    if not _is_row(mapping) or any(shape[loop] != 1 for loop in before):
        return [[loop for loop in part if shape[loop] != 1] or [part[-1]] for part in parts]
    # the sums of 6 rows become 6x1: the loops of size 1 are split from the reduced loop
    if parts:
        return [*parts[:-1], [*parts[-1], *before]]
    return [before]


def _changed(op: Op, operands: Sequence[Value], maps: Sequence[ir.AffineMap], loops: ir.Attribute) -> Op:
    new = op.clone()
    for index, value in enumerate(operands):
        new.operands[index] = value
    new.attributes["indexing_maps"] = maps_attribute(maps)
    new.attributes["iterator_types"] = loops
    new.results[0].set_type(operands[-1].type)
    return new
