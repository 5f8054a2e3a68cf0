"""The contractions of a file with a model: their problems, and why a contraction has none."""

from functools import partial
from pathlib import Path

from tuner.core.errors import Stage, UsageError, failing_at
from tuner.core.problem import NamedProblem, distinct_problems
from tuner.core.text_files import read_text
from tuner.mlir.bindings import Op, ir
from tuner.mlir.ir.linalg import GENERALIZE
from tuner.mlir.ir.reading import parents_of, walk
from tuner.mlir.passes import run_passes
from tuner.mlir.programs.matmuls import UnknownContractionError, contraction_of, problem_of
from tuner.mlir.transform import new_context
from tuner.models.payload_errors import named_in_errors
from tuner.runtime.programs.devices import device_operations
from tuner.runtime.workers.worker import call_in_child

TIMEOUT_S = 60.0


def model_contractions(file: Path) -> tuple[tuple[NamedProblem, ...], tuple[str, ...]]:
    """Parses an MLIR file in a child process; returns (problems, reasons) of its contractions.

    Equal problems are one entry, with the names of their functions and how often the text has it.
    ``reasons``: a line "function: why" for contractions that no ``Problem`` describes, each distinct line
    once. Raises UsageError for a file that is unreadable, not MLIR, or without a problem, TunerError if the
    child crashes or takes too long.
    """
    text = read_text(file, "MLIR text")
    with named_in_errors(file.name, text):
        problems, left_out = call_in_child("model", partial(_in_child, text), TIMEOUT_S)
    if not problems:
        why = f": {left_out[0]}" if left_out else ""
        raise UsageError(f"{file.name}: has no contraction of static sizes and known types{why}")
    return problems, left_out


def _in_child(text: str) -> tuple[tuple[NamedProblem, ...], tuple[str, ...]]:
    with failing_at(Stage.BIND):
        return contractions_in(text)


def contractions_in(text: str) -> tuple[tuple[NamedProblem, ...], tuple[str, ...]]:
    """Returns the problems of the contractions in MLIR text, and a line for each contraction without one.

    Raises CandidateError(BIND) if the text does not parse.
    """
    with new_context(), ir.Location.unknown():
        module = device_operations().parse(text, "payload")
        run_passes(module, GENERALIZE)
        problems: list[NamedProblem] = []
        left_out: list[str] = []
        for op in walk(module.operation, "linalg.generic"):
            try:
                contraction = contraction_of(op)
                if contraction is not None:
                    problems.append(NamedProblem(problem_of(contraction), _function_of(op)))
            except UnknownContractionError as error:
                left_out.append(f"{_function_of(op)}: {error}")
    return distinct_problems(tuple(problems)), tuple(dict.fromkeys(left_out))


def _function_of(op: Op) -> str:
    for parent in parents_of(op):
        if parent.name == "func.func":
            return str(ir.StringAttr(parent.attributes["sym_name"]).value)
    return ""
