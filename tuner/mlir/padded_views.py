"""Arguments whose type is larger than their memory: padded sizes, true strides, true sizes in an attribute.

Between tiling and the last step every pass sees sizes that tiles divide. ``tuner.bound_loads`` and
``tuner.finish_stores`` then keep accesses inside of the true sizes.
"""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.building import index, is_less, value

BOUNDS = "tuner.bounds"  # of an argument: array<i64: true sizes>

Bounds = dict[int, int]  # dimension -> its true size, where the view is longer


def argument_attributes(function: Any, number: int) -> dict[str, Any]:
    """Returns the attributes of one argument of a func.func."""
    if "arg_attrs" not in function.attributes:
        return {}
    attributes = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[number])
    return {each.name: each.attr for each in attributes}


def bounds_of(view: Any) -> Bounds:
    """Returns where a value's type overhangs its memory; nothing for what is no argument of a function."""
    if not isinstance(view.owner, ir.Block) or view.owner.owner.operation.name != "func.func":
        return {}
    function = view.owner.owner.operation
    true = argument_attributes(function, ir.BlockArgument(view).arg_number).get(BOUNDS)
    if true is None:
        return {}
    sizes = zip(ir.MemRefType(view.type).shape, ir.DenseI64ArrayAttr(true), strict=True)
    return {dimension: size for dimension, (padded, size) in enumerate(sizes) if size < padded}


def is_inside(indices: list[Any], bounds: Bounds) -> Any | None:
    """Returns the truth of all indices lying within the bounds; None where there is nothing to check."""
    truths = [is_less(indices[dimension], index(size)) for dimension, size in bounds.items()]
    if not truths:
        return None
    whole = truths[0]
    for each in truths[1:]:
        whole = value("arith.andi", whole.type, whole, each)
    return whole


def is_all_or_nothing(bounds: Bounds, rank: int, width: int) -> bool:
    """Tells whether a vector along the last dimension, at a multiple of its width, is never cut."""
    return bounds.get(rank - 1, 0) % width == 0


def elements_inside(indices: list[Any], bounds: Bounds, width: int) -> Any:
    """Returns how many of the ``width`` elements from ``indices`` on exist, as an index."""
    kind = ir.IndexType.get()
    last = len(indices) - 1
    if is_all_or_nothing(bounds, len(indices), width):
        return value("arith.select", kind, is_inside(indices, bounds), index(width), index(0))
    left = value("arith.subi", kind, index(bounds[last]), indices[last])
    count = value("arith.maxsi", kind, value("arith.minsi", kind, left, index(width)), index(0))
    others = {dimension: size for dimension, size in bounds.items() if dimension != last}
    inside = is_inside(indices, others)
    return count if inside is None else value("arith.select", kind, inside, count, index(0))


def retype_argument(argument: Any, element: Any) -> None:
    """Gives a memref argument another element type, its sizes and strides kept."""
    memref = ir.MemRefType(argument.type)
    argument.set_type(
        ir.MemRefType.get(memref.shape, element, layout=memref.layout, memory_space=memref.memory_space)
    )


def sync_function_type(function: Any) -> None:
    """Makes a func.func without results say what its arguments are."""
    kinds = [argument.type for argument in function.regions[0].blocks[0].arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, []))


def set_argument_attribute(function: Any, number: int, name: str, attribute: Any) -> None:
    """Adds an attribute to one argument of a func.func."""
    count = len(function.regions[0].blocks[0].arguments)
    every = [argument_attributes(function, each) for each in range(count)]
    every[number][name] = attribute
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in every])
