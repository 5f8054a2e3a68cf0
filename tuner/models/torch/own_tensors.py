"""Tensors that a graph of Dynamo contains become its inputs: under TORCHINDUCTOR_FREEZING its weights."""

from operator import attrgetter
from typing import Any

import torch


def with_tensors_as_inputs(graph: torch.fx.GraphModule) -> tuple[torch.fx.GraphModule, tuple[Any, ...]]:
    """Returns (graph, tensors): the graph with its own tensors as further inputs, at the end; these tensors.

    A graph without tensors of its own is returned as it is, with ().
    """
    tensors = _tensors_of(graph)
    if not tensors:
        return graph, ()
    copied = torch.fx.Graph()
    names: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in graph.graph.find_nodes(op="placeholder"):
        names[node] = copied.node_copy(node)
    own: dict[str, torch.fx.Node] = {}
    for name in tensors:
        own[name] = copied.placeholder(f"own_{len(own)}")
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            continue
        if node.op == "get_attr" and node.target in own:
            names[node] = own[node.target]
            own[node.target].meta |= node.meta
        else:
            names[node] = copied.node_copy(node, names.__getitem__)
    return torch.fx.GraphModule(graph, copied), tuple(tensors.values())


def _tensors_of(graph: torch.fx.GraphModule) -> dict[str, torch.Tensor]:
    """Returns the tensors that a graph holds as attributes, by their names in the graph."""
    found: dict[str, torch.Tensor] = {}
    for node in graph.graph.find_nodes(op="get_attr"):
        value = attrgetter(node.target)(graph)
        if isinstance(value, torch.Tensor):
            found[node.target] = value
    return found
