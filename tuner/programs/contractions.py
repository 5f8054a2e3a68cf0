"""Finds the contractions of a model: which problems its functions contain, how often, under which names.

Takes MLIR text with any number of functions, on tensors or memrefs; nothing is inlined or run. Named linalg
operations are generalized first, so that one matcher handles ``linalg.matmul``, ``batch_matmul``, ``matvec``,
``vecmat``, their transposed and broadcast variants, 1x1 convolutions and a hand-written ``linalg.generic``.
"""

from dataclasses import dataclass
from pathlib import Path

from tuner.core.errors import Stage, UsageError, failing_at
from tuner.core.text_file import read_text
from tuner.mlir.bindings import Op, ir
from tuner.mlir.interpreter import new_context
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.walking import parents_of, walk
from tuner.programs.contraction_problem import UnknownContractionError, contraction_of, problem_of
from tuner.programs.lower.streams.gpux_ops import parse_with_gpux
from tuner.programs.positions import named_in_errors
from tuner.tuning.many_shapes.named_problem import NamedProblem, combined
from tuner.tuning.parts.child_call import call_in_child

GENERALIZE = "builtin.module(func.func(linalg-generalize-named-ops))"
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class _Finder:
    """What a child process does: a value, so that it can be sent there."""

    text: str

    def __call__(self) -> tuple[tuple[NamedProblem, ...], tuple[str, ...]]:
        with failing_at(Stage.BIND):
            return contractions_in(self.text)


def model_contractions(file: Path) -> tuple[tuple[NamedProblem, ...], tuple[str, ...]]:
    """Returns the problems in a file of MLIR, each once, and why contractions are left out: a line each.

    A problem has the names of the functions that it occurs in, and counts how often it is written there; the
    iterations of a loop around it do not count. The text is read in a child process. Raises UsageError for a
    file that cannot be read, that is no MLIR, and where no contraction is a problem.
    """
    text = read_text(file, "MLIR text")
    with named_in_errors(file.name, text):
        problems, left_out = call_in_child("model", _Finder(text), TIMEOUT_S)
    if not problems:
        why = f": {left_out[0]}" if left_out else ""
        raise UsageError(f"{file.name}: has no contraction of static sizes and known types{why}")
    return problems, left_out


def contractions_in(text: str) -> tuple[tuple[NamedProblem, ...], tuple[str, ...]]:
    """Returns the problems in MLIR text, each once, and why contractions are left out: a line each.

    Raises UsageError for text that does not parse.
    """
    with new_context(), ir.Location.unknown():
        module = parse_with_gpux(text, "payload")
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
    return combined(tuple(problems)), tuple(dict.fromkeys(left_out))


def _function_of(op: Op) -> str:
    """Returns the name of the function that an operation is in; "" for none."""
    for parent in parents_of(op):
        if parent.name == "func.func":
            return str(ir.StringAttr(parent.attributes["sym_name"]).value)
    return ""
