"""An elementwise epilogue as a scalar function next to its kernel, and its application to vectors.

``tuner.set_aside_epilogue`` makes the function, ``tuner.finish_stores`` applies it where sums are stored::

    func.func private @f_epilogue(
        %sum: f32, %bias: f32 {tuner.argument = 2 : i64, tuner.dimensions = array<i64: 1>}) -> f32

Each argument but the first is an element of an argument of ``@f``, number ``tuner.argument``, indexed by the
dimensions of C that ``tuner.dimensions`` lists. Bodies are straight-line arith and math ops.
"""

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.rewrite.building import create, value
from tuner.mlir.rewrite.padded_views import argument_attributes
from tuner.mlir.rewrite.symbols import function_type, name_of

SUFFIX = "_epilogue"
ARGUMENT, DIMENSIONS = "tuner.argument", "tuner.dimensions"  # attributes of the scalar function's arguments


def find_epilogue(function: Op) -> Op | None:
    """Returns the scalar function ``@f_epilogue`` next to the func.func ``@f``; None if there is none."""
    wanted = name_of(function) + SUFFIX
    siblings = (op.operation for op in function.parent.regions[0].blocks[0].operations)
    return next((op for op in siblings if op.name == "func.func" and name_of(op) == wanted), None)


def output_type(epilogue: Op) -> Type:
    """Returns the result type of an epilogue, a scalar function: the element type of the final output."""
    return function_type(epilogue).results[0]


def apply_epilogue(epilogue: Op, function: Op, sums: Value, indices: list[Value]) -> Value:
    """Creates the ops of an epilogue on a vector of adjacent sums of a row of C; returns the result vector.

    ``epilogue``: the scalar function. ``function``: the kernel, from whose arguments operands such as the
    bias are loaded. ``indices``: row and column of the first sum in C.
    """
    width = ir.VectorType(sums.type).shape[0]
    block = epilogue.regions[0].blocks[0]
    known = {block.arguments[0]: sums}
    for number, argument in list(enumerate(block.arguments))[1:]:
        known[argument] = _load(epilogue, number, function, indices, width)
    for op in (each.operation for each in block.operations):
        if op.name == "func.return":
            return known[op.operands[0]]
        results = [ir.VectorType.get([width], result.type) for result in op.results]
        attributes = {each: op.attributes[each] for each in op.attributes}
        if op.name == "arith.constant":
            attributes["value"] = ir.DenseElementsAttr.get_splat(results[0], attributes["value"])
        operands = [known[operand] for operand in op.operands]
        known.update(zip(op.results, create(op.name, results, operands, **attributes).results, strict=True))
    raise AssertionError("a function ends with func.return")


def _load(epilogue: Op, number: int, function: Op, indices: list[Value], width: int) -> Value:
    """Loads the vector for one argument of the epilogue: adjacent elements, or one element broadcast."""
    attributes = argument_attributes(epilogue, number)
    source = function.regions[0].blocks[0].arguments[ir.IntegerAttr(attributes[ARGUMENT]).value]
    dimensions = list(ir.DenseI64ArrayAttr(attributes[DIMENSIONS]))
    element = ir.MemRefType(source.type).element_type
    kind = ir.VectorType.get([width], element)
    at = [indices[dimension] for dimension in dimensions]
    if dimensions[-1:] == [len(indices) - 1]:
        return value("vector.load", kind, source, *at)
    return value("vector.broadcast", kind, value("memref.load", element, source, *at))
