"""Cache keys of exported programs and of graphs: all that lowered text depends on, and no large weight."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import BuiltinFunctionType, EllipsisType, FunctionType, MethodDescriptorType
from typing import Any

import torch
from torch.fx.node import _get_qualified_name

from tuner.models.torch.importer import bytes_of, memory_of
from tuner.runtime.compiled_files import CompiledFiles

TORCH_FOLDER = Path(torch.__file__).parent
# namespaces of operations whose meaning the version of torch or of tuner fixes
OURS = ("aten", "prims", "tuner")
PLAIN_MODULES = ("_operator", "builtins", "math")  # of functions that are called
NUMBERS = (bool, int, float, complex, str)
PLAIN = (*NUMBERS, torch.dtype, torch.device, torch.layout, torch.memory_format, EllipsisType)


class _UnknownError(Exception):
    """Something whose meaning a key could not name."""


def export_key(program: torch.export.ExportedProgram) -> str | None:
    """Returns the cache key of a program's lowered text; None where the program cannot have one.

    The key covers operators, shapes, versions of torch, and the contents of constants and of weights of one
    element; not the contents of larger weights.
    None: an operator or an argument has a meaning that the user's code defines, or a weight is not plain.
    """
    try:
        graphs = _graphs(program.graph_module, _function, "val")
        weights = tuple(_weights(program.state_dict, holds_constants=False))
        constants = tuple(_weights(program.constants, holds_constants=True))
    except _UnknownError:
        return None
    return CompiledFiles.key("export", *_state(), repr(program.graph_signature), graphs, weights, constants)


def graph_key(
    graph: torch.fx.GraphModule,
    constants: Mapping[str, torch.Tensor],
    variables: Iterable[torch.Tensor],
    order: object,
) -> str | None:
    """Returns the cache key of the export of a graph of Dynamo; None where it cannot have one.

    It covers what ``export_key`` does, so that a graph that is known need not be traced again. ``constants``:
    by name; ``variables``: the other inputs; ``order``: which input of the graph each of them is.
    """
    try:
        graphs = _graphs(graph, _function_of_dynamo, "")
        weights = tuple(_weights(constants, holds_constants=False))
        inputs = tuple(map(_input, variables))
    except _UnknownError:
        return None
    return CompiledFiles.key("graph", *_state(), graphs, weights, inputs, order)


def _state() -> tuple[object, ...]:
    overridden = sorted(impl for impl in torch.library._impls if impl.startswith("aten/"))  # noqa: SLF001
    state = (torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled(), overridden)
    return (torch.__version__, torch.version.git_version), state


def _graphs(
    module: torch.fx.GraphModule, name_of: Callable[[Any], str], value: str
) -> list[tuple[str, tuple[tuple[str, ...], ...]]]:
    """Returns a graph and the graphs in it as texts, by their names.

    ``name_of``: of what a node calls; ``value``: key of the example value of a node; "": none is read.
    """
    return [
        (name, tuple(_nodes(part, name_of, value)))
        for name, part in module.named_modules()
        if isinstance(part, torch.fx.GraphModule)
    ]


def _nodes(
    module: torch.fx.GraphModule, name_of: Callable[[Any], str], value: str
) -> Iterator[tuple[str, ...]]:
    for node in module.graph.nodes:
        if node.op == "call_module":
            raise _UnknownError
        if node.op == "get_attr" and not isinstance(getattr(module, node.target, None), torch.fx.GraphModule):
            raise _UnknownError
        target = node.target if isinstance(node.target, str) else name_of(node.target)
        example = _text(node.meta.get(value)) if value and node.op != "output" else ""
        yield node.op, node.name, target, _text(node.args), _text(node.kwargs), example


def _function_of_dynamo(target: Any) -> str:
    """Returns the name of a function that a graph of Dynamo calls: one of torch, or as ``_function``."""
    if isinstance(target, torch._ops.OpOverloadPacket):  # noqa: SLF001 - torch's only name
        name: str = target._qualified_op_name  # noqa: SLF001
        if name.partition("::")[0] not in OURS:
            raise _UnknownError
        return name
    if isinstance(target, FunctionType | BuiltinFunctionType | MethodDescriptorType):
        try:
            name = _get_qualified_name(target)
        except (RuntimeError, AttributeError) as error:  # of a function that fx could not name, either
            raise _UnknownError from error
        # a user's function may have the name of PyTorch's that it replaces
        if isinstance(target, FunctionType) and TORCH_FOLDER not in Path(target.__code__.co_filename).parents:
            raise _UnknownError
        if name.partition(".")[0] == "torch":
            return name
    return _function(target)


def _function(target: Any) -> str:
    ops = torch._ops  # noqa: SLF001 - torch's only name
    if isinstance(target, ops.OpOverload) and target.namespace in OURS:
        return str(target)
    if isinstance(target, ops.HigherOrderOperator):
        return f"higher order {target.name()}"
    if getattr(target, "__module__", "") in PLAIN_MODULES:
        return f"{target.__module__}.{target.__qualname__}"
    raise _UnknownError


def _text(value: Any) -> str:
    if isinstance(value, torch.fx.Node):
        return f"%{value.name}"
    if isinstance(value, torch.Tensor):
        sizes = (*value.shape, *value.stride(), value.storage_offset())
        if not all(type(size) is int for size in sizes):
            raise _UnknownError
        properties = (
            value.dtype,
            value.layout,
            value.device,
            value.requires_grad,
            value.is_conj(),
            value.is_neg(),
        )
        return f"tensor {tuple(value.shape)} {value.stride()} {value.storage_offset()} {properties}"
    if isinstance(value, list | tuple):
        bracket = "[" if isinstance(value, list) else "("
        return f"{bracket}{', '.join(map(_text, value))})"
    if isinstance(value, dict):
        items = [f"{_text(key)}: {_text(item)}" for key, item in value.items()]
        return f"{{{', '.join(items)}}}"
    if isinstance(value, slice):
        return f"slice {_text((value.start, value.stop, value.step))}"
    if value is None or type(value) in PLAIN:
        return f"{type(value).__name__} {value!r}"
    raise _UnknownError


def _weights(weights: Mapping[str, Any], *, holds_constants: bool) -> Iterator[tuple[Any, ...]]:
    # which weights are one, and the numbers of those that the text or its folding may contain
    first: dict[Any, str] = {}
    for name, weight in weights.items():
        text = _input(weight)
        if weight.numel() and not weight.data_ptr():  # its storage was freed
            raise _UnknownError
        is_read = holds_constants or weight.numel() == 1
        same = first.setdefault(memory_of(weight), name)
        yield name, text, same, _digest(weight) if is_read else ""


def _input(tensor: Any) -> str:
    """Returns the text of a plain tensor without its numbers."""
    is_plain = type(tensor) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
    if not (is_plain and tensor.is_cpu and tensor.layout is torch.strided) or tensor.is_quantized:
        raise _UnknownError
    return _text(tensor)


def _digest(tensor: torch.Tensor) -> str:
    return hashlib.sha256(bytes_of(tensor.detach().resolve_conj().resolve_neg())).hexdigest()
