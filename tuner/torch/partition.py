"""Compiles a module in parts where tuner does not support all of its operators: those stay in PyTorch.

Which operators these are says the refusal of the whole module, then those of the parts. A part that computes
little, or that no schedule is for, stays in PyTorch, too.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.fx import Node

from tuner.core.errors import CandidateError, UsageError
from tuner.torch.dynamic_sizes import dynamic_nodes
from tuner.torch.export import CallForm, call_form, exported_graph, require_static
from tuner.torch.graph_outputs import is_view
from tuner.torch.grouped_products import GroupedProducts, grouped_products
from tuner.torch.module_parts import ModuleGraph, by_pytorch, functional_graph, parted_function
from tuner.torch.parted_function import PartedFunction, Tensors
from tuner.torch.program import TensorProgram
from tuner.torch.refusals import RefusedOperator, RefusedOperatorsError, place_of

LEAST_ELEMENTS = 2**14  # that a part without products computes: a call of a program takes microseconds
PRODUCTS = frozenset({"mm", "bmm", "addmm", "baddbmm", "matmul", "linear", "bilinear", "einsum"})
OF_PRODUCTS = ("conv", "attention", "lstm", "gru")  # parts of names of operators that multiply matrices
Compiled = Callable[[torch.nn.Module, tuple[torch.Tensor, ...]], TensorProgram]


@dataclass(frozen=True, eq=False)
class ModuleInParts:
    """A module in parts, and which of its operators run in PyTorch because they are not supported."""

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
        dynamic_shapes: as of ``torch.export.export``; operators with dynamic sizes run by PyTorch.
        keeps_views: whether results that are views of inputs or of other results are such views, not copies.

    Raises:
        RefusedOperatorsError: ``refusal``, where operators draw random numbers, whose order would change,
            read memory by strides, are not found in the module's graph, or leave no part to compile.
        UsageError: the module changes its parameters, returns numbers, or has dynamic sizes without
            ``dynamic_shapes``; ``refusal``, where no part is left to compile.
    """
    if isinstance(refusal, RefusedOperatorsError) and refusal.is_whole:
        raise refusal
    exported = functional_graph(exported_graph(module, arguments, keywords, dynamic_shapes))
    if dynamic_shapes is None:
        require_static(exported)
    form = call_form(module, exported)
    buffers = {} if isinstance(module, torch.export.ExportedProgram) else dict(module.named_buffers())
    graph = ModuleGraph.of(exported, form.tensors_of(arguments, keywords), buffers)
    products: GroupedProducts = {}
    if not is_all_supported:
        products = grouped_products(graph.nodes, graph.constant)
    split = partial(parted_function, graph, keeps_views=keeps_views, products=products)
    function, operators = _parted(graph, refusal, split, compiled, is_all_supported, products)
    return ModuleInParts(function, form, operators)


def _parted(
    graph: ModuleGraph,
    refusal: UsageError,
    split: Callable[..., PartedFunction],
    compiled: Compiled,
    is_all_supported: bool,
    products: GroupedProducts,
) -> tuple[PartedFunction, tuple[RefusedOperator, ...]]:
    """Splits a graph, again where a part refuses further operators, until all parts are compiled."""
    dynamic = dynamic_nodes(graph.nodes)
    operators = _operators_of(dynamic)
    in_torch = dynamic.union(products)
    latest = refusal
    while True:
        if isinstance(latest, RefusedOperatorsError):
            special = graph.writes.union(products)
            unsupported = [known for known in latest.operators if not _is_among(special, graph, known)]
            more = _nodes_of(graph, unsupported) - in_torch
            is_new = bool(more) or (latest is refusal and bool(products))
            if not is_new or latest.is_whole or is_all_supported:
                raise latest
            in_torch |= more
            operators |= dict.fromkeys(unsupported)
        parts = _Parts(compiled, LEAST_ELEMENTS if in_torch else 0)
        try:
            function = split(in_torch, _text(operators), parts.compiled)
        except RefusedOperatorsError as error:
            latest = error
            continue
        if not parts.programs and not products:
            raise refusal
        return function, tuple(operators)


def _is_computing(node: Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor) and not is_view(node)


def _operators_of(dynamic: Iterable[Node]) -> dict[RefusedOperator, None]:
    places = map(place_of, filter(_is_computing, dynamic))
    return dict.fromkeys(map(partial(RefusedOperator, reason="its sizes are dynamic"), places))


class _Parts:
    """Compiles parts; those that compute little, and those without schedules, stay in PyTorch."""

    def __init__(self, compiled: Compiled, least_elements: int) -> None:
        self._compiled = compiled
        self._least_elements = least_elements
        self.programs: list[TensorProgram] = []

    def compiled(self, module: torch.nn.Module, tensors: tuple[torch.Tensor, ...]) -> Callable[..., Tensors]:
        if _is_little(module.graph.nodes, self._least_elements):
            return by_pytorch(module)
        try:
            program = self._compiled(module, tensors)
        except RefusedOperatorsError:
            raise
        except (UsageError, CandidateError):
            return by_pytorch(module)
        self.programs.append(program)
        return program.run


def _is_little(nodes: Iterable[Node], least_elements: int) -> bool:
    """Returns whether nodes compute fewer than ``least_elements`` numbers, without a product."""
    calls = [node for node in nodes if node.op == "call_function"]
    computing = [node for node in calls if not is_view(node)]
    if any(map(_is_product, computing)):
        return False
    return sum(map(_elements, computing)) < least_elements


def _is_product(node: Node) -> bool:
    name = str(getattr(node.target, "__name__", "")).partition(".")[0]
    return name in PRODUCTS or any(part in name for part in OF_PRODUCTS)


def _elements(node: Node) -> int:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return math.prod(value.shape)
    return 0


def _is_among(special: frozenset[Node], graph: ModuleGraph, operator: RefusedOperator) -> bool:
    """Returns whether all nodes of an operator are ``special``: what is done with them is known."""
    nodes = _nodes_of(graph, [operator])
    return bool(nodes) and nodes <= special


def _nodes_of(graph: ModuleGraph, operators: Iterable[RefusedOperator]) -> frozenset[Node]:
    """Returns the nodes at the places of operators; of one without a line, all nodes of its name."""
    places = frozenset(operator.place for operator in operators)
    return frozenset(filter(lambda node: place_of(node) in places, graph.nodes))


def _text(operators: Iterable[RefusedOperator]) -> str:
    return "; ".join(dict.fromkeys(operator.text for operator in operators))
