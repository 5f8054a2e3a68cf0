"""Constants of several elements become arguments of the function: its text has no weights in it.

    func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %w = arith.constant dense_resource<weight> : tensor<8xf32>
  becomes
    func.func @main(%x: tensor<4x8xf32>, %w: tensor<8xf32>) -> tensor<4x8xf32> {

Constants with one number in all elements become ``linalg.fill``, which costs no memory.
"""

from collections.abc import Mapping

import numpy as np

from tuner.core.errors import CandidateError, Stage
from tuner.core.numpy_types import DTYPES
from tuner.mlir.bindings import Attribute, Op, Value, ir
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.building import create, value
from tuner.mlir.rewrite.symbols import function_type
from tuner.mlir.rewrite.walking import walk
from tuner.programs.lower.resources import array_of
from tuner.programs.op_groups.payload import TensorPayload, tensor_type

RESOURCE = "dense_resource<"
FOLD = "builtin.module(canonicalize)"


def take_weights(payload: TensorPayload, resources: Mapping[str, bytes]) -> tuple[np.ndarray, ...]:
    """Turns constants into arguments after the function's own, in place; returns their arrays.

    ``resources``: the data of ``dense_resource`` constants by name. Raises CandidateError(BIND) for a
    constant without its data.
    """
    weights = []
    for op in walk(payload.function, "arith.constant"):
        constant = op.attributes["value"]
        if not isinstance(op.results[0].type, ir.RankedTensorType):
            continue
        if isinstance(constant, ir.DenseElementsAttr) and constant.is_splat:
            new = _filled(op, constant)
        else:
            weights.append(_array(constant, resources))
            new = add_argument(payload.function, op.results[0].type)
        op.results[0].replace_all_uses_with(new)
        op.erase()
    return tuple(weights)


def add_argument(function: Op, kind: ir.RankedTensorType) -> Value:
    """Adds an argument of a tensor type at the end of a function's arguments; returns its value."""
    block, signature = function.regions[0].blocks[0], function_type(function)
    inputs = [*signature.inputs, kind]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, signature.results))
    return block.add_argument(kind, ir.Location.unknown())


def _filled(op: Op, constant: ir.DenseElementsAttr) -> Value:
    """Returns the value of a constant as a fill of an empty tensor, created in its place."""
    kind = op.results[0].type
    with ir.InsertionPoint(op), op.location:
        number = value("arith.constant", kind.element_type, value=constant.get_splat_value())
        empty = create("tensor.empty", [kind]).results[0]
        return filled(number, empty)


def filled(number: Value, tensor: Value) -> Value:
    """Creates ``linalg.fill`` of a tensor with a number at the current insertion point; returns its value."""
    fill = ir.Operation.create(
        "linalg.fill",
        results=[tensor.type],
        operands=[number, tensor],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1])},
        regions=1,
    )
    element = tensor.type.element_type
    block = fill.regions[0].blocks.append(element, element)
    with ir.InsertionPoint(block):
        create("linalg.yield", [], [block.arguments[0]])
    return fill.results[0]


def _array(constant: Attribute, resources: Mapping[str, bytes]) -> np.ndarray:
    kind = tensor_type(constant.type)
    text = str(constant) if not isinstance(constant, ir.DenseElementsAttr) else ""
    if not text.startswith(RESOURCE):
        return _dense(constant, kind.element)
    name = text[len(RESOURCE) : text.rindex("> :")]
    if name not in resources:
        raise CandidateError(
            Stage.BIND,
            f"payload: dense_resource<{name}> has no data after the module: "
            "print it with large_elements_limit=None",
        )
    return array_of(resources[name], kind.shape, kind.element)


def _dense(constant: Attribute, element: str) -> np.ndarray:
    """Returns the elements of a dense constant; numpy cannot read bf16, so its bits are read."""
    dtype = DTYPES[element]
    if element.startswith(("bf", "f8")):
        constant = _bits(constant, dtype.itemsize * 8)
        return np.array(constant).view(dtype)
    return np.array(constant).astype(dtype, copy=False)


def _bits(constant: Attribute, width: int) -> Attribute:
    """Returns a dense constant of floats as a constant of the integers with the same bits."""
    integers = ir.RankedTensorType.get(constant.type.shape, ir.IntegerType.get_signless(width))
    module = ir.Module.parse("func.func @bits() { return }")
    function = module.body.operations[0].operation
    block = function.regions[0].blocks[0]
    next(iter(block.operations)).operation.erase()
    with ir.InsertionPoint(block):
        floats = value("arith.constant", constant.type, value=constant)
        create("func.return", [], [value("arith.bitcast", integers, floats)])
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([], [integers]))
    run_passes(module, FOLD)
    return walk(module, "arith.constant")[0].attributes["value"]
