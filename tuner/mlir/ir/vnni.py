"""Packed weights as types and attributes of arguments, and dot products of four bytes as calls (VNNI).

A weight that comes packed (``tuner.core.fusions.WeightPacking``) is an argument with ``tuner.packing``. Dot
products are calls of a private function until ``lower_byte_dots`` replaces these by the instruction.
"""

from collections.abc import Sequence

from tuner.core.fusions import WeightPacking
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.ir.building import deinterleaved, value
from tuner.mlir.ir.memrefs import argument_attributes
from tuner.mlir.ir.reading import (
    constant_of,
    function_type,
    name_of,
    ops_in,
    private_function,
    types_of,
    walk,
)

NAME = "vpdpbusd_"  # then the bits of a register
INTRINSIC = "llvm.x86.avx512.vpdpbusd."
LANE_BITS = 32
PER_LANE = 4
PACKING = "tuner.packing"  # attribute of an argument: the columns of a panel
INTERLEAVE = "tuner.interleave"
DEPTH = "tuner.depth"
UNSIGNED = "tuner.unsigned"
RUN = "tuner.run"
NIBBLES = "tuner.nibbles"
ORDER = "tuner.order"  # attribute of an argument: the order of the weight's dimensions, where it is another
WEIGHT = "tuner.weight"  # attribute of an argument that holds the same numbers at each call


def declare_byte_dot(module: Op, lanes: int) -> None:
    """Declares the private function ``@vpdpbusd_<bits>`` in a module, unless it is there.

    It adds dot products of 4 bytes to ``lanes`` sums of i32; see ``byte_dot``.
    """
    name = f"{NAME}{LANE_BITS * lanes}"
    block = module.regions[0].blocks[0]
    names = [op.attributes["sym_name"] for op in block if "sym_name" in op.attributes]
    if any(ir.StringAttr(symbol).value == name for symbol in names):
        return
    sums = f"vector<{lanes}xi32>"
    factors = f"vector<{PER_LANE * lanes}xi8>"
    text = f"({sums}, {factors}, {factors}) -> {sums}"
    with ir.InsertionPoint.at_block_begin(block), module.location:
        private_function(name, ir.Type.parse(text))


def byte_dot(sums: Value, unsigned: Value, signed: Value) -> Value:
    """Creates the call that adds dot products of 4 bytes to a vector of i32 ``sums``; returns the new sums.

    ``unsigned``, ``signed``: vectors of i8, four per sum. The function must be declared.
    """
    lanes = ir.VectorType(sums.type).shape[0]
    callee = ir.FlatSymbolRefAttr.get(f"{NAME}{LANE_BITS * lanes}")
    return value("func.call", sums.type, sums, unsigned, signed, callee=callee)


def lower_byte_dots(module: ir.Module, *, emulates: bool) -> None:
    """Replaces the calls of dot products by the instruction, or by vector code if ``emulates``, in place.

    The call, of four unsigned by four signed bytes, has no memory effects that a pass would have to know; the
    instruction is vpdpbusd (AVX512-VNNI, AVX-VNNI). Sums wrap around.

        %next = call @vpdpbusd_512(%sums, %u, %s) : (vector<16xi32>, ...
      becomes
        %next = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%sums, %u, %s) : ...
    """
    for call in walk(module, "func.call"):
        if ir.FlatSymbolRefAttr(call.attributes["callee"]).value.startswith(NAME):
            with ir.InsertionPoint(call), call.location:
                product = _vector_code(call) if emulates else _instruction(call)
            call.results[0].replace_all_uses_with(product)
            call.erase()
    for function in ops_in(module.body):
        if function.name == "func.func" and name_of(function).startswith(NAME):
            function.erase()


def _instruction(call: Op) -> Value:
    sums = call.results[0].type
    bits = LANE_BITS * ir.VectorType(sums).shape[0]
    return value(
        "llvm.call_intrinsic",
        sums,
        *call.operands,
        intrin=ir.StringAttr.get(f"{INTRINSIC}{bits}"),
        op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([3, 0]),
    )


def _vector_code(call: Op) -> Value:
    sums, unsigned, signed = call.operands
    kind = ir.VectorType(sums.type)
    wide = ir.VectorType.get([PER_LANE * kind.shape[0]], kind.element_type)
    left = value("arith.extui", wide, unsigned)
    right = value("arith.extsi", wide, signed)
    products = value("arith.muli", wide, left, right)
    for part in deinterleaved(products, kind.shape[0]):
        sums = value("arith.addi", kind, sums, part)
    return sums


