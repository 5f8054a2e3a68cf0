"""Applies a transform script to a payload."""

from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import interpreter, ir
from tuner.mlir.complaint import OpNames
from tuner.mlir.ops import load_own_ops


def new_context() -> ir.Context:
    """Returns a context with this project's ops. One thread: ops in Python need the interpreter lock."""
    context = ir.Context()
    context.enable_multithreading(False)
    with context, ir.Location.unknown():
        load_own_ops()
    return context


def parse(text: str, what: str) -> ir.Module:
    """Parses MLIR in the current context. Raises CandidateError(BIND) with the compiler's first complaint."""
    try:
        return ir.Module.parse(text)
    except (ir.MLIRError, ValueError) as error:
        raise CandidateError(Stage.BIND, f"{what}: {first_complaint(error)}") from error


def apply_script(payload: ir.Module, script: ir.Module) -> None:
    """Runs the script's first named sequence on the payload. Raises CandidateError(COMPILE)."""
    sequence = entry_sequence(script)
    names = OpNames(payload)
    try:
        interpreter.apply_named_sequence(payload, sequence, script)
    except (ir.MLIRError, ValueError, RuntimeError) as error:
        raise CandidateError(Stage.COMPILE, names.complaint(error, script)) from error


def entry_sequence(script: ir.Module) -> ir.Operation:
    """Returns ``@__transform_main``, or the only named sequence there is."""
    sequences = [op for op in script.body.operations if op.operation.name == "transform.named_sequence"]
    named = [op for op in sequences if op.attributes["sym_name"].value == "__transform_main"]
    if not named and len(sequences) != 1:
        found = ", ".join(op.attributes["sym_name"].value for op in sequences) or "none"
        raise CandidateError(
            Stage.BIND, f"script: found sequences {found}, allowed one named @__transform_main"
        )
    return (named or sequences)[0].operation


def first_complaint(error: Exception) -> str:
    """Returns the first error of MLIR's message in one line, with its location and note."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    complaints = [line for line in lines if line.startswith(("error:", "note:"))]
    said = " ".join(complaints[:2] or lines[:2]).replace('"-":', "line ")  # "-" is how MLIR calls text
    return said[:500] or type(error).__name__
