"""The error of a model's results relative to those of torch."""

from typing import Any

import numpy as np
import torch

# of the largest number of a result
ALLOWED = {torch.float32: 1e-5, torch.bfloat16: 4e-2, torch.float16: 5e-3}


def relative_error(found: Any, expected: Any) -> float:
    """Returns the largest error over all results, each relative to the largest number of torch's result.

    Infinity where shapes differ or a number is not finite.
    """
    errors = [
        _error(result, wanted) for result, wanted in zip(_listed(found), _listed(expected), strict=True)
    ]
    return max(errors)


def _error(found: Any, expected: Any) -> float:
    found, expected = _array(found), _array(expected)
    if found.shape != expected.shape or not np.isfinite(found).all():
        return float("inf")
    largest = float(np.abs(expected).max(initial=0.0))
    return float(np.abs(found - expected).max(initial=0.0)) / (largest or 1.0)


def _listed(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, tuple | list) else (results,)


def _array(result: Any) -> Any:
    if isinstance(result, torch.Tensor):
        return result.detach().double().numpy()
    return np.asarray(result, np.float64)