def weights_of(function: Op) -> list[tuple[int, Value]]:
    """Returns (number, value) of each argument of a func.func that is a weight and may be packed.

    A weight has the attribute ``tuner.weight``; it may be packed if it is a contiguous matrix and not packed
    yet.
    """
    arguments = enumerate(function.regions[0].blocks[0].arguments)
    return [
        (number, argument) for number, argument in arguments if _is_plain_weight(function, number, argument)
    ]


def packed_type(kind: ir.MemRefType, columns: int) -> ir.MemRefType:
    """Returns the type of a k x n memref after packing: (ceil(n / columns), k, columns)."""
    k, n = kind.shape
    return ir.MemRefType.get([-(-n // columns), k, columns], kind.element_type)


def set_packed(function: Op, number: int, columns: int) -> None:
    """Makes argument ``number`` of a func.func, a k x n memref, a weight packed in panels, in place.

    Sets the type, (ceil(n / columns), k, columns), and the attribute ``tuner.packing``.
    """
    argument = function.regions[0].blocks[0].arguments[number]
    set_packed_as(function, number, packed_type(ir.MemRefType(argument.type), columns), columns)


def set_packed_as(
    function: Op,
    number: int,
    kind: ir.MemRefType,
    columns: int,
    order: Sequence[int] = (),
    *,
    interleave: int = 1,
    depth: int = 1,
    unsigned: bool = False,
    run: int = 0,
    nibbles: str = "",
) -> None:
    """Gives argument ``number`` of a func.func the type ``kind`` and the attributes of a packing, in place.

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
    arguments[number].set_type(kind)
    kinds: list[Type] = types_of(arguments)
    results = function_type(function).results
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, results))
    every = [argument_attributes(function, position) for position in range(len(kinds))]
    wide = ir.IntegerType.get_signless(64)
    of_rows = ((INTERLEAVE, interleave, 1), (DEPTH, depth, 1), (RUN, run, 0))
    sizes = ((PACKING, columns, 0), *of_rows, (UNSIGNED, int(unsigned), 0))
    every[number] |= {name: ir.IntegerAttr.get(wide, size) for name, size, usual in sizes if size != usual}
    if order:
        every[number] |= {ORDER: ir.DenseI64ArrayAttr.get(list(order))}
    if nibbles:
        every[number] |= {NIBBLES: ir.StringAttr.get(nibbles)}
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(list(map(ir.DictAttr.get, every)))


def packing_of(function: Op, number: int) -> WeightPacking | None:
    """Returns how argument ``number`` of a func.func is packed; None if it is not packed."""
    attributes = argument_attributes(function, number)
    if PACKING not in attributes:
        return None
    order = tuple(ir.DenseI64ArrayAttr(attributes[ORDER])) if ORDER in attributes else ()
    columns, interleave, depth = (
        int(ir.IntegerAttr(attributes[name]).value) if name in attributes else 1
        for name in (PACKING, INTERLEAVE, DEPTH)
    )
    run = int(ir.IntegerAttr(attributes[RUN]).value) if RUN in attributes else 0
    nibbles = ir.StringAttr(attributes[NIBBLES]).value if NIBBLES in attributes else ""
    return WeightPacking(columns, interleave, order, depth, UNSIGNED in attributes, run, nibbles)


def begins_panel(column: Value | int, columns: int) -> bool:
    """Returns whether ``column`` is known to be a multiple of ``columns``, the first column of a panel.

    ``column``: a number, or the index of an ``scf.for`` with constant start and step; False for other values.
    """
    if isinstance(column, int):
        return column % columns == 0
    if not isinstance(column, ir.BlockArgument) or column.owner.owner.name != "scf.for":
        return False
    bounds = [constant_of(column.owner.owner.operands[position]) for position in (0, 2)]
    return all(bound is not None and bound % columns == 0 for bound in bounds)


def _is_plain_weight(function: Op, number: int, argument: Value) -> bool:
    attributes = argument_attributes(function, number)
    if WEIGHT not in attributes or PACKING in attributes or not isinstance(argument.type, ir.MemRefType):
        return False
    kind = ir.MemRefType(argument.type)
    return bool(kind.rank == 2 and kind == ir.MemRefType.get(kind.shape, kind.element_type))
