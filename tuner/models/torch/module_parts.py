"""Splits the graph of a module into parts: some of its operators run by PyTorch, the others are compiled.

Parts run one after the other. A part has the operators of one level: a level reads what lower levels return.
Operators that write a part of a buffer or an input run by PyTorch, in place.
"""

import operator
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import torch
from torch.fx import Node

from tuner.core.errors import UsageError
from tuner.models.torch.call_form import TENSOR
from tuner.models.torch.changed_tensors import Change, changes_of, writes_of, written
from tuner.models.torch.composite_operators import few_overrides
from tuner.models.torch.dynamic_sizes import dynamic_sizes, is_dynamic_node, is_size, shape_of
from tuner.models.torch.encoder_layers import encoder_layers
from tuner.models.torch.graph_export import TRACING
from tuner.models.torch.graph_outputs import (
    ReturnedViews,
    is_change,
    is_overload,
    is_view,
    returned_values,
    returned_views,
)
from tuner.models.torch.parted_function import ChangedTensor, PartedFunction, TensorPart, Tensors

# by node: a module that computes its operator, and the nodes that the module reads
CompiledOperators = Mapping[Node, tuple[torch.nn.Module, tuple[Node, ...]]]
# operators without results, which torch.export has checked
CHECKS = (torch.ops.aten._assert_tensor_metadata.default,)  # noqa: SLF001


