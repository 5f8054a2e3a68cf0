"""``torch.compile(module, backend="tuner")``: what is refused is left to inductor, else to eager.

Dynamo cuts a module into graphs. A graph is taken if its inputs are plain tensors without gradients, it
returns tensors that share no memory, it can become fusions, and at most a tenth of its estimated time is
scalar loops. Of a graph with operators that are not supported, these run by PyTorch, and the parts between
them are taken in the same way. Parameters and buffers that the graph does not change are constants: their
contents are compared at each call, and changed ones make the graph be compiled again.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from tuner.core.errors import CandidateError, TunerError, UsageError
from tuner.core.programs import ExplainedFusion, loops_note
from tuner.core.typed_arguments import typed_arguments
from tuner.mlir.torch_dialect import first_line
from tuner.programs.compile import children_in_background, compile_on_host
from tuner.programs.run.fused_program import FusedFunction
from tuner.results.database import known_url
from tuner.runtime.process_state import thread_lock
from tuner.torch.export import CallForm, ExportedModule, export_module
from tuner.torch.graph_outputs import ChangesTensorsError
from tuner.torch.guards import NO_GRADIENTS, State, WeightContents, plain
from tuner.torch.partition import partitioned
from tuner.torch.program import TensorProgram
from tuner.torch.refusals import RefusedOperatorsError

NAME = "tuner"
Compiled = Callable[..., Any]
FALLBACK = "inductor"
CONSTANT = "constant_"
MOST_CHANGES = 2  # of a constant: then it is read at each call


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
        self._count = len(inputs)
        self._is_left = False
        self.in_torch = ""  # operators that are not supported, and run by PyTorch
        self._constant = tuple(at for at, tensor in enumerate(inputs) if _is_constant(tensor))
        self._variable = _without(range(self._count), self._constant)
        self._contents = WeightContents()
        self._changed = Counter[int]()  # how many times each constant has changed
        self._bound = self._compiled(inputs)

    def __call__(self, *inputs: Any) -> Any:
        """Calls the program, compiled again where a parameter has changed; if that fails, the eager graph."""
        try:
            program, state = self._bound  # read once: another thread may bind other parameters
            if self._state(inputs) != state:
                program, _ = self._bound = self._compiled_again(inputs)
        except TunerError as error:
            return self._called_in_eager_mode(inputs, error)
        try:
            return tuple(program.run(_at(self._variable, inputs)))
        except TunerError as error:
            # an index out of range is an error in eager mode, too; what was written is not written twice
            is_begun = isinstance(error, CandidateError) and program.is_changing
            if isinstance(error, IndexError) or is_begun:
                raise
            return self._called_in_eager_mode(inputs, error)

    def _called_in_eager_mode(self, inputs: tuple[Any, ...], error: TunerError) -> Any:
        if not self._is_left:
            _COUNTER.leave(" ".join(str(error).split()))
        self._is_left = True  # counted once
        return self._graph(*inputs)

    def _state(self, inputs: tuple[Any, ...]) -> State:
        return self._contents.of(_at(self._constant, inputs))

    def _compiled(self, inputs: tuple[Any, ...]) -> tuple[TensorProgram, State]:
        state = self._state(inputs)  # before the parameters are copied: a change during that is seen later
        self._compiled_states = self._states(inputs)
        constants = {at: inputs[at].detach() for at in self._constant}
        bound = _WithConstants(self._graph, constants)
        with children_in_background() as start_helpers:
            own = tuple(map(torch.Tensor.detach, _at(self._variable, inputs)))
            try:
                exported = export_module(bound, own, on_new=start_helpers)
            except (RefusedOperatorsError, ChangesTensorsError) as refusal:
                partition = partitioned(bound, own, {}, refusal, _compiled_part)
                _require_plain_results(partition.form)
                changed = partition.function.changed_buffers
                if changed:  # by each call: not constants, then
                    self._take_as_variables(map(number_of_constant, changed))
                    return self._compiled(inputs)
                self.in_torch = partition.text
                return TensorProgram(partition.function, partition.form), state
            _require_plain_results(exported)
            return _scheduled(exported), state

    def _compiled_again(self, inputs: tuple[Any, ...]) -> tuple[TensorProgram, State]:
        """Compiles the graph for changed constants; those that have changed twice become variables."""
        states = self._states(inputs)
        for at, state in states.items():
            self._changed[at] += state != self._compiled_states[at]
        self._take_as_variables(at for at in states if self._changed[at] >= MOST_CHANGES)
        return self._compiled(inputs)

    def _states(self, inputs: tuple[Any, ...]) -> dict[int, State]:
        return {at: WeightContents().of([inputs[at]]) for at in self._constant}

    def _take_as_variables(self, numbers: Iterable[int]) -> None:
        self._constant = _without(self._constant, numbers)
        self._variable = _without(range(self._count), self._constant)


def _is_constant(tensor: torch.Tensor) -> bool:
    """Returns whether an input is a parameter or a buffer of a module, which dynamo marks as static."""
    return isinstance(tensor, torch.nn.Parameter) or hasattr(tensor, "_dynamo_static_input_type")


def _at(numbers: Iterable[int], inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([inputs[at] for at in numbers])


def _without(numbers: Iterable[int], others: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted({*numbers} - {*others}))


def constant_name(number: int) -> str:
    """Returns the name of the buffer that holds input ``number`` of a graph."""
    return f"{CONSTANT}{number}"


def number_of_constant(name: str) -> int:
    """Returns the number of the input that a buffer holds."""
    return int(name.removeprefix(CONSTANT))


class _WithConstants(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """A graph as a module whose constant inputs are buffers: its call takes the other inputs."""

    def __init__(self, graph: torch.fx.GraphModule, constants: dict[int, torch.Tensor]) -> None:
        super().__init__()
        self._graph = graph
        self._places = tuple(constants)  # numbers of the graph's inputs
        for at, tensor in constants.items():
            self.register_buffer(constant_name(at), tensor)

    def forward(self, *variables: Any) -> Any:
        """Calls the graph with ``variables`` and, where the graph's inputs are constants, the buffers."""
        rest = iter(variables)
        count = len(variables) + len(self._places)
        known = {at: getattr(self, constant_name(at)) for at in self._places}
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
