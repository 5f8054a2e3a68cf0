"""Recurrent layers (LSTM, GRU, RNN) as operators that programs have: the steps of a sequence, one by one.

The products of the input with its weights are one matrix product for all steps. A step is the product of the
hidden state and the arithmetic of the cell. Equal steps are equal fusions, of which a program has one code.
f16 and bf16 are computed in f32; what a step passes on to its product, and what is returned, is rounded.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch._decomp import decompositions as torch_decompositions
from torch.nn.functional import linear

from tuner.models.torch.element_types import widened
from tuner.models.torch.refusals import RANDOM

ATEN = torch.ops.aten
MOST_STEPS = 128  # of all layers and directions of an operator: each one takes time to compile
States = tuple[torch.Tensor, ...]  # of a cell; the first is the hidden state
# runs one layer in one direction: takes its number, its input, its first states and whether the last position
# comes first; returns the hidden states of all positions, and the last states
Scan = Callable[[int, torch.Tensor, States, bool], tuple[torch.Tensor, States]]


@dataclass(frozen=True)
class RecurrentCell:
    """What a recurrent layer computes at each step.

    ``state_count``: of tensors that a step passes on to the next one. ``step``: takes the products of the
    input and of the hidden state, each (rows, gates * hidden size), and the states; returns new states.
    """

    state_count: int
    step: Callable[[torch.Tensor, torch.Tensor, States], States]


def _lstm_step(inputs: torch.Tensor, products: torch.Tensor, states: States) -> States:
    _, memory = states
    entering, kept, new, shown = (inputs + products).chunk(4, -1)
    memory = kept.sigmoid() * memory + entering.sigmoid() * new.tanh()
    return shown.sigmoid() * memory.tanh(), memory


def _gru_step(inputs: torch.Tensor, products: torch.Tensor, states: States) -> States:
    (hidden,) = states
    reset_in, kept_in, new_in = inputs.chunk(3, -1)
    reset, kept, new = products.chunk(3, -1)
    new = (new_in + (reset_in + reset).sigmoid() * new).tanh()
    return ((hidden - new) * (kept_in + kept).sigmoid() + new,)


def _tanh_step(inputs: torch.Tensor, products: torch.Tensor, _: States) -> States:
    return ((inputs + products).tanh(),)


def _relu_step(inputs: torch.Tensor, products: torch.Tensor, _: States) -> States:
    return ((inputs + products).relu(),)


CELLS: dict[Any, RecurrentCell] = {
    ATEN.lstm.input: RecurrentCell(2, _lstm_step),
    ATEN.gru.input: RecurrentCell(1, _gru_step),
    ATEN.rnn_tanh.input: RecurrentCell(1, _tanh_step),
    ATEN.rnn_relu.input: RecurrentCell(1, _relu_step),
}


@dataclass(frozen=True)
class RecurrentForm:
    """The options of a recurrent operator, in the order of its arguments after the weights."""

    has_biases: bool
    layers: int
    dropout: float
    train: bool
    is_bidirectional: bool
    is_batch_first: bool

    @property
    def along(self) -> int:
        """Returns the dimension of the input, of three, that has the positions of the sequence."""
        return int(self.is_batch_first)

    @property
    def directions(self) -> int:
        """Returns how many times a layer goes through the sequence."""
        return 1 + self.is_bidirectional

    def steps(self, size: Sequence[int]) -> int:
        """Returns how many steps all layers and directions have for an input of ``size``."""
        return size[self.along] * self.layers * self.directions

    def why_refused(self, size: Sequence[Any]) -> str:
        """Returns why an operator of this form is not computed for an input of ``size``; "" if it is."""
        if self.train and self.dropout:
            return RANDOM
        if not all(isinstance(extent, int) and extent for extent in size):
            return "of a size that is not static"
        if self.is_long(size):
            return f"it has {self.steps(size)} steps: a program has at most {MOST_STEPS}"
        return ""

    def is_long(self, size: Sequence[Any]) -> bool:
        """Returns whether an input of ``size`` is static and takes more steps than a program has."""
        return all(isinstance(extent, int) for extent in size) and self.steps(size) > MOST_STEPS

    def is_of_any_length(self, size: Sequence[Any]) -> bool:
        """Returns whether the number of steps is the only dynamic size of an input of ``size``."""
        return [at for at, extent in enumerate(size) if not isinstance(extent, int)] == [self.along]

    def weights_of(self, params: Sequence[torch.Tensor], *, has_projection: bool) -> list["Weights"]:
        """Returns the weights of each layer and direction, from the operator's list ``params``."""
        size = 2 + 2 * self.has_biases + has_projection
        weights = []
        for start in range(0, len(params), size):
            of_input, of_hidden, *others = params[start : start + size]
            projection = None
            if has_projection:
                projection = others.pop()
            input_bias, hidden_bias = others or (None, None)
            weights.append(Weights(of_input, of_hidden, input_bias, hidden_bias, projection))
        return weights


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of one layer in one direction, of ``n`` = gates * hidden size numbers at each step."""

    of_input: torch.Tensor  # (n, input size)
    of_hidden: torch.Tensor  # (n, hidden size)
    input_bias: torch.Tensor | None  # (n,)
    hidden_bias: torch.Tensor | None
    projection: torch.Tensor | None  # of the hidden state that is passed on


def recurrences() -> dict[Any, Callable[..., Any]]:
    """Returns decompositions of recurrent layers that have no ``RecurrentForm.why_refused``."""
    return {operator: partial(_computed, cell) for operator, cell in CELLS.items()}


@contextlib.contextmanager
def keeping_lengths() -> Iterator[None]:
    """Context manager: tracing a recurrent layer does not make a number of a length that is a symbol.

    PyTorch goes through the steps to find the shapes of the results, which this gives at once. What is traced
    must keep a layer as one operator.
    """
    through_steps = torch_decompositions._rnn_helper  # noqa: SLF001 - of all recurrent operators
    torch_decompositions._rnn_helper = partial(_results_like, through_steps)  # noqa: SLF001
    try:
        yield
    finally:
        torch_decompositions._rnn_helper = through_steps  # noqa: SLF001


def _results_like(through_steps: Callable[..., Any], x: torch.Tensor, hidden: Any, *options: Any) -> Any:
    """Returns tensors of the shapes that ``through_steps``, PyTorch's function, returns for these arguments.

    ``hidden``: by layer and direction, the first states: a tensor, or a tuple of tensors.
    """
    *_, is_bidirectional, is_batch_first, _ = options
    if isinstance(x.shape[int(is_batch_first)], int):
        return through_steps(x, hidden, *options)
    if is_batch_first:
        x = x.transpose(0, 1)
    first = hidden[0][0] if isinstance(hidden[0], tuple) else hidden[0]
    output = x.new_empty((*x.shape[:2], first.shape[-1] * (1 + is_bidirectional)))
    if is_batch_first:
        output = output.transpose(0, 1)
    return output, list(hidden)


def why_no_recurrence(node: torch.fx.Node) -> str:
    """Returns why a node of a graph after decompositions is still a recurrent layer; "" if it is none."""
    if node.target not in CELLS:
        return ""
    return RecurrentForm(*node.args[3:]).why_refused(node.args[0].meta["val"].shape)


def through_layers(
    form: RecurrentForm, x: torch.Tensor, states: Sequence[torch.Tensor], scan: Scan
) -> tuple[torch.Tensor, ...]:
    """Returns hidden states of all positions of the last layer, and the last states of all layers.

    ``states``: each (layers * directions, rows, size). ``scan`` is called for each layer and direction.
    """
    last: list[States] = []
    for _ in range(form.layers):
        outputs = []
        for is_reversed in (False, True)[: form.directions]:
            number = len(last)
            output, new = scan(number, x, tuple(state[number] for state in states), is_reversed)
            outputs.append(output)
            last.append(new)
        x = outputs[0]
        if len(outputs) > 1:
            x = torch.cat(outputs, -1)
    return (x, *(torch.stack(of_layers) for of_layers in zip(*last, strict=True)))


def _computed(
    cell: RecurrentCell,
    x: torch.Tensor,
    states: torch.Tensor | Sequence[torch.Tensor],
    params: Sequence[torch.Tensor],
    *options: Any,
) -> Any:
    """Computes ``aten.lstm.input`` and operators like it: (hidden states of all positions, last states)."""
    form = RecurrentForm(*options)
    if form.why_refused(x.shape):
        return NotImplemented
    if isinstance(states, torch.Tensor):
        states = (states,)
    has_projection = cell.state_count > 1 and states[0].shape[-1] != states[1].shape[-1]
    weights = form.weights_of(params, has_projection=has_projection)

    def scan(number: int, x: torch.Tensor, first: States, is_reversed: bool) -> tuple[torch.Tensor, States]:
        return _scanned(cell, x, first, weights[number], form.along, is_reversed=is_reversed)

    return through_layers(form, x, states, scan)


def _scanned(
    cell: RecurrentCell, x: torch.Tensor, states: States, weights: Weights, along: int, *, is_reversed: bool
) -> tuple[torch.Tensor, States]:
    """Runs a layer in one direction; returns its hidden states of all positions, and its last states.

    ``along``: the dimension of ``x`` that has the positions; the last of them is the first step if
    ``is_reversed``.
    """
    dtype = x.dtype
    inputs = linear(widened(x), widened(weights.of_input), _widened_bias(weights.input_bias))
    of_hidden = widened(weights.of_hidden)
    hidden_bias = _widened_bias(weights.hidden_bias)
    wide = tuple(map(widened, states))
    positions = list(range(x.shape[along]))
    if is_reversed:
        positions.reverse()
    hidden: dict[int, torch.Tensor] = {}
    for position in positions:
        products = linear(widened(wide[0].to(dtype)), of_hidden, hidden_bias)
        wide = cell.step(inputs.select(along, position), products, wide)
        if weights.projection is not None:
            projected = linear(widened(wide[0].to(dtype)), widened(weights.projection))
            wide = (projected, *wide[1:])
        hidden[position] = wide[0].to(dtype)
    output = torch.stack([hidden[position] for position in sorted(positions)], along)
    return output, tuple(state.to(dtype) for state in wide)


def _widened_bias(bias: torch.Tensor | None) -> torch.Tensor | None:
    if bias is None:
        return None
    return widened(bias)
