"""Compiles a module in parts where tuner does not support all of its operators: those stay in PyTorch.

Which operators these are says the refusal of the whole module, then those of the parts. A part that computes
little, or that no schedule is for, stays in PyTorch, too.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import torch
from torch.fx import Node
from torch.utils import _pytree

from tuner.core.errors import CandidateError, UsageError
from tuner.models.torch.call_form import CallForm, call_form
from tuner.models.torch.dynamic_sizes import DynamicSize, is_dynamic_node, read_sizes_of_arguments, shape_of
from tuner.models.torch.export import require_right_writes, require_static
from tuner.models.torch.graph_export import exported_graph
from tuner.models.torch.graph_outputs import ChangesTensorsError, is_view
from tuner.models.torch.grouped_products import grouped_products
from tuner.models.torch.module_parts import (
    CompiledOperators,
    ModuleGraph,
    by_pytorch,
    functional_graph,
    parted_function,
    with_own_weights,
)
from tuner.models.torch.padded_nodes import PaddedNodes, is_product, padded_nodes
from tuner.models.torch.parted_function import PartedFunction, Tensors
from tuner.models.torch.program import TensorProgram
from tuner.models.torch.program_family import ProgramFamily
from tuner.models.torch.recurrent_blocks import recurrent_blocks
from tuner.models.torch.refusals import OF_COMPLEX, RefusedOperator, RefusedOperatorsError, place_of
from tuner.models.torch.small_sizes import require_small_sizes

LEAST_ELEMENTS = 2**14  # that a part without products computes: a call of a program takes microseconds
Compiled = Callable[[torch.nn.Module, tuple[torch.Tensor, ...]], TensorProgram]


@dataclass(frozen=True, eq=False)
class ModuleInParts:
    """A module in parts, how it is called, and the unsupported operators, which PyTorch runs."""

    function: PartedFunction
    form: CallForm
    in_torch: tuple[RefusedOperator, ...]

    @property
    def text(self) -> str:
        """Returns the operators in PyTorch in one line: "aten.topk at m.py:7 (...)"; "" if there are none."""
        return _text(self.in_torch)


def partitioned(
    module: torch.nn.Module | torch.export.ExportedProgram,
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
    refusal: UsageError,
    compiled: Compiled,
    *,
    is_all_supported: bool = False,
    dynamic_shapes: Any = None,
    sizes: Sequence[int] = (),
    keeps_views: bool = False,
) -> ModuleInParts:
    """Returns a module as parts: the operators of ``refusal`` run by PyTorch, the others as programs.

    Operators that write parts of buffers and inputs run by PyTorch, too.

    Args:
        module: as of ``tuner.torch.compile``.
        arguments: example inputs.
        keywords: example keyword inputs.
        refusal: why the module as a whole was not compiled.
        compiled: compiles a module for example tensors.
        is_all_supported: whether operators that are not supported are an error.
        dynamic_shapes: as of ``torch.export.export``; operators with dynamic sizes are compiled as families
            of programs (``padded_nodes``), or run by PyTorch.
        sizes: of the dynamic size, whose programs are compiled at once.
        keeps_views: whether results that are views of inputs or of other results are such views, not copies.

    Raises:
        RefusedOperatorsError: ``refusal``, where operators draw random numbers, whose order would change,
            read memory by strides, are not found in the module's graph, or leave no part to compile.
        UsageError: the module changes its parameters, returns numbers, or has dynamic sizes without
            ``dynamic_shapes``; ``refusal``, where no part is left to compile.
    """
    if isinstance(refusal, RefusedOperatorsError) and refusal.needs_whole_module:
        raise refusal
    # a graph of torch.compile is made of such code already
    reads_code = dynamic_shapes is not None and not keeps_views
    exported = exported_graph(module, arguments, keywords, dynamic_shapes, reads_code=reads_code)
    require_right_writes(exported.graph)
    exported = functional_graph(exported)
    if dynamic_shapes is None:
        require_static(exported)
    else:
        read_sizes_of_arguments(exported.graph, exported.graph.find_nodes(op="placeholder"))
    form = call_form(module, exported)
    buffers = {} if isinstance(module, torch.export.ExportedProgram) else dict(module.named_buffers())
    graph = ModuleGraph.of(exported, form.tensors_of(arguments, keywords), buffers)
    if reads_code:
        require_small_sizes(graph, partial(_traced_at, module, form, (arguments, dict(keywords)), buffers))
    own: CompiledOperators = {}
    if not is_all_supported:
        products = grouped_products(graph.nodes, graph.constant)
        own = {**products, **recurrent_blocks(graph.nodes, graph.constant, compiled)}
    split = partial(parted_function, keeps_views=keeps_views, operators=own)
    padded = padded_nodes(graph, is_all_compiled=is_all_supported)
    compiler = _PartCompiler(compiled, padded.size, tuple(sizes), is_all_supported)
    function, operators = _parted(graph, refusal, split, compiler, padded, own)
    return ModuleInParts(function, form, operators)


def _traced_at(
    module: torch.nn.Module,
    form: CallForm,
    example: tuple[tuple[Any, ...], dict[str, Any]],
    buffers: Mapping[str, torch.Tensor],
    tensors: tuple[torch.Tensor, ...],
) -> ModuleGraph:
    """Returns the graph of a module for tensors of static sizes in place of the example's."""
    leaves, spec = _pytree.tree_flatten(example)
    for number, tensor in zip(form.inputs, tensors, strict=True):
        leaves[number] = tensor
    arguments, keywords = _pytree.tree_unflatten(leaves, spec)
    exported = functional_graph(exported_graph(module, arguments, keywords))
    return ModuleGraph.of(exported, tensors, buffers)


