"""What Dynamo does for tuner's back end alone: it traces recurrent modules, and reports what has no graph.

Dynamo ends a graph at an LSTM, a GRU and an RNN unless ``torch._dynamo.config.allow_rnn`` is set, since other
back ends write out all steps. Where it ends a graph, the code there runs in eager mode, without a word.
"""

import functools
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch._dynamo import config
from torch._dynamo.eval_frame import innermost_backend
from torch._dynamo.symbolic_convert import InstructionTranslatorBase
from torch._dynamo.variables.builder import VariableBuilder

from tuner.torch.refusals import line_in

RECURRENT = (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)


def hook(backend: Callable[..., Any], report: Callable[[str], None]) -> None:
    """Changes two methods of Dynamo for graphs that ``backend`` compiles; other back ends are as before.

    Recurrent modules are traced where no gradients are asked for. ``report`` is called with one line for each
    place where Dynamo ends a graph: the reason, and the line of the user's code. A version of PyTorch without
    these methods is not changed.
    """

    def is_ours(translator: Any) -> bool:
        compiler = innermost_backend(translator.output.compiler_fn)
        return getattr(compiler, "compiler_fn", compiler) is backend  # of torch.compile's wrapper

    def traced(wrap_module: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(wrap_module)
        def wrapped(builder: Any, value: Any) -> Any:
            if not isinstance(value, RECURRENT) or torch.is_grad_enabled() or not is_ours(builder.tx):
                return wrap_module(builder, value)
            with config.patch(allow_rnn=True):
                return wrap_module(builder, value)

        return wrapped

    def reported(log_graph_break: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(log_graph_break)
        def logged(translator: Any, *arguments: Any, exc: Any = None, **keywords: Any) -> Any:
            is_new = not getattr(exc, "logged", False)
            result = log_graph_break(translator, *arguments, exc=exc, **keywords)
            if is_new and is_ours(translator):
                report(_line_of_break(exc))
            return result

        return logged

    for owner, name, changed in (
        (VariableBuilder, "wrap_module", traced),
        (InstructionTranslatorBase, "log_graph_break", reported),
    ):
        method = getattr(owner, name, None)
        if method is not None:
            setattr(owner, name, changed(method))


def _line_of_break(error: Any) -> str:
    """Returns why Dynamo ended a graph, and at which line: "Call to sys.exit at model.py:12"."""
    reason = next(iter(str(error or "").splitlines()), type(error).__name__)
    stack = getattr(error, "real_stack", None) or ()
    line = line_in("".join(traceback.format_list(stack)))
    if stack and not line:  # PyTorch's own module is compiled
        line = f"{Path(stack[-1].filename).name}:{stack[-1].lineno}"
    if line:
        return f"{reason} at {line}"
    return reason
