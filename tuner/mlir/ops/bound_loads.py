"""``tuner.bound_loads``: reads of padded views give zero beyond the true sizes."""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.building import branch, integers, plus, value, zero
from tuner.mlir.ops.dialect import InPlaceOp, attribute, walk
from tuner.mlir.padded_views import Bounds, bounds_of, elements_inside, is_all_or_nothing, is_inside
from tuner.mlir.types import is_workgroup

REFUSED = ("vector.transfer_read", "memref.load")  # forms that this op does not know


class BoundLoadsOp(InPlaceOp, name="bound_loads"):
    """Guards every ``vector.load`` of an argument with ``tuner.bounds`` that its type overhangs.

    A load that only fills shared memory becomes a masked ``vector.transfer_read``, which
    ``nvgpu.create_async_groups`` turns into a copy with a source size; with ``is_synchronous = 1`` (i64, 0
    unless given), and for all other loads, an ``scf.if`` with a zero else. Loads must be 1-D: run after
    transfers are lowered, before asynchronous groups are made. The handle (a func.func) stays valid.
    Silenceable failure: a read of such an argument in another form.
    """

    def change(self, function: Any) -> str | None:
        """Changes one function."""
        is_synchronous = attribute(self, "is_synchronous", 0) == 1
        for name in REFUSED:
            if any(bounds_of(read.operands[0]) for read in walk(function, name)):
                return f"found {name} of a padded view, allowed vector.load"
        for load in walk(function, "vector.load"):
            bounds = bounds_of(load.operands[0])
            if bounds:
                _guard(load, bounds, is_synchronous)
        return None


def _guard(load: Any, bounds: Bounds, is_synchronous: bool) -> None:
    width = ir.VectorType(load.results[0].type).shape[0]
    rank = len(load.operands) - 1
    with load.location, ir.InsertionPoint(load):
        if not is_synchronous and _fills_shared_memory(load):
            guarded = _masked(load, bounds, width)
        elif is_all_or_nothing(bounds, rank, width):
            guarded = _whole_or_zero(load, list(load.operands)[1:], bounds, load.results[0].type)
        else:
            guarded = _element_by_element(load, bounds, width)
    load.results[0].replace_all_uses_with(guarded)
    load.erase()


def _fills_shared_memory(load: Any) -> bool:
    users = [use.owner.operation for use in load.results[0].uses]
    return all(
        user.name == "vector.store" and is_workgroup(ir.MemRefType(user.operands[1].type)) for user in users
    )


def _masked(load: Any, bounds: Bounds, width: int) -> Any:
    view, *indices = load.operands
    kind = ir.VectorType(load.results[0].type)
    mask_kind = ir.VectorType.get([width], ir.IntegerType.get_signless(1))
    mask = value("vector.create_mask", mask_kind, elements_inside(indices, bounds, width))
    last = ir.AffineMap.get(len(indices), 0, [ir.AffineDimExpr.get(len(indices) - 1)])
    return value(
        "vector.transfer_read",
        kind,
        *(view, *indices, zero(kind.element_type), mask),
        permutation_map=ir.AffineMapAttr.get(last),
        in_bounds=ir.ArrayAttr.get([ir.BoolAttr.get(True)]),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, len(indices), 1, 1]),
    )


def _whole_or_zero(load: Any, indices: list[Any], bounds: Bounds, kind: Any) -> Any:
    return branch(
        is_inside(indices, bounds),
        lambda: value("vector.load", kind, load.operands[0], *indices),
        lambda: zero(kind),
        kind,
    )


def _element_by_element(load: Any, bounds: Bounds, width: int) -> Any:
    """Builds the vector of loads of one element: any part of it may exist."""
    kind = ir.VectorType(load.results[0].type)
    one = ir.VectorType.get([1], kind.element_type)
    first = list(load.operands)[1:]
    built = zero(kind)
    for offset in range(width):
        indices = [*first[:-1], plus(first[-1], offset)]
        element = _whole_or_zero(load, indices, bounds, one)
        places = {"offsets": integers([offset]), "strides": integers([1])}
        built = value("vector.insert_strided_slice", kind, element, built, **places)
    return built
