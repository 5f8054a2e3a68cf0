"""What the graph of ``torch.export`` returns: results, some of which are views, and new values of tensors."""

import contextlib
import operator
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node
from torch.utils import _pytree

from tuner.core.errors import UsageError

# kinds of outputs in torch.export's signatures
RESULT = "USER_OUTPUT"
CHANGED_BUFFER = "BUFFER_MUTATION"
CHANGED_INPUT = "USER_INPUT_MUTATION"
COPIES = (torch.ops.aten.alias.default, torch.ops.aten.clone.default, torch.ops.aten.detach.default)


class ChangesTensorsError(UsageError):
    """A module changes its buffers or inputs, and is not one program of fusions."""

    def __init__(self, changed: str) -> None:
        """``changed``: what is changed, such as "buffer keys"."""
        super().__init__(
            f"the module changes its {changed}: only results are supported here",
            "return the new value, or use tuner.torch.compile",
        )


class ReshapesInputError(UsageError):
    """A module changes the shape of an input in place, after which PyTorch's own guards fail."""

    def __init__(self, number: int) -> None:
        super().__init__(
            f"the module changes the shape of argument {number} in place: only its elements may be written",
            "x = x.unsqueeze(0) in place of x.unsqueeze_(0)",
        )


@contextlib.contextmanager
def require_shapes_kept(module: torch.nn.Module) -> Iterator[None]:
    """Context manager: calls of ``module`` that change an input's shape or strides raise an error.

    ReshapesInputError is raised in the call, before PyTorch uses what was traced.
    """
    before: list[tuple[Any, ...]] = []

    def note(_module: torch.nn.Module, arguments: Any, keywords: Any) -> None:
        before[:] = _layouts((arguments, keywords))

    def compare(_module: torch.nn.Module, arguments: Any, keywords: Any, _result: Any) -> None:
        for index, (old, new) in enumerate(zip(before, _layouts((arguments, keywords)), strict=True)):
            if old != new:
                raise ReshapesInputError(index)

    hooks = (
        module.register_forward_pre_hook(note, with_kwargs=True),
        module.register_forward_hook(compare, with_kwargs=True, prepend=True),
    )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@contextlib.contextmanager
def assigned_buffers_written(module: torch.nn.Module) -> Iterator[None]:
    """Context manager: a buffer of a submodule that a call of ``module`` assigns is written in place of that.

    torch.export does so for buffers of the module itself, and loses what submodules assign. Raises UsageError
    in the call where a buffer gets another shape or type.
    """
    before: dict[tuple[torch.nn.Module, str], torch.Tensor] = {}
    names = {submodule: name for name, submodule in module.named_modules() if name}

    def note(_module: torch.nn.Module, _arguments: Any) -> None:
        before.clear()
        for submodule in names:
            for name, buffer in submodule.named_buffers(recurse=False):
                before[submodule, name] = buffer

    def write(_module: torch.nn.Module, _arguments: Any, _result: Any) -> None:
        assigned = []
        for (submodule, name), buffer in before.items():
            new = getattr(submodule, name, None)
            if new is buffer:
                continue
            if not isinstance(new, torch.Tensor) or (new.shape, new.dtype) != (buffer.shape, buffer.dtype):
                text = f"the module assigns its buffer {names[submodule]}.{name}"
                raise UsageError(
                    f"{text} a tensor of another shape or type", "register the buffer with its shape"
                )
            assigned.append((submodule, name, buffer, new.clone()))  # which may be another buffer
        for submodule, name, buffer, new in assigned:
            buffer.copy_(new)
            setattr(submodule, name, buffer)

    hooks = (module.register_forward_pre_hook(note), module.register_forward_hook(write, prepend=True))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _layouts(arguments: Any) -> list[tuple[Any, ...]]:
    return [_layout(leaf) for leaf in _pytree.tree_leaves(arguments)]


def _layout(leaf: Any) -> tuple[Any, ...]:
    if not isinstance(leaf, torch.Tensor) or leaf.layout is not torch.strided:
        return ()
    return leaf.shape, leaf.stride()


def is_overload(node: Node) -> bool:
    """Returns whether a node calls an operator of PyTorch; False for ``getitem`` and size arithmetic."""
    return isinstance(node.target, torch._ops.OpOverload)  # noqa: SLF001 - torch's only name


def is_view(node: Node) -> bool:
    """Returns whether a node computes nothing new: its results share the memory of what it reads.

    True, too, for a node that is not an operator: one tensor of several, or a size.
    """
    if not is_overload(node):  # a tensor of several, or a size
        return True
    return any(result.alias_info for result in node.target._schema.returns)  # noqa: SLF001


def is_change(spec: Any) -> bool:
    """Returns whether an output of an exported graph is the new value of a buffer or of an input."""
    return spec.kind.name in (CHANGED_BUFFER, CHANGED_INPUT)


