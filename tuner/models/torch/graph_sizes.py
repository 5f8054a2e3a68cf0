"""The sizes of a graph of torch.compile: numbers among its inputs, and dimensions of tensors, as symbols."""

from collections.abc import Iterable
from typing import Any

import torch
from torch.export import Dim

from tuner.core.errors import UsageError
from tuner.models.torch.dynamic_sizes import Place, Shape, shape_of
from tuner.models.torch.guards import NO_GRADIENTS, plain

EXAMPLE = "example_value"  # of a placeholder: a tensor or number whose sizes are symbols


class DynamicSizesError(UsageError):
    """A graph has sizes that change from call to call, and no part without them that can be compiled."""

    def __init__(self) -> None:
        super().__init__("the graph takes a SymInt: sizes are not static")


def sizes_of(graph: torch.fx.GraphModule, inputs: tuple[Any, ...]) -> dict[int, Place]:
    """Returns, by the index of each input that is a size, (index, dimension) of a tensor input with it.

    If no tensor has the size, this is (the index of the size itself, 0): ``tensor_of_size`` then stands for
    it. Raises DynamicSizesError for inputs that are neither tensors nor such sizes, UsageError for tensors
    that a program cannot read, and for required gradients.
    """
    places: dict[str, Place] = {}
    values = _example_values(graph)
    for index, value in enumerate(values):
        if isinstance(value, torch.Tensor):
            for dimension, size in enumerate(value.shape):
                places.setdefault(str(size), (index, dimension))
    sizes = {}
    for index, tensor in enumerate(inputs):
        if isinstance(tensor, torch.Tensor):
            plain(tensor, f"input {index} of the graph")
            if tensor.requires_grad and torch.is_grad_enabled():
                raise UsageError(NO_GRADIENTS)
        elif index < len(values) and isinstance(values[index], torch.SymInt):
            sizes[index] = places.get(str(values[index]), (index, 0))
        else:
            raise DynamicSizesError
    return sizes


def tensor_of_size(number: int | torch.SymInt) -> torch.Tensor:
    """Returns a tensor of shape (number, 0); for a symbol, of its example value, but at least 2.

    Raises UsageError for a negative number.
    """
    if isinstance(number, torch.SymInt):
        return torch.empty(
            max(number.node.hint, 2), 0
        )  # its value: the symbol itself would become a constant
    if number < 0:
        raise UsageError(f"a number of the graph is {number}, which no size is")
    return torch.empty(number, 0)


def dynamic_shapes(graph: torch.fx.GraphModule, numbers: Iterable[int]) -> Any:
    """Returns ``dynamic_shapes`` for torch.export of the inputs at the indices ``numbers``.

    None if all their sizes are static.
    """
    values = _example_values(graph)
    shapes = []
    for number in numbers:
        dynamic = {}
        for dimension, size in enumerate(_shape_of(values[number]) if values else ()):
            if size is None:
                dynamic[dimension] = Dim.AUTO
        shapes.append(dynamic)
    if not any(shapes):
        return None
    return (tuple(shapes),)


def _shape_of(value: object) -> Shape:
    if isinstance(value, torch.SymInt):
        return None, 0
    return shape_of(value)


def _example_values(graph: torch.fx.GraphModule) -> list[Any]:
    values = [node.meta.get(EXAMPLE) for node in graph.graph.find_nodes(op="placeholder")]
    return [] if None in values else values
