"""Logarithm of the expected improvement, so that the product of two models' improvements is a sum.

Jones et al., 1998, https://doi.org/10.1023/A:1008306431147, equation 15.
"""

import numpy as np

from tuner.samplers.row_table import Floats

TINY = 1e-30


def log_expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Returns the logarithm of the expected improvement over ``best``, for each pair of mean and deviation.

    The values are taken as normally distributed; an improvement is a value below ``best``, since smaller is
    better.
    """
    z = (np.float32(best) - mean) / deviation
    density = np.exp(-0.5 * z * z) * np.float32(1 / np.sqrt(2 * np.pi))
    gain: Floats = np.log(np.maximum(deviation * (z * _cumulative(z) + density), TINY)).astype(np.float32)
    return gain


def _cumulative(z: Floats) -> Floats:
    """Returns the cumulative normal distribution function, to 1e-7 (Abramowitz and Stegun, 7.1.26)."""
    x = np.abs(z) * np.float32(np.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * x)
    poly = np.zeros_like(t)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        poly = (poly + np.float32(factor)) * t
    error = 1 - poly * np.exp(-x * x)
    half: Floats = (0.5 * (1 + np.sign(z) * error)).astype(np.float32)
    return half
