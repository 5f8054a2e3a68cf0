"""Splits the graph of a module into parts: some of its operators run by PyTorch, the others are compiled.

Parts run one after the other. A part has the operators of one level: a level reads what lower levels return.
"""

import operator
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.fx import Node

from tuner.core.errors import UsageError
from tuner.torch.export import TRACING
from tuner.torch.program import PartedFunction, TensorPart, Tensors


def is_view(node: Node) -> bool:
    """Returns whether an operator's results share the memory of what it reads."""
    if node.target is operator.getitem:
        return True
    return any(result.alias_info for result in node.target._schema.returns)  # noqa: SLF001


def functional_graph(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Returns the program with in-place operators replaced by functional ones; as it is if there are none.

    Parts of a program would not respect writes into inputs.
    """
    nodes = [node for node in program.graph.nodes if node.op == "call_function" and _is_operator(node)]
    if not any(node.target is not operator.getitem and node.target._schema.is_mutable for node in nodes):  # noqa: SLF001
        return program
    with TRACING, warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of torch about its own code
        return program.run_decompositions({})


@dataclass(frozen=True, eq=False)
class ModuleGraph:
    """The operators of a module as nodes of a torch.fx graph, and the tensors of an example call."""

    program: torch.export.ExportedProgram
    tensors: tuple[torch.Tensor, ...]  # arguments of the example call, for ``inputs``
    inputs: tuple[Node, ...]
    weights: dict[Node, torch.Tensor]
    constants: frozenset[Node]  # nodes that depend on weights alone
    nodes: tuple[Node, ...]  # the others that compute something, in order
    results: tuple[Node, ...]

    @classmethod
    def of(cls, program: torch.export.ExportedProgram, tensors: tuple[torch.Tensor, ...]) -> "ModuleGraph":
        """Takes an exported graph; ``tensors`` are the arguments of the example call.

        Raises UsageError for a graph that contains other graphs, such as that of a module with autocast.
        """
        by_name = {node.name: node for node in program.graph.nodes}
        weights = {}
        inputs = []
        for spec in program.graph_signature.input_specs:
            node = by_name.get(spec.arg.name)
            held = {**program.state_dict, **program.constants}.get(spec.target)
            if isinstance(held, torch.Tensor):
                weights[node] = held
            elif type(spec.arg).__name__ == "TensorArgument":
                inputs.append(node)
        constants: set[Node] = set()
        nodes = []
        for node in program.graph.nodes:
            if node.op == "placeholder" or node.op == "output":
                continue
            if node.op != "call_function" or not _is_operator(node):
                raise UsageError(f"{node.target} has a graph of its own")
            is_constant = all(
                input_node in weights or input_node in constants for input_node in node.all_input_nodes
            )
            if is_constant:
                constants.add(node)
            else:
                nodes.append(node)
        specs = program.graph_signature.output_specs
        results = tuple(
            by_name[spec.arg.name] for spec in specs if type(spec.arg).__name__ == "TensorArgument"
        )
        return cls(program, tensors, tuple(inputs), weights, frozenset(constants), tuple(nodes), results)

    def piece(self, nodes: Sequence[Node], outputs: Sequence[Node]) -> tuple[Any, tuple[Node, ...]]:
        """Returns a module that computes ``outputs`` by ``nodes``, and the nodes that it reads.

        The module takes a tensor per node that it reads, holds copies of weights, and returns a tuple of
        outputs.
        """
        graph = torch.fx.Graph()
        root = torch.nn.Module()
        known = dict[Node, Node]()
        own = {*nodes, *self.weights, *self.constants}
        read = dict[Node, None]()
        for node in (*nodes, *outputs):
            read |= dict.fromkeys((*node.all_input_nodes, node))
        reads = tuple(node for node in read if node not in own)
        for node in reads:
            known[node] = graph.placeholder(node.name)

        def copied(node: Node) -> Node:
            if node not in known and node in self.weights:
                name = f"weight_{len(known)}"
                root.register_buffer(name, self.weights[node].detach().clone())
                known[node] = graph.get_attr(name)
            elif node not in known:
                known[node] = graph.node_copy(node, copied)
            return known[node]

        for node in nodes:
            copied(node)
        graph.output(tuple(map(copied, outputs)))
        return torch.fx.GraphModule(root, graph), reads

    def values(self, wanted: Sequence[Node]) -> dict[Node, torch.Tensor]:
        """Returns the tensors of the nodes ``wanted`` in the example call, computed in eager mode."""
        if not wanted:
            return {}
        module, reads = self.piece(self.nodes, wanted)
        tensor_of = dict(zip(self.inputs, self.tensors, strict=True))
        return dict(zip(wanted, module(*[tensor_of[node] for node in reads]), strict=True))


def _is_operator(node: Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) or node.target is operator.getitem  # noqa: SLF001


# Compiles a module for example tensors; raises UsageError or CandidateError where it cannot be compiled.
PartCompiler = Callable[[torch.nn.Module, tuple[torch.Tensor, ...]], Callable[..., Tensors]]


def parted_function(
    graph: ModuleGraph, in_torch: frozenset[Node], text: str, compiled: PartCompiler
) -> PartedFunction:
    """Returns a function that runs the nodes ``in_torch`` by PyTorch, and the others as compiled programs.

    ``compiled`` takes a module and example tensors and returns a function of a tuple of such tensors;
    ``text`` names the operators in PyTorch, for messages. Parts of views alone run by PyTorch, too. Raises
    what ``compiled`` raises.
    """
    levels = _levels(graph, in_torch)
    pieces = []
    for level in sorted({*levels.values()}):
        nodes = [node for node in graph.nodes if levels[node] == level]
        outputs = [
            node
            for node in nodes
            if node in graph.results or any(levels.get(user, level) != level for user in node.users)
        ]
        is_compiled = level % 2 == 0 and not all(map(is_view, nodes))
        pieces.append((is_compiled, outputs, *graph.piece(nodes, outputs)))
    values = graph.values(
        [*dict.fromkeys(node for is_compiled, *_, reads in pieces if is_compiled for node in reads)]
    )
    parts = []
    for is_compiled, outputs, module, reads in pieces:
        call: Callable[..., Tensors] = by_pytorch(module)
        if is_compiled:
            call = compiled(module, tuple(values[node] for node in reads))
        parts.append(
            TensorPart(call, tuple(read.name for read in reads), tuple(output.name for output in outputs))
        )
    known = [node for node in graph.results if node not in levels and node not in graph.inputs]
    module, _ = graph.piece((), known)
    held = dict(zip((node.name for node in known), module.forward(), strict=True))
    return PartedFunction(
        tuple(tensor.shape for tensor in graph.tensors),
        tuple(node.name for node in graph.inputs),
        tuple(parts),
        tuple(node.name for node in graph.results),
        held,
        f"in PyTorch: {text}",
    )


def _levels(graph: ModuleGraph, in_torch: frozenset[Node]) -> dict[Node, int]:
    """Returns the level of each node; odd: in PyTorch. A part reads what parts of lower levels return."""
    levels: dict[Node, int] = {}
    for node in graph.nodes:
        own = node
        while own.target is operator.getitem:  # several results of an operator are not a tensor
            own = own.all_input_nodes[0]
        least = max(
            (levels[input_node] for input_node in node.all_input_nodes if input_node in levels), default=0
        )
        levels[node] = least + (least % 2 != (own in in_torch))
    return levels


def by_pytorch(module: torch.nn.Module) -> Callable[..., Tensors]:
    """Returns a function of a tuple of tensors that calls the module."""
    return partial(_called, module.forward)


def _called(function: Callable[..., Tensors], tensors: tuple[torch.Tensor, ...]) -> Tensors:
    return function(*tensors)