def changed_text(spec: Any) -> str:
    """Returns what an output of an exported graph is the new value of: "buffer keys", "input cache"."""
    owner = "buffer" if spec.kind.name == CHANGED_BUFFER else "input"
    return f"{owner} {spec.target}"


def is_result(spec: Any) -> bool:
    """Returns whether an output of an exported graph is a result of the module."""
    return bool(spec.kind.name == RESULT)


def returned_values(program: torch.export.ExportedProgram) -> tuple[list[Any], list[tuple[str, Any]]]:
    """Returns (results, changed) of a graph, both in order.

    ``results``: the node, or the constant, of each result. ``changed``: (name, node of the new value) of each
    buffer or input that the graph changes.
    """
    results = []
    changed = []
    specs = program.graph_signature.output_specs
    for spec, value in zip(specs, program.graph.output_node().args[0], strict=True):
        if is_change(spec):
            changed.append((spec.target, value))
        else:
            results.append(value)
    return results, changed


def shared_memory(program: torch.export.ExportedProgram) -> tuple[str, ...]:
    """Returns with what each result shares memory in eager mode, without results that are not tensors.

    "result 0 shares memory with x": with an input, a weight or an earlier result; "" with none.
    """
    owners = {_storage(node): f"with {node.name}" for node in program.graph.nodes if node.op == "placeholder"}
    results, changed = returned_values(program)
    for name, value in changed:
        owners[_storage(value)] = f"with {name}, which the module changes"
    new = {value for _, value in changed}
    texts = []
    for index, result in enumerate(results):
        if not isinstance(result, Node):
            continue
        text = ""
        storage = _storage(result)
        if storage is not None and result not in new:  # else it is the changed tensor itself
            if storage in owners:
                text = f"result {index} shares memory {owners[storage]}"
            else:
                owners[storage] = f"with result {index}"
        texts.append(text)
    return tuple(texts)


def _storage(node: Node) -> int | None:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    return int(value.untyped_storage()._cdata)  # noqa: SLF001


def drop_unchanged_buffers(program: torch.export.ExportedProgram) -> None:
    """Drops outputs that give a buffer its old value, such as ``self.b = self.b.to(x.device)``; in place."""
    signature = program.graph_signature
    end = program.graph.output_node()
    owners = signature.inputs_to_buffers
    kept = []
    for node, spec in zip(end.args[0], tuple(signature.output_specs), strict=True):
        is_unchanged = isinstance(node, Node) and owners.get(origin(node).name) == spec.target
        if spec.kind.name == CHANGED_BUFFER and is_unchanged:
            signature.output_specs.remove(spec)
        else:
            kept.append(node)
    end.args = (tuple(kept),)


def origin(node: Node) -> Node:
    """Returns the node that ``node`` is a copy of, by any number of operators that only copy."""
    while node.target in COPIES:
        node = node.args[0]
    return node


# Results that are views of inputs or of other results: a write into one of the two changes the other.


@dataclass(frozen=True, eq=False)
class ReturnedViews:
    """Results that are views of inputs or of other results, and the operators that make them, in order."""

    results: tuple[Node, ...] = ()
    nodes: tuple[Node, ...] = ()


def returned_views(results: Iterable[Node], memory: frozenset[Node]) -> ReturnedViews:
    """Returns the results that are views of ``memory`` (inputs, buffers) or of another result.

    And the operators that make these views, both in a ``ReturnedViews``.
    """
    results = tuple(dict.fromkeys(results))
    chains = dict(zip(results, map(_chain, results), strict=True))
    bases = Counter(base for base, _ in chains.values())
    shared = []
    nodes: dict[Node, None] = {}
    for result in results:
        base, views = chains[result]
        if base in memory or (views and bases[base] > 1):
            shared.append(result)
            nodes |= dict.fromkeys(views)
    return ReturnedViews(tuple(shared), tuple(nodes))


def memory_owner(node: Node) -> Node:
    """Returns the node of which a node's value is a view, by any number of views; else the node itself."""
    return _chain(node)[0]


def views_to(node: Node) -> tuple[Node, ...]:
    """Returns the chain of views from the owner of a node's memory to the node; () if it is not a view."""
    return _chain(node)[1]


def _chain(node: Node) -> tuple[Node, tuple[Node, ...]]:
    """Returns the node of which ``node`` is a view, by any number of views, and these views in order."""
    views: list[Node] = []
    while node.op == "call_function" and _is_view_of_one(node):
        views.append(node)
        node = node.args[0]
    return node, tuple(views[::-1])


def _is_view_of_one(node: Node) -> bool:
    if node.target is operator.getitem:  # of an operator with several results, which may be views
        return is_view(node.args[0])
    return is_overload(node) and is_view(node)
