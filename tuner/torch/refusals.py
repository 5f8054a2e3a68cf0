"""What a refusal says of an operator: its name in PyTorch, and the line of the module that calls it."""

import re
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tuner.core.errors import UsageError
from tuner.mlir.torch_dialect import INTEGERS, MARK

RANDOM = "it draws random numbers"
FRAME = re.compile(r'File "([^"]+)", line (\d+)')
# folders whose lines are not the module's
LIBRARIES = (str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))


@dataclass(frozen=True)
class RefusedOperator:
    """An operator that is not supported: its name and line, such as "aten.topk at m.py:7", and the reason."""

    place: str
    reason: str

    @property
    def text(self) -> str:
        """Returns both in one line."""
        return f"{self.place} ({self.reason})"


def require_none(refused: Iterable[RefusedOperator]) -> None:
    """Raises UsageError with all refused operators in one line, each once."""
    found = tuple(refused)
    texts = dict.fromkeys(each.text for each in found)
    if texts:
        is_random = any(each.reason == RANDOM for each in found)
        hint = "call module.eval()" if is_random else ""
        raise UsageError(f"operators that are not supported: {'; '.join(texts)}", hint)


def place_of(node: torch.fx.Node) -> str:
    """Returns the operator that a node of a graph comes from, and the module's line where that is known."""
    operator = node.meta.get("original_aten") or node.target  # the former: before decompositions
    name = str(operator).removesuffix(".default")
    line = line_in(node.meta.get("stack_trace") or "")
    if line:
        return f"{name} at {line}"
    return name


def line_in(trace: str) -> str:
    """Returns "file:line" of the innermost call in a stack trace that is the module's; "" where none is.

    PyTorch records the lines of ``forward`` methods only: of a function that one calls, the line of the call.
    """
    return _innermost([(file, int(line)) for file, line in FRAME.findall(trace)])


def line_of(error: BaseException) -> str:
    """Returns "file:line" of the module's line that an error was raised under; "" where none is known."""
    frames = [(each.filename, each.lineno or 0) for each in traceback.extract_tb(error.__traceback__)]
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
    """Lets the locations that torch-mlir gives operations name their nodes' operators and lines; in place."""
    of_integers = {*integers}
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        mark = INTEGERS if node in of_integers else MARK
        place = place_of(node).replace('"', "'")
        trace: Any = node.meta.get("stack_trace") or ""
        node.meta["stack_trace"] = f'{trace}\nFile "{mark}{place}", line 1,'
