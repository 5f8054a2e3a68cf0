"""What Dynamo does for tuner's back end alone: it traces recurrent modules, and reports what has no graph.

Dynamo ends a graph at an LSTM, a GRU and an RNN unless ``torch._dynamo.config.allow_rnn`` is set, since other
back ends write out all steps; its graph of one is for one length alone, and it gives up after some lengths.
Where it ends a graph, the code there runs in eager mode, without a word.
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
from torch._dynamo.variables import builder as variable_builder
from torch._dynamo.variables.builder import VariableBuilder
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.functions import UserFunctionVariable
from torch.nn.modules import transformer

from tuner.models.torch.recurrences import keeping_lengths
from tuner.models.torch.refusals import line_in

RECURRENT = (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)
RECURRENT_FUNCTIONS = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})  # of torch, in Dynamo's graphs


DETECT_CAUSAL_MASK = getattr(transformer, "_detect_is_causal_mask", None)  # not in every version of torch
IsOurs = Callable[[Any], bool]  # whether a translator of Dynamo makes a graph for tuner's back end


def hook(backend: Callable[..., Any], report: Callable[[str], None]) -> None:
    """Changes functions of Dynamo for graphs that ``backend`` compiles; other back ends are as before.

    Recurrent modules are traced, for any length, where no gradients are asked for. ``report`` is called with
    one line for each place where Dynamo ends a graph: the reason, and the line of the user's code. A version
    of PyTorch without these functions is not changed.
    """

    def is_ours(translator: Any) -> bool:
        compiler = innermost_backend(translator.output.compiler_fn)
        return getattr(compiler, "compiler_fn", compiler) is backend  # of torch.compile's wrapper

    for owner, name, changed in (
        (VariableBuilder, "wrap_module", _traced),
        (variable_builder, "get_fake_value", _of_any_length),
        (UserFunctionVariable, "call_function", _with_any_mask),
        (InstructionTranslatorBase, "log_graph_break", functools.partial(_reported, report)),
    ):
        function = getattr(owner, name, None)
        if function is not None:
            setattr(owner, name, changed(function, is_ours))


def _traced(wrap_module: Callable[..., Any], is_ours: IsOurs) -> Callable[..., Any]:
    @functools.wraps(wrap_module)
    def wrapped(builder: Any, value: Any) -> Any:
        if not isinstance(value, RECURRENT) or torch.is_grad_enabled() or not is_ours(builder.tx):
            return wrap_module(builder, value)
        with config.patch(allow_rnn=True):
            return wrap_module(builder, value)

    return wrapped


def _of_any_length(get_fake_value: Callable[..., Any], is_ours: IsOurs) -> Callable[..., Any]:
    @functools.wraps(get_fake_value)
    def valued(node: Any, translator: Any, *arguments: Any, **keywords: Any) -> Any:
        is_recurrent = getattr(node.target, "__name__", "") in RECURRENT_FUNCTIONS
        if not is_recurrent or not is_ours(translator):
            return get_fake_value(node, translator, *arguments, **keywords)
        with keeping_lengths():
            return get_fake_value(node, translator, *arguments, **keywords)

    return valued


def _with_any_mask(call_function: Callable[..., Any], is_ours: IsOurs) -> Callable[..., Any]:
    """Wraps Dynamo's call of a function: no graph ends where an encoder asks whether its mask is causal.

    The answer, which a caller may give as ``is_causal``, says which kernel is used: a mask is applied as it
    is where the answer is no.
    """

    @functools.wraps(call_function)
    def called(variable: Any, translator: Any, arguments: Any, keywords: Any) -> Any:
        is_question = variable.fn is DETECT_CAUSAL_MASK and len(arguments) > 1
        if is_question and arguments[1].is_constant_none() and is_ours(translator):
            return ConstantVariable.create(False)
        return call_function(variable, translator, arguments, keywords)

    return called


def _reported(
    report: Callable[[str], None], log_graph_break: Callable[..., Any], is_ours: IsOurs
) -> Callable[..., Any]:
    @functools.wraps(log_graph_break)
    def logged(translator: Any, *arguments: Any, exc: Any = None, **keywords: Any) -> Any:
        is_new = not getattr(exc, "logged", False)
        result = log_graph_break(translator, *arguments, exc=exc, **keywords)
        if is_new and is_ours(translator):
            report(_line_of_break(exc))
        return result

    return logged


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
