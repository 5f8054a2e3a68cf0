"""``torch.compile(module, backend="tuner")``: what is refused is left to inductor, else to eager.

Dynamo cuts a module into graphs. A graph is taken if its inputs are plain tensors without gradients, it
returns tensors that share no memory, it can become fusions, and at most a tenth of its estimated time is
scalar loops. Of a graph with operators that are not supported, these run by PyTorch, and the parts between
them are taken in the same way. Parameters and buffers are constants: their contents are compared at each
call, and changed ones make the graph be compiled again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from tuner.core.errors import TunerError, UsageError
from tuner.core.programs import ExplainedFusion, loops_note
from tuner.core.typed_arguments import typed_arguments
from tuner.mlir.torch_dialect import first_line
from tuner.programs.compile import children_in_background, compile_on_host
from tuner.programs.run.fused_program import FusedFunction
from tuner.results.database import known_url
from tuner.runtime.process_state import thread_lock
from tuner.torch.export import CallForm, ExportedModule, export_module
from tuner.torch.guards import NO_GRADIENTS, State, WeightContents, plain
from tuner.torch.partition import partitioned
from tuner.torch.program import TensorProgram
from tuner.torch.refusals import RefusedOperatorsError

NAME = "tuner"
Compiled = Callable[..., Any]
FALLBACK = "inductor"


@dataclass(frozen=True)
class GraphCounts:
    """How many graphs this process has compiled by the backend, and how many it has left to another one.

    A graph that was compiled, but could not be compiled again after a parameter changed, counts in both.
    """

    taken: int = 0
    left: int = 0
    reasons: tuple[str, ...] = ()  # why graphs were left, one for each
    in_torch: tuple[str, ...] = ()  # per graph that was taken in parts: its operators that run by PyTorch


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
            reasons = (*self.counts.reasons, reason)
            self.counts = replace(self.counts, left=self.counts.left + 1, reasons=reasons)

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
def backend(graph: torch.fx.GraphModule, inputs: Sequence[Any], **_options: Any) -> Compiled:
    """Compiles a graph of torch.compile, or leaves it to inductor, else to eager.

    Args:
        graph: the graph.
        inputs: example inputs; parameters and buffers among them become constants.

    Returns:
        A function of the graph's inputs.

    Raises:
        UsageError: ``TUNER_DB`` is not a valid name of a database. A graph that cannot be compiled is not an
            error.

    Example:
        >>> import torch
        >>> import tuner.torch
        >>> module = torch.compile(torch.nn.Linear(4, 2).eval(), backend="tuner")
        >>> with torch.no_grad():
        ...     module(torch.ones(3, 4)).shape
        torch.Size([3, 2])
    """
    known_url(None)  # a malformed name would leave every graph
    try:
        compiled = _BoundGraph(graph, tuple(inputs))
    except TunerError as error:
        fallback, why_eager = _fallback_of(graph, inputs)
        _COUNTER.leave(" ".join(f"{error}{why_eager}".split()))
        return fallback
    _COUNTER.take(compiled.in_torch)
    return compiled


def register() -> None:
    """Registers ``backend`` with torch.compile under the name "tuner"; does nothing if it is registered."""
    from torch._dynamo.backends.registry import _BACKENDS

    if NAME not in _BACKENDS:
        torch._dynamo.register_backend(backend, name=NAME)  # noqa: SLF001 - torch's documented place


class _BoundGraph:
    def __init__(self, graph: torch.fx.GraphModule, inputs: tuple[Any, ...]) -> None:
        _require_tensors(inputs)
        self._graph = graph
        self._is_left = False
        self.in_torch = ""  # operators that are not supported, and run by PyTorch
        # parameters, and buffers of modules, which dynamo marks as static
        self._constant = tuple(
            at
            for at, tensor in enumerate(inputs)
            if isinstance(tensor, torch.nn.Parameter) or hasattr(tensor, "_dynamo_static_input_type")
        )
        self._variable = tuple(at for at in range(len(inputs)) if at not in self._constant)
        self._contents = WeightContents()
        self._bound = self._compiled(inputs)

    def __call__(self, *inputs: Any) -> Any:
        """Calls the program, compiled again where a parameter has changed; if that fails, the eager graph."""
        try:
            program, state = self._bound  # read once: another thread may bind other parameters
            if self._state(inputs) != state:
                program, _ = self._bound = self._compiled(inputs)
            return tuple(program.run(tuple([inputs[at] for at in self._variable])))
        except TunerError as error:
            if isinstance(error, IndexError):  # of an index out of range, as in eager mode
                raise
            if not self._is_left:
                _COUNTER.leave(" ".join(str(error).split()))
            self._is_left = True  # counted once
            return self._graph(*inputs)

    def _state(self, inputs: tuple[Any, ...]) -> State:
        return self._contents.of([inputs[at] for at in self._constant])

    def _compiled(self, inputs: tuple[Any, ...]) -> tuple[TensorProgram, State]:
        state = self._state(inputs)  # before the parameters are copied: a change during that is seen later
        constants = {at: inputs[at].detach() for at in self._constant}
        bound = _WithConstants(self._graph, constants)
        with children_in_background() as start_helpers:
            own = tuple(inputs[at].detach() for at in self._variable)
            try:
                exported = export_module(bound, own, on_new=start_helpers)
            except RefusedOperatorsError as refusal:
                partition = partitioned(bound, own, {}, refusal, _compiled_part)
                _require_plain_results(partition.form)
                self.in_torch = partition.text
                return TensorProgram(partition.function, partition.form), state
            _require_plain_results(exported)
            return _scheduled(exported), state


class _WithConstants(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """A graph as a module whose constant inputs are buffers: its call takes the other inputs."""

    def __init__(self, graph: torch.fx.GraphModule, constants: dict[int, torch.Tensor]) -> None:
        super().__init__()
        self._graph = graph
        self._places = tuple(constants)  # numbers of the graph's inputs
        for at, tensor in constants.items():
            self.register_buffer(f"constant_{at}", tensor)

    def forward(self, *variables: Any) -> Any:
        """Calls the graph with ``variables`` and, where the graph's inputs are constants, the buffers."""
        rest = iter(variables)
        count = len(variables) + len(self._places)
        known = {at: getattr(self, f"constant_{at}") for at in self._places}
        return self._graph(*[known[at] if at in known else next(rest) for at in range(count)])


