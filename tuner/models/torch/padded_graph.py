"""Makes a module of static sizes of a graph with dynamic ones: for calls of at most S rows or columns.

Its tensors are padded to S. It takes n as a further input where something is masked, or depends on n:

    linear: "f32[s, 8]"                        linear: "f32[16, 8]"
    mean: "f32[8]" = mean(linear, [0])         valid: "b8[16, 1]" = unsqueeze(arange(16) < n, 1)
                                               sum: "f32[8]" = sum(where(valid, linear, 0), [0])
                                               mean: "f32[8]" = div(sum, n)
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

from tuner.models.torch.dynamic_sizes import is_dynamic_node, is_other_number
from tuner.models.torch.graph_outputs import is_overload
from tuner.models.torch.padding_rules import OTHER, Mask, OperatorCall, PaddingFill, is_symbol, masks_before
from tuner.models.torch.symbol_sizes import Size, SymbolSize, size_at, size_of

ATEN = torch.ops.aten
TRACE = "stack_trace"
TRUE_SIZE = "true_size"
CAUSAL_MASK = "causal_mask"  # buffer of a module: (positions, positions), true where a key is seen


class PaddedGraph:
    """The graph of a module with dynamic sizes, rewritten for tensors that are padded to one size S.

    Its arguments are the tensors of the module; then, as 0-d tensors, the numbers that are not a
    ``SymbolSize``; then, where ``takes_size``, the size n of the call as a 0-d tensor.
    """

    def __init__(self, module: GraphModule, symbol: str, size: int) -> None:
        """Takes a graph whose nodes have rules (``masks_before``), and the size S. Raises NoRuleError."""
        self._root = module
        self._symbol = symbol
        self._size = size
        self._graph = Graph()
        self._known: dict[Node, Node] = {}
        self._numbers: dict[SymbolSize, Node] = {}
        self._valid: dict[tuple[SymbolSize, int], Node] = {}
        self._causal: dict[int, Node] = {}
        self._trace: Any = None
        placeholders = module.graph.find_nodes(op="placeholder")
        for node in placeholders:
            if not is_symbol(node):
                self._known[node] = self._graph.placeholder(node.name)
        for node in filter(_is_other_number, placeholders):
            self._known[node] = self._graph.placeholder(node.name)  # of no dimensions
        self._true_size = self._graph.placeholder(TRUE_SIZE)  # a tensor of no dimensions, int64
        for node in module.graph.nodes:
            self._add(node)
        self.takes_size = bool(self._true_size.users)
        if not self.takes_size:
            self._graph.erase_node(self._true_size)
        self.module = GraphModule(module, self._graph)

    def _add(self, node: Node) -> None:
        if node in self._known or is_symbol(node):
            return
        self._trace = node.meta.get(TRACE)
        if node.op == "output":
            self._graph.output(map_arg(node.args[0], self._argument))
        elif node.op == "call_function" and _is_dynamic_call(node):
            self._known[node] = self._padded_call(node)
        else:
            self._known[node] = self._graph.node_copy(node, self._argument)

    def _argument(self, node: Node) -> Any:
        if node not in self._known and is_symbol(node):
            return self.at_size(size_of(node.meta["val"]))
        return self._known[node]

    def value_of(self, number: Node) -> Node:
        """Returns the node of a number's value in a call, a 0-d tensor; ``number``: of the module's graph."""
        if number in self._known:
            return self._known[number]
        size = size_of(number.meta["val"])
        assert isinstance(size, SymbolSize)
        return self.number(size)

    def at_size(self, size: Size) -> int:
        """Returns the value of a size where the symbol has the padded size, S."""
        return size_at(size, self._size)

    def _padded_call(self, node: Node) -> Node:
        call = OperatorCall(node)
        arguments = dict(call.arguments)
        for mask in masks_before(node, self._symbol):
            arguments[mask.argument] = self._masked(call, mask)
        rewrite = REWRITES.get(call.name, _copied)
        return rewrite(self, call, arguments)

    def _masked(self, call: OperatorCall, mask: Mask) -> Node:
        node = call.arguments[mask.argument]
        sizes = call.sizes(mask.argument)
        value = self._known[node]
        dtype = node.meta["val"].dtype
        for dim in mask.dims:
            size = sizes[dim]
            assert isinstance(size, SymbolSize)
            valid = self.valid(size, len(sizes) - dim - 1)
            value = self.call(ATEN.where.ScalarOther, valid, value, _number(mask.fill, dtype))
        return value

    def valid(self, size: SymbolSize, dims_after: int) -> Node:
        """Returns a node with a mask: True for elements of the call, False for padding of a dimension.

        Its shape is (padded size, 1, ..., 1) with ``dims_after`` ones, to broadcast over the dimensions after
        it.
        """
        key = (size, dims_after)
        if key not in self._valid:
            positions = self.call(ATEN.arange.default, self.at_size(size))
            valid = self.call(ATEN.lt.Tensor, positions, self.number(size))
            shape = [self.at_size(size), *(1 for _ in range(dims_after))]
            self._valid[key] = self.call(ATEN.reshape.default, valid, shape)
        return self._valid[key]

    def number(self, size: SymbolSize) -> Node:
        """Returns the node of a size's value in a call, without padding, as a 0-d tensor."""
        if size not in self._numbers:
            number = self._true_size
            if size.of_n.of_n != 1:
                number = self.call(ATEN.mul.Tensor, number, size.of_n.of_n)
            if size.of_n.constant:
                number = self.call(ATEN.add.Tensor, number, size.of_n.constant)
            self._numbers[size] = number
        return self._numbers[size]

    def causal_mask(self, size: int) -> Node:
        """Returns the node of a boolean mask (size, size): True where query i may read key j, j <= i.

        It is a slice of the module's buffer CAUSAL_MASK, if that exists and is large enough.
        """
        if size not in self._causal:
            self._causal[size] = self._made_causal_mask(size)
        return self._causal[size]

    def _made_causal_mask(self, size: int) -> Node:
        known = dict(self._root.named_buffers()).get(CAUSAL_MASK)
        if known is not None and known.shape[0] >= size:
            rows = self.call(ATEN.slice.Tensor, self._graph.get_attr(CAUSAL_MASK), 0, 0, size)
            return self.call(ATEN.slice.Tensor, rows, 1, 0, size)
        positions = self.call(ATEN.arange.default, size)
        return self.call(ATEN.ge.Tensor, self.call(ATEN.unsqueeze.default, positions, 1), positions)

    def call(self, operator: Any, *arguments: Any, **keywords: Any) -> Node:
        """Adds a call of an operator, with the source line of the rewritten node; returns the new node."""
        node = self._graph.call_function(operator, arguments, keywords)
        if self._trace:
            node.meta[TRACE] = self._trace
        return node

    def copied(self, node: Node, arguments: Mapping[str, Any]) -> Node:
        """Adds a call of the operator of ``node`` with these ``arguments``, by name; returns the new node."""
        operator: Any = node.target
        positional = []
        keywords = {}
        for argument in operator._schema.arguments:  # noqa: SLF001
            value = map_arg(arguments[argument.name], self.copied_argument)
            if not argument.kwarg_only:
                positional.append(value)
            elif value is not None:
                keywords[argument.name] = value
        return self.call(operator, *positional, **keywords)

    def copied_argument(self, node: Node) -> Any:
        """Returns the node of this graph for ``node``: itself if it is of this graph, else its copy."""
        return node if node.graph is self._graph else self._argument(node)