def _parted(
    graph: ModuleGraph,
    refusal: UsageError,
    split: Callable[..., PartedFunction],
    compiler: "_PartCompiler",
    padded: PaddedNodes,
    own: CompiledOperators,
) -> tuple[PartedFunction, tuple[RefusedOperator, ...]]:
    """Splits a graph, again where a part refuses further operators, until all parts are compiled.

    An operator that depends on weights alone is computed here, by PyTorch.
    """
    complex_nodes = list(filter(_is_complex, graph.nodes))
    in_torch = frozenset((*padded.in_torch, *own, *complex_nodes))
    operators = _operators_of(padded.in_torch, own)
    if operators and compiler.is_all_supported:
        raise RefusedOperatorsError(tuple(operators))
    operators |= _operators_of(dict.fromkeys(complex_nodes, OF_COMPLEX))
    called = frozenset(graph.nodes)
    latest = refusal
    while True:
        if isinstance(latest, RefusedOperatorsError):
            # an operator without a line may be refused for its complex numbers alone, at first
            solved = frozenset(complex_nodes if latest is refusal else ())
            unsupported = _unsupported(graph, latest.operators, graph.writes.union(own), solved)
            more = _nodes_of(graph, unsupported) - in_torch
            is_new = bool(more) or (latest is refusal and bool(in_torch))
            if not is_new or latest.needs_whole_module or compiler.is_all_supported:
                raise latest
            operators |= dict.fromkeys(known for known in unsupported if _nodes_of(graph, [known]) & called)
            in_torch |= more & called
            graph = graph.with_values_of(more - called)
        parts = _Parts(compiler, LEAST_ELEMENTS if in_torch else 0)
        try:
            function = split(graph, in_torch, _text(operators), parts.compiled)
        except RefusedOperatorsError as error:
            latest = error
            continue
        if not parts.count and not own:
            if operators and isinstance(refusal, ChangesTensorsError):  # which is no reason here
                raise RefusedOperatorsError(tuple(operators))
            raise refusal
        return function, tuple(operators)


def _is_complex(node: Node) -> bool:
    values = map(_example_value, (node, *node.all_input_nodes))
    return any(isinstance(value, torch.Tensor) and value.is_complex() for value in values)


def _example_value(node: Node) -> Any:
    return node.meta.get("val")


