"""Recurrent layers of many steps, or of any number: programs of some steps, called one after the other.

Each is called with the states that the one before it returns. A program with each step of a long sequence
would take minutes to compile.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.utils import _pytree

from tuner.core.errors import CandidateError, UsageError
from tuner.models.torch.module_parts import CompiledOperators
from tuner.models.torch.program import TensorProgram
from tuner.models.torch.recurrences import CELLS, RecurrentForm, States, through_layers

BLOCK = 64  # steps of a program: more take longer to compile, fewer are called more often
FEWER = (16, 4, 1)  # steps of the programs for what is left of a length that is not known
Compiled = Callable[[torch.nn.Module, tuple[torch.Tensor, ...]], TensorProgram]


def recurrent_blocks(
    nodes: Sequence[Node], constant: Callable[[Node], torch.Tensor | None], compiled: Compiled
) -> CompiledOperators:
    """Returns, by node, the recurrent layers of a graph that have more steps than one program, or any number.

    Each comes with the nodes of its input and of its first states. ``constant``: returns the value of a node
    that depends on weights alone, else None. ``compiled``: compiles a module for example tensors. A layer
    whose weights are not constant, or one that cannot be compiled, is left out: PyTorch computes it.
    """
    blocks = {}
    for node in nodes:
        if node.target not in CELLS:
            continue
        x, states, params, *options = node.args
        form = RecurrentForm(*options)
        inputs = tuple(_pytree.tree_leaves((x, states)))
        weights = list(map(constant, params))
        is_random = form.train and form.dropout
        is_constant = all(map(torch.is_tensor, weights))
        size = x.meta["val"].shape
        if is_random or not is_constant or not (form.is_long(size) or form.is_of_any_length(size)):
            continue
        try:
            layers = RecurrentBlocks(node.target, form, weights, inputs, compiled)
        except (UsageError, CandidateError):
            continue
        blocks[node] = (layers, inputs)
    return blocks


class RecurrentBlocks(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """A recurrent operator with constant weights, by programs of BLOCK steps and of those that remain.

    If its length is not static, there are programs of BLOCK and of FEWER steps, which make up any length.
    """

    def __init__(
        self,
        operator: Any,
        form: RecurrentForm,
        weights: Sequence[torch.Tensor],
        inputs: Sequence[Node],
        compiled: Compiled,
    ) -> None:
        """Compiles ``operator``, of CELLS; ``inputs``: the nodes of its input and of its states.

        Raises UsageError or CandidateError where a program cannot be compiled.
        """
        super().__init__()
        self._form = form
        x, *states = (node.meta["val"] for node in inputs)
        self._counts = _counts_of(x.shape[form.along])
        rows = x.shape[1 - form.along]
        size = len(weights) // (form.layers * form.directions)
        self._programs: list[dict[int, TensorProgram]] = []  # by layer and direction, then by steps
        for start in range(0, len(weights), size):
            layer = _Layer(operator, weights[start : start + size], has_biases=form.has_biases)
            programs = {}
            for count in self._counts:
                block = torch.zeros((count, rows, weights[start].shape[1]), dtype=x.dtype)
                first = (torch.zeros(state.shape[1:], dtype=state.dtype) for state in states)
                programs[count] = compiled(layer, (block, *first))
            self._programs.append(programs)

    def forward(self, x: torch.Tensor, *states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Returns what the operator returns: hidden states of all positions, and the last states."""
        if not self._form.is_batch_first:
            return through_layers(self._form, x, states, self._scanned)
        x, *last = through_layers(self._form, x.transpose(0, 1), states, self._scanned)
        return (x.transpose(0, 1), *last)  # with the strides of the operator's result

    def _scanned(
        self, number: int, x: torch.Tensor, states: States, is_reversed: bool
    ) -> tuple[torch.Tensor, States]:
        if is_reversed:
            x = x.flip(0)
        outputs = []
        for block in x.split(_lengths(len(x), self._counts)):
            output, *last = self._programs[number][len(block)].run((block, *states))
            outputs.append(output)
            states = tuple(last)
        joined = torch.cat(outputs)
        if is_reversed:
            joined = joined.flip(0)
        return joined, states


def _counts_of(steps: Any) -> tuple[int, ...]:
    """Returns the numbers of steps of the programs for a layer of ``steps``, which may be a symbol."""
    if not isinstance(steps, int):
        return (BLOCK, *FEWER)
    counts = {min(steps, BLOCK), steps % BLOCK or BLOCK}
    return tuple(sorted(counts, reverse=True))


def _lengths(steps: int, counts: Sequence[int]) -> list[int]:
    """Returns the numbers of steps of the programs that are called for ``steps``: the longest first."""
    lengths = []
    for count in counts:
        lengths += [count] * (steps // count)
        steps %= count
    return lengths


class _Layer(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """One layer in one direction; the first dimension of its input has the positions."""

    def __init__(self, operator: Any, weights: Sequence[torch.Tensor], *, has_biases: bool) -> None:
        super().__init__()
        self._operator = operator
        self._has_biases = has_biases
        for number, weight in enumerate(weights):
            self.register_buffer(f"weight_{number}", weight)

    def forward(self, x: torch.Tensor, *states: torch.Tensor) -> States:
        first: Any = [state.unsqueeze(0) for state in states]
        if len(first) == 1:
            (first,) = first
        options = (self._has_biases, 1, 0.0, False, False, False)
        output, *last = self._operator(x, first, list(self.buffers()), *options)
        return (output, *(state.squeeze(0) for state in last))
