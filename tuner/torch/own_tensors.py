"""Tensors that a graph of Dynamo contains become its inputs: under TORCHINDUCTOR_FREEZING its weights."""

from operator import attrgetter
from typing import Any

import torch


def with_tensors_as_inputs(graph: torch.fx.GraphModule) -> tuple[torch.fx.GraphModule, tuple[Any, ...]]:
    """Returns the graph with one more input, the last ones, for each tensor that it contains; these tensors.

    A graph that contains none is returned as it is.
    """
    held = [node.target for node in graph.graph.nodes if node.op == "get_attr"]
    tensors = {name: attrgetter(name)(graph) for name in dict.fromkeys(held)}
    tensors = {name: tensor for name, tensor in tensors.items() if isinstance(tensor, torch.Tensor)}
    if not tensors:
        return graph, ()
    copied = torch.fx.Graph()
    names: dict[torch.fx.Node, torch.fx.Node] = {}
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    for node in inputs:
        names[node] = copied.node_copy(node)
    own = {name: copied.placeholder(f"own_{number}") for number, name in enumerate(tensors)}
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            continue
        if node.op == "get_attr" and node.target in own:
            names[node] = own[node.target]
            own[node.target].meta |= node.meta
        else:
            names[node] = copied.node_copy(node, names.__getitem__)
    return torch.fx.GraphModule(graph, copied), tuple(tensors.values())
