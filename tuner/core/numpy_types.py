"""The numpy type of each type of numbers; those of ml_dtypes need that package, bf16 does with its bits."""

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
    """Returns the numpy type of one element; None where no package here has it."""
    known = (getattr(package, numpy_name, None) for package in PACKAGES)
    # Without its package bf16 is its bits: no other array of ours is of this type.
    return next((kind for kind in known if kind is not None), np.uint16 if name == "bf16" else None)


# As MLIR spells it -> type
DTYPES: dict[str, DType] = {
    name: np.dtype(kind)
    for name, number in NUMBER_TYPES.items()
    if (kind := _kind(name, number.numpy_name)) is not None
}
