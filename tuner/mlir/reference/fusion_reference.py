"""Evaluates a fusion on arrays: the numpy reference that kernels are compared with, with allowed errors.

Takes the text of a ``Fusion`` (``tuner.core.fusions``) and arrays for its inputs. Contractions are
``numpy.matmul``; the body of a ``linalg.generic`` is evaluated on whole arrays, each operand read through its
indexing map; a reduction is numpy's along the reduced dimensions. Not handled, and refused: control flow,
division of integers, reductions other than sums, maxima and minima of floats, or ``and``, ``or``, ``xor`` of
i1.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.bounded import (
    COMPARISONS,
    Bounded,
    Float64,
    apply,
    total,
    units_of_error,
)
from tuner.core.dtypes import FLOATS
from tuner.core.errors import UsageError
from tuner.core.fusion_facts import ZERO_PLANES
from tuner.core.quantization import QUANTIZATION
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.convolutions import (
    LAYOUTS,
    PAD,
    convolution_form,
    is_padding_of_zeros,
    zero_planes,
)
from tuner.mlir.fusions.function import (
    STORE,
    argument_of,
    fusion_function,
    indexing_maps,
    loop_extents,
    parse_fusion,
)
from tuner.mlir.fusions.hidden_keys import with_hidden_keys
from tuner.mlir.ir.reading import ops_in, walk
from tuner.mlir.reference.products import PRODUCTS, KnownProduct, product_of
from tuner.mlir.reference.quantized_reference import quantized_product

Array = npt.NDArray[np.generic]
COPIES = ("linalg.copy", "linalg.transpose", "linalg.broadcast")
ADD = "arith.addf"
# Other ops that reduce, and the element types that they reduce.
REDUCTIONS = {
    "arith.maximumf": (np.maximum, FLOATS),
    "arith.maxnumf": (np.fmax, FLOATS),
    "arith.minimumf": (np.minimum, FLOATS),
    "arith.minnumf": (np.fmin, FLOATS),
    "arith.andi": (np.logical_and, ("i1",)),
    "arith.ori": (np.logical_or, ("i1",)),
    "arith.xori": (np.logical_xor, ("i1",)),
}
# of whose operations ``takes_any_size``: a tensor's, and an element's. Not division: the sign of a zero is
# open, and so is that of the infinity that it gives.
WHOLE = (
    *COPIES,
    *PRODUCTS,
    PAD,
    "linalg.generic",
    "linalg.fill",
    "tensor.empty",
    "arith.constant",
    "bufferization.to_tensor",
    STORE,
    "func.return",
)
EXACT = (
    *("arith.addf", "arith.subf", "arith.mulf", "arith.negf", "math.absf"),
    *("arith.maximumf", "arith.minimumf", "arith.cmpf", "arith.select"),
    *("arith.extf", "arith.constant", "linalg.yield"),
)


@dataclass(frozen=True)
class Expected:
    """An output in float64, and the error that is allowed for each element."""

    value: Float64
    tolerance: Float64  # infinite: any number is right, also NaN and infinity


class FusionReference:
    """What a fusion computes from draws of its inputs, which mostly have lines of the first draw.

    Products of these lines are computed once, see ``KnownProduct``.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._products = defaultdict[str, KnownProduct](KnownProduct)
        self._first: tuple[Array, ...] = ()  # inputs, which stay as they are
        self._first_wide: tuple[Float64, ...] = ()

    def evaluate(self, inputs: tuple[Array, ...], seed: int | None = None) -> tuple[Expected, ...]:
        """Returns the outputs in float64, with the error that is allowed for a kernel's outputs.

        Where the rounding of an intermediate result decides whether an element is NaN, infinite or finite,
        any number is right: 1 + erf(-inf) is 0 or as small as the error of erf; times infinity, NaN or
        infinite. With a ``seed`` such elements are found, by two more evaluations in which each intermediate
        result is moved by its allowed error, in opposite directions; ``seed`` chooses the signs.

        ``inputs``: the fusion's input arrays, then, for each output that kernels read, what the output holds
        before the call; none of them changes later. They may have NaN and infinity if there is a ``seed``.
        Raises UsageError for an operation that is not implemented here, CandidateError for text that is not a
        fusion.
        """
        with ir.Context(), ir.Location.unknown():
            module = parse_fusion(self._text)  # owns the operations
            function = fusion_function(module)
            if QUANTIZATION in function.attributes:
                output = function.regions[0].blocks[0].arguments[-1].type
                return (Expected(*quantized_product(self._text, inputs, str(output.element_type))),)
            evaluation = _Evaluation(function, self._wide(inputs), self._products)
            outputs = evaluation.outputs()
            for direction in () if seed is None else (-1.0, 1.0):
                moves = _Moves(direction, np.random.default_rng(seed))
                moved = replace(evaluation, moves=moves, values={}).outputs()
                outputs = tuple(map(_where_equal_in_kind, outputs, moved))
            return outputs

    def _wide(self, inputs: tuple[Array, ...]) -> tuple[Float64, ...]:
        """Returns inputs in float64; of those in the first draw's memory, as weights, always one array."""
        if not self._first:
            self._first = inputs
            self._first_wide = tuple(map(_as_wide, inputs))
        wide = []
        for array, first, first_wide in zip(inputs, self._first, self._first_wide, strict=True):
            is_first = array.__array_interface__ == first.__array_interface__
            wide.append(first_wide if is_first else _as_wide(array))
        return tuple(wide)


