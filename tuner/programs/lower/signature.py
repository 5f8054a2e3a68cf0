"""Reads the signature of a host function into values that need no MLIR."""

from tuner.core.device_program import BufferType, ScalarType, ValueType
from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Type, ir
from tuner.mlir.effects.address_flow import is_buffer
from tuner.mlir.effects.kernel_effects import effect_of, is_number
from tuner.mlir.rewrite.symbols import function_type


def arguments_of(function: Op) -> tuple[ValueType, ...]:
    """Returns the types of the arguments of a ``func.func``, in a form that needs no MLIR.

    Raises CandidateError(COMPILE) for a memref that is not row-major or begins at an offset other than 0
    (unknown strides and offsets are allowed), and for other than memrefs and numbers.
    """
    kinds = list(function_type(function).inputs)
    for kind in kinds:
        if isinstance(kind, ir.MemRefType):
            _require_row_major(kind)
    return tuple(_value_type(kind, "argument") for kind in kinds)


def results_of(function: Op) -> tuple[ValueType, ...]:
    """Returns the types of the results of a ``func.func``, in a form that needs no MLIR.

    Raises CandidateError(COMPILE) for other than memrefs and numbers.
    """
    return tuple(_value_type(kind, "result") for kind in function_type(function).results)


def written_arguments(function: Op) -> tuple[bool, ...]:
    """Returns, per argument of a host function, True if it is a memref that the function may write."""
    arguments = function.regions[0].blocks[0].arguments
    return tuple(is_buffer(argument.type) and effect_of(argument).writes for argument in arguments)


def _require_row_major(kind: Type) -> None:
    """Raises CandidateError(COMPILE) for a layout other than C-contiguous, which callers' arrays have."""
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


def _value_type(kind: Type, what: str) -> ValueType:
    if isinstance(kind, ir.MemRefType):
        shape = tuple(None if kind.is_dynamic_dim(n) else kind.shape[n] for n in range(kind.rank))
        return BufferType(str(kind.element_type), shape)
    if is_number(kind) and not isinstance(kind, ir.VectorType | ir.ComplexType):
        return ScalarType(str(kind))
    raise CandidateError(
        Stage.COMPILE, f"payload: {what}: found {kind}, allowed memrefs, tensors and numbers"
    )
