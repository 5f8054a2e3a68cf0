"""Padded views: arguments whose memref type has larger sizes than the memory passed for the argument.

``tuner.pad_views`` makes them of arguments of true sizes, as the first step of a script. The type has sizes
that tiles divide, and the true strides; an attribute has the true sizes::

    %a: memref<64x64xf32, strided<[60, 1]>> {tuner.bounds = array<i64: 50, 60>}

The type's rows overlap one another and its end lies beyond the memory, so that nothing may access the view by
the type alone (decision 12 says why that is so, and what another form costs).

Tiling, vectorization and pipelining then have no remainders. At the end ``tuner.bound_loads`` and
``tuner.finish_stores`` guard the accesses, which must stay within the true sizes.
"""

from tuner.mlir.bindings import Attribute, Op, Type, Value, ir
from tuner.mlir.rewrite.building import index, is_less, value

BOUNDS = "tuner.bounds"  # attribute of an argument: array<i64: true sizes>

Bounds = dict[int, int]  # dimension -> its true size, for dimensions whose size in the type is larger


def argument_attributes(function: Op, number: int) -> dict[str, Attribute]:
    """Returns the attributes, by name, of argument number ``number`` of a func.func."""
    if "arg_attrs" not in function.attributes:
        return {}
    attributes = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[number])
    return {each.name: each.attr for each in attributes}


def bounds_of(view: Value) -> Bounds:
    """Returns {dimension: true size} of the padded dimensions of a function argument, else {}.

    A dimension is padded if its size in the memref type is larger than in the attribute ``tuner.bounds``.
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
    """Creates the check, an i1 value, that indices are below the true sizes in ``bounds``; None for {}.

    ``bounds``: dimension -> true size. Dimensions that are not in ``bounds`` are not checked.
    """
    truths = [is_less(indices[dimension], index(size)) for dimension, size in bounds.items()]
    if not truths:
        return None
    whole = truths[0]
    for each in truths[1:]:
        whole = value("arith.andi", whole.type, whole, each)
    return whole


def is_width_aligned(bounds: Bounds, rank: int, width: int) -> bool:
    """Returns whether the last of ``rank`` dimensions has no bound, or one that is a multiple of ``width``.

    Then no bound cuts a vector of ``width`` elements that starts at a multiple of ``width``.
    """
    return bounds.get(rank - 1, 0) % width == 0


def elements_inside(indices: list[Value], bounds: Bounds, width: int) -> Value:
    """Creates the number, an index value, of a vector's elements that are within ``bounds``.

    The vector has ``width`` elements along the last dimension, the first at ``indices``. ``bounds``
    (dimension -> true size) must not be empty. If the last dimension has no bound, or one that is a multiple
    of ``width``, the number is ``width`` or 0: the vector must start at a multiple of ``width``.
    """
    kind = ir.IndexType.get()
    last = len(indices) - 1
    if is_width_aligned(bounds, len(indices), width):
        return value("arith.select", kind, is_inside(indices, bounds), index(width), index(0))
    left = value("arith.subi", kind, index(bounds[last]), indices[last])
    count = value("arith.maxsi", kind, value("arith.minsi", kind, left, index(width)), index(0))
    others = {dimension: size for dimension, size in bounds.items() if dimension != last}
    inside = is_inside(indices, others)
    return count if inside is None else value("arith.select", kind, inside, count, index(0))


def retype_argument(argument: Value, element: Type) -> None:
    """Changes the element type of a memref argument in place; sizes, strides and memory space stay.

    Does not change the type of the function: call ``sync_function_type`` afterwards.
    """
    memref = ir.MemRefType(argument.type)
    argument.set_type(
        ir.MemRefType.get(memref.shape, element, layout=memref.layout, memory_space=memref.memory_space)
    )


def sync_function_type(function: Op) -> None:
    """Sets the type of a func.func, which must have no results, from the types of its block arguments."""
    kinds = [argument.type for argument in function.regions[0].blocks[0].arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, []))


def set_argument_attribute(function: Op, number: int, name: str, attribute: Attribute) -> None:
    """Sets the attribute ``name`` of argument number ``number`` of a func.func, in place."""
    count = len(function.regions[0].blocks[0].arguments)
    every = [argument_attributes(function, each) for each in range(count)]
    every[number][name] = attribute
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in every])
