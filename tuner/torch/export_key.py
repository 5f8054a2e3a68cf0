"""The cache key of an exported program: all that its lowered text depends on, and no large weight."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from tuner.runtime.compiled_files import CompiledFiles
from tuner.torch.importer import bytes_of, memory_of

OURS = ("aten", "prims")  # namespaces of operations whose meaning torch's version fixes
PLAIN_MODULES = ("_operator", "builtins", "math")  # of functions that are called
PLAIN = (bool, int, float, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format)


class _UnknownError(Exception):
    """Something whose meaning a key could not name."""


def export_key(program: torch.export.ExportedProgram) -> str | None:
    """Returns the cache key of a program's lowered text; None where the program cannot have one.

    The key covers operators, shapes, versions of torch, and the contents of constants and of weights of one
    element; not the contents of larger weights.
    None: an operator or an argument has a meaning that the user's code defines, or a weight is not plain.
    """
    try:
        graphs = [
            (name, tuple(_nodes(module)))
            for name, module in program.graph_module.named_modules()
            if isinstance(module, torch.fx.GraphModule)
        ]
        weights = tuple(_weights(program.state_dict, holds_constants=False))
        constants = tuple(_weights(program.constants, holds_constants=True))
    except _UnknownError:
        return None
    overridden = sorted(impl for impl in torch.library._impls if impl.startswith("aten/"))  # noqa: SLF001
    state = (torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled(), overridden)
    versions = (torch.__version__, torch.version.git_version)
    signature = repr(program.graph_signature)
    return CompiledFiles.key("export", versions, state, signature, graphs, weights, constants)


def _nodes(module: torch.fx.GraphModule) -> Iterator[tuple[str, ...]]:
    for node in module.graph.nodes:
        if node.op == "get_attr" and not isinstance(getattr(module, node.target, None), torch.fx.GraphModule):
            raise _UnknownError
        target = node.target if isinstance(node.target, str) else _function(node.target)
        value = _text(node.meta.get("val")) if node.op != "output" else ""
        yield node.op, node.name, target, _text(node.args), _text(node.kwargs), value


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
        is_plain = type(weight) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
        if not (is_plain and weight.is_cpu and weight.layout is torch.strided) or weight.is_quantized:
            raise _UnknownError
        if weight.numel() and not weight.data_ptr():  # its storage was freed
            raise _UnknownError
        is_read = holds_constants or weight.numel() == 1
        same = first.setdefault(memory_of(weight), name)
        yield name, _text(weight), same, _digest(weight) if is_read else ""


def _digest(tensor: torch.Tensor) -> str:
    return hashlib.sha256(bytes_of(tensor.detach().resolve_conj().resolve_neg())).hexdigest()
