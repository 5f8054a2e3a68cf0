"""A PyTorch module with example inputs, and its export as MLIR text by torch-mlir."""

import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Export:
    name: str
    make: Callable[[], nn.Module]
    inputs: tuple[Shape | torch.Tensor, ...]  # a shape stands for numbers of a normal distribution
    dtype: torch.dtype = torch.float32  # of parameters and of inputs that are given as shapes
    tolerance: float | None = None  # of the error relative to the largest number; None: by the result's type


@dataclass(frozen=True)
class Built:
    module: nn.Module
    inputs: tuple[torch.Tensor, ...]
    expected: tuple[torch.Tensor, ...]


class Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def export(name: str, make: Callable[[], nn.Module], *inputs: Shape | torch.Tensor, **options: Any) -> Export:
    return Export(name, make, inputs, **options)


def of(name: str, function: Callable[..., Any], *inputs: Shape | torch.Tensor, **options: Any) -> Export:
    return Export(name, lambda: Function(function), inputs, **options)


def build(wanted: Export) -> Built:
    """Makes a module and its inputs, the same ones each time, and calls the module."""
    torch.manual_seed(zlib.crc32(wanted.name.encode()))
    module = wanted.make().to(wanted.dtype).eval()
    inputs = tuple(
        each.clone() if isinstance(each, torch.Tensor) else torch.randn(each).to(wanted.dtype)
        for each in wanted.inputs
    )
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch about its own calls
        expected = module(*(each.clone() for each in inputs))
    return Built(module, inputs, tuple(expected) if isinstance(expected, tuple | list) else (expected,))


def exported_text(module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> str:
    """Returns a module as MLIR text, linalg on tensors, with all its weights; its function is ``main``."""
    from tuner.torch.export import export_module

    return export_module(module, inputs).text
