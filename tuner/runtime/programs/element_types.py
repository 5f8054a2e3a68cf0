"""Element types of compiled code as numpy types."""

import ml_dtypes
import numpy as np

from tuner.core.errors import UsageError

DTYPES: dict[str, "np.dtype[np.generic]"] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "index": np.dtype(np.int64),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
}


def dtype_of(element: str) -> "np.dtype[np.generic]":
    """Returns the numpy type of an MLIR element type. Raises UsageError."""
    if element not in DTYPES:
        raise UsageError(f"element type: found {element}, allowed {', '.join(DTYPES)}")
    return DTYPES[element]


def is_same_bits(found: "np.dtype[np.generic]", expected: "np.dtype[np.generic]") -> bool:
    """Tells whether an array of a type can be passed as another: integers of MLIR have no sign."""
    if found == expected:
        return True
    return found.kind == "u" and expected.kind == "i" and found.itemsize == expected.itemsize
