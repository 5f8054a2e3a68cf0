"""Padded views: arguments whose types are larger than their memory, and checks against the true sizes."""

from tuner.mlir.bindings import Value, ir
from tuner.mlir.ir.building import index, is_less, value
from tuner.mlir.ir.memrefs import argument_attributes

BOUNDS = "tuner.bounds"  # attribute of an argument: array<i64: true sizes>
Bounds = dict[int, int]  # dimension -> its true size, for dimensions whose size in the type is larger


def bounds_of(view: Value) -> Bounds:
    """Returns {dimension: true size} of the padded dimensions of a function argument, else {}.

    A padded view is an argument whose memref type has larger sizes than the memory passed for the argument.
    ``tuner.pad_views`` makes them, as the first step of a script: the type has sizes that tiles divide, so
    that tiling, vectorization and pipelining have no remainders, and the true strides; an attribute has the
    true sizes::

        %a: memref<64x64xf32, strided<[60, 1]>> {tuner.bounds = array<i64: 50, 60>}

    The type's rows overlap one another and its end lies beyond the memory, so that nothing may access the
    view by the type alone (docs/decisions/gpu-schedules.md says why that is so, and what another form costs):
    at the end ``tuner.bound_loads`` and ``tuner.finish_stores`` guard the accesses.
    """
    if not isinstance(view.owner, ir.Block) or view.owner.owner.operation.name != "func.func":
        return {}
    function = view.owner.owner.operation
    true = argument_attributes(function, ir.BlockArgument(view).arg_number).get(BOUNDS)
    if true is None:
        return {}
    sizes = zip(ir.MemRefType(view.type).shape, ir.DenseI64ArrayAttr(true), strict=True)
    return {dimension: size for dimension, (padded, size) in enumerate(sizes) if size < padded}


def is_inside(indices: list[Value], bounds: Bounds) -> Value | None:
    """Creates the check whether ``indices`` are below the true sizes in ``bounds``; returns its i1 value.

    None, and no ops, if ``bounds`` is empty.
    """
    truths = [is_less(indices[dimension], index(size)) for dimension, size in bounds.items()]
    if not truths:
        return None
    whole = truths[0]
    for truth in truths[1:]:
        whole = value("arith.andi", whole.type, whole, truth)
    return whole


def is_width_aligned(bounds: Bounds, rank: int, width: int) -> bool:
    """Returns whether no bound cuts a vector of ``width`` elements that starts at a multiple of ``width``."""
    return bounds.get(rank - 1, 0) % width == 0


def elements_inside(indices: list[Value], bounds: Bounds, width: int) -> Value:
    """Creates the number of a vector's elements, the first at ``indices``, that are within ``bounds``.

    The vector has ``width`` elements along the last dimension. ``bounds`` (dimension -> true size) must not
    be empty. Where ``is_width_aligned`` holds, the vector must start at a multiple of ``width``.
    """
    type_ = ir.IndexType.get()
    last = len(indices) - 1
    if is_width_aligned(bounds, len(indices), width):
        return value("arith.select", type_, is_inside(indices, bounds), index(width), index(0))
    left = value("arith.subi", type_, index(bounds[last]), indices[last])
    count = value("arith.maxsi", type_, value("arith.minsi", type_, left, index(width)), index(0))
    others = {dimension: size for dimension, size in bounds.items() if dimension != last}
    inside = is_inside(indices, others)
    if inside is None:
        return count
    return value("arith.select", type_, inside, count, index(0))
