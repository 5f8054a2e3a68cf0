"""Finds rows that a program rounds to i8 and back, as ``tuner.core.quantization`` does for activations "i8".

    largest = x.unflatten(-1, (groups, 32)).abs().amax(-1, keepdim=True)
    inverse = where(largest < 1e-30, 0, 127 / largest)
    q = (x.unflatten(-1, (groups, 32)) * inverse).round().to(int8)
    a = (q.float() * (largest / 127)).flatten(-2)

A product of ``a`` with quantized weights of the same groups is then one of the integers themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tuner.core.quantization import GREATEST, LEAST_MAXIMUM
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions import operations
from tuner.mlir.ir.reading import maps_in
from tuner.models.fusions.views import number_of

LESS = 4  # the predicate olt of arith.cmpf
LEAST = float(np.float32(LEAST_MAXIMUM))
RESHAPES = (operations.EXPAND, operations.COLLAPSE)


@dataclass(frozen=True, eq=False)
class RoundedRows:
    """Rows that are rounded to i8: the tensor before, in another shape perhaps, and the size of a group."""

    source: Value
    group: int


class _OtherForm(Exception):  # noqa: N818 - not an error
    """A tensor is computed otherwise than the rows that are looked for."""


def rounded_rows(a: Value) -> RoundedRows | None:
    """Returns the rows that ``a`` (m x k) is the rounded numbers of; None where it is computed otherwise."""
    try:
        return _rounded_rows(a)
    except _OtherForm:
        return None


def _rounded_rows(a: Value) -> RoundedRows:
    integers, scale = _operands(a, "arith.mulf", is_scaled=True)
    (bytes_,) = _operands(integers, "arith.sitofp")
    (rounded,) = _operands(bytes_, "arith.fptosi")
    (scaled,) = _operands(rounded, "math.roundeven")
    source, inverse = _operands(scaled, "arith.mulf", is_scaled=True)
    largest, greatest = _operands(scale, "arith.divf")
    is_small, zero, quotient = _operands(inverse, "arith.select")
    compared, least = _operands(is_small, "arith.cmpf")
    dividend, divisor = _operands(quotient, "arith.divf")
    group = source.type.shape[-1]
    source = _unshaped(source)
    numbers = [_number(operand) for operand in (greatest, zero, least, dividend)]
    _require(numbers == [GREATEST, 0.0, LEAST, GREATEST])
    _require(all(_unshaped(operand) == _unshaped(largest) for operand in (compared, divisor)))
    _require(str(bytes_.type.element_type) == "i8" and str(source.type.element_type) == "f32")
    _require(_unshaped(_magnitudes_source(largest)) == source and a.type.shape[-1] % group == 0)
    return RoundedRows(source, group)


def _operands(tensor: Value, name: str, *, is_scaled: bool = False) -> Sequence[Value]:
    """Returns the operands of the one operation ``name`` that makes the elements of a tensor.

    ``is_scaled``: the last input lacks the last dimension, for whose elements it is repeated. Raises
    _OtherForm.
    """
    op = operations.defining(_unshaped(tensor))
    _require(op is not None and op.name == operations.GENERIC and all(operations.is_parallel(op)))
    assert op is not None
    step, end = _body(op)
    _require(step.name == name and end.operands[0] == step.results[0])
    if name == "arith.cmpf":
        _require(ir.IntegerAttr(step.attributes["predicate"]).value == LESS)
    arguments = list(op.regions[0].blocks[0].arguments)
    inputs = dict(zip(arguments, operations.inputs_of(op), strict=False))
    *of_inputs, of_result = map(operations.dimensions, maps_in(op))
    every = tuple(range(len(op.results[0].type.shape)))
    _require(of_result == every)
    expected = [every for _ in of_inputs]
    if is_scaled:
        expected[-1] = every[:-1]
        _require(list(step.operands) == arguments[: len(inputs)])
    _require(of_inputs == expected)
    return [inputs.get(operand, operand) for operand in step.operands]


def _magnitudes_source(largest: Value) -> Value:
    """Returns the tensor whose greatest magnitudes along its last dimension ``largest`` has."""
    op = operations.defining(_unshaped(largest))
    _require(op is not None and op.name == operations.GENERIC)
    assert op is not None
    step, end = _body(op)
    _require(step.name == "arith.maximumf" and end.operands[0] == step.results[0])
    _require(set(step.operands) == set(op.regions[0].blocks[0].arguments))
    of_input, of_result = map(operations.dimensions, maps_in(op))
    (magnitudes,) = operations.inputs_of(op)
    every = tuple(range(len(magnitudes.type.shape)))
    _require((of_input, of_result) == (every, every[:-1]))
    start = number_of(operations.inits_of(op)[0])
    _require(start is not None and start <= 0)
    (source,) = _operands(magnitudes, "math.absf")
    return source


def _body(op: Op) -> tuple[Op, Op]:
    body = operations.body_of(op)
    _require(len(body) == 2)
    return body[0], body[1]


def _unshaped(tensor: Value) -> Value:
    """Returns the tensor that ``tensor`` is another shape of."""
    op = operations.defining(tensor)
    while op is not None and op.name in RESHAPES:
        tensor = op.operands[0]
        op = operations.defining(tensor)
    return tensor


def _number(value: Value) -> float | None:
    """Returns the constant that a number is, or that fills a tensor; None for another value."""
    op = operations.defining(value)
    if op is not None and op.name == operations.CONSTANT and isinstance(op.attributes["value"], ir.FloatAttr):
        return float(op.attributes["value"].value)
    return number_of(_unshaped(value))


def _require(is_so: bool) -> None:
    if not is_so:
        raise _OtherForm
