"""The numpy types of 8-bit floats, which are those of the package ml_dtypes: without it there are none."""

from typing import Any, Final

import numpy as np

try:  # a machine that only measures may have nothing but numpy
    import ml_dtypes

    FLOAT8_DTYPES: "dict[str, np.dtype[Any]]" = {
        "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
        "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    }
except ImportError:
    FLOAT8_DTYPES = {}

# Of 1: inputs are multiples of the least steps whose halves are numbers as well.
FLOAT8_STEPS: Final = {"e4m3": np.float32(2.0**8), "e5m2": np.float32(2.0**15)}
# Tensor cores keep about 14 bits of a sum of such products, though it is an f32: of H800, DeepSeek-V3
# Technical Report, https://arxiv.org/abs/2412.19437, section 3.3.2.
FLOAT8_SUM_ROUNDING: Final = 2.0**-14
