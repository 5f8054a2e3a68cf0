"""Releases the weights of a module that was compiled: what it then refuses, and who says so."""

import gc
from collections.abc import Collection
from typing import Any

import torch

from tuner.core.errors import UsageError
from tuner.runtime.process_state import return_free_memory

HINT = "compile it with release_weights=False, which keeps them"


class ReleasedWeights:
    """A hook of a module whose weights were released: refuses its calls, ``state_dict`` and loading.

    It can be copied and pickled with its module.
    """

    def __init__(self, name: str) -> None:
        """Takes the name of the class of the module that was compiled."""
        self._name = name

    def __call__(self, *_arguments: Any) -> None:
        """Raises UsageError: torch calls this before the module is called, saved, exported or loaded."""
        raise UsageError(
            f"{self._name}: its weights were released when it was compiled: call the compiled program", HINT
        )


def release_weights(module: torch.nn.Module, kept: Collection[str] = ()) -> None:
    """Makes all parameters and buffers of a module empty, and lets the module refuse to work without them.

    ``kept``: names of the buffers that stay, as a program changes them. Tensors are replaced, not changed:
    what another module, or the caller, holds as well stays as it is.
    """
    refuse = ReleasedWeights(type(module).__name__)
    for prefix, part in module.named_modules():
        for tensors in (part._parameters, part._buffers):  # noqa: SLF001 - set, a name may not be an attribute
            for name, tensor in tensors.items():
                if tensor is not None and f"{prefix}.{name}".removeprefix(".") not in kept:
                    tensors[name] = _empty(tensor)
        part.register_forward_pre_hook(refuse)
        part.register_state_dict_pre_hook(refuse)
        part.register_load_state_dict_pre_hook(refuse)
    gc.collect()  # graphs of an export are in cycles, and have the weights
    return_free_memory()


def require_weights(module: object) -> None:
    """Raises UsageError for a module whose weights were released."""
    if isinstance(module, torch.nn.Module):
        for part in module.modules():
            for hook in part._forward_pre_hooks.values():  # noqa: SLF001 - torch's only API
                if isinstance(hook, ReleasedWeights):
                    hook()


def _empty(tensor: torch.Tensor) -> torch.Tensor:
    empty = torch.empty(0, dtype=tensor.dtype)
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(empty, requires_grad=tensor.requires_grad)
    return empty