def _operators_of(
    reasons: Mapping[Node, str], own: CompiledOperators = MappingProxyType({})
) -> dict[RefusedOperator, None]:
    computing = [node for node in filter(_is_computing, reasons) if node not in own]
    return dict.fromkeys(RefusedOperator(place_of(node), reasons[node]) for node in computing)


def _is_computing(node: Node) -> bool:
    """Returns whether a node is an operator that computes a tensor, or several."""
    values = _pytree.tree_leaves(node.meta.get("val"))
    return any(map(torch.is_tensor, values)) and not is_view(node)


@dataclass(frozen=True, eq=False)
class _PartCompiler:
    """Compiles a part as a program, or as a family of programs if it has the dynamic size ``size``.

    ``sizes``: values of the size whose programs are compiled at once, in addition to the example's.
    """

    compiled: Compiled
    size: DynamicSize | None
    sizes: tuple[int, ...]
    is_all_supported: bool

    def run_of(self, module: torch.nn.Module, tensors: tuple[Any, ...]) -> Callable[..., Tensors]:
        if not any(map(is_dynamic_node, module.graph.nodes)):
            return self.compiled(module, tensors).run
        assert self.size is not None  # else all operators with dynamic sizes are in PyTorch
        family = ProgramFamily(module, self.size, self.compiled, falls_back=not self.is_all_supported)
        family.compile_for(tensors, (family.size_of(tensors), *self.sizes))
        return family


class _Parts:
    """Compiles parts; those that compute little stay in PyTorch, and so do those that fail to compile.

    A failure is raised instead if the compiler's ``is_all_supported`` is set; RefusedOperatorsError always
    is.
    """

    def __init__(self, compiler: _PartCompiler, least_elements: int) -> None:
        self._compiler = compiler
        self._least_elements = least_elements
        self.count = 0  # of those that are compiled

    def compiled(self, module: torch.nn.Module, tensors: tuple[torch.Tensor, ...]) -> Callable[..., Tensors]:
        if _is_little(module.graph.nodes, self._least_elements):
            return _in_torch(module)
        try:
            run = self._compiler.run_of(module, tensors)
        except RefusedOperatorsError:
            raise
        except (UsageError, CandidateError):
            if self._compiler.is_all_supported:
                raise
            return _in_torch(module)
        self.count += 1
        return run


def _in_torch(module: torch.nn.Module) -> Callable[..., Tensors]:
    """Returns a function that runs a part by PyTorch.

    A part with a dynamic size first gets copies of its buffers.
    """
    if any(map(is_dynamic_node, module.graph.nodes)):
        module = with_own_weights(module)
    return by_pytorch(module)


def _is_little(nodes: Iterable[Node], least_elements: int) -> bool:
    """Returns whether nodes compute fewer than ``least_elements`` numbers, without a product."""
    calls = [node for node in nodes if node.op == "call_function"]
    computing = [node for node in calls if not is_view(node)]
    if any(map(is_product, computing)):
        return False
    return sum(map(_elements, computing)) < least_elements


def _elements(node: Node) -> int:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return math.prod(size or 1 for size in shape_of(value))
    return 0


def _unsupported(
    graph: ModuleGraph,
    operators: Iterable[RefusedOperator],
    special: frozenset[Node],
    solved: frozenset[Node],
) -> list[RefusedOperator]:
    """Returns the operators with nodes, but not where all are ``special``, or some are ``solved``."""
    unsupported = []
    for known in operators:
        nodes = _nodes_of(graph, [known])
        if not nodes <= special and nodes.isdisjoint(solved):
            unsupported.append(known)
    return unsupported


def _nodes_of(graph: ModuleGraph, operators: Iterable[RefusedOperator]) -> frozenset[Node]:
    """Returns the nodes that refused operators stand for, by name and line.

    Without a line, all of the name.
    """
    places = frozenset(operator.place for operator in operators)
    nodes = (*graph.nodes, *graph.constants)
    return frozenset(filter(lambda node: place_of(node) in places, nodes))


def _text(operators: Iterable[RefusedOperator]) -> str:
    return "; ".join(dict.fromkeys(operator.text for operator in operators))
