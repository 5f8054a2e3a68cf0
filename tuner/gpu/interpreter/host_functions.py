"""Host functions of MLIR text as the user wrote it, called on numpy arrays: no pass runs before.

The reference of ``--compare``: it shares with compiled code the parser of MLIR alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from tuner.core.errors import CandidateError, Stage
from tuner.gpu.interpreter import affine_ops, kernels, launches, linalg_ops, masks, printing, tensors
from tuner.gpu.interpreter.decoding import (
    BlockMemory,
    Decoders,
    LaneFrame,
    LaneFunction,
    TooMuchWorkError,
    WorkLimit,
    decode_function,
)
from tuner.gpu.interpreter.lanes import (
    Array,
    BufferView,
    ElementType,
    LaneGrid,
    UnknownTypeError,
    element_type,
    uniform,
)
from tuner.mlir.bindings import Op, Type, ir
from tuner.mlir.ir.reading import function_type, name_of, new_values_of, unsupported
from tuner.mlir.ir.resources import RESOURCE, Data, array_of, split_payload
from tuner.mlir.transform import new_context, parse

# Operations that a program may execute, where one on under 256 elements counts once: about two seconds.
OPERATIONS_LIMIT = 400_000
FAMILIES = (affine_ops, launches, tensors)
DECODERS = Decoders(
    steps={
        **kernels.DECODERS.steps,
        **{name: decode for family in FAMILIES for name, decode in family.DECODERS.items()},
        **linalg_ops.UNSTRUCTURED,
        "vector.mask": masks.mask,
        "vector.print": printing.print_vector,
        "func.call": printing.call,
    },
    choices=kernels.DECODERS.choices,
    nothing=kernels.NOTHING | {linalg_ops.INDEX_OP, "bufferization.dealloc_tensor", "affine.prefetch"},
    ends=kernels.ENDS | {"linalg.yield", "tensor.yield", "affine.yield"},
    dialects={"linalg": linalg_ops.structured},
)
# What an operation of a form that nobody thought of may raise; the caller goes on without the interpreter.
UNEXPECTED = (ArithmeticError, AttributeError, IndexError, KeyError, MemoryError, TypeError, ValueError)
LANE = " in block ("  # begins the name of a thread in the message of a fault


class NotInterpretedError(Exception):
    """Raised for a program that the interpreter cannot run as written; the message is the reason."""


@dataclass(frozen=True, eq=False)
class InterpretedFunction:
    """A function of a payload, decoded without any pass, as a callable on numpy arrays and numbers."""

    function: LaneFunction
    arguments: tuple["_HostValue", ...]
    results: tuple["_HostValue", ...]
    new_values: Mapping[int, int] = field(default_factory=dict)  # by argument: the result written into it

    def __call__(self, arguments: Sequence[Any], write: Callable[[str], object]) -> tuple[Any, ...]:
        """Returns the results; arrays of memref arguments are changed in place.

        So are those of tensors with a new value (``tuner.new_value``), which is then not returned.

        Args:
            arguments: C-contiguous arrays, and numbers, of the function's types.
            write: receives what the function prints.

        Raises NotInterpretedError for more than OPERATIONS_LIMIT operations and for what the interpreter
        cannot run, CandidateError(RUN) for a fault of the program, such as an access out of bounds.
        """
        grid = LaneGrid((1, 1, 1), (1, 1, 1), np.zeros(1, np.int64))
        memory = BlockMemory(kernels.DEFAULT_SHARED_BYTES, WorkLimit(OPERATIONS_LIMIT))
        frame = LaneFrame([None] * self.function.slots, grid, memory, write)
        passed = [type_.passed(value) for type_, value in zip(self.arguments, arguments, strict=True)]
        try:
            with np.errstate(all="ignore"):
                results = self.function.body.run(frame, passed)
        except TooMuchWorkError:
            raise NotInterpretedError(f"it executes more than {OPERATIONS_LIMIT:,} operations") from None
        except CandidateError as error:
            if error.stage is not Stage.RUN:
                raise NotInterpretedError(error.reason) from error
            raise CandidateError(Stage.RUN, error.reason.partition(LANE)[0]) from error
        except UNEXPECTED as error:
            raise NotInterpretedError(f"the interpreter failed: {type(error).__name__}: {error}") from error
        returned = [type_.returned(value) for type_, value in zip(self.results, results, strict=True)]
        for argument, number in self.new_values.items():
            arguments[argument][...] = returned[number]
        kept = set(range(len(returned))).difference(self.new_values.values())
        return tuple(map(returned.__getitem__, sorted(kept)))


@dataclass(frozen=True)
class _HostValue:
    """An argument or a result: a number, or the elements of a tensor or memref."""

    element: ElementType
    holder: str  # "memref", "tensor" or "" of a number

    def passed(self, value: Any) -> Any:
        if self.holder == "tensor":
            return np.array(value, self.element.dtype)[None, None]
        if self.holder == "":
            return np.full((1, 1), value).astype(self.element.dtype)
        sizes = list(map(uniform, value.shape))
        return BufferView.of_rows(uniform(value.ctypes.data), value.nbytes, sizes, value)

    def returned(self, value: Any) -> Any:
        elements = tensors.array_of(value, self.element) if isinstance(value, BufferView) else value
        return np.array(elements[0, 0])


def read_function(text: str, entry: str) -> InterpretedFunction:
    """Decodes the function ``entry`` of MLIR text, without running any pass.

    Raises NotInterpretedError for text that does not parse, and for what the interpreter does not support.
    """
    with new_context(), ir.Location.unknown():
        try:
            split = split_payload(text)
            module = parse(split.text, "payload")
            decoders = replace(DECODERS, resource=partial(_resource, split.resources))
            symbols = {name_of(op.operation): op.operation for op in module.body.operations if _is_named(op)}
            function = symbols[entry]
            kind = function_type(function)
            return InterpretedFunction(
                decode_function(function, decoders, symbols),
                tuple(_value_of(function, input_) for input_ in kind.inputs),
                tuple(_value_of(function, result) for result in kind.results),
                new_values_of(function),
            )
        except CandidateError as error:
            is_parsed = error.stage is not Stage.BIND
            if is_parsed:
                why = error.reason
            else:
                why = "it has operations that MLIR does not know, as those of GPUX"
            raise NotInterpretedError(why) from error
        except UNEXPECTED as error:
            raise NotInterpretedError(f"the interpreter failed: {type(error).__name__}: {error}") from error


def _resource(resources: Mapping[str, Data], attribute: ir.Attribute) -> Array | None:
    named = RESOURCE.match(str(attribute))
    if named is None or named[1] not in resources:
        return None
    type_ = ir.ShapedType(attribute.type)
    return array_of(resources[named[1]], tuple(type_.shape), str(type_.element_type))


def _is_named(op: Op) -> bool:
    return "sym_name" in op.operation.attributes


def _value_of(function: Op, kind: Type) -> _HostValue:
    holders = {ir.MemRefType: "memref", ir.RankedTensorType: "tensor"}
    holder = next((name for type_, name in holders.items() if isinstance(kind, type_)), "")
    try:
        return _HostValue(element_type(kind.element_type if holder else kind), holder)
    except UnknownTypeError:
        raise unsupported(function, f"a value of type {kind}", "tensors, memrefs and numbers") from None
