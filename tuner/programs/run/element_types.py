"""Element types of compiled code as numpy types."""

import numpy as np

from tuner.core.errors import UsageError
from tuner.core.numpy_types import DTYPES


def dtype_of(element: str) -> "np.dtype[np.generic]":
    """Returns the numpy type of an MLIR element type such as "f32"; raises UsageError for an unknown type."""
    if element not in DTYPES:
        raise UsageError(f"element type: found {element}, allowed {', '.join(DTYPES)}")
    return DTYPES[element]


def is_same_bits(found: "np.dtype[np.generic]", expected: "np.dtype[np.generic]") -> bool:
    """Returns whether an array of type ``found`` can be passed, unconverted, where ``expected`` is needed.

    True for equal types, and for an unsigned integer type where a signed one of the same size is expected,
    since MLIR's integers are signless.
    """
    if found == expected:
        return True
    return found.kind == "u" and expected.kind == "i" and found.itemsize == expected.itemsize