def _is_other_number(node: Node) -> bool:
    return is_other_number(node.meta["val"])


def _is_dynamic_call(node: Node) -> bool:
    return is_overload(node) and is_dynamic_node(node)


def _number(fill: PaddingFill | float, dtype: torch.dtype) -> bool | int | float:
    if isinstance(fill, PaddingFill):
        return fill.number(dtype)
    return fill if dtype.is_floating_point else int(fill)


Rewrite = Callable[[PaddedGraph, OperatorCall, dict[str, Any]], Node]


def _copied(graph: PaddedGraph, call: OperatorCall, arguments: dict[str, Any]) -> Node:
    other = arguments.get(OTHER)
    if not (isinstance(other, Node) and is_symbol(other)):
        return graph.copied(call.node, arguments)
    number = graph.value_of(other)
    dtype = call.arguments[call.first].meta["val"].dtype
    if dtype.is_floating_point:  # as PyTorch converts a number that is next to floats
        number = graph.call(ATEN.to.dtype, number, dtype)
    arguments[OTHER] = number
    target: Any = call.node.target
    named = {}
    for name, value in arguments.items():
        if value is not None:
            named[name] = map_arg(value, graph.copied_argument)
    first = named.pop(call.first)
    return graph.call(target.overloadpacket, first, **named)  # by names: overloads have another order


def _mean(graph: PaddedGraph, call: OperatorCall, arguments: dict[str, Any]) -> Node:
    """Computes a mean of a padded tensor: the sum, divided by the number of the call's own elements."""
    sizes = call.sizes("self")
    rank = len(sizes)
    dims = [dim % rank for dim in arguments.get("dim") or range(rank)]
    padded = call.padded_among("self", dims)
    if not padded:
        return graph.copied(call.node, arguments)
    result = call.node.meta["val"].dtype
    wide = torch.float32 if result in (torch.float16, torch.bfloat16) else result
    total = graph.call(
        ATEN.sum.dim_IntList, arguments["self"], dims, arguments.get("keepdim") or False, dtype=wide
    )
    mean = graph.call(ATEN.div.Tensor, total, math.prod(_static_sizes(sizes, dims)))
    for dim in padded:
        size = sizes[dim]
        assert isinstance(size, SymbolSize)
        mean = graph.call(ATEN.div.Tensor, mean, graph.number(size))
    return graph.call(ATEN.to.dtype, mean, result)


def _static_sizes(sizes: tuple[Size, ...], dims: list[int]) -> list[int]:
    return [size for dim, size in enumerate(sizes) if dim in dims and isinstance(size, int)]


