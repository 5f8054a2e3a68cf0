"""``torch.compile(module, backend="tuner")``: what is refused is left to inductor or to eager mode.

Dynamo cuts a module into graphs. A graph is taken if its inputs are plain tensors without gradients, it
returns tensors that share no memory, and it can become fusions. Where more than a tenth of its estimated time
is scalar loops, both are timed, and inductor gets the graph if it is faster. Of a graph with operators that
are not supported, these run by PyTorch, and the parts between them are taken in the same way. A function that
changes the shape of its input in place runs in eager mode.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch._dynamo.exc import SkipFrame

from tuner.core.errors import TunerError, UsageError
from tuner.core.typed_arguments import typed_arguments
from tuner.models.torch.baselines import is_faster
from tuner.models.torch.bound_graph import SAMPLED, WATCHED, BoundGraph
from tuner.models.torch.dynamo_hooks import hook
from tuner.models.torch.graph_fallbacks import Compiled, fallback_of, is_eager_faster
from tuner.models.torch.graph_outputs import ReshapesInputError
from tuner.models.torch.refusals import RefusedOperatorsError
from tuner.models.torch.traced_numbers import EXTREMUM, has_extremum_of_types
from tuner.results.database import known_url
from tuner.runtime.cpu.team_threads import checked_threads
from tuner.runtime.process_state import thread_lock

NAME = "tuner"
FALLBACK = "inductor"
# the options of torch.compile
WEIGHTS = "weights"
THREADS = "threads"
OPTIONS = (WEIGHTS, THREADS)
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class GraphCounts:
    """Counts of graphs in this process: compiled by the backend, and left to inductor or eager mode.

    A graph that was compiled, but could not be compiled again after a parameter changed, counts in both. What
    Dynamo makes no graph of runs in eager mode.
    """

    taken: int = 0
    left: int = 0
    reasons: tuple[str, ...] = ()  # why graphs were left, one for each
    in_torch: tuple[str, ...] = ()  # per graph that was taken in parts: its operators that run by PyTorch
    without_graph: tuple[str, ...] = ()  # why Dynamo ended graphs, one for each, with the line


class _Counter:
    def __init__(self) -> None:
        self._lock = thread_lock()
        self.counts = GraphCounts()

    def take(self, in_torch: str) -> None:
        with self._lock:
            texts = (*self.counts.in_torch, *filter(None, [in_torch]))
            self.counts = replace(self.counts, taken=self.counts.taken + 1, in_torch=texts)

    def leave(self, reason: str) -> None:
        with self._lock:
            reasons = (*self.counts.reasons, " ".join(reason.split()))
            self.counts = replace(self.counts, left=self.counts.left + 1, reasons=reasons)

    def end(self, reason: str) -> None:
        with self._lock:
            reasons = (*self.counts.without_graph, reason)
            self.counts = replace(self.counts, without_graph=reasons)

    def reset(self) -> None:
        with self._lock:
            self.counts = GraphCounts()


# process-wide on purpose: as torch._dynamo's own counters
_COUNTER = _Counter()


@typed_arguments
def graph_counts(*, reset: bool = False) -> GraphCounts:
    """Returns how many graphs ``torch.compile(..., backend="tuner")`` has taken and left in this process.

    Args:
        reset: whether to count from 0 again.

    Returns:
        The counts before they are reset.

    Raises:
        UsageError: ``reset`` is not a bool.

    Example:
        >>> import tuner.torch
        >>> tuner.torch.graph_counts(reset=True).left
        0
    """
    counts = _COUNTER.counts
    if reset:
        _COUNTER.reset()
    return counts


@typed_arguments
def backend(
    graph: torch.fx.GraphModule,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] = NO_OPTIONS,
    **_more: Any,
) -> Compiled:
    """Compiles a graph of torch.compile, or leaves it to inductor, or to eager mode where that is faster.

    Args:
        graph: the graph.
        inputs: example inputs; parameters and buffers among them become constants.
        options: those of torch.compile. {"weights": "sampled"}, the default, compares a part of what weights
            contain at each call, and all where PyTorch's counters say that one was written: a write by
            ``.data`` or numpy to a part of a weight may be seen some calls late, with a warning.
            {"weights": "contents"} compares all at each call, {"weights": "versions"} only counters.
            {"threads": 4} runs programs on so many threads, 1 to 256; the default is 1.

    Returns:
        A function of the graph's inputs.

    Raises:
        UsageError: ``TUNER_DB`` is not a valid name of a database, or an option is wrong. A graph that cannot
            be compiled is not an error.

    Example:
        >>> import torch
        >>> import tuner.torch
        >>> module = torch.compile(torch.nn.Linear(4, 2).eval(), backend="tuner")
        >>> with torch.no_grad():
        ...     module(torch.ones(3, 4)).shape
        torch.Size([3, 2])
    """
    known_url(None)  # a malformed name would leave every graph
    watched, threads = _checked(options)
    if has_extremum_of_types(graph.graph):
        _COUNTER.leave(EXTREMUM)
        raise SkipFrame(EXTREMUM)
    try:
        rng = np.random.default_rng()
        compiled = BoundGraph(graph, tuple(inputs), watched, _COUNTER.leave, rng, threads)
    except ReshapesInputError as error:
        _COUNTER.leave(str(error))
        raise SkipFrame(str(error)) from error  # the guards that Dynamo makes of this graph would fail
    except TunerError as error:
        if isinstance(error, RefusedOperatorsError) and error.is_functionalized_wrongly:
            _COUNTER.leave(str(error))
            forward: Compiled = graph.forward
            return forward
        fallback = fallback_of(graph, inputs, FALLBACK)
        _COUNTER.leave(f"{error}{fallback.note}")
        return fallback.call
    if compiled.loops:
        fallback = fallback_of(graph, inputs, FALLBACK)
        if is_faster(fallback.call, compiled, compiled.copied(inputs)):
            _COUNTER.leave(f"{compiled.loops}; {fallback.name} is faster")
            return fallback.call
    elif compiled.is_in_parts and is_eager_faster(graph, compiled, compiled.copied(inputs)):
        in_torch = f", with {compiled.in_torch} in PyTorch" if compiled.in_torch else ""
        _COUNTER.leave(f"in parts{in_torch}: eager mode is faster")
        eager: Compiled = graph.forward
        return eager
    _COUNTER.take(compiled.in_torch)
    return compiled


def _checked(options: Mapping[str, Any]) -> tuple[str, int]:
    """Returns what is compared of weights, and the number of threads; raises UsageError for other options."""
    for name in options:
        if name not in OPTIONS:
            raise UsageError(f"options: found {name!r}, allowed {', '.join(map(repr, OPTIONS))}")
    watched = options.get(WEIGHTS, SAMPLED)
    if watched not in WATCHED:
        raise UsageError(f"options: {WEIGHTS}: found {watched!r}, allowed {', '.join(WATCHED)}")
    return str(watched), checked_threads(options.get(THREADS, 1))


def register() -> None:
    """Registers ``backend`` with torch.compile under the name "tuner"; does nothing if it is registered."""
    from torch._dynamo.backends.registry import _BACKENDS

    if NAME not in _BACKENDS:
        torch._dynamo.register_backend(backend, name=NAME)  # noqa: SLF001 - torch's documented place
        hook(backend, _COUNTER.end)
