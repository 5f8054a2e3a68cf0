"""Reads a payload that may become fusions: one function of static tensors, with weights as arguments."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from tuner.core.dtypes import NUMBER_TYPES
from tuner.core.errors import CandidateError, Stage
from tuner.core.fusions import TensorType
from tuner.core.numpy_types import DTYPES
from tuner.mlir.bindings import Attribute, Block, Op, Type, Value, ir
from tuner.mlir.ir.building import create, filled_tensor, value
from tuner.mlir.ir.reading import ARGUMENT_ATTRIBUTES, function_type, new_values_of, ops_in, types_of, walk
from tuner.mlir.ir.resources import Data, array_of
from tuner.mlir.miscompiled import avoid_miscompilations
from tuner.mlir.passes import run_passes
from tuner.mlir.programs.entry import (
    entry_of,
    function_named,
    hide_others,
    reject_unknown_floats,
    require_few_operations,
)
from tuner.mlir.transform import parse
from tuner.models.lowering.aggregates import decompose_aggregates
from tuner.models.lowering.composed_math import expand_composed_math
from tuner.models.lowering.packing import decompose_packing

INLINE = "builtin.module(inline,symbol-dce)"
DIALECTS = ("arith.", "math.", "linalg.", "tensor.")  # of operations of the function's block
TERMINATOR = "func.return"
ELEMENTS = tuple(name for name in NUMBER_TYPES if name != "index")  # of tensors
RESOURCE = "dense_resource<"
FOLD = "builtin.module(canonicalize)"
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class NotFused:
    """The reason why a program cannot be compiled as fusions; it is compiled as a whole instead."""

    reason: str  # one line, to print


@dataclass(frozen=True)
class TensorPayload:
    """A program that may become fusions: one function on tensors of static sizes, in one block without calls.

    The module is in the current MLIR context. ``ops``: the operations of the block but the last; ``end``: the
    last, which returns the results. ``new_values``: of each argument that the program changes, the number of
    the result that is its new value (``tuner.new_value``).
    """

    module: ir.Module
    function: Op
    new_values: Mapping[int, int] = field(default_factory=dict)

    @property
    def block(self) -> Block:
        return self.function.regions[0].blocks[0]

    @property
    def ops(self) -> list[Op]:
        return ops_in(self.block)[:-1]

    @property
    def end(self) -> Op:
        return list(self.block.operations)[-1].operation

    @property
    def returned(self) -> list[Value]:
        """Returns the values that a call returns: all results but the new values of arguments."""
        written = {*self.new_values.values()}
        return [value for number, value in enumerate(self.end.operands) if number not in written]

    @property
    def results(self) -> tuple[TensorType, ...]:
        return tuple(tensor_type(value.type) for value in self.returned)


def read_payload(text: str, entry: str | None) -> TensorPayload | NotFused:
    """Parses a payload without the data of its constants, in the current MLIR context, and inlines its calls.

    ``entry``: name of the function; None: ``main``, or the only public function. Returns NotFused for a
    program with something that fusions lack, such as dynamic sizes. Raises CandidateError(BIND) for text that
    does not parse, for a missing entry, and for too many operations; COMPILE for numbers of a type that no
    target computes.
    """
    module = parse(text, "payload")
    require_few_operations(module)
    name = entry_of(module, entry)
    hide_others(module, name)
    avoid_miscompilations(module)
    reject_unknown_floats(module)
    decompose_packing(module)
    decompose_aggregates(module)
    expand_composed_math(module)
    run_passes(module, INLINE)
    function = function_named(module, name)
    reason = _why_not(module, function)
    if reason:
        return NotFused(reason)
    new_values = new_values_of(function)
    if ARGUMENT_ATTRIBUTES in function.attributes:
        del function.attributes[ARGUMENT_ATTRIBUTES]
    return TensorPayload(module, function, new_values)


def tensor_type(type_: Type) -> TensorType:
    """Returns an MLIR tensor type of static shape as a value that needs no MLIR."""
    return TensorType(tuple(type_.shape), str(type_.element_type))


def _why_not(module: ir.Module, function: Op) -> str:
    if len(list(module.body.operations)) != 1:
        return "has calls that cannot be inlined, or globals"
    if len(function.regions[0].blocks) != 1:
        return "control flow: the function has several blocks"
    signature = function_type(function)
    for what, kinds in (("argument", signature.inputs), ("result", signature.results)):
        for index, type_ in enumerate(kinds):
            if reason := _refused_type(type_):
                return f"{what} {index}: {reason}"
    if not list(signature.results):
        return "returns nothing"
    return next((reason for op in function.regions[0].blocks[0].operations if (reason := _refused(op))), "")


def _refused(op: Op) -> str:
    op = op.operation
    if op.name == TERMINATOR:
        return ""
    if not op.name.startswith(DIALECTS):
        is_control_flow = op.name.startswith(("scf.", "cf."))
        return f"{'control flow: ' if is_control_flow else ''}{op.name}"
    tensors = [v.type for v in (*op.operands, *op.results) if isinstance(v.type, ir.ShapedType)]
    return next((f"{op.name}: {reason}" for kind in tensors if (reason := _refused_type(kind))), "")


def _refused_type(type_: Type) -> str:
    if not isinstance(type_, ir.RankedTensorType):
        return f"{type_} is not a tensor"
    if not type_.has_static_shape:
        return f"{type_} has a dynamic size"
    if type_.encoding is not None:
        return f"{type_} has an encoding"
    if str(type_.element_type) not in ELEMENTS:
        return f"{type_} has elements of an unsupported type"
    if 0 not in type_.shape:
        return ""
    return f"{type_} has no elements"


@dataclass(frozen=True)
class Weight:
    """A constant of a program: its ``values``, or the ``name`` of its dense_resource in the text."""

    type: TensorType
    name: str = ""
    values: Array | None = None

    def array(self, resources: Mapping[str, Data]) -> Array:
        """Returns the constant's values. Raises CandidateError(BIND) where ``resources`` lacks their data."""
        if self.values is not None:
            return self.values
        self.require_data(resources)
        return array_of(resources[self.name], self.type.shape, self.type.element)

    def require_data(self, resources: Container[str]) -> None:
        """Raises CandidateError(BIND) where ``resources`` lacks the constant's data."""
        if self.values is None and self.name not in resources:
            raise CandidateError(
                Stage.BIND,
                f"payload: dense_resource<{self.name}> has no data after the module: "
                "print it with large_elements_limit=None",
            )


