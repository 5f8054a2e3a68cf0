"""Epilogues that were set aside as scalar functions: found by their names, applied to vectors of sums."""

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.memrefs import argument_attributes
from tuner.mlir.ir.reading import attributes_of, function_type, name_of, ops_in

SUFFIX = "_epilogue"
# attributes of the scalar function's arguments
ARGUMENT = "tuner.argument"
DIMENSIONS = "tuner.dimensions"


def find_epilogue(function: Op) -> Op | None:
    """Returns the scalar function ``@f_epilogue`` next to the func.func ``@f``; None if there is none.

    ``tuner.set_aside_epilogue`` makes this function, ``tuner.finish_stores`` applies it::

        func.func private @f_epilogue(
            %sum: f32, %bias: f32 {tuner.argument = 2 : i64, tuner.dimensions = array<i64: 1>}) -> f32

    Each argument but the first is an element of an argument of ``@f``, number ``tuner.argument``, indexed by
    the dimensions of C that ``tuner.dimensions`` lists. Bodies are straight-line arith and math ops.
    """
    wanted = name_of(function) + SUFFIX
    for sibling in ops_in(function.parent.regions[0].blocks[0]):
        if sibling.name == "func.func" and name_of(sibling) == wanted:
            return sibling
    return None


def output_type(epilogue: Op) -> Type:
    """Returns the result type of an epilogue, a scalar function: the element type of the final output."""
    return function_type(epilogue).results[0]


def reads_argument(epilogue: Op, index: int) -> bool:
    """Returns whether a scalar epilogue function reads an element of the kernel's argument ``index``."""
    for position in range(1, len(epilogue.regions[0].blocks[0].arguments)):
        source = argument_attributes(epilogue, position)[ARGUMENT]
        if ir.IntegerAttr(source).value == index:
            return True
    return False


def apply_epilogue(epilogue: Op, function: Op, sums: Value, indices: list[Value]) -> Value:
    """Creates the ops of an epilogue on a vector of adjacent sums of a row of C; returns the result vector.

    ``function``: the kernel, whose arguments are loaded from. ``indices``: row and column of the first sum in
    C.
    """
    width = ir.VectorType(sums.type).shape[0]
    block = epilogue.regions[0].blocks[0]
    known = {block.arguments[0]: sums}
    for index, argument in list(enumerate(block.arguments))[1:]:
        known[argument] = _load(epilogue, index, function, indices, width)
    for op in ops_in(block):
        if op.name == "func.return":
            return known[op.operands[0]]
        results = [ir.VectorType.get([width], result.type) for result in op.results]
        attributes = attributes_of(op)
        if op.name == "arith.constant":
            attributes["value"] = ir.DenseElementsAttr.get_splat(results[0], attributes["value"])
        operands = [known[operand] for operand in op.operands]
        known.update(zip(op.results, create(op.name, results, operands, **attributes).results, strict=True))
    raise AssertionError("a function ends with func.return")


def _load(epilogue: Op, number: int, function: Op, indices: list[Value], width: int) -> Value:
    attributes = argument_attributes(epilogue, number)
    source = function.regions[0].blocks[0].arguments[ir.IntegerAttr(attributes[ARGUMENT]).value]
    dimensions = list(ir.DenseI64ArrayAttr(attributes[DIMENSIONS]))
    element = ir.MemRefType(source.type).element_type
    type_ = ir.VectorType.get([width], element)
    at = [indices[dimension] for dimension in dimensions]
    if dimensions[-1:] == [len(indices) - 1]:
        return value("vector.load", type_, source, *at)
    return value("vector.broadcast", type_, value("memref.load", element, source, *at))