def _compiled_part(part: torch.nn.Module, tensors: tuple[torch.Tensor, ...]) -> TensorProgram:
    return _scheduled(export_module(part, tensors))


def _scheduled(exported: ExportedModule) -> TensorProgram:
    function: Any = compile_on_host(exported.payload)
    _require_schedules(function)
    return TensorProgram(function, exported)


def _require_plain_results(form: CallForm) -> None:
    if form.shared:  # a write into one of the two tensors would have to change the other
        raise UsageError(form.shared)
    if not all(output.result == number for number, output in enumerate(form.outputs)):
        raise UsageError("the graph returns what is not a tensor")


def _require_tensors(inputs: tuple[Any, ...]) -> None:
    for number, tensor in enumerate(inputs):
        if not isinstance(tensor, torch.Tensor):
            raise UsageError(f"the graph takes a {type(tensor).__name__}: sizes are not static")
        plain(tensor, f"input {number} of the graph")
        if tensor.requires_grad and torch.is_grad_enabled():
            raise UsageError(NO_GRADIENTS)


def _require_schedules(function: Any) -> None:
    if not isinstance(function, FusedFunction):
        raise UsageError(f"no fusions: {function.why_no_fusions}")
    note = loops_note(list(map(ExplainedFusion, function.code.fusions)))
    if note:
        raise UsageError(note)


def _fallback_of(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> tuple[Compiled, str]:
    # the graph by inductor, else in eager mode with the reason
    from torch._dynamo import lookup_backend

    try:
        return lookup_backend(FALLBACK)(graph, list(inputs)), ""
    except Exception as error:  # noqa: BLE001 - inductor needs a C++ compiler, and more
        return graph.forward, f"; {FALLBACK}: {first_line(error)}"
