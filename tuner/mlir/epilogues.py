"""An elementwise epilogue set aside as a scalar function, and put onto vectors where results are stored.

``func.func private @<name>_epilogue(%sum: f32, %bias: f32) -> f16``; each argument but the first tells by
attributes which argument of ``@<name>`` it is an element of, and the dimensions of C that index it.
"""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.building import create, value
from tuner.mlir.padded_views import argument_attributes
from tuner.mlir.symbols import function_type, name_of

SUFFIX = "_epilogue"
ARGUMENT, DIMENSIONS = "tuner.argument", "tuner.dimensions"  # attributes of a scalar's argument


def find_epilogue(function: Any) -> Any | None:
    """Returns the scalar function that was set aside for a func.func, if any."""
    wanted = name_of(function) + SUFFIX
    siblings = (op.operation for op in function.parent.regions[0].blocks[0].operations)
    return next((op for op in siblings if op.name == "func.func" and name_of(op) == wanted), None)


def output_type(epilogue: Any) -> Any:
    """Returns the element type of what the epilogue gives."""
    return function_type(epilogue).results[0]


def apply_epilogue(epilogue: Any, function: Any, sums: Any, indices: list[Any]) -> Any:
    """Builds the epilogue on a vector of neighbours along the last dimension of C, and returns its result."""
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


def _load(epilogue: Any, number: int, function: Any, indices: list[Any], width: int) -> Any:
    """Loads what one argument of the epilogue stands for: neighbours, or one element for all."""
    attributes = argument_attributes(epilogue, number)
    source = function.regions[0].blocks[0].arguments[ir.IntegerAttr(attributes[ARGUMENT]).value]
    dimensions = list(ir.DenseI64ArrayAttr(attributes[DIMENSIONS]))
    element = ir.MemRefType(source.type).element_type
    kind = ir.VectorType.get([width], element)
    at = [indices[dimension] for dimension in dimensions]
    if dimensions[-1:] == [len(indices) - 1]:
        return value("vector.load", kind, source, *at)
    return value("vector.broadcast", kind, value("memref.load", element, source, *at))
