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

from tuner.core.dynamic_sizes import SIZE_N, LinearSize
from tuner.core.errors import UsageError
from tuner.models.torch.symbol_sizes import OtherSizeError, SymbolSize, size_of

Place = tuple[int, int]  # numbers of a tensor and of its dimension
Shape = tuple[int | None, ...]  # None: dynamic
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
NO_BOUND = torch.iinfo(torch.int64).max


@dataclass(frozen=True)
class SizedPlace:
    """A dimension of the argument at index ``number``, and its size as a function of the dynamic size n."""

    number: int
    dimension: int
    of_n: LinearSize = SIZE_N


@dataclass(frozen=True)
class DynamicSize:
    """A size n on which dimensions of arguments depend; it is at least ``least`` and at most ``greatest``."""

    symbol: str  # its name in the graph
    places: tuple[SizedPlace, ...]
    least: int
    greatest: int

    def require(self, tensors: Sequence[torch.Tensor]) -> None:
        """Raises UsageError where sizes of ``tensors`` do not belong to one n, or n is out of range."""
        first = self.places[0]
        n = first.of_n.size_for(tensors[first.number].shape[first.dimension])
        is_in_range = self.least <= n <= self.greatest
        for place in self.places:
            if not is_in_range or tensors[place.number].shape[place.dimension] != place.of_n.at(n):
                raise self._wrong(tensors)

    def _wrong(self, tensors: Sequence[torch.Tensor]) -> UsageError:
        """Returns the error for a call whose sizes belong to no allowed n.

        It names a dimension whose size is that of no n, else the dimension that implies the least n.
        """
        place = min(self.places, key=lambda known: self._n_of(known, tensors))
        size = tensors[place.number].shape[place.dimension]
        found = f"argument {place.number}: found size {size} of dimension {place.dimension}"
        least = place.of_n.at(self.least)
        greatest = place.of_n.at(self.greatest)
        if all(other.of_n == SIZE_N for other in self.places):
            others = "as of each dimension that is equal to it"
        else:
            others = f"as {place.of_n.text} of an n that all dynamic dimensions have"
        return UsageError(f"{found}, allowed {least} to {greatest}, {others}")

    def _n_of(self, place: SizedPlace, tensors: Sequence[torch.Tensor]) -> int:
        size = tensors[place.number].shape[place.dimension]
        n = place.of_n.size_for(size)
        return n if place.of_n.at(n) == size else -1


def is_dynamic(value: object) -> bool:
    """Returns whether an example value of a graph is a symbol, or has tensors with symbols as sizes."""
    return any(map(_has_symbols, _pytree.tree_leaves(value)))


def _has_symbols(leaf: object) -> bool:
    return isinstance(leaf, SYMBOLIC) or None in shape_of(leaf)


def shape_of(value: object) -> Shape:
    """Returns a tensor's shape, with None for each symbolic size; () for a value that is not a tensor."""
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


def is_other_number(value: object) -> bool:
    """Returns whether an example value is a number that depends on a symbol, but not as a ``SymbolSize``."""
    return isinstance(value, SYMBOLIC) and _symbol_size(value) is None


def is_known_first(node: Node) -> bool:
    """Returns whether a node is an argument, or a number that depends on sizes of arguments alone."""
    if node.op == "placeholder":
        return True
    return is_size(node) and all(map(is_known_first, node.all_input_nodes))


def read_sizes_of_arguments(graph: torch.fx.Graph, arguments: Sequence[Node]) -> None:
    """Replaces ``sym_size`` operators of a graph by a size of an argument, times and plus constants.

    The graph is changed in place. Before, such an operator may read another operator's result, on which all
    that uses the size would depend. A size that is not such a function of one argument's size stays.
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
            size = _symbol_size(node.meta["val"])
            if size is not None and size.symbol in owners and size not in known:
                known[size] = _size_node(graph, size, owners[size.symbol])
    for node in found:
        size = _symbol_size(node.meta["val"])
        if size in known:
            node.replace_all_uses_with(known[size])
            graph.erase_node(node)


def _symbol_size(number: Any) -> SymbolSize | None:
    if not isinstance(number, torch.SymInt):
        return None
    try:
        size = size_of(number)
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
    """Returns the dynamic sizes of a graph's arguments, each with the dimensions that depend on it.

    Raises UsageError where a dimension is not a multiple of one dynamic size plus a constant.
    """
    places: dict[str, list[SizedPlace]] = {}
    ranges: dict[str, tuple[int, int]] = {}
    for index, node in enumerate(inputs):
        for dimension, length in enumerate(node.meta["val"].shape):
            if _static(length) is not None:
                continue
            expression = length.node.expr
            bounds = program.range_constraints.get(expression)
            size = _symbol_size(length)
            if bounds is None or size is None:
                raise UsageError(f"the module has dynamic sizes that depend on others: {expression}")
            places.setdefault(size.symbol, []).append(SizedPlace(index, dimension, size.of_n))
            least, greatest = ranges.get(size.symbol, (0, NO_BOUND))
            least = max(least, _least_n(size.of_n, int(max(bounds.lower, 0))))
            greatest = min(greatest, _greatest_n(size.of_n, bounds.upper))
            ranges[size.symbol] = (least, greatest)
    return tuple(DynamicSize(symbol, tuple(where), *ranges[symbol]) for symbol, where in places.items())


def _least_n(of_n: LinearSize, size: int) -> int:
    """Returns the least n for which the size ``of_n`` is at least ``size``."""
    return of_n.size_for(size + of_n.of_n - 1)


def _greatest_n(of_n: LinearSize, bound: Any) -> int:
    """Returns the greatest n of sizes that are at most ``bound``; NO_BOUND for an infinite bound."""
    return of_n.size_for(int(bound)) if bound < NO_BOUND else NO_BOUND
