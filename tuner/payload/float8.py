"""8-bit floats: steps of their random inputs, and the rounding of sums of their products."""

from typing import Final

import numpy as np

# Steps per 1: inputs are multiples of the smallest step whose half is a number of the type as well.
FLOAT8_STEPS: Final = {"e4m3": np.float32(2.0**8), "e5m2": np.float32(2.0**15)}
# Tensor cores keep about 14 bits of a sum of such products, though it is an f32: of H800, DeepSeek-V3
# Technical Report, https://arxiv.org/abs/2412.19437, section 3.3.2.
FLOAT8_SUM_ROUNDING: Final = 2.0**-14
