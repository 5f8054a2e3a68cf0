"""Reads a payload that may become groups: one function on tensors of static sizes, in one block.

func.func @main(%x: tensor<32x64xf32>) -> tensor<32x128xf32>
"""

from dataclasses import dataclass

from tuner.core.element_types import NUMBER_TYPES
from tuner.core.grouped_program import TensorType
from tuner.mlir.bindings import Block, Op, Type, ir
from tuner.mlir.interpreter import parse
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.symbols import function_type
from tuner.programs.lower.entry import entry_of, function_named, hide_others
from tuner.programs.lower.payload_checks import require_few_operations

INLINE = "builtin.module(inline,symbol-dce)"
DIALECTS = ("arith.", "math.", "linalg.", "tensor.")  # of operations of the function's block
TERMINATOR = "func.return"
ELEMENTS = tuple(name for name in NUMBER_TYPES if name != "index")  # of tensors


@dataclass(frozen=True)
class NotGrouped:
    """Why a program cannot become groups of operations; it is compiled as a whole instead."""

    reason: str  # one line, to print


@dataclass(frozen=True)
class TensorPayload:
    """A function on tensors of static sizes, in the current MLIR context; calls are inlined."""

    module: ir.Module
    function: Op

    @property
    def block(self) -> Block:
        """Returns the only block of the function."""
        return self.function.regions[0].blocks[0]

    @property
    def ops(self) -> list[Op]:
        """Returns the operations of the block, in order, without the return."""
        return [op.operation for op in self.block.operations][:-1]

    @property
    def end(self) -> Op:
        """Returns the ``func.return`` of the block."""
        return list(self.block.operations)[-1].operation

    @property
    def results(self) -> tuple[TensorType, ...]:
        """Returns the types of the function's results."""
        return tuple(tensor_type(value.type) for value in self.end.operands)


def read_payload(text: str, entry: str | None) -> TensorPayload | NotGrouped:
    """Parses a payload in the current MLIR context and inlines its calls.

    Args:
        text: MLIR text, without the data of constants.
        entry: the function to run; None: ``main``, or the only public function.

    Raises CandidateError(BIND) for text that does not parse, for an entry that is not there, and for too many
    operations.
    """
    module = parse(text, "payload")
    require_few_operations(module)
    name = entry_of(module, entry)
    hide_others(module, name)
    run_passes(module, INLINE)
    function = function_named(module, name)
    reason = _why_not(module, function)
    return NotGrouped(reason) if reason else TensorPayload(module, function)


def tensor_type(kind: Type) -> TensorType:
    """Returns an MLIR tensor type of static shape as a value that needs no MLIR."""
    return TensorType(tuple(kind.shape), str(kind.element_type))


def _why_not(module: ir.Module, function: Op) -> str:
    if len(list(module.body.operations)) != 1:
        return "has calls that cannot be inlined, or globals"
    if len(function.regions[0].blocks) != 1:
        return "control flow: the function has several blocks"
    signature = function_type(function)
    for what, kinds in (("argument", signature.inputs), ("result", signature.results)):
        for number, kind in enumerate(kinds):
            if reason := _refused_type(kind):
                return f"{what} {number}: {reason}"
    if not list(signature.results):
        return "returns nothing"
    return next((reason for op in function.regions[0].blocks[0].operations if (reason := _refused(op))), "")


def _refused(op: Op) -> str:
    """Returns why an operation of the function's block cannot be in a group; "" if it can."""
    op = op.operation
    if op.name == TERMINATOR:
        return ""
    if not op.name.startswith(DIALECTS):
        is_control_flow = op.name.startswith(("scf.", "cf."))
        return f"{'control flow: ' if is_control_flow else ''}{op.name}"
    tensors = [v.type for v in (*op.operands, *op.results) if isinstance(v.type, ir.ShapedType)]
    return next((f"{op.name}: {reason}" for kind in tensors if (reason := _refused_type(kind))), "")


def _refused_type(kind: Type) -> str:
    if not isinstance(kind, ir.RankedTensorType):
        return f"{kind} is no tensor"
    if not kind.has_static_shape:
        return f"{kind} has a dynamic size"
    if kind.encoding is not None:
        return f"{kind} has an encoding"
    if str(kind.element_type) not in ELEMENTS:
        return f"{kind} has elements of an unsupported type"
    return "" if 0 not in kind.shape else f"{kind} has no elements"
