"""A graph of torch.compile as a program for its parameters and buffers, compiled again when these change.

Inputs that a graph itself changes are variables, and so are constants that others have changed twice.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from operator import attrgetter, ne
from typing import Any

import numpy as np
import torch

from tuner.core.errors import CandidateError, TunerError, UsageError
from tuner.core.programs import ExplainedFusion, loops_note
from tuner.models.compile import children_in_background
from tuner.models.run.fused_program import FusedFunction
from tuner.models.torch.baselines import is_faster
from tuner.models.torch.call_form import CallForm
from tuner.models.torch.dynamic_sizes import Place
from tuner.models.torch.export import ExportedModule, export_module
from tuner.models.torch.export_key import graph_key
from tuner.models.torch.graph_outputs import ChangesTensorsError
from tuner.models.torch.graph_sizes import DynamicSizesError, dynamic_shapes, sizes_of, tensor_of_size
from tuner.models.torch.own_tensors import with_tensors_as_inputs
from tuner.models.torch.parted_function import PartedFunction
from tuner.models.torch.partition import partitioned
from tuner.models.torch.program import TensorProgram, compiled
from tuner.models.torch.refusals import RefusedOperatorsError
from tuner.models.torch.weights import State, Versions, WeightContents, WeightSamples, versions_of

# what is compared of constants at each call
SAMPLED = "sampled"
CONTENTS = "contents"
VERSIONS = "versions"
WATCHED = (SAMPLED, CONTENTS, VERSIONS)
MOST_CHANGES = 2  # of a constant: then it is read at each call
CONSTANT = "constant_"
Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True, eq=False)
class _GraphProgram:
    """A compiled graph: its program, what runs otherwise than by a schedule, and the flop of a call."""

    program: TensorProgram
    loops: str  # a sentence about scalar loops, where they are a large part of the estimated time
    in_torch: str  # operators that are not supported, and run by PyTorch
    changed: frozenset[int]  # numbers of the constants that each call changes
    flop: int  # of a call, without what runs by PyTorch


@dataclass(frozen=True, eq=False)
class _Compiled:
    """A compiled graph, with the tensors that it holds as constants and the contents that they had then."""

    code: _GraphProgram
    constants: tuple[int, ...]  # numbers of inputs
    variables: tuple[int, ...]
    memory: tuple[torch.Tensor, ...]  # of the weights, kept so that no other tensor gets their addresses
    versions: Versions | None  # None: all weights are read at each call, or at the next one
    state: State  # of the weights: what they contain
    samples: WeightSamples | None  # None: not compared at each call


class ChangedConstantsError(Exception):
    """A graph changes inputs, by their numbers, that it was to be compiled for as constants."""

    def __init__(self, numbers: frozenset[int]) -> None:
        super().__init__()
        self.numbers = numbers


class SharedMemoryError(UsageError):
    """A result is a view of an input or of another result, so that a write into one changes the other."""


class BoundGraph:
    """A graph of torch.compile that is called with all of its inputs."""

    def __init__(
        self,
        graph: torch.fx.GraphModule,
        inputs: tuple[Any, ...],
        watched: str,
        leave: Callable[[str], None],
        rng: np.random.Generator,
        threads: int = 1,
    ) -> None:
        """Compiles ``graph`` for example inputs.

        ``watched``: what is compared of constants at each call, one of WATCHED; ``leave``: called, once, with
        the reason for which calls are computed in eager mode; ``rng``: draws what is compared; ``threads``:
        that programs run on. Raises TunerError for a graph that cannot be compiled.
        """
        self._graph, self._own = with_tensors_as_inputs(graph)
        self._given_count = len(inputs)
        inputs = (*inputs, *self._own)
        self._rng = rng
        self._threads = threads
        self._sizes = sizes_of(self._graph, inputs)
        self._numbers = frozenset(number for number, (owner, _) in self._sizes.items() if owner == number)
        self._watched = watched
        self._leave = leave
        self._is_left = False
        self._contents = WeightContents()
        self._changes = Counter[int]()  # how many times each constant has changed
        own = range(self._given_count, len(inputs))
        given = filter(lambda at: _is_constant(inputs[at]), range(self._given_count))
        self._compiled = self._compiled_for(inputs, (*given, *own))

    @property
    def loops(self) -> str:
        """Returns a sentence about operations that are scalar loops; "" if these take little of the time."""
        return self._compiled.code.loops

    @property
    def is_in_parts(self) -> bool:
        """Returns whether a call runs the graph in several parts, such as operators by PyTorch."""
        return isinstance(self._compiled.code.program.function, PartedFunction)

    @property
    def in_torch(self) -> str:
        """Returns the unsupported operators, which PyTorch runs, in one line; "" if there are none."""
        return self._compiled.code.in_torch

    def __call__(self, *inputs: Any) -> Any:
        """Calls the program, compiled again if a constant has changed; the eager graph if one of these fails.

        Raises the program's error for an index out of range, and for a failed call of a program that changes
        tensors, which may have written them.
        """
        inputs = (*inputs, *self._own)
        try:
            compiled = self._current(inputs)
        except TunerError as error:
            return self._called_in_eager_mode(inputs, error)
        program = compiled.code.program
        try:
            return tuple(program.run(self._given(compiled.variables, inputs)))
        except TunerError as error:
            # an index out of range is an error in eager mode, too; what was written is not written twice
            is_begun = isinstance(error, CandidateError) and program.is_changing
            if isinstance(error, IndexError) or is_begun:
                raise
            return self._called_in_eager_mode(inputs, error)

    def copied(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Returns ``inputs`` with copies of the variables, which a call may change."""
        copied = [*inputs]
        for at in self._compiled.variables:
            if at < self._given_count and at not in self._numbers:
                copied[at] = inputs[at].clone()
        return tuple(copied)

    def _given(self, variables: tuple[int, ...], inputs: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        """Returns the tensors of a call; a size that no tensor has becomes an empty tensor of that size.

        ``variables``: indices of the inputs that are not constants.
        """
        if not self._numbers:
            return _at(variables, inputs)
        given = [*inputs]
        for at in self._numbers:
            given[at] = tensor_of_size(inputs[at])
        return _at(variables, given)

    def _called_in_eager_mode(self, inputs: tuple[Any, ...], error: TunerError) -> Any:
        if not self._is_left:
            self._leave(str(error))
        self._is_left = True  # counted once
        return self._graph(*inputs)

    def _current(self, inputs: tuple[Any, ...]) -> _Compiled:
        """Returns the program for the constants among the inputs of a call; compiles it if these changed.

        How changes are found: ``watched``. A change that samples find may be late, which logs a warning.
        Raises TunerError if the graph cannot be compiled.
        """
        compiled = self._compiled  # read once: another thread may compile for other constants
        tensors = _at(compiled.constants, inputs)
        versions = None if self._watched == CONTENTS else versions_of(tensors)
        if versions is None or versions != compiled.versions:
            state = self._state_of(tensors, versions, compiled)
            if state != compiled.state:
                return self._compiled_again(inputs, compiled, state)
            compiled = self._compiled = self._moved(compiled, tensors, versions)
        late_calls = None if compiled.samples is None else compiled.samples.late_calls()
        if late_calls is None:
            return compiled
        state = self._contents.of(tensors)
        if state != compiled.state:
            _warn_of_late_calls(late_calls)
            return self._compiled_again(inputs, compiled, state)
        # only memory between the elements of a weight has changed
        self._compiled = self._sampled(replace(compiled, samples=None), tensors)
        return self._compiled

    def _moved(self, compiled: _Compiled, tensors: Tensors, versions: Versions | None) -> _Compiled:
        """Returns ``compiled`` for weights of the same contents at other addresses, ``tensors``."""
        compiled = replace(compiled, memory=_detached(tensors), versions=versions)
        if compiled.samples is None:
            return self._sampled(compiled, tensors)
        compiled.samples.move_to(compiled.memory)
        return compiled

    def _sampled(self, compiled: _Compiled, tensors: Tensors) -> _Compiled:
        """Returns ``compiled`` with samples of its weights if writes are to be detected by samples."""
        if self._watched != SAMPLED or compiled.versions is None:
            return compiled
        samples = WeightSamples(compiled.memory, compiled.code.flop, self._rng)
        if self._contents.of(tensors) != compiled.state:  # changed meanwhile: the next call reads all
            return replace(compiled, versions=None)
        return replace(compiled, samples=samples)

    def _compiled_again(self, inputs: tuple[Any, ...], compiled: _Compiled, state: State) -> _Compiled:
        """Compiles for weights that contain ``state``, and keeps the result; returns it.

        Constants that have changed twice become variables.
        """
        self._changes.update(compress(compiled.constants, map(ne, state, compiled.state)))
        kept = filter(lambda at: self._changes[at] < MOST_CHANGES, compiled.constants)
        self._compiled = self._compiled_for(inputs, kept)
        return self._compiled

    def _state_of(self, tensors: tuple[Any, ...], versions: Versions | None, known: _Compiled) -> State:
        """Returns the contents of the constants; reads only those with another version than ``known`` has.

        A model may make one of its constants anew at each call, next to hundreds of weights that stay.
        """
        if versions is None or known.versions is None:
            return self._contents.of(tensors)
        states = [*known.state]
        changed = [at for at, version in enumerate(versions) if version != known.versions[at]]
        for at, state in zip(changed, self._contents.of(_at(changed, tensors)), strict=True):
            states[at] = state
        return tuple(states)

    def _compiled_for(self, inputs: tuple[Any, ...], constants: Iterable[int]) -> _Compiled:
        """Returns the graph compiled; ``constants``: indices of the inputs whose contents are constants."""
        constants = tuple(constants)
        variables = tuple(sorted({*range(len(inputs))} - {*constants, *self._sizes} | self._numbers))
        tensors = _at(constants, inputs)
        # before the constants are copied: a change during that is seen later
        versions = versions_of(tensors)
        state = self._contents.of(tensors)
        memory = _detached(tensors)
        bound = _WithConstants(self._graph, dict(zip(constants, memory, strict=True)), variables, self._sizes)
        shapes = dynamic_shapes(self._graph, variables)
        own = _detached(self._given(variables, inputs))
        try:
            code = _program_of(bound, own, shapes, self._threads)
            changed = code.changed
        except ChangedConstantsError as error:
            changed = error.numbers
        if any(at >= self._given_count for at in changed):
            raise UsageError("the graph changes a tensor that it contains")
        if changed:  # by each call: not constants, then
            return self._compiled_for(inputs, {*constants} - changed)
        compiled = _Compiled(code, constants, variables, memory, versions, state, samples=None)
        return self._sampled(compiled, tensors)


def _warn_of_late_calls(calls: int) -> None:
    if calls:
        warnings.warn(
            f"weights were written where PyTorch counts no write (.data, numpy, DLPack): up to {calls} calls "
            'before this one may have used the old ones; options={"weights": "contents"} misses none',
            stacklevel=2,
        )


def _program_of(module: "_WithConstants", own: Tensors, shapes: Any, threads: int) -> _GraphProgram:
    with children_in_background() as start_helpers:
        try:
            if shapes is not None:
                raise DynamicSizesError
            exported = export_module(module, own, on_new=start_helpers, graph_key=module.key(own))
            if exported.form.shared:
                raise SharedMemoryError(exported.form.shared)
            changed = frozenset(map(_number_of_constant, exported.form.changes.buffers))
            if changed:
                raise ChangedConstantsError(changed)
            _require_plain_results(exported.form)
            return _scheduled(exported, threads)
        except (RefusedOperatorsError, ChangesTensorsError, DynamicSizesError, SharedMemoryError) as refusal:
            return _program_in_parts(module, own, shapes, threads, refusal)


def _program_in_parts(
    module: "_WithConstants", own: Tensors, shapes: Any, threads: int, refusal: UsageError
) -> _GraphProgram:
    parts: list[_GraphProgram] = []

    def compiled_part(part: torch.nn.Module, tensors: Tensors) -> TensorProgram:
        """Compiles a part; raises UsageError where it is slower than PyTorch because of scalar loops."""
        code = _scheduled(export_module(part, tensors), threads)
        if code.loops and is_faster(part, lambda *given: code.program.run(given), tensors):
            raise UsageError(code.loops)
        parts.append(code)
        return code.program

    partition = partitioned(module, own, {}, refusal, compiled_part, dynamic_shapes=shapes, keeps_views=True)
    _require_plain_results(partition.form)
    program = TensorProgram(partition.function, partition.form)
    changed = frozenset(map(_number_of_constant, partition.function.changed_buffers))
    return _GraphProgram(program, "", partition.text, changed, sum(map(attrgetter("flop"), parts)))


def _scheduled(exported: ExportedModule, threads: int) -> _GraphProgram:
    """Compiles an exported module; raises UsageError where that has no fusions."""
    program = compiled(exported, threads=threads)
    function = program.function
    if not isinstance(function, FusedFunction):
        raise UsageError(f"no fusions: {function.why_no_fusions}")
    loops = loops_note(list(map(ExplainedFusion, function.code.fusions)))
    flop = sum(map(attrgetter("flop"), function.code.fusions))
    return _GraphProgram(program, loops, "", frozenset(), flop)


def _require_plain_results(form: CallForm) -> None:
    if not all(output.result == index for index, output in enumerate(form.outputs)):
        raise UsageError("the graph returns what is not a tensor")


def _is_constant(tensor: torch.Tensor) -> bool:
    """Returns whether an input is a parameter or a buffer of a module, which dynamo marks as static."""
    return isinstance(tensor, torch.nn.Parameter) or hasattr(tensor, "_dynamo_static_input_type")


def _at(numbers: Iterable[int], inputs: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(map(inputs.__getitem__, numbers))


def _detached(tensors: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(map(torch.Tensor.detach, tensors))


def _number_of_constant(name: str) -> int:
    return int(name.removeprefix(CONSTANT))


class _WithConstants(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """A graph as a module whose constant inputs are buffers: its call takes the other inputs."""

    def __init__(
        self,
        graph: torch.fx.GraphModule,
        constants: dict[int, torch.Tensor],
        variables: tuple[int, ...],
        sizes: dict[int, Place],
    ) -> None:
        super().__init__()
        self._graph = graph
        self._constants = tuple(constants)
        self._variables = variables
        self._sizes = sizes
        for at, tensor in constants.items():
            self.register_buffer(_name_of_constant(at), tensor)

    def key(self, own: Tensors) -> str | None:
        """Returns the cache key of the module's export for the variables ``own``; None where it has none."""
        order = (self._constants, self._variables, sorted(self._sizes.items()))
        return graph_key(self._graph, dict(self.named_buffers()), own, order)

    def forward(self, *variables: Any) -> Any:
        """Calls the graph with ``variables``, the buffers, and the sizes of these."""
        inputs: dict[int, Any] = dict(zip(self._variables, variables, strict=True))
        for at in self._constants:
            inputs[at] = getattr(self, _name_of_constant(at))
        for at, (number, dimension) in self._sizes.items():
            inputs[at] = inputs[number].shape[dimension]
        return self._graph(*map(inputs.__getitem__, range(len(inputs))))


def _name_of_constant(number: int) -> str:
    return f"{CONSTANT}{number}"
