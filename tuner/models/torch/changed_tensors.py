"""What a module changes in place: its buffers, such as a cache of keys and values, and its inputs.

torch.export returns the new value of each such tensor. Where a module is not one program (``bound_changes``),
operators that write a part of it run by PyTorch: in place, if nothing else reads what they overwrite. Any
other new value is copied into the tensor at the end.
"""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch
from torch.fx import Graph, Node

from tuner.models.torch.graph_outputs import origin, returned_values

ATEN = torch.ops.aten
# operators that return a copy of their first input with a part written, and those that write it in place
WRITES = {
    ATEN.index_add.default: ATEN.index_add_.default,
    ATEN.index_copy.default: ATEN.index_copy_.default,
    ATEN.index_fill.int_Scalar: ATEN.index_fill_.int_Scalar,
    ATEN.index_put.default: ATEN.index_put_.default,
    ATEN.masked_fill.Scalar: ATEN.masked_fill_.Scalar,
    ATEN.scatter.src: ATEN.scatter_.src,
    ATEN.scatter.value: ATEN.scatter_.value,
    ATEN.scatter_add.default: ATEN.scatter_add_.default,
}
# operators that do so for a view, by that of the view: of the tensor, and of all arguments but the second
VIEWED = {ATEN.slice_scatter.default: ATEN.slice.Tensor, ATEN.select_scatter.default: ATEN.select.int}


@dataclass(frozen=True, eq=False)
class Change:
    """A tensor that a module changes.

    ``buffer``: its name, "" of an input; ``owner``: the node that gives the tensor; ``value``: the node of
    its new value; ``writes``: operators that write parts of the tensor, the last gives the new value;
    ``is_in_place``: whether they can write the tensor itself, and nothing else changes it.
    """

    buffer: str
    owner: Node
    value: Node
    writes: tuple[Node, ...]
    is_in_place: bool

    @property
    def text(self) -> str:
        """Returns what is changed, for messages: "buffer cache.keys"."""
        return f"buffer {self.buffer}" if self.buffer else f"input {self.owner.name}"


def changes_of(program: torch.export.ExportedProgram) -> tuple[Change, ...]:
    """Returns the buffers and inputs that a functional graph changes, without changes that have no effect."""
    if not returned_values(program)[1]:
        return ()
    drop_copies(program.graph)
    results, changed = returned_values(program)
    owners = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    buffers = program.graph_signature.inputs_to_buffers
    owners |= {buffer: owners[name] for name, buffer in buffers.items()}
    changes = []
    for name, value in changed:
        owner = owners[name]
        if origin(value) is not owner:
            changes.append(_change(buffers.get(owner.name, ""), owner, value, results))
    return tuple(changes)


def writes_of(changes: Iterable[Change]) -> frozenset[Node]:
    """Returns the operators that write parts of the changed tensors."""
    return frozenset(itertools.chain.from_iterable(map(attrgetter("writes"), changes)))


def drop_copies(graph: Graph) -> None:
    """Replaces each ``copy`` into a tensor of the same type and shape by the copied tensor, in place.

    The first input of ``copy`` gives only type and shape; while the node exists, that input counts as read.
    """
    for node in graph.find_nodes(op="call_function", target=ATEN.copy.default):
        source = node.args[1]
        if isinstance(source, Node) and _type(source) == _type(node):
            node.replace_all_uses_with(source)
            graph.erase_node(node)
    graph.eliminate_dead_code()


def _type(node: Node) -> tuple[Any, ...]:
    value = node.meta["val"]
    return value.dtype, value.shape


def _change(buffer: str, owner: Node, value: Node, results: Iterable[Node]) -> Change:
    writes = []
    is_overwritten = True  # nothing else reads what the writes overwrite
    node = value
    while node is not owner and (node.target in WRITES or node.target in VIEWED):
        writes.append(node)
        before = node.args[0]
        is_overwritten &= {*before.users} == {node} and before not in results and not _reads_twice(node)
        node = before
    return Change(buffer, owner, value, tuple(writes), is_overwritten and node is owner)


def _reads_twice(node: Node) -> bool:
    return node.args[0] in nodes_in((*node.args[1:], *node.kwargs.values()))


def nodes_in(arguments: Iterable[Any]) -> list[Node]:
    """Returns the nodes among arguments of an operator, also in lists, in order."""
    found: list[Node] = []
    torch.fx.node.map_arg(tuple(arguments), found.append)
    return found


def written(graph: Graph, node: Node, copied: Callable[[Node], Node]) -> Node:
    """Adds the in-place form of ``node``, an operator of WRITES or VIEWED, to ``graph``.

    Returns the node of the tensor that is written. ``copied`` returns the node of ``graph`` for a node that
    ``node`` reads.
    """
    arguments = torch.fx.node.map_arg(node.args, copied)
    keywords = torch.fx.node.map_arg(node.kwargs, copied)
    changed: Node = arguments[0]
    if node.target in VIEWED:
        view = graph.call_function(VIEWED[node.target], (changed, *arguments[2:]), keywords)
        graph.call_function(ATEN.copy_.default, (view, arguments[1]))
    else:
        graph.call_function(WRITES[node.target], arguments, keywords)
    return changed