def evaluate(text: str, inputs: tuple[Array, ...]) -> tuple[Expected, ...]:
    """Returns what ``FusionReference.evaluate`` returns, and raises its errors, of a fusion's first draw."""
    return FusionReference(text).evaluate(inputs)


def worst_error(expected: Expected, actual: Array) -> float:
    """Returns the largest error in units of the tolerance; infinity where NaN or infinities differ.

    0 where the tolerance is infinite: any number is right there.
    """
    return float(units_of_error(actual, expected.value, expected.tolerance).max(initial=0.0))


def evaluate_tensors(text: str, inputs: tuple[Array, ...]) -> tuple[Float64, ...]:
    """Returns the results, in float64, of a module's first function, which takes tensors, on ``inputs``.

    Raises UsageError for an operation that is not implemented here, MLIRError for text that does not parse.
    """
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        function = module.body.operations[0].operation
        *ops, end = ops_in(function.regions[0].blocks[0])
        made = _Evaluation(function, tuple(map(_as_wide, inputs)), defaultdict(KnownProduct))
        for argument, array in zip(function.regions[0].blocks[0].arguments, inputs, strict=True):
            made.values[argument] = Bounded.exact(array, str(argument.type.element_type))
        for op in ops:
            made.evaluate(op)
        return tuple(made.array(operand).value for operand in end.operands)


def takes_any_size(text: str) -> bool:
    """Returns whether a fusion consists of sums, products and exact operations only.

    Then results of subnormal and very large inputs have a known tolerance. Functions of ``math`` are
    approximated for usual arguments, and a division by zero depends on the sign of the zero, which may
    differ. Raises CandidateError(BIND) for text that is not a fusion.
    """
    with ir.Context(), ir.Location.unknown():
        module = parse_fusion(text)  # owns the operations
        function = fusion_function(module)
        ops = ops_in(function.regions[0].blocks[0])
        loops = [op for op in ops if op.name == "linalg.generic"]
        bodies = [operation.operation for op in loops for operation in op.regions[0].blocks[0].operations]
        return all(op.name in WHOLE for op in ops) and all(op.name in EXACT for op in bodies)


def multiplied_arguments(text: str) -> frozenset[int]:
    """Returns the indices of the arguments that an op of PRODUCTS reads as they are.

    Raises CandidateError(BIND) for text that is not a fusion.
    """
    with ir.Context(), ir.Location.unknown():
        module = parse_fusion(text)  # owns the operations
        operands = [operand for op in walk(fusion_function(module), *PRODUCTS) for operand in op.operands[:2]]
        arguments = map(argument_of, operands)
        return frozenset(argument.arg_number for argument in arguments if argument is not None)


