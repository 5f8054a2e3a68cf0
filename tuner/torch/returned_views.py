"""Results that are views of inputs or of other results: a write into one of the two changes the other."""

import operator
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch.fx import Node


def is_view(node: Node) -> bool:
    """Returns whether an operator's results share the memory of what it reads."""
    if not isinstance(node.target, torch._ops.OpOverload):  # noqa: SLF001 - of a tensor of several, of a size
        return True
    return any(result.alias_info for result in node.target._schema.returns)  # noqa: SLF001


@dataclass(frozen=True, eq=False)
class ReturnedViews:
    """Results that are views of inputs or of other results, and the operators that make them, in order."""

    results: tuple[Node, ...] = ()
    nodes: tuple[Node, ...] = ()


def returned_views(results: Iterable[Node], memory: frozenset[Node]) -> ReturnedViews:
    """Returns the results that are views of ``memory`` (inputs, buffers) or of another result."""
    results = tuple(dict.fromkeys(results))
    chains = dict(zip(results, map(_chain, results), strict=True))
    bases = Counter(base for base, _ in chains.values())
    shared = []
    nodes: dict[Node, None] = {}
    for result in results:
        base, views = chains[result]
        if base in memory or (views and bases[base] > 1):
            shared.append(result)
            nodes |= dict.fromkeys(views)
    return ReturnedViews(tuple(shared), tuple(nodes))


def _chain(node: Node) -> tuple[Node, tuple[Node, ...]]:
    """Returns what ``node`` is a view of, and the views from there to ``node``."""
    views: list[Node] = []
    while node.op == "call_function" and _is_view_of_one(node):
        views.append(node)
        node = node.args[0]
    return node, tuple(views[::-1])


def _is_view_of_one(node: Node) -> bool:
    if node.target is operator.getitem:  # of an operator with several results, which may be views
        return is_view(node.args[0])
    return isinstance(node.target, torch._ops.OpOverload) and is_view(node)  # noqa: SLF001
