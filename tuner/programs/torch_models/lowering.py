"""Lowers a module from torch-mlir's dialect of PyTorch to linalg, in a child process: a crash is a refusal.

The child process gets no weights: a constant is named in the text, and its bytes follow the text (MLIR's
``dialect_resources``), which stay in this process. What torch-mlir makes of integers is checked here, where
each operation still has the place of the node that it comes from.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.mlir.bindings import torch_pass_bindings
from tuner.programs.compile_child import call_in_kept_child

RESOURCES = "\n{-#"  # begins the bytes of constants, after the module
INTEGERS = "integers "  # begins the place of a node whose tensors are all of integers, before its operation
TO_FLOATS = ("arith.sitofp", "arith.uitofp")
DIVISIONS = ("divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi")
EXACT_BITS = 16  # integers of so few bits are exact in f32, and so are their quotients' whole parts
LINE_LIMIT = 300  # characters of an error of torch-mlir
REASON = re.compile(r"error:\s")  # in the line of an error that says why
PLACE = re.compile(r'(?<=error:) (callsite\(.*?\)|loc\(.*?\)|"[^"]*":\d+:\d+|unknown):')
LACKING = re.compile(
    r"failed to legalize operation 'torch\."
    r"(?:operator'.*?<\{name = \"torch\.(?P<unknown>[\w.]+)\"|(?P<known>aten[\w.]+)')"
)
PIPELINES = (
    (
        "builtin.module(func.func(torch-match-quantized-custom-ops), "
        "torchdynamo-export-to-torch-backend-pipeline{extra-library=})"
    ),
    "builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=True})",
)


def lower_in_child(text: str) -> str:
    """Returns a module in torch-mlir's dialect as linalg on tensors, lowered in the thread's child process.

    Raises UsageError where torch-mlir refuses the module or crashes, and for integers that would be wrong.
    """
    return _lowered(text, lambda module: call_in_kept_child(partial(lower, module)))


def lower_in_process(text: str) -> str:
    """Returns a module lowered as ``lower_in_child`` does, in this process, which a crash would end."""
    return _lowered(text, lower)


def _lowered(text: str, lower_module: Callable[[str], str]) -> str:
    module, mark, resources = text.partition(RESOURCES)
    try:
        return lower_module(module) + mark + resources
    except CandidateError as error:
        raise UsageError(f"torch-mlir refuses the module: {error.reason}") from error


def lower(text: str) -> str:
    """Returns a module in torch-mlir's dialect as linalg on tensors, without its places; in this process.

    Raises CandidateError(BIND) where torch-mlir refuses the module, and for integers that it would get wrong.
    """
    bindings = torch_pass_bindings()
    ir = bindings.ir
    with ir.Context() as context:
        bindings.torch.register_dialect(context)
        try:
            module = ir.Module.parse(text)
            for pipeline in PIPELINES:
                bindings.PassManager.parse(pipeline).run(module.operation)
        except ir.MLIRError as error:
            raise CandidateError(Stage.BIND, first_line(error)) from error
        _require_exact_integers(ir, module)
        return str(module.operation.get_asm())


def _require_exact_integers(ir: Any, module: Any) -> None:
    """Raises CandidateError(BIND) for integers computed as floats, and for divisors that may be 0.

    PyTorch computes integers exactly, and raises ZeroDivisionError where a processor ends the process.
    """
    problems: list[str] = []

    def check(op: Any) -> Any:
        place = str(op.location) if op.name in TO_FLOATS else ""
        if INTEGERS in place and ir.IntegerType(op.operands[0].type).width > EXACT_BITS:
            name = place.partition(INTEGERS)[2].partition('"')[0]
            problems.append(f"{name} would compute integers as floats")
        elif op.name.removeprefix("arith.") in DIVISIONS and not _constant(ir, op.operands[1]):
            problems.append("integers are divided by what may be 0")
        return ir.WalkResult.INTERRUPT if problems else ir.WalkResult.ADVANCE

    module.operation.walk(check)
    if problems:  # an exception of a walk's function is not passed on
        raise CandidateError(Stage.BIND, problems[0])


def _constant(ir: Any, value: Any) -> int | None:
    """Returns the integer that a value always is: a constant, or an element of a tensor of one; else None."""
    if isinstance(value.owner, ir.Block):  # an argument of the body of a linalg.generic: an operand's element
        operands = value.owner.owner.operation.operands
        if value.arg_number >= len(operands) or isinstance(operands[value.arg_number].owner, ir.Block):
            return None
        value = operands[value.arg_number]
    operation = value.owner.operation
    if operation.name == "arith.trunci":
        wide = _constant(ir, operation.operands[0])
        return None if wide is None else wide & ((1 << ir.IntegerType(value.type).width) - 1)
    if operation.name != "arith.constant":
        return None
    constant = operation.attributes["value"]
    if isinstance(constant, ir.DenseIntElementsAttr) and constant.is_splat:
        constant = constant.get_splat_value()
    return int(constant.value) if isinstance(constant, ir.IntegerAttr) else None


def first_line(error: BaseException) -> str:
    """Returns the first line of an error that says something, cut to ``LINE_LIMIT`` characters.

    Of an operation that torch-mlir does not lower it is the operation's name, and there are no places: those
    are of the exporter's own code.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if REASON.search(line)] or lines
    line = PLACE.sub("", telling[0]) if telling else ""
    lacking = LACKING.search(line)
    if lacking:
        return f"it does not lower {lacking['unknown'] or lacking['known']}"
    return line[:LINE_LIMIT] if " " in line else f"{type(error).__name__} {line}".strip()
