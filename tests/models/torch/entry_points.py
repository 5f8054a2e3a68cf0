"""The ways in which a module reaches tuner, each as a function that calls the compiled module once."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

import tuner.torch

Arguments = tuple[Any, ...]


def by_compile(module: nn.Module, arguments: Arguments) -> Any:
    """Calls what ``tuner.torch.compile`` makes of the module."""
    return tuner.torch.compile(module, arguments)(*arguments)


def by_exported_program(module: nn.Module, arguments: Arguments) -> Any:
    """Calls what ``tuner.torch.compile`` makes of the module's program of ``torch.export``."""
    return tuner.torch.compile(torch.export.export(module, arguments))(*arguments)


def by_backend(module: nn.Module, arguments: Arguments) -> Any:
    """Calls the module under ``torch.compile``, whose backend must have taken each graph."""
    torch._dynamo.reset()  # noqa: SLF001 - torch's only way to forget what it compiled
    tuner.torch.graph_counts(reset=True)
    with torch.no_grad():
        results = torch.compile(module, backend="tuner")(*arguments)
    counts = tuner.torch.graph_counts()
    assert counts.taken > 0, counts
    assert counts.left == 0, counts.reasons
    return results


def by_tune(module: nn.Module, arguments: Arguments) -> Any:
    """Calls what ``tuner.torch.tune`` makes of the module, of the fewest trials."""
    return tuner.torch.tune(module, arguments, trials=1, workers=1, baseline="none")(*arguments)


ENTRY_POINTS: MappingProxyType[str, Callable[[nn.Module, Arguments], Any]] = MappingProxyType(
    {"compile": by_compile, "exported program": by_exported_program, "backend": by_backend}
)