def as_marked(text: str, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
    """Returns a fusion's inputs, changed so that they are as the attributes of its arguments promise.

    Planes marked as zeros are set to zero in ``inputs``, in place. The mask of an attention with a marked
    visible band is another array, which hides the keys outside of the band.
    """
    return with_hidden_keys(text, _with_zero_planes(text, inputs))


def _with_zero_planes(text: str, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
    """Returns inputs with zeros in the planes of a volume that ``text`` marks; others as they are."""
    if ZERO_PLANES not in text:
        return inputs
    with ir.Context(), ir.Location.unknown():
        module = parse_fusion(text)
        op = walk(fusion_function(module), *LAYOUTS)[0]
        axis = convolution_form(op).input.index("D")
        first, last = zero_planes(op)
        number = op.operands[0].owner.operands[0].arg_number
    planes = np.moveaxis(inputs[number], axis, 0)  # a view
    planes[:first], planes[len(planes) - last :] = 0, 0
    return inputs


def _as_wide(array: Array) -> Float64:
    return np.asarray(array, np.float64)


@dataclass(frozen=True)
class _Moves:
    """Moves results by their allowed errors, each up or down at random."""

    direction: float  # 1 or -1
    rng: np.random.Generator

    def moved(self, result: Bounded) -> Bounded:
        if result.element not in FLOATS:
            return result
        shape = np.broadcast_shapes(result.value.shape, result.error.shape)
        signs = self.rng.integers(0, 2, shape, np.int8) * 2.0 - 1.0
        value = result.value + self.direction * signs * result.error
        return replace(result, value=value)


def _where_equal_in_kind(expected: Expected, moved: Expected) -> Expected:
    """Returns what is expected; of any number where only one is NaN, or infinite with that sign."""
    value = expected.value
    other = moved.value
    is_equal = (value == other) | (np.isnan(value) & np.isnan(other))
    is_equal |= np.isfinite(value) & np.isfinite(other)
    return Expected(value, np.where(is_equal, expected.tolerance, np.inf))


@dataclass
class _Evaluation:
    function: Op
    inputs: tuple[Float64, ...]
    known: Mapping[str, KnownProduct]  # by the name of the product's value
    moves: _Moves | None = None  # of each result; None: results are as computed
    products: dict[Value, Bounded] = field(default_factory=dict)  # of inputs, the same in each evaluation
    values: dict[Value, Bounded] = field(default_factory=dict)

    def outputs(self) -> tuple[Expected, ...]:
        block = self.function.regions[0].blocks[0]
        stored: dict[int, Expected] = {}
        for op in ops_in(block):
            if op.name == STORE:
                result = self.array(op.operands[0])
                shape = tuple(op.operands[0].type.shape)
                stored[op.operands[1].arg_number] = Expected(
                    np.broadcast_to(result.value, shape).copy(), np.broadcast_to(result.error, shape).copy()
                )
            elif op.name != "func.return":
                self.evaluate(op)
        return tuple(stored[number] for number in sorted(stored))

    def evaluate(self, op: Op) -> None:
        if op.name == "bufferization.to_tensor":
            number = op.operands[0].arg_number
            if number < len(self.inputs):
                element = str(op.results[0].type.element_type)
                self.values[op.results[0]] = Bounded.exact(self.inputs[number], element)
        elif op.name == "arith.constant":
            self.values[op.results[0]] = _constant(op)
        elif op.name == "linalg.fill":
            self.values[op.results[0]] = self.values[op.operands[0]]
        elif op.name in PRODUCTS:
            self.values[op.results[0]] = self._product(op)
        elif op.name in COPIES or is_padding_of_zeros(op):
            self.values[op.results[0]] = self._copied(op)
        elif op.name == "linalg.generic":
            self._generic(op)
        elif op.name != "tensor.empty":
            raise UsageError(f"fusion: found {op.name}, allowed linalg ops on tensors of static sizes")

    def _copied(self, op: Op) -> Bounded:
        if op.name in COPIES:
            return self.read(op, 0, indexing_maps(op)[0])
        amounts = tuple(zip(op.attributes["static_low"], op.attributes["static_high"], strict=True))
        return self.array(op.operands[0]).reshaped(partial(np.pad, pad_width=amounts))

    def _product(self, op: Op) -> Bounded:
        left, right = map(self.array, op.operands[:2])
        made = self.products.get(op.results[0])
        if made is None:
            made = product_of(op, left, right, self.known[op.results[0].get_name()])
            if not np.any(left.error) and not np.any(right.error):
                self.products[op.results[0]] = made
        return self.moved(self.combined(ADD, made, op.operands[2]))

    def moved(self, result: Bounded) -> Bounded:
        if self.moves is None:
            return result
        return self.moves.moved(result)

    def combined(self, name: str, made: Bounded, start: Value) -> Bounded:
        """Returns a reduction by the op ``name`` that began with the tensor ``start``."""
        before = self.array(start)
        # adding to zeros rounds nothing
        if name == ADD and not np.any(before.value):
            return made
        return apply(name, (made, before), made.element)

    def _generic(self, op: Op) -> None:
        body = _Body(self, op)
        for index, result in enumerate(op.results):
            if next(iter(result.uses), None) is not None:
                self.values[result] = body.result(index)

    def array(self, value: Value) -> Bounded:
        number = self.values.get(value)
        if number is None:
            raise UsageError("fusion: reads a tensor without a value")
        shape = tuple(value.type.shape)
        return number.reshaped(lambda array: np.broadcast_to(array, shape))

    def read(self, op: Op, number: int, mapping: ir.AffineMap) -> Bounded:
        """Returns an operand over the loops of an op, with extents of 1 where it does not depend on one."""
        if not isinstance(op.operands[number].type, ir.RankedTensorType):
            return self.values[op.operands[number]]
        extents = loop_extents(op)
        grids = np.ogrid[tuple(slice(0, extent) for extent in extents)] if extents else []
        indices = tuple(_position(result, grids) for result in mapping.results)
        return self.array(op.operands[number]).reshaped(lambda array: np.asarray(array[indices]))


@dataclass
class _Body:
    evaluation: _Evaluation
    op: Op
    known: dict[Value, Bounded] = field(default_factory=dict)

    def result(self, number: int) -> Bounded:
        block = self.op.regions[0].blocks[0]
        yielded = list(block.operations)[-1].operation.operands[number]
        maps = indexing_maps(self.op)
        inputs = len(maps) - len(self.op.results)
        for operand, argument in enumerate(list(block.arguments)[:inputs]):
            if argument not in self.known:
                self.known[argument] = self.evaluation.read(self.op, operand, maps[operand])
        start = block.arguments[inputs + number]
        iterators = ir.ArrayAttr(self.op.attributes["iterator_types"])
        reduced = [axis for axis, iterator in enumerate(iterators) if "reduction" in str(iterator)]
        output = maps[inputs + number]
        if not reduced:
            if next(iter(start.uses), None) is not None:
                self.known[start] = self.evaluation.read(self.op, inputs + number, output)
            made = self._value(yielded)
            extents = loop_extents(self.op)
            order = [result.position for result in output.results]
            # an element that reads no operand is equal for the whole loop nest
            whole = made.reshaped(lambda array: np.broadcast_to(array, extents))
            return whole.reshaped(lambda array: np.transpose(array, order))
        return self._reduced(yielded, start, tuple(reduced), output, inputs + number)

    def _reduced(
        self, yielded: Value, start: Value, axes: tuple[int, ...], output: ir.AffineMap, number: int
    ) -> Bounded:
        """Returns the reduction of the yielded op's operand that is not ``start``, the value so far."""
        combined = None if isinstance(yielded.owner, ir.Block) else yielded.owner.operation
        if combined is None or start not in list(combined.operands) or len(combined.operands) != 2:
            found = "a body" if combined is None else combined.name
            raise UsageError(f"fusion: found a reduction by {found}, allowed sums, maxima and minima")
        other = next(operand for operand in combined.operands if operand != start)
        extents = loop_extents(self.op)
        whole = self._value(other).reshaped(lambda array: np.broadcast_to(array, extents))
        reduction, elements = REDUCTIONS.get(combined.name, (np.add, ()))
        if combined.name == ADD:
            made = total(whole, axes)
        elif whole.element in elements:
            value = reduction.reduce(whole.value, axis=axes).astype(np.float64)
            made = Bounded(value, whole.error.max(axis=axes), whole.element)
        else:
            found = f"{combined.name} of {whole.element}"
            raise UsageError(f"fusion: found a reduction by {found}, allowed sums, maxima and minima")
        kept = [axis for axis in range(len(extents)) if axis not in axes]
        order = [kept.index(result.position) for result in output.results]
        made = made.reshaped(lambda array: np.transpose(array, order))
        return self.evaluation.moved(self.evaluation.combined(combined.name, made, self.op.operands[number]))

    def _value(self, value: Value) -> Bounded:
        if value in self.known:
            return self.known[value]
        if value in self.evaluation.values:
            return self.evaluation.values[value]
        if isinstance(value.owner, ir.Block):
            raise UsageError("fusion: a body reads a value that is not computed elementwise")
        op = value.owner.operation
        if op.name == "arith.constant":
            made = _constant(op)
        elif op.name == "linalg.index":
            dimension = ir.IntegerAttr(op.attributes["dim"]).value
            grids = np.ogrid[tuple(slice(0, extent) for extent in loop_extents(self.op))]
            made = Bounded.exact(grids[dimension], "index")
        else:
            predicate = ir.IntegerAttr(op.attributes["predicate"]).value if op.name in COMPARISONS else 0
            operands = tuple(map(self._value, op.operands))
            made = self.evaluation.moved(apply(op.name, operands, str(op.results[0].type), predicate))
        self.known[value] = made
        return made


def _position(expression: ir.AffineExpr, grids: Sequence[Any]) -> Any:
    match expression:
        case ir.AffineDimExpr():
            return grids[expression.position]
        case ir.AffineConstantExpr():
            return np.asarray(expression.value)
        case ir.AffineAddExpr():
            return _position(expression.lhs, grids) + _position(expression.rhs, grids)
        case ir.AffineMulExpr():
            return _position(expression.lhs, grids) * _position(expression.rhs, grids)
    raise UsageError(f"fusion: found an indexing map with {expression}, allowed sums and products")


def _constant(op: Op) -> Bounded:
    constant = op.attributes["value"]
    element = op.results[0].type
    if isinstance(constant, ir.FloatAttr | ir.IntegerAttr | ir.BoolAttr):
        return Bounded.exact(float(constant.value), str(element))
    if not constant.is_splat:
        return Bounded.exact(np.array(constant), str(element.element_type))
    return Bounded.exact(float(constant.get_splat_value().value), str(element.element_type))
