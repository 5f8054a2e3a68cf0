"""A PyTorch module with example inputs, its export as MLIR text, and comparison of results with torch's."""

import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
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
    dtype, tensor = wanted.dtype, torch.Tensor
    inputs = tuple(x.clone() if isinstance(x, tensor) else torch.randn(x).to(dtype) for x in wanted.inputs)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch about its own calls
        expected = module(*(each.clone() for each in inputs))
    return Built(module, inputs, tuple(expected) if isinstance(expected, tuple | list) else (expected,))


def exported_text(module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> str:
    """Returns a module as MLIR text, linalg on tensors, with all its weights; its function is ``main``."""
    from tuner.models.torch.export import export_module

    return export_module(module, inputs).text


# Allowed error relative to the largest number of the result: sums in another order, other formulas of exp
TOLERANCES = {"float64": 1e-13, "float32": 4e-6, "float16": 2**-9, "bfloat16": 2**-6}


def array_of(tensor: torch.Tensor) -> Any:
    """Returns a tensor's numbers as an array of numpy, bf16 as ``ml_dtypes.bfloat16``."""
    tensor = tensor.detach().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def require_equal(results: object, expected: tuple[torch.Tensor, ...], tolerance: float | None) -> None:
    """Raises AssertionError where a result has another shape, type or numbers than torch's.

    Integers and booleans are equal; NaN and infinities are at the same places with the same signs.
    """
    listed = results if isinstance(results, tuple) else (results,)
    assert len(listed) == len(expected)
    for number, (result, tensor) in enumerate(zip(listed, expected, strict=True)):
        wanted, name = array_of(tensor), f"result {number}"
        found = np.asarray(result)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), name
        if wanted.dtype.name not in TOLERANCES:
            np.testing.assert_array_equal(found, wanted, name)
            continue
        allowed = TOLERANCES[wanted.dtype.name] if tolerance is None else tolerance
        found, wanted = found.astype(np.float64), wanted.astype(np.float64)
        largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=allowed * largest, err_msg=name)
