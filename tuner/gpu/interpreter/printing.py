"""Steps that print: vector.print and MLIR's runner functions, as mlir-runner prints numbers and vectors."""

import re

from tuner.gpu.interpreter import control_flow
from tuner.gpu.interpreter.decoding import FunctionScope, LaneFrame, Step
from tuner.gpu.interpreter.lanes import Array, unsigned
from tuner.mlir.bindings import Op, ir
from tuner.mlir.effects.runner_signatures import number_text
from tuner.mlir.ir.reading import callee_of, unsupported

PUNCTUATION = {"no_punctuation": "", "newline": "\n", "comma": ", ", "open": "( ", "close": " )"}


def vector_text(values: Array) -> str:
    """Returns an array as ``vector.print`` writes it: ``( 1, 2 )``, nested per dimension; 0-d as a number."""
    if values.ndim == 0:
        return number_text(values[()])
    return "( " + ", ".join(map(vector_text, values)) + " )"


def print_vector(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.print`` of a number, a vector, a string or punctuation."""
    mark = str(op.attributes["punctuation"]).removeprefix("#vector.punctuation<").removesuffix(">")
    end = PUNCTUATION[mark]
    if not op.operands:
        literal = op.attributes.get("stringLiteral")
        text = end if literal is None else ir.StringAttr(literal).value
        return lambda frame: _write(frame, text)
    type_ = op.operands[0].type
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    is_unsigned = isinstance(element, ir.IndexType) or "ui" in str(element)
    slot = scope.slot(op.operands[0])

    def step(frame: LaneFrame) -> None:
        values = frame.values[slot][0, 0]
        _write(frame, vector_text(unsigned(values) if is_unsigned else values) + end)

    return step


def _write(frame: LaneFrame, text: str) -> None:
    frame.write(text)


def call(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for a call of a function with a body, or of a function that prints numbers or marks.

    Raises CandidateError(COMPILE) for another function without a body.
    """
    name = callee_of(op)
    known = scope.symbols.get(name)
    if known is None or known.regions[0].blocks:
        return control_flow.call(op, scope)
    print_scalar = re.fullmatch(r"print(I64|F32|F64|U64|Comma|Newline|Open|Close)", name)
    if print_scalar is None:
        raise unsupported(op, f"@{name}, which has no body", "functions with a body")
    text = PUNCTUATION.get(print_scalar[1].lower())
    if text is not None:
        return lambda frame: _write(frame, text)
    slot = scope.slot(op.operands[0])
    is_unsigned = print_scalar[1] == "U64"

    def step(frame: LaneFrame) -> None:
        values = frame.values[slot][0, 0]
        _write(frame, number_text((unsigned(values) if is_unsigned else values)[()]))

    return step
