"""Sizes 0 and 1 of a graph with a dynamic size, which torch.export traces for sizes of 2 or more.

A condition such as ``n == 1`` is false while it traces, and nothing in the graph says so: a module of which
it decides something would compute as for 2. So the graph is run next to one that is traced at that size, both
by PyTorch.
"""

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter

import torch
from torch.fx import Node

from tuner.core.errors import UsageError
from tuner.models.torch.dynamic_sizes import DynamicSize, dynamic_sizes
from tuner.models.torch.module_parts import ModuleGraph

FIRST_TRACED = 2
RTOL = 1e-3  # kernels of PyTorch may differ by strides
ATOL = 1e-4
Tensors = tuple[torch.Tensor, ...]
TracedAt = Callable[[Tensors], ModuleGraph]


def require_small_sizes(graph: ModuleGraph, traced_at: TracedAt) -> None:
    """Raises UsageError where a graph computes otherwise than its module at a size of 0 or 1 in its range.

    ``traced_at``: traces the module for tensors of other sizes; it raises UsageError where that fails.
    """
    for size in dynamic_sizes(graph.program, graph.inputs):
        for n in range(size.least, FIRST_TRACED):
            tensors = _tensors_at(graph.tensors, size, n)
            if not _is_as_traced(replace(graph, tensors=tensors), traced_at):
                place = size.places[0]
                raise UsageError(
                    f"torch.export refuses the module: its code decides by dimension {place.dimension} of "
                    f"argument {place.number}, and computes otherwise where that is {place.of_n.at(n)}",
                    f"a torch.export.Dim with min={FIRST_TRACED}",
                )


def _tensors_at(tensors: Tensors, size: DynamicSize, n: int) -> Tensors:
    resized = [*tensors]
    for place in size.places:
        resized[place.number] = resized[place.number].narrow(place.dimension, 0, place.of_n.at(n))
    return tuple(resized)


def _is_as_traced(graph: ModuleGraph, traced_at: TracedAt) -> bool:
    """Returns whether the graph computes as the module; True where both raise an error."""
    try:
        expected = _results(traced_at(graph.tensors))
    except (UsageError, RuntimeError, IndexError):
        expected = None
    try:
        found = _results(graph)
    except (RuntimeError, IndexError):
        found = None
    if expected is None or found is None:
        return expected is found
    return len(expected) == len(found) and all(map(_is_equal, found, expected))


def _results(graph: ModuleGraph) -> list[torch.Tensor]:
    wanted = (*graph.results, *map(attrgetter("value"), graph.changes))
    tensors = list(filter(_is_tensor, wanted))
    with torch.no_grad():
        values = graph.values(tensors)
    return [values[node] for node in tensors]


def _is_tensor(node: Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _is_equal(found: torch.Tensor, expected: torch.Tensor) -> bool:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    return bool(torch.allclose(found, expected, RTOL, ATOL, equal_nan=True))
