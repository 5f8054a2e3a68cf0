"""Sizes that change from call to call: which of a graph's are, and what a call's must be.

Operators whose inputs or results have such a size run by PyTorch; those of static sizes are compiled. Of one
step of a language model with a growing cache, these are all but the attention.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node
from torch.utils import _pytree

from tuner.core.errors import UsageError

Place = tuple[int, int]  # numbers of a tensor and of its dimension
Shape = tuple[int | None, ...]  # None: dynamic
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


@dataclass(frozen=True)
class DynamicSize:
    """A size that dimensions of arguments have, which is at least ``least`` and at most ``greatest``."""

    places: tuple[Place, ...]
    least: int
    greatest: int

    def require(self, tensors: Sequence[torch.Tensor]) -> None:
        """Raises UsageError where the dimensions differ, or their size is out of range."""
        sizes = {tensors[number].shape[dimension] for number, dimension in self.places}
        size = min(sizes)
        if len(sizes) > 1 or not self.least <= size <= self.greatest:
            number, dimension = self.places[0]
            raise UsageError(
                f"argument {number}: found size {size} of dimension {dimension}, "
                f"allowed {self.least} to {self.greatest}, as of each dimension that is equal to it"
            )


def is_dynamic(value: object) -> bool:
    """Returns whether an example value of a graph is a symbol, or has tensors with symbols as sizes."""
    return any(map(_has_symbols, _pytree.tree_leaves(value)))


def _has_symbols(leaf: object) -> bool:
    return isinstance(leaf, SYMBOLIC) or None in shape_of(leaf)


def shape_of(value: object) -> Shape:
    """Returns the sizes of a tensor, None for symbols; () of what is not a tensor."""
    if not isinstance(value, torch.Tensor):
        return ()
    return tuple(map(_static, value.shape))


def _static(size: int | torch.SymInt) -> int | None:
    """Returns a size, None for a symbol that may have several values."""
    if isinstance(size, torch.SymInt):
        known: int | None = size.node.maybe_as_int()
        return known
    return size


def dynamic_nodes(nodes: Iterable[Node]) -> frozenset[Node]:
    """Returns the nodes that have a dynamic size, or read what has one."""
    dynamic = set()
    for node in nodes:
        if any(map(_is_dynamic_node, (node, *node.all_input_nodes))):
            dynamic.add(node)
    return frozenset(dynamic)


def _is_dynamic_node(node: Node) -> bool:
    return is_dynamic(node.meta.get("val"))


def dynamic_sizes(program: torch.export.ExportedProgram, inputs: Sequence[Node]) -> tuple[DynamicSize, ...]:
    """Returns the dynamic sizes of a graph's arguments.

    Raises UsageError where one depends on another, as twice its size.
    """
    places: dict[Any, list[Place]] = {}
    for number, node in enumerate(inputs):
        for dimension, size in enumerate(node.meta["val"].shape):
            if _static(size) is None:
                places.setdefault(size.node.expr, []).append((number, dimension))
    sizes = []
    for symbol, where in places.items():
        bounds = program.range_constraints.get(symbol)
        if bounds is None:
            raise UsageError(f"the module has dynamic sizes that depend on others: {symbol}")
        sizes.append(DynamicSize(tuple(where), int(max(bounds.lower, 0)), _greatest(bounds.upper)))
    return tuple(sizes)


def _greatest(bound: Any) -> int:
    largest = torch.iinfo(torch.int64).max
    return int(bound) if bound < largest else largest
