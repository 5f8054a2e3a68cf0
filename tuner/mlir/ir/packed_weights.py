"""Weights that come packed: arguments with the type of their panels, and attributes that say how.

Such an argument has ``tuner.packing``; the attributes are the fields of
``tuner.core.packings.WeightPacking``, by which the caller packs the weight once.
"""

from collections.abc import Sequence

from tuner.core.packings import WeightPacking
from tuner.mlir.bindings import Attribute, Op, Type, Value, ir
from tuner.mlir.ir.memrefs import argument_attributes
from tuner.mlir.ir.reading import constant_of, function_type, types_of

PACKING = "tuner.packing"  # attribute of an argument: the columns of a panel
INTERLEAVE = "tuner.interleave"
DEPTH = "tuner.depth"
UNSIGNED = "tuner.unsigned"
RUN = "tuner.run"
NIBBLES = "tuner.nibbles"
ORDER = "tuner.order"  # attribute of an argument: the order of the weight's dimensions, where it is another
WEIGHT = "tuner.weight"  # attribute of an argument that holds the same numbers at each call


def weights_of(function: Op) -> list[tuple[int, Value]]:
    """Returns (index, value) of each argument of a func.func that is a weight and may be packed.

    A weight has the attribute ``tuner.weight``; it may be packed if it is a contiguous matrix and not packed
    yet.
    """
    arguments = enumerate(function.regions[0].blocks[0].arguments)
    return [
        (number, argument) for number, argument in arguments if _is_plain_weight(function, number, argument)
    ]


def packed_type(type_: ir.MemRefType, columns: int) -> ir.MemRefType:
    """Returns the type of a k x n memref after packing: (ceil(n / columns), k, columns)."""
    k, n = type_.shape
    return ir.MemRefType.get([-(-n // columns), k, columns], type_.element_type)


def set_packed(function: Op, index: int, columns: int) -> None:
    """Makes argument ``index`` of a func.func, a k x n memref, a weight packed in panels, in place.

    Sets the type, (ceil(n / columns), k, columns), and the attribute ``tuner.packing``.
    """
    argument = function.regions[0].blocks[0].arguments[index]
    set_packed_as(function, index, packed_type(ir.MemRefType(argument.type), columns), columns)


def set_packed_as(
    function: Op,
    index: int,
    type_: ir.MemRefType,
    columns: int,
    order: Sequence[int] = (),
    *,
    interleave: int = 1,
    depth: int = 1,
    unsigned: bool = False,
    run: int = 0,
    nibbles: str = "",
) -> None:
    """Gives argument ``index`` of a func.func the type ``type_`` and the attributes of a packing, in place.

    The other parameters are those of ``WeightPacking``; for one that is not given, the argument keeps its
    attribute. Of k x n elements, the type is panels of columns, in order, the last padded by zeros::

        %w: memref<3x64x48xf32> {tuner.packing = 48 : i64, tuner.weight}     of a weight of 64 x 100 elements

    A weight of more dimensions is taken as a matrix, with its dimensions in ``tuner.order``::

        %w: memref<2x3x3x64x32xf32> {tuner.order = array<i64: 2, 3, 1, 0>, tuner.packing = 32 : i64, ...}
                                                                        of 64 filters of 64 x 3 x 3 elements

    ``tuner.interleave``, ``tuner.depth``, ``tuner.unsigned``, ``tuner.run`` and ``tuner.nibbles`` are fields
    of the packing too.
    """
    arguments = function.regions[0].blocks[0].arguments
    arguments[index].set_type(type_)
    types: list[Type] = types_of(arguments)
    results = function_type(function).results
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, results))
    every = [argument_attributes(function, position) for position in range(len(types))]
    wide = ir.IntegerType.get_signless(64)
    of_rows = ((INTERLEAVE, interleave, 1), (DEPTH, depth, 1), (RUN, run, 0))
    sizes = ((PACKING, columns, 0), *of_rows, (UNSIGNED, int(unsigned), 0))
    every[index] |= {name: ir.IntegerAttr.get(wide, size) for name, size, usual in sizes if size != usual}
    if order:
        every[index] |= {ORDER: ir.DenseI64ArrayAttr.get(list(order))}
    if nibbles:
        every[index] |= {NIBBLES: ir.StringAttr.get(nibbles)}
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(list(map(ir.DictAttr.get, every)))


def packing_of(function: Op, index: int) -> WeightPacking | None:
    """Returns how argument ``index`` of a func.func is packed; None if it is not packed."""
    attributes = argument_attributes(function, index)
    if PACKING not in attributes:
        return None
    return WeightPacking(
        columns=_number(attributes, PACKING, 1),
        interleave=_number(attributes, INTERLEAVE, 1),
        order=tuple(ir.DenseI64ArrayAttr(attributes[ORDER])) if ORDER in attributes else (),
        depth=_number(attributes, DEPTH, 1),
        unsigned=UNSIGNED in attributes,
        run=_number(attributes, RUN, 0),
        nibbles=ir.StringAttr(attributes[NIBBLES]).value if NIBBLES in attributes else "",
    )


def _number(attributes: dict[str, Attribute], name: str, default: int) -> int:
    if name in attributes:
        return int(ir.IntegerAttr(attributes[name]).value)
    return default


def begins_panel(column: Value | int, columns: int) -> bool:
    """Returns whether ``column`` is surely a multiple of ``columns``, that is, the first column of a panel.

    ``column``: a number, or the index of an ``scf.for`` with constant start and step; False for other values.
    """
    if isinstance(column, int):
        return column % columns == 0
    if not isinstance(column, ir.BlockArgument) or column.owner.owner.name != "scf.for":
        return False
    bounds = [constant_of(column.owner.owner.operands[position]) for position in (0, 2)]
    return all(bound is not None and bound % columns == 0 for bound in bounds)


def _is_plain_weight(function: Op, index: int, argument: Value) -> bool:
    attributes = argument_attributes(function, index)
    if WEIGHT not in attributes or PACKING in attributes or not isinstance(argument.type, ir.MemRefType):
        return False
    type_ = ir.MemRefType(argument.type)
    return bool(type_.rank == 2 and type_ == ir.MemRefType.get(type_.shape, type_.element_type))
