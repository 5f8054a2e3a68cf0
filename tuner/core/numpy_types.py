"""The numpy type of each element type; some need the package ml_dtypes, bf16 falls back to its bits."""

from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from tuner.core.element_types import NUMBER_TYPES

try:  # a machine that only measures may have nothing but numpy
    import ml_dtypes

    PACKAGES: tuple[ModuleType, ...] = (np, ml_dtypes)
except ImportError:
    PACKAGES = (np,)

DType: TypeAlias = np.dtype[np.generic]


def _kind(name: str, numpy_name: str) -> Any:
    """Returns the numpy type of one element; None where no installed package has such a type."""
    known = (getattr(package, numpy_name, None) for package in PACKAGES)
    # Without ml_dtypes bf16 is its bits, uint16: no other array of tuner has this type.
    return next((kind for kind in known if kind is not None), np.uint16 if name == "bf16" else None)


# MLIR type -> numpy type
DTYPES: dict[str, DType] = {
    name: np.dtype(kind)
    for name, number in NUMBER_TYPES.items()
    if (kind := _kind(name, number.numpy_name)) is not None
}
