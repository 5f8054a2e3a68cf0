"""What a host function takes and gives, as values that need no compiler."""

from typing import Any

from tuner.device_program import BufferType, ScalarType, ValueType
from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir
from tuner.mlir.passes.buffer_roots import is_buffer
from tuner.mlir.passes.kernel_effects import effect_of, is_number
from tuner.mlir.symbols import function_type


def arguments_of(function: Any) -> tuple[ValueType, ...]:
    """Returns the types of a func.func's arguments. Raises CandidateError(COMPILE) for odd ones."""
    kinds = list(function_type(function).inputs)
    for kind in kinds:
        if isinstance(kind, ir.MemRefType):
            _require_row_major(kind)
    return tuple(_value_type(kind, "argument") for kind in kinds)


def results_of(function: Any) -> tuple[ValueType, ...]:
    """Returns the types of a func.func's results. Raises CandidateError(COMPILE) for odd ones."""
    return tuple(_value_type(kind, "result") for kind in function_type(function).results)


def written_arguments(function: Any) -> tuple[bool, ...]:
    """Tells of each argument of a function on loops whether it may be written."""
    arguments = function.regions[0].blocks[0].arguments
    return tuple(is_buffer(argument.type) and effect_of(argument).writes for argument in arguments)


def _require_row_major(kind: Any) -> None:
    """Raises CandidateError(COMPILE) for a layout that a C-contiguous array, which is passed, has not."""
    strides, offset = kind.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    expected: int | None = 1
    for number in reversed(range(kind.rank)):
        if strides[number] not in (unknown, expected):
            raise CandidateError(
                Stage.COMPILE, f"payload: argument: found {kind}, allowed rows that lie without gaps"
            )
        expected = None if expected is None or kind.is_dynamic_dim(number) else expected * kind.shape[number]
    if offset not in (unknown, 0):
        raise CandidateError(Stage.COMPILE, f"payload: argument: found {kind}, allowed an offset of 0")


def _value_type(kind: Any, what: str) -> ValueType:
    if isinstance(kind, ir.MemRefType):
        shape = tuple(None if kind.is_dynamic_dim(n) else kind.shape[n] for n in range(kind.rank))
        return BufferType(str(kind.element_type), shape)
    if is_number(kind) and not isinstance(kind, ir.VectorType | ir.ComplexType):
        return ScalarType(str(kind))
    raise CandidateError(
        Stage.COMPILE, f"payload: {what}: found {kind}, allowed memrefs, tensors and numbers"
    )
