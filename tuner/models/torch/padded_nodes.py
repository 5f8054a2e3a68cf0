"""Which operators of a graph with a dynamic size are compiled, and why the others run by PyTorch."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch.fx import Node

from tuner.models.torch.dynamic_sizes import DynamicSize, dynamic_nodes, dynamic_sizes, is_size
from tuner.models.torch.module_parts import ModuleGraph
from tuner.models.torch.padding_rules import NO_RULE, NoRuleError, masks_before
from tuner.models.torch.symbol_sizes import OtherSizeError, SymbolSize, sizes_of_tensor

PRODUCTS = frozenset({"mm", "bmm", "addmm", "baddbmm", "matmul", "linear", "bilinear", "einsum"})
OF_PRODUCTS = ("conv", "attention", "lstm", "gru")  # parts of names of operators that multiply matrices


@dataclass(frozen=True, eq=False)
class PaddedNodes:
    """The dynamic size along which a graph is padded, None if it is not; and operators that PyTorch runs.

    ``in_torch``: the reason, by operator: it has another dynamic size, or no rule for padding.
    """

    size: DynamicSize | None
    in_torch: Mapping[Node, str]


def padded_nodes(graph: ModuleGraph, *, is_all_compiled: bool) -> PaddedNodes:
    """Returns which operators with dynamic sizes are compiled, for a size of the graph's arguments.

    It is the size along which most weights are multiplied. Where there is none, no operator with a dynamic
    size is compiled, unless ``is_all_compiled``: what else is there, such as the attention of one step with a
    growing cache, is not worth a program per size.
    """
    dynamic = dynamic_nodes(graph.nodes)
    if not dynamic:
        return PaddedNodes(None, {})
    symbols = Counter[str]()
    for node in graph.nodes:
        if is_product(node) and not graph.known.isdisjoint(node.all_input_nodes):
            symbols.update(_symbols(node))
    sizes = {size.symbol: size for size in dynamic_sizes(graph.program, graph.inputs)}
    if is_all_compiled and not symbols:
        symbols.update(sizes.keys())
    for symbol, _ in symbols.most_common():
        if symbol in sizes:
            return PaddedNodes(sizes[symbol], _without_rules(dynamic, symbol))
    return PaddedNodes(None, dict.fromkeys(dynamic, NO_RULE))


def _symbols(node: Node) -> set[str]:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return set()
    try:
        sizes = sizes_of_tensor(value)
    except OtherSizeError:
        return set()
    return {size.symbol for size in sizes if isinstance(size, SymbolSize)}


def _without_rules(nodes: Iterable[Node], symbol: str) -> dict[Node, str]:
    reasons = {}
    for node in nodes:
        if is_size(node) or not isinstance(node.target, torch._ops.OpOverload):  # noqa: SLF001 - torch's only name
            continue  # one of several results is where its operator is
        try:
            masks_before(node, symbol)
        except NoRuleError as error:
            reasons[node] = str(error)
    return reasons


def is_product(node: Node) -> bool:
    """Returns whether an operator multiplies matrices."""
    name = str(getattr(node.target, "__name__", "")).partition(".")[0]
    return name in PRODUCTS or any(part in name for part in OF_PRODUCTS)
