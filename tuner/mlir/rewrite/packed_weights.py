"""Weights that come packed: panels of columns, one after the other, each row by row.

An argument of k x n elements that a script wants packed has the type of the panels, and an attribute with the
columns of a panel, of which the last one is padded with zeros::

    %w: memref<3x64x48xf32> {tuner.packing = 48 : i64, tuner.weight}     of a weight of 64 x 100 elements
"""

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.rewrite.padded_views import argument_attributes
from tuner.mlir.rewrite.symbols import function_type

PACKING = "tuner.packing"  # attribute of an argument: the columns of a panel
WEIGHT = "tuner.weight"  # attribute of an argument that holds the same numbers at each call


def weights_of(function: Op) -> list[tuple[int, Value]]:
    """Returns (number, value) of the matrices among the arguments of a func.func that are marked as weights.

    Left out are weights that are packed already, and views whose rows are not contiguous.
    """
    arguments = enumerate(function.regions[0].blocks[0].arguments)
    return [(number, each) for number, each in arguments if _is_plain_weight(function, number, each)]


def packed_type(kind: ir.MemRefType, columns: int) -> ir.MemRefType:
    """Returns the type of a k x n memref after packing: (ceil(n / columns), k, columns)."""
    k, n = kind.shape
    return ir.MemRefType.get([-(-n // columns), k, columns], kind.element_type)


def set_packed(function: Op, number: int, columns: int) -> None:
    """Gives argument ``number`` of a func.func the type of its panels and the attribute, in place."""
    argument = function.regions[0].blocks[0].arguments[number]
    argument.set_type(packed_type(ir.MemRefType(argument.type), columns))
    kinds: list[Type] = [each.type for each in function.regions[0].blocks[0].arguments]
    results = function_type(function).results
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, results))
    every = [argument_attributes(function, each) for each in range(len(kinds))]
    every[number] |= {PACKING: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), columns)}
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in every])


def packing_of(function: Op, number: int) -> int | None:
    """Returns the columns of a panel of argument ``number`` of a func.func; None where it is not packed."""
    found = argument_attributes(function, number).get(PACKING)
    return None if found is None else int(ir.IntegerAttr(found).value)


def _is_plain_weight(function: Op, number: int, argument: Value) -> bool:
    attributes = argument_attributes(function, number)
    if WEIGHT not in attributes or PACKING in attributes or not isinstance(argument.type, ir.MemRefType):
        return False
    kind = ir.MemRefType(argument.type)
    return bool(kind.rank == 2 and kind == ir.MemRefType.get(kind.shape, kind.element_type))
