"""What a graph of torch.compile is left to where tuner does not take it: inductor, or eager mode.

Inductor's code of some graphs is slower than eager mode, as of windows that overlap in memory: both are
timed. Its code of others writes wrong numbers into an input, as of ``x.copy_(x.flip(0))``: what both write is
compared.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tuner.models.mlir.torch_dialect import first_line
from tuner.models.torch.baselines import FAILURES, is_faster
from tuner.models.torch.dynamo_hooks import RECURRENT_FUNCTIONS

EAGER = "eager mode"
# A graph with more bytes of inputs, or with a longer call, is inductor's without being timed.
COPIED_BYTES = 2**30
CALL_SECONDS = 0.3
Compiled = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Fallback:
    """A function that computes a graph, the name of its backend, and a note on the choice, or ""."""

    call: Compiled
    name: str
    note: str = ""


def fallback_of(graph: torch.fx.GraphModule, inputs: Sequence[Any], name: str) -> Fallback:
    """Returns a graph compiled by the backend ``name``, or the graph in eager mode.

    Eager mode where the backend fails, is slower than eager mode by more than noise, or writes other numbers
    into the inputs; also for a graph with recurrent layers, of which a backend may write out thousands of
    steps. ``inputs``: example inputs; they are not written.
    """
    from torch._dynamo import lookup_backend

    if any(getattr(node.target, "__name__", "") in RECURRENT_FUNCTIONS for node in graph.graph.nodes):
        return Fallback(graph.forward, EAGER, f"; {EAGER} has its recurrent layers")
    try:
        compiled = lookup_backend(name)(graph, list(inputs))
    except Exception as error:  # noqa: BLE001 - inductor needs a C++ compiler, and more
        return Fallback(graph.forward, EAGER, f"; {name}: {first_line(error)}")
    if compiled == graph.forward or not _can_be_timed(inputs):
        return Fallback(compiled, name)
    copies = tuple(map(torch.clone, inputs))  # a graph may write its inputs, weights too
    try:
        with torch.random.fork_rng(devices=()):
            state = torch.random.get_rng_state()
            is_short = _is_short(graph, copies)  # and ``copies`` has what eager mode writes
            torch.random.set_rng_state(state)
            if not _writes_alike(compiled, inputs, copies):
                return Fallback(graph.forward, EAGER, f"; {name} writes other numbers into its inputs")
            prefers_eager = is_short and is_faster(graph.forward, compiled, copies)
    except Exception as error:  # noqa: BLE001 - of the user's operators: the call that follows raises it, too
        return Fallback(compiled, name, f"; {EAGER} was not timed: {first_line(error)}")
    if prefers_eager:
        return Fallback(graph.forward, EAGER, f"; {EAGER} is faster than {name}")
    return Fallback(compiled, name)


def is_eager_faster(graph: torch.fx.GraphModule, compiled: Compiled, inputs: Sequence[Any]) -> bool:
    """Returns whether short calls of a graph are faster in eager mode, by more than noise.

    ``inputs`` may be written by the calls. False where calls are long, need gradients or cannot be timed.
    """
    inputs = tuple(map(_number_of, inputs))
    if not all(isinstance(value, torch.Tensor | int) for value in inputs) or torch.is_grad_enabled():
        return False
    try:
        return _is_short(graph, inputs) and is_faster(graph.forward, compiled, tuple(inputs))
    except FAILURES:  # of the call that tells how long it is
        return False


def _number_of(value: Any) -> Any:
    """Returns an input as a call has it: a size of a symbol as its number in the example."""
    if isinstance(value, torch.SymInt):
        return value.node.hint
    return value


def _can_be_timed(inputs: Sequence[Any]) -> bool:
    """Returns whether calls without gradients, with copies of the inputs, are such as the user's.

    False for inputs of more than COPIED_BYTES.
    """
    return _are_timed(inputs) and sum(map(_bytes_of, inputs)) <= COPIED_BYTES


def _are_timed(inputs: Sequence[Any]) -> bool:
    """Returns whether calls without gradients are such as the user's: of tensors alone, without numbers."""
    return not torch.is_grad_enabled() and all(isinstance(value, torch.Tensor) for value in inputs)


def _is_short(graph: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> bool:
    start = time.perf_counter()
    graph(*inputs)
    return time.perf_counter() - start < CALL_SECONDS


def _writes_alike(
    compiled: Compiled, inputs: Sequence[torch.Tensor], written: Sequence[torch.Tensor]
) -> bool:
    """Returns whether ``compiled`` writes into copies of ``inputs`` what eager mode wrote: ``written``."""
    if all(map(torch.equal, inputs, written)):
        return True
    copies = tuple(map(torch.clone, inputs))
    compiled(*copies)
    return all(map(_is_close, copies, written))


def _is_close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    try:
        torch.testing.assert_close(found, expected, equal_nan=True)
    except AssertionError:
        return False
    return True


def _bytes_of(tensor: torch.Tensor) -> int:
    return int(tensor.numel()) * int(tensor.element_size())
