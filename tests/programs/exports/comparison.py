"""Comparison of a program's results with those of torch."""

from typing import Any

import ml_dtypes
import numpy as np
import torch

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
        wanted = array_of(tensor)
        found = np.asarray(result)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), f"result {number}"
        if wanted.dtype.name not in TOLERANCES:
            np.testing.assert_array_equal(found, wanted)
            continue
        allowed = TOLERANCES[wanted.dtype.name] if tolerance is None else tolerance
        _require_close(found.astype(np.float64), wanted.astype(np.float64), allowed, f"result {number}")


def _require_close(found: Any, wanted: Any, allowed: float, name: str) -> None:
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~finite], wanted[~finite], err_msg=name)
    assert np.isfinite(found[finite]).all(), f"{name}: not finite where torch is"
    if not finite.any():
        return
    largest = np.abs(wanted[finite]).max()
    error = np.abs(found[finite] - wanted[finite]).max()
    assert error <= allowed * largest, f"{name}: error {error:.3g} of {largest:.3g}, allowed {allowed:.1g}"