def functional_graph(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Returns the program with functional operators in place of in-place operators.

    Encoder layers, each one operator, are written out. A program without both is returned as it is. Parts of
    a program would not respect writes into inputs.
    """
    is_written = any(map(_is_written, program.graph.nodes))
    if not is_written and not any(map(is_change, program.graph_signature.output_specs)):
        return program
    with TRACING, few_overrides(), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of torch about its own code
        return program.run_decompositions(encoder_layers())


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
    changes: tuple[Change, ...] = ()
    state: dict[Node, torch.Tensor] = field(default_factory=dict)  # buffers that the module changes

    @property
    def known(self) -> frozenset[Node]:
        """Returns the weights, and the nodes that depend on weights alone."""
        return self.constants | self.weights.keys()

    @property
    def writes(self) -> frozenset[Node]:
        """Returns the operators that write parts of buffers and inputs, and so run by PyTorch."""
        return writes_of(self.changes)

    @property
    def in_place(self) -> frozenset[Node]:
        """Returns those operators of ``writes`` that write the memory of buffers and inputs themselves."""
        return writes_of(filter(attrgetter("is_in_place"), self.changes))

    @classmethod
    def of(
        cls,
        program: torch.export.ExportedProgram,
        tensors: tuple[torch.Tensor, ...],
        buffers: Mapping[str, torch.Tensor] = MappingProxyType({}),
    ) -> "ModuleGraph":
        """Returns the operators of an exported graph; ``tensors`` are the arguments of the example call.

        ``buffers``: buffers that a call changes, by name; a buffer that is missing here is taken from
        ``program``. Raises UsageError for a graph that contains other graphs, such as that of a module with
        autocast.
        """
        changes = changes_of(program)
        placeholders = _Placeholders(program, {*map(attrgetter("owner"), changes)}, buffers)
        constants: set[Node] = set()
        nodes = []
        for node in program.graph.nodes:
            if node.op in ("placeholder", "output") or node.target in CHECKS:
                continue
            if node.op != "call_function" or not _is_operator(node):
                raise UsageError(f"{node.target} has a graph of its own")
            if constants.union(placeholders.weights).issuperset(node.all_input_nodes):
                constants.add(node)
            else:
                nodes.append(node)
        results, _ = returned_values(program)
        return cls(
            program=program,
            tensors=tensors,
            inputs=tuple(placeholders.inputs),
            weights=placeholders.weights,
            constants=frozenset(constants),
            nodes=tuple(nodes),
            results=tuple(filter(_is_node, results)),
            changes=changes,
            state=placeholders.state,
        )

    def piece(
        self,
        nodes: Sequence[Node],
        outputs: Sequence[Node],
        in_place: frozenset[Node] = frozenset(),
        operators: CompiledOperators = MappingProxyType({}),
        *,
        shares_weights: bool = False,
    ) -> tuple[Any, tuple[Node, ...]]:
        """Returns a module that computes ``outputs`` by ``nodes``, and the nodes that it reads.

        The module takes a tensor per node that it reads and returns a tuple of outputs. It holds copies of
        weights, or the weights themselves with ``shares_weights``. The nodes ``in_place`` write their first
        input. ``operators``: compiled operators, by node. Nodes of the module have the graph's example
        values.
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
            known[node].meta = dict(node.meta)

        def copied(node: Node) -> Node:
            if node not in known and node in self.weights:
                name = f"weight_{len(known)}"
                weight = self.weights[node].detach()
                root.register_buffer(name, weight if shares_weights else weight.clone())
                known[node] = graph.get_attr(name)
                known[node].meta = dict(node.meta)
            elif node not in known and node in operators:
                compiled, operands = operators[node]
                name = f"operator_{len(known)}"
                root.add_module(name, compiled)
                known[node] = graph.call_module(name, tuple(map(copied, operands)))
            elif node not in known and node in in_place:
                known[node] = written(graph, node, copied)
            elif node not in known:
                known[node] = graph.node_copy(node, copied)
            return known[node]

        for node in nodes:
            copied(node)
        graph.output(tuple(map(copied, outputs)))
        return torch.fx.GraphModule(root, graph), reads

    def constant(self, node: Node) -> torch.Tensor | None:
        """Returns the value of a node that depends on weights alone, else None."""
        if node in self.weights:
            return self.weights[node].detach()
        if node not in self.constants:
            return None
        arguments, keywords = torch.fx.node.map_arg((node.args, node.kwargs), self.constant)
        value: torch.Tensor = node.target(*arguments, **keywords)  # type: ignore[operator,unused-ignore]
        return value

    def with_values_of(self, nodes: Collection[Node]) -> "ModuleGraph":
        """Returns the graph with ``nodes``, of its constants, as weights with the values computed here."""
        values: dict[Node, torch.Tensor] = {}
        for node in nodes:
            value = self.constant(node)
            if isinstance(value, torch.Tensor):
                values[node] = value
                continue
            for user in node.users:  # takes one of several results
                values[user] = self.constant(user)
        return replace(self, weights=self.weights | values, constants=self.constants - values.keys())

    def values(self, wanted: Sequence[Node]) -> dict[Node, torch.Tensor]:
        """Returns the tensors of the nodes ``wanted`` in the example call, computed in eager mode."""
        if not wanted:
            return {}
        module, reads = self.piece(self.nodes, wanted)
        tensor_of = dict(zip(self.inputs, self.tensors, strict=True)) | self.state
        return dict(zip(wanted, module(*[tensor_of[node] for node in reads]), strict=True))


class _Placeholders:
    """The nodes of a graph that are not computed: arguments, weights, and buffers that are ``changed``."""

    def __init__(
        self,
        program: torch.export.ExportedProgram,
        changed: set[Node],
        buffers: Mapping[str, torch.Tensor],
    ) -> None:
        self.inputs: list[Node] = []
        self.weights: dict[Node, torch.Tensor] = {}
        self.state: dict[Node, torch.Tensor] = {}
        by_name = {node.name: node for node in program.graph.nodes}
        held = {**program.state_dict, **program.constants}
        for spec in program.graph_signature.input_specs:
            node = by_name.get(spec.arg.name)
            tensor = held.get(spec.target)
            if node in changed and isinstance(tensor, torch.Tensor):
                self.state[node] = buffers.get(spec.target, tensor).detach()
            elif isinstance(tensor, torch.Tensor):
                self.weights[node] = tensor
            elif type(spec.arg).__name__ == TENSOR:
                self.inputs.append(node)


def _is_written(node: Node) -> bool:
    """Returns whether an operator writes its input, or is an encoder layer."""
    return is_overload(node) and (node.target._schema.is_mutable or node.target in encoder_layers())  # noqa: SLF001


SIZES = -1  # the level of sizes of arguments


def _is_node(value: object) -> bool:
    return isinstance(value, Node)


def _is_operator(node: Node) -> bool:
    return is_size(node) or is_overload(node) or node.target is operator.getitem


# Compiles a module for example tensors; raises UsageError or CandidateError where it cannot be compiled.
PartCompiler = Callable[[torch.nn.Module, tuple[torch.Tensor, ...]], Callable[..., Tensors]]


def parted_function(
    graph: ModuleGraph,
    in_torch: frozenset[Node],
    text: str,
    compiled: PartCompiler,
    *,
    keeps_views: bool = False,
    operators: CompiledOperators = MappingProxyType({}),
) -> PartedFunction:
    """Returns a function that runs the nodes ``in_torch`` by PyTorch, and the others as compiled programs.

    Args:
        graph: the module's operators.
        in_torch: nodes that PyTorch runs.
        text: names of the operators in PyTorch, for messages.
        compiled: takes a module and example tensors, returns a function of a tuple of such tensors.
        keeps_views: whether results that are views of inputs or of other results are such views, not
            copies.
        operators: compiled operators, by their nodes, which are in ``in_torch``.

    Parts of views alone run by PyTorch, too. Raises what ``compiled`` raises.
    """
    levels = _levels(graph, in_torch | graph.writes)
    views = ReturnedViews()
    if keeps_views:
        views = returned_views(graph.results, frozenset((*graph.inputs, *graph.state)))
    last, last_reads = graph.piece(views.nodes, views.results)
    new_values = map(attrgetter("value"), graph.changes)
    returned = {*graph.results, *new_values, *last_reads}.difference(views.results)
    pieces = []
    for level in sorted({*levels.values()}):
        nodes = [node for node in graph.nodes if levels[node] == level]
        outputs = [
            node
            for node in nodes
            if node in returned or any(levels.get(user, level) != level for user in node.users)
        ]
        is_compiled = level % 2 == 0 and not all(map(is_view, nodes))
        shares_weights = is_compiled and any(map(is_dynamic_node, nodes))
        piece = graph.piece(nodes, outputs, graph.in_place, operators, shares_weights=shares_weights)
        pieces.append((is_compiled, outputs, *piece))
    values = graph.values(
        [*dict.fromkeys(node for is_compiled, *_, reads in pieces if is_compiled for node in reads)]
    )
    parts = []
    for is_compiled, outputs, module, reads in pieces:
        call: Callable[..., Tensors] = by_pytorch(module)
        if is_compiled:
            call = compiled(module, tuple(values[node] for node in reads))
        parts.append(TensorPart(call, _names(reads), _names(outputs)))
    known = [node for node in returned if node in graph.weights or node in graph.constants]
    module, _ = graph.piece((), known)
    held = dict(zip((node.name for node in known), module.forward(), strict=True))
    return PartedFunction(
        tuple(shape_of(node.meta["val"]) for node in graph.inputs),
        _names(graph.inputs),
        tuple(parts),
        _names(graph.results),
        held,
        _why_in_parts(graph, text),
        state={node.name: tensor for node, tensor in graph.state.items()},
        changes=tuple(map(_changed, graph.changes)),
        sizes=dynamic_sizes(graph.program, graph.inputs),
        views=TensorPart(by_pytorch(last), _names(last_reads), _names(views.results)),
    )


def _names(nodes: Iterable[Node]) -> tuple[str, ...]:
    return tuple(map(attrgetter("name"), nodes))


def _changed(change: Change) -> ChangedTensor:
    return ChangedTensor(change.owner.name, change.value.name, change.buffer, change.is_in_place)


def _why_in_parts(graph: ModuleGraph, in_torch: str) -> str:
    reasons = []
    if any(map(is_dynamic_node, graph.inputs)):
        reasons.append("its sizes are dynamic")
    if in_torch:
        reasons.append(f"in PyTorch: {in_torch}")
    if graph.changes:
        reasons.append(f"it changes {', '.join(map(attrgetter('text'), graph.changes))}")
    return "; ".join(reasons)


def _levels(graph: ModuleGraph, in_torch: frozenset[Node]) -> dict[Node, int]:
    """Returns the level of each node; odd: in PyTorch. A part reads what parts of lower levels return.

    Sizes of arguments, and what is computed of these, are the first level, so that any part can read them.
    """
    levels: dict[Node, int] = {}
    for node in graph.nodes:
        before = set(map(levels.get, node.all_input_nodes))
        if is_size(node) and before <= {None, SIZES}:
            levels[node] = SIZES
            continue
        own = node
        while own.target is operator.getitem:  # several results of an operator are not a tensor
            own = own.all_input_nodes[0]
        least = max(
            (levels[input_node] for input_node in node.all_input_nodes if input_node in levels), default=0
        )
        levels[node] = least + (least % 2 != (own in in_torch))
    return levels


def with_own_weights(module: torch.nn.Module) -> torch.nn.Module:
    """Replaces a module's buffers, maybe those of the user's module, by copies in place; returns it."""
    for name, weight in tuple(module.named_buffers()):
        module.register_buffer(name, weight.clone())
    return module


def by_pytorch(module: torch.nn.Module) -> Callable[..., Tensors]:
    """Returns a function that takes a tuple of tensors and calls ``module`` with them."""
    return partial(_called, module.forward)


def _called(function: Callable[..., Tensors], tensors: tuple[torch.Tensor, ...]) -> Tensors:
    return function(*tensors)