class Constants(Sequence[Array]):
    """The values of a program's constants, by index; the data of a constant are read when it is indexed."""

    def __init__(self, weights: Sequence[Weight], resources: Mapping[str, Data]) -> None:
        self._weights = weights
        self._resources = resources

    @overload
    def __getitem__(self, number: int) -> Array: ...
    @overload
    def __getitem__(self, number: slice) -> "Constants": ...
    def __getitem__(self, number: int | slice) -> "Array | Constants":
        """Returns a constant's values. Raises CandidateError(BIND) for data that are missing or wrong."""
        if isinstance(number, slice):
            return Constants(self._weights[number], self._resources)
        return self._weights[number].array(self._resources)

    def __len__(self) -> int:
        return len(self._weights)

    def known(self, number: int) -> Array | None:
        """Returns the values of a constant; None if its data are missing."""
        weight = self._weights[number]
        if weight.values is None and weight.name not in self._resources:
            return None
        return weight.array(self._resources)


def take_weights(payload: TensorPayload) -> tuple[Weight, ...]:
    """Turns constants into arguments after the function's own, in place; returns the constants.

    Constants with one number in all elements become ``linalg.fill``, which costs no memory.

        func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
          %w = arith.constant dense_resource<weight> : tensor<8xf32>
      becomes
        func.func @main(%x: tensor<4x8xf32>, %w: tensor<8xf32>) -> tensor<4x8xf32> {
    """
    weights = []
    for op in walk(payload.function, "arith.constant"):
        constant = op.attributes["value"]
        if not isinstance(op.results[0].type, ir.RankedTensorType):
            continue
        if isinstance(constant, ir.DenseElementsAttr) and constant.is_splat:
            with ir.InsertionPoint(op), op.location:
                type_ = op.results[0].type
                number = value("arith.constant", type_.element_type, value=constant.get_splat_value())
                new = filled_tensor(number, create("tensor.empty", [type_]).results[0])
        else:
            weights.append(_weight(constant))
            new = payload.block.add_argument(op.results[0].type, ir.Location.unknown())
        op.results[0].replace_all_uses_with(new)
        op.erase()
    set_function_type(payload.function)  # once: it reads all arguments
    return tuple(weights)


def set_function_type(function: Op) -> None:
    """Sets the type of a ``func.func`` of one block from its arguments and what it returns."""
    block = function.regions[0].blocks[0]
    inputs = types_of(block.arguments)
    results = types_of(list(block.operations)[-1].operands)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _weight(constant: Attribute) -> Weight:
    type_ = tensor_type(constant.type)
    text = str(constant) if not isinstance(constant, ir.DenseElementsAttr) else ""
    if not text.startswith(RESOURCE):
        return Weight(type_, values=_dense(constant, type_.element))
    return Weight(type_, name=text[len(RESOURCE) : text.rindex("> :")])


def _dense(constant: Attribute, element: str) -> np.ndarray:
    dtype = DTYPES[element]
    if not element.startswith(("bf", "f8")):
        return np.array(constant).astype(dtype, copy=False)
    # numpy cannot read these from MLIR: the bits are read
    integers = ir.RankedTensorType.get(constant.type.shape, ir.IntegerType.get_signless(dtype.itemsize * 8))
    module = ir.Module.parse("func.func @bits() { return }")
    function = module.body.operations[0].operation
    block = function.regions[0].blocks[0]
    next(iter(block.operations)).operation.erase()
    with ir.InsertionPoint(block):
        floats = value("arith.constant", constant.type, value=constant)
        create("func.return", [], [value("arith.bitcast", integers, floats)])
    set_function_type(function)
    run_passes(module, FOLD)
    return np.array(walk(module, "arith.constant")[0].attributes["value"]).view(dtype)
