"""Transform scripts: contexts, parsing, and the transform interpreter."""

import re

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import interpreter, ir
from tuner.mlir.ops import load_custom_ops
from tuner.mlir.ops.empty_matches import empty_matches_refused
from tuner.mlir.rewrite.diagnostics import OpLocations
from tuner.mlir.rewrite.named_effects import require_no_effects
from tuner.mlir.rewrite.older_spellings import with_current_spellings

# MLIR then lists all dialects that it knows, which is too long for a message.
UNKNOWN_DIALECT = re.compile(r"Dialect `([\w.]+)' not found for custom op '([\w.]+)'.*")
UNREGISTERED = re.compile(r"line (\d+):(\d+): operation being parsed with an unregistered dialect\..*")
QUOTED = re.compile(r'"([^"\n]*)"')  # the name of an op in generic form


def new_context() -> ir.Context:
    """Returns a new MLIR context in which the transform ops of the ``tuner`` dialect are registered.

    Its multithreading is off, because these ops are implemented in Python and need the GIL.
    """
    context = ir.Context()
    context.enable_multithreading(False)
    with context, ir.Location.unknown():
        load_custom_ops()
    return context


def parse(text: str, what: str) -> ir.Module:
    """Returns the module parsed from MLIR text, in the current MLIR context.

    Accepts older spellings of GPU ops. ``what`` says what the text is, such as "script", in the error
    message. Raises CandidateError(BIND) with MLIR's first error.
    """
    try:
        return ir.Module.parse(with_current_spellings(text))
    except (ir.MLIRError, ValueError) as error:
        said = UNREGISTERED.sub(lambda match: _unregistered(match, text), first_diagnostic(error))
        raise CandidateError(Stage.BIND, f"{what}: {said}") from error


def _unregistered(match: re.Match[str], text: str) -> str:
    """Returns a message that names the op which MLIR does not know: MLIR's own has only its location."""
    line, column = int(match[1]), int(match[2])
    names = QUOTED.findall(text.splitlines()[line - 1][: column - 1])  # MLIR points after the name
    found = f"{names[-1] if names else 'an op'} of an unregistered dialect"
    return f"line {line}:{column}: found {found}, allowed dialects that MLIR or GPUX has"


def apply_script(payload: ir.Module, script: ir.Module, *, allows_effects: bool = False) -> None:
    """Applies a transform script to a payload, in place: runs the script's entry sequence.

    Passes that write files, start programs or print are rejected unless ``allows_effects``. A match op that
    finds nothing is an error if MLIR knows none of its op names, or if a ``transform.structured`` or
    ``transform.get_`` op needs its result and no match so far has found more than modules and functions; the
    message names what the script looked for. Raises CandidateError: BIND for a script without an entry
    sequence or with a rejected pass, COMPILE where an op of the script fails.
    """
    if not allows_effects:
        require_no_effects(script)
    sequence = entry_sequence(script)
    locations = OpLocations(payload)
    try:
        with empty_matches_refused(script):
            interpreter.apply_named_sequence(payload, sequence, script)
    except (ir.MLIRError, ValueError, RuntimeError) as error:
        raise CandidateError(Stage.COMPILE, locations.diagnostic(error, script)) from error


def entry_sequence(script: ir.Module) -> ir.Operation:
    """Returns the ``transform.named_sequence`` that runs: ``@__transform_main``, else the only sequence.

    Raises CandidateError(BIND) for a script without a sequence, or with several of which none has that name.
    """
    sequences = [op for op in script.body.operations if op.operation.name == "transform.named_sequence"]
    named = [op for op in sequences if op.attributes["sym_name"].value == "__transform_main"]
    if not named and len(sequences) != 1:
        found = ", ".join(op.attributes["sym_name"].value for op in sequences) or "none"
        raise CandidateError(
            Stage.BIND, f"script: found sequences {found}, allowed one named @__transform_main"
        )
    return (named or sequences)[0].operation


def first_diagnostic(error: Exception) -> str:
    """Returns the first two "error:" or "note:" lines of an MLIR exception as one line.

    At most 500 characters. Without such lines, the first two lines of the exception's text; for an empty
    text, the exception's type.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("error:", "note:"))]
    said = " ".join(errors[:2] or lines[:2]).replace('"-":', "line ")  # "-": MLIR's file name for parsed text
    said = UNKNOWN_DIALECT.sub(r"found \2 of dialect \1, allowed dialects that MLIR or GPUX has", said)
    return said[:500] or type(error).__name__
