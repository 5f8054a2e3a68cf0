"""Views by strides: rewrites ``as_strided``, finds writes that functionalization does not do as eager mode.

Windows that overlap are such views, as those of attention in windows. A rewritten view is a copy.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from operator import mul
from typing import Any

import torch
from torch.fx import Node

from tuner.models.torch.changed_tensors import nodes_in
from tuner.models.torch.graph_outputs import is_overload, is_view, memory_owner, views_to
from tuner.models.torch.guards import last_element
from tuner.models.torch.refusals import EXPANDED, WINDOWS

ATEN = torch.ops.aten
MOST_SLICES = 64  # of one view


@dataclass(frozen=True)
class Windows:
    """An ``as_strided`` view as slices of rows of memory; dimensions are indices of the view's dimensions.

    ``leading`` dimensions (outermost first) divide the memory into rows of ``row`` elements; ``inner``
    dimensions are adjacent elements. There is a slice for each index of the ``sliced`` dimensions, from
    element ``starts`` of the row on.
    """

    leading: tuple[int, ...]
    sliced: tuple[int, ...]
    inner: tuple[int, ...]
    starts: tuple[int, ...]
    row: int  # elements of the row of an index of the leading dimensions


def windows_of(numbers: int, size: Sequence[int], stride: Sequence[int], offset: int) -> Windows | None:
    """Returns an ``as_strided`` view of ``numbers`` adjacent elements as slices of them.

    None for a view that needs too many slices, has no elements, has a negative stride, or reads other memory.
    ``size``, ``stride`` and ``offset`` are those of ``torch.as_strided``.
    """
    last = offset + last_element(size, stride)
    if not prod(size) or offset < 0 or last >= numbers or min(stride, default=0) < 0:
        return None
    waiting = list(filter(lambda at: size[at] > 1, _descending(size, stride)))
    row = numbers
    leading = []
    while waiting:
        at = waiting[0]
        within = last - (size[at] - 1) * stride[at]
        if size[at] * stride[at] != row or within >= stride[at]:
            break
        last = within
        row = stride[at]
        leading.append(waiting.pop(0))
    inner: list[int] = []
    adjacent = 1
    while waiting and stride[waiting[-1]] == adjacent:
        adjacent *= size[waiting[-1]]
        inner.insert(0, waiting.pop())
    sliced = sorted({*range(len(size))}.difference(leading, inner))
    counts = _at(size, sliced)
    if prod(counts) > MOST_SLICES:
        return None
    steps = _at(stride, sliced)
    starts = tuple(offset + sum(map(mul, index, steps)) for index in product(*map(range, counts)))
    return Windows(tuple(leading), tuple(sliced), tuple(inner), starts, row)


def _at(numbers: Sequence[int], places: Sequence[int]) -> list[int]:
    return list(map(numbers.__getitem__, places))


def replace_strided(module: torch.fx.GraphModule) -> None:
    """Replaces ``as_strided`` by slices in an exported graph that is not decomposed yet, in place.

    It stays where its memory is an argument's, whose strides a call may change, where the memory is written
    in place later, or returned, and where it needs more than 64 slices.
    """
    written = set[Node]()  # later
    for node in reversed(module.graph.nodes):
        if node.target is ATEN.as_strided.default and memory_owner(node) not in written:
            _replace(module.graph, node)
        elif is_overload(node):
            written.update(map(memory_owner, _written(node)))
    module.recompile()


def why_written_wrongly(node: Node) -> str:
    """Returns why functionalization would change other elements than eager mode; "" if it would not."""
    if not is_overload(node):
        return ""
    for value in _written(node):
        for view in views_to(value):
            if view.target is ATEN.unfold.default:
                return WINDOWS
            if _shares_elements(view.meta.get("val")):
                return EXPANDED
    return ""


def _shares_elements(value: Any) -> bool:
    """Returns whether elements of a view share memory, as in the result of ``expand``: a stride is 0."""
    if not isinstance(value, torch.Tensor):
        return False
    for size, step in zip(value.shape, value.stride(), strict=True):
        is_several = not isinstance(size, int) or size > 1
        if is_several and isinstance(step, int) and step == 0:
            return True
    return False


def _replace(graph: torch.fx.Graph, node: Node) -> None:
    value = node.args[0].meta["val"]
    view = node.meta["val"]
    is_own = memory_owner(node).op == "call_function" and not _is_returned(node)
    if not is_own or not _is_static(view) or not _is_static(value) or not _is_dense(value):
        return
    windows = windows_of(value.numel(), view.shape, view.stride(), view.storage_offset())
    if windows is not None:
        node.replace_all_uses_with(_sliced(graph, node, windows))
        graph.erase_node(node)


def _written(node: Node) -> Iterator[Node]:
    """Yields the arguments that an operator writes in place."""
    schema = node.target._schema.arguments  # type: ignore[union-attr,unused-ignore] # noqa: SLF001
    for position, argument in enumerate(schema):
        if argument.is_write:
            yield from nodes_in([*node.args[position : position + 1], node.kwargs.get(argument.name)])


def _is_returned(node: Node) -> bool:
    return any(user.op == "output" or (is_view(user) and _is_returned(user)) for user in node.users)


def _is_dense(value: torch.Tensor) -> bool:
    """Returns whether a tensor's elements fill its memory from the first on, in some order of dimensions."""
    in_order = value.permute(_descending(value.shape, value.stride()))
    return bool(in_order.is_contiguous()) and not value.storage_offset()


def _is_static(value: torch.Tensor) -> bool:
    sizes = (*value.shape, *value.stride(), value.storage_offset())
    return all(isinstance(size, int) for size in sizes)


def _descending(size: Sequence[int], stride: Sequence[int]) -> list[int]:
    """Returns the dimensions of a tensor in the order of their strides, the greatest first."""
    return sorted(range(len(size)), key=lambda at: (-stride[at], -size[at]))


def _sliced(graph: torch.fx.Graph, node: Node, windows: Windows) -> Node:
    """Adds operators that copy the ``windows`` of the input of an ``as_strided``; returns the last one."""
    call = _caller(graph, node)
    source = node.args[0]
    assert isinstance(source, Node)
    value = source.meta["val"]
    shape = node.meta["val"].shape
    leading = _at(shape, windows.leading)
    inner = _at(shape, windows.inner)
    turned = call(ATEN.permute.default, source, _descending(value.shape, value.stride()))
    rows = call(ATEN.reshape.default, turned, [prod(leading), windows.row])
    slices = [call(ATEN.slice.Tensor, rows, 1, start, start + prod(inner)) for start in windows.starts]
    stacked = call(ATEN.stack.default, slices, 1)
    sorted_sizes = [*leading, *_at(shape, windows.sliced), *inner]
    shaped = call(ATEN.reshape.default, stacked, sorted_sizes)
    order = [*windows.leading, *windows.sliced, *windows.inner]
    return call(ATEN.permute.default, shaped, list(map(order.index, range(len(shape)))))


def _caller(graph: torch.fx.Graph, node: Node) -> Callable[..., Node]:
    """Returns a function that adds an operator before a node, with the example value that it computes."""

    def call(target: Any, *arguments: Any) -> Node:
        with graph.inserting_before(node):
            added = graph.call_function(target, arguments)
        values = torch.fx.node.map_arg(arguments, lambda argument: argument.meta["val"])
        added.meta = {**node.meta, "val": target(*values)}
        return added

    return call
