"""What a refusal says of an operator: its name in PyTorch, and the line of the module that calls it."""

import os
import re
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tuner.core.errors import UsageError
from tuner.models.mlir.torch_dialect import INTEGERS, MARK

RANDOM = "it draws random numbers"
OF_COMPLEX = "it computes with complex numbers"
STRIDES = "it reads memory by the strides of its input"
# PyTorch's functionalization makes zeros of the elements between windows, and adds up those of two windows
WINDOWS = "it writes into windows of a tensor, which changes other elements"
EXPANDED = "it writes into an expanded tensor, whose elements share memory"  # these are added up
OPERATOR = re.compile(r"[a-z]\w*(\.\w+){1,2}")  # "aten.sum.dim_IntList", not "<built-in function getitem>"
FRAME = re.compile(r'File "([^"]+)", line (\d+)')
# folders whose lines are not the module's
LIBRARIES = (f"{Path(torch.__file__).parent}{os.sep}", f"{Path(__file__).parents[2]}{os.sep}")


@dataclass(frozen=True)
class RefusedOperator:
    """An operator that is not supported: its name and line, "aten.topk at m.py:7", and why."""

    place: str
    reason: str

    @property
    def text(self) -> str:
        """Returns the operator, its line and the reason in one line: "aten.topk at m.py:7 (reason)"."""
        return f"{self.place} ({self.reason})"


class RefusedOperatorsError(UsageError):
    """Operators of a module are not supported; the message names each once, in one line."""

    def __init__(self, operators: Sequence[RefusedOperator]) -> None:
        self.operators = tuple(operators)
        texts = dict.fromkeys(operator.text for operator in operators)
        self._reasons = frozenset(operator.reason for operator in operators)
        hint = "call module.eval()" if RANDOM in self._reasons else ""
        super().__init__(f"operators that are not supported: {'; '.join(texts)}", hint)

    @property
    def is_functionalized_wrongly(self) -> bool:
        """Returns whether functionalizing the graph changes its results, so that only eager mode is right."""
        return not self._reasons.isdisjoint((WINDOWS, EXPANDED))

    @property
    def needs_whole_module(self) -> bool:
        """Returns whether an operator would compute other results in a part than in the whole module.

        Parts run in another order than operators, and pass on tensors with other strides.
        """
        return not self._reasons.isdisjoint((RANDOM, STRIDES, WINDOWS, EXPANDED))


def require_none(refused: Iterable[RefusedOperator]) -> None:
    """Raises RefusedOperatorsError if any operator is refused."""
    operators = tuple(refused)
    if operators:
        raise RefusedOperatorsError(operators)


def place_of(node: torch.fx.Node) -> str:
    """Returns a node's operator before decompositions, with its line if known: "aten.topk at m.py:7"."""
    name = _operator_of(node).removesuffix(".default")
    line = line_in(node.meta.get("stack_trace") or "")
    if line:
        return f"{name} at {line}"
    return name


def _operator_of(node: torch.fx.Node) -> str:
    """Returns the operator of the graph before decompositions that a node comes from, or the node's own.

    PyTorch's ``original_aten`` is not that of an operator that PyTorch itself computes by others.
    """
    for source in node.meta.get("from_node") or ():
        if OPERATOR.fullmatch(source.target):
            return str(source.target)
    return str(node.meta.get("original_aten") or node.target)


def line_in(trace: str) -> str:
    """Returns "file:line" of the innermost line of the user's code in a stack trace; "" if none.

    PyTorch records lines of ``forward`` methods only: for a function that ``forward`` calls, the line of the
    call.
    """
    return _innermost([(file, int(line)) for file, line in FRAME.findall(trace)])


def line_of(error: BaseException) -> str:
    """Returns "file:line" of the user's innermost line under which ``error`` was raised; "" if none."""
    frames = [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]
    return _innermost(frames)


def _innermost(frames: list[tuple[str, int]]) -> str:
    own = [frame for frame in frames if not frame[0].startswith((*LIBRARIES, "<"))]
    if not own:
        return ""
    file, line = own[-1]
    here = Path.cwd()
    path = Path(file)
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    return f"{shown}:{line}"


def mark_nodes(graph: torch.fx.Graph, integers: Iterable[torch.fx.Node]) -> None:
    """Adds each node's operator and line to its stack trace, which torch-mlir makes a location; in place.

    ``integers``: nodes whose tensors are all integers; they get another mark.
    """
    of_integers = {*integers}
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        mark = INTEGERS if node in of_integers else MARK
        place = place_of(node).replace('"', "'")
        trace: Any = node.meta.get("stack_trace") or ""
        node.meta["stack_trace"] = f'{trace}\nFile "{mark}{place}", line 1,'
