"""Sizes that change from call to call: which of a graph's are, and what a call's must be.

Operators whose inputs or results have such a size are compiled as a family of programs (``ProgramFamily``)
where weights are multiplied by it, as in the prompt of a language model; else they run by PyTorch, as does
the attention of one step with a growing cache.
"""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node
from torch.utils import _pytree

from tuner.core.errors import UsageError
from tuner.torch.symbol_sizes import OtherSizeError, SymbolSize, size_of

Place = tuple[int, int]  # numbers of a tensor and of its dimension
Shape = tuple[int | None, ...]  # None: dynamic
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


@dataclass(frozen=True)
class DynamicSize:
    """A size that dimensions of arguments have, which is at least ``least`` and at most ``greatest``."""

    symbol: str  # its name in the graph
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
        if is_dynamic_node(node):
            dynamic.add(node)
    return frozenset(dynamic)


def is_dynamic_node(node: Node) -> bool:
    """Returns whether a node has a dynamic size, or reads what has one."""
    values = [known.meta.get("val") for known in (node, *node.all_input_nodes)]
    return any(map(is_dynamic, values))


def is_size(node: Node) -> bool:
    """Returns whether a node is a number that depends on a symbol."""
    return isinstance(node.meta.get("val"), SYMBOLIC)


def read_sizes_of_arguments(graph: torch.fx.Graph, arguments: Sequence[Node]) -> None:
    """Makes each size that a graph computes one of its arguments' sizes, times and plus constants; in place.

    Before, it may be read from the result of another operator, on which all that needs it would depend.
    """
    owners: dict[str, tuple[Node, int]] = {}
    for node in arguments:
        for dim, size in enumerate(node.meta["val"].shape):
            if _static(size) is None:
                owners.setdefault(str(size.node.expr), (node, dim))
    found = tuple(graph.find_nodes(op="call_function", target=torch.ops.aten.sym_size.int))
    start = next(node for node in graph.nodes if node.op != "placeholder")
    known: dict[SymbolSize, Node] = {}
    with graph.inserting_before(start):
        for node in found:
            size = _affine(node)
            if size is not None and size.symbol in owners and size not in known:
                known[size] = _size_node(graph, size, owners[size.symbol])
    for node in found:
        size = _affine(node)
        if size in known:
            node.replace_all_uses_with(known[size])
            graph.erase_node(node)


def _affine(node: Node) -> SymbolSize | None:
    try:
        size = size_of(node.meta["val"])
    except OtherSizeError:
        return None
    return size if isinstance(size, SymbolSize) else None


def _size_node(graph: torch.fx.Graph, size: SymbolSize, owner: tuple[Node, int]) -> Node:
    node = graph.call_function(torch.ops.aten.sym_size.int, owner)
    node.meta["val"] = owner[0].meta["val"].shape[owner[1]]
    if size.of_n.of_n != 1:
        node = _number_node(graph, operator.mul, node, size.of_n.of_n)
    if size.of_n.constant:
        node = _number_node(graph, operator.add, node, size.of_n.constant)
    return node


def _number_node(graph: torch.fx.Graph, function: Any, number: Node, constant: int) -> Node:
    node = graph.call_function(function, (number, constant))
    node.meta["val"] = function(number.meta["val"], constant)
    return node


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
        sizes.append(
            DynamicSize(str(symbol), tuple(where), int(max(bounds.lower, 0)), _greatest(bounds.upper))
        )
    return tuple(sizes)


def _greatest(bound: Any) -> int:
    largest = torch.iinfo(torch.int64).max
    return int(bound) if bound < largest else largest