def _attention(graph: PaddedGraph, call: OperatorCall, arguments: dict[str, Any]) -> Node:
    """Computes an attention of padded tensors that leaves out keys of the padding.

    A causal attention does so by itself, since these keys are after every query; else a mask does.
    """
    size = call.sizes("key")[-2]
    if not isinstance(size, SymbolSize):
        return graph.copied(call.node, arguments)
    is_known = call.node.meta["val"].dtype in (torch.float32, torch.float64, torch.bfloat16)
    if is_known and arguments["attn_mask"] is None and not arguments.get("enable_gqa"):
        return _written_attention(graph, call, arguments, size)
    if not arguments["is_causal"]:
        arguments["attn_mask"] = _attention_mask(graph, call, size)
    return graph.copied(call.node, arguments)


def _written_attention(
    graph: PaddedGraph, call: OperatorCall, arguments: dict[str, Any], size: SymbolSize
) -> Node:
    """Writes the operator out, with scores that a mask of truths selects.

    The operator itself would add numbers, four bytes for each score, or have a causal mask of each size.
    """
    inputs = list(map(graph.copied_argument, map(arguments.__getitem__, ("query", "key", "value"))))
    scale = arguments.get("scale")
    if scale is None:
        scale = graph.at_size(call.sizes("query")[-1]) ** -0.5
    mask = graph.valid(size, 0)
    if arguments["is_causal"]:
        mask = graph.causal_mask(graph.at_size(size))
    dtype = call.node.meta["val"].dtype
    if dtype is torch.bfloat16:
        inputs = [graph.call(ATEN.to.dtype, tensor, torch.float32) for tensor in inputs]
        # scaled here, not the scores: products of f32 that are no conversions join with the softmax
        factor = math.sqrt(abs(scale))
        inputs[0] = graph.call(ATEN.mul.Tensor, inputs[0], math.copysign(factor, scale))
        inputs[1] = graph.call(ATEN.mul.Tensor, inputs[1], factor)
    query, key, value = inputs
    scores = graph.call(ATEN.matmul.default, query, graph.call(ATEN.transpose.int, key, -2, -1))
    if dtype is not torch.bfloat16:
        scores = graph.call(ATEN.mul.Tensor, scores, scale)
    shown = graph.call(ATEN.where.ScalarOther, mask, scores, -math.inf)
    weights = graph.call(ATEN.softmax.int, shown, -1)
    result = graph.call(ATEN.matmul.default, weights, value)
    if dtype is torch.bfloat16:
        return graph.call(ATEN.to.dtype, result, dtype)
    return result


def _attention_mask(graph: PaddedGraph, call: OperatorCall, size: SymbolSize) -> Node:
    valid = graph.valid(size, 0)
    mask = call.arguments["attn_mask"]
    if mask is None:
        queries = graph.at_size(call.sizes("query")[-2])
        row = graph.call(ATEN.unsqueeze.default, valid, 0)
        return graph.call(ATEN.expand.default, row, [queries, graph.at_size(size)])
    own = graph.copied_argument(mask)
    if mask.meta["val"].dtype is torch.bool:
        return graph.call(ATEN.logical_and.default, own, valid)
    return graph.call(ATEN.where.ScalarOther, valid, own, -math.inf)


def _select(graph: PaddedGraph, call: OperatorCall, arguments: dict[str, Any]) -> Node:
    """Reads an element that is counted from the end, index -k of a padded dimension, by its index n - k."""
    rank = len(call.sizes("self"))
    dim = arguments["dim"] % rank
    size = call.sizes("self")[dim]
    if arguments["index"] >= 0 or not isinstance(size, SymbolSize):
        return graph.copied(call.node, arguments)
    row = _from_the_end(graph, graph.copied_argument(arguments["self"]), dim, size, -arguments["index"], 1)
    return graph.call(ATEN.squeeze.dim, row, dim)


def _slice(graph: PaddedGraph, call: OperatorCall, arguments: dict[str, Any]) -> Node:
    """Computes a slice from -k on of a padded dimension: the elements at indices n - k to n - 1."""
    rank = len(call.sizes("self"))
    dim = arguments["dim"] % rank
    size = call.sizes("self")[dim]
    start = arguments["start"] or 0
    if start >= 0 or not isinstance(size, SymbolSize):
        return graph.copied(call.node, arguments)
    return _from_the_end(graph, graph.copied_argument(arguments["self"]), dim, size, -start, -start)


def _from_the_end(
    graph: PaddedGraph, tensor: Node, dim: int, size: SymbolSize, distance: int, count: int
) -> Node:
    """Returns ``count`` elements along a dimension, from index n - ``distance`` on; ``size``: n."""
    first = graph.call(ATEN.sub.Tensor, graph.number(size), distance)
    steps = graph.call(ATEN.arange.default, count)
    index = graph.call(ATEN.add.Tensor, steps, first)
    return graph.call(ATEN.index_select.default, tensor, dim, index)


# by the name of the operator in PyTorch; others are called as they are, for the size S
REWRITES: dict[str, Rewrite] = {
    "aten::mean": _mean,
    "aten::scaled_dot_product_attention": _attention,
    "aten::select": _select,
    "aten::slice": _slice,
}
