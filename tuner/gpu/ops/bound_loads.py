"""The transform op ``tuner.bound_loads``."""

from tuner.core.errors import Refusal
from tuner.gpu.ir import padded_views
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.ir import memrefs
from tuner.mlir.ir.building import branch, integers, plus, value, zero
from tuner.mlir.ir.reading import users_of, walk

NOT_LOWERED = ("vector.transfer_read", "memref.load")  # forms of reads that are not handled


class BoundLoadsOp(InPlaceOp, name="bound_loads"):
    """``tuner.bound_loads``: reads of padded views return zero outside of the true sizes.

    Takes a function whose transfers are lowered to 1-D ``vector.load``, before asynchronous copies are
    created. Guards every load of a padded argument (``tuner.bounds``). A load that is only stored to
    shared memory becomes a masked ``vector.transfer_read``, which ``nvgpu.create_async_groups`` converts to a
    copy with a source size; any other load becomes an ``scf.if``, or one per element if a bound may cut it.

        %x = vector.load %a[%i, %j] : memref<64x64xf32, strided<[60, 1]>>, vector<4xf32>
      of %a with tuner.bounds = array<i64: 50, 64> becomes
        %is_inside = arith.cmpi slt, %i, %c50 : index
        %count = arith.select %is_inside, %c4, %c0 : index
        %mask = vector.create_mask %count : vector<4xi1>
        %x = vector.transfer_read %a[%i, %j], %zero, %mask {in_bounds = [true]} : ..., vector<4xf32>
      and where it is not stored to shared memory
        %x = scf.if %is_inside -> (vector<4xf32>) {

    Attribute ``is_synchronous`` (i64, default 0): 1 makes all guards ``scf.if``. The handle (a func.func)
    stays valid. Silenceable failure, with nothing changed: a ``vector.transfer_read`` or ``memref.load`` of
    a padded argument.
    """

    def change(self, function: Op) -> Refusal | None:
        is_synchronous = attribute(self, "is_synchronous", 0) == 1
        for name in NOT_LOWERED:
            if any(padded_views.bounds_of(read.operands[0]) for read in walk(function, name)):
                return Refusal(f"found {name} of a padded view, allowed vector.load")
        for load in walk(function, "vector.load"):
            bounds = padded_views.bounds_of(load.operands[0])
            if bounds:
                width = ir.VectorType(load.results[0].type).shape[0]
                rank = len(load.operands) - 1
                with load.location, ir.InsertionPoint(load):
                    if not is_synchronous and _fills_shared_memory(load):
                        guarded = _masked(load, bounds, width)
                    elif padded_views.is_width_aligned(bounds, rank, width):
                        guarded = _whole_or_zero(load, list(load.operands)[1:], bounds, load.results[0].type)
                    else:
                        guarded = _by_elements(load, bounds, width)
                load.results[0].replace_all_uses_with(guarded)
                load.erase()
        return None


def _fills_shared_memory(load: Op) -> bool:
    users = users_of(load.results[0])
    return all(
        user.name == "vector.store" and memrefs.is_workgroup(ir.MemRefType(user.operands[1].type))
        for user in users
    )


def _masked(load: Op, bounds: padded_views.Bounds, width: int) -> Value:
    view, *indices = load.operands
    type_ = ir.VectorType(load.results[0].type)
    mask_kind = ir.VectorType.get([width], ir.IntegerType.get_signless(1))
    mask = value("vector.create_mask", mask_kind, padded_views.elements_inside(indices, bounds, width))
    last = ir.AffineMap.get(len(indices), 0, [ir.AffineDimExpr.get(len(indices) - 1)])
    return value(
        "vector.transfer_read",
        type_,
        *(view, *indices, zero(type_.element_type), mask),
        permutation_map=ir.AffineMapAttr.get(last),
        in_bounds=ir.ArrayAttr.get([ir.BoolAttr.get(True)]),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, len(indices), 1, 1]),
    )


def _by_elements(load: Op, bounds: padded_views.Bounds, width: int) -> Value:
    """Creates a load and its guard for each element; returns the vector of them."""
    type_ = ir.VectorType(load.results[0].type)
    single = ir.VectorType.get([1], type_.element_type)
    *outer, first = list(load.operands)[1:]
    built = zero(type_)
    for offset in range(width):
        element = _whole_or_zero(load, [*outer, plus(first, offset)], bounds, single)
        position = {"offsets": integers([offset]), "strides": integers([1])}
        built = value("vector.insert_strided_slice", type_, element, built, **position)
    return built


def _whole_or_zero(load: Op, indices: list[Value], bounds: padded_views.Bounds, type_: Type) -> Value:
    return branch(
        padded_views.is_inside(indices, bounds),
        lambda: value("vector.load", type_, load.operands[0], *indices),
        lambda: zero(type_),
        type_,
    )
