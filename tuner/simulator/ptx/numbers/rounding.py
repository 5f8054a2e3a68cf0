"""Rounding to narrower floating-point formats. PTX ISA, "Rounding Modifiers"."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tuner.simulator.ptx.dtypes import BFLOAT16, Array

# Low bits of a float64 that a float32 drops, and their pattern halfway between two float32 values.
DROPPED_BITS = np.uint64((1 << 29) - 1)
HALFWAY_BITS = np.uint64(1 << 28)
SMALLEST_NORMAL_F32 = 2.0**-126


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format as in IEEE 754: its precision and its range of exponents."""

    name: str
    precision: int  # significant bits, the hidden bit included
    smallest: int  # exponent of the smallest normal number
    largest: int  # exponent of the largest binade


FORMATS = {
    "f16": FloatFormat("f16", 11, -14, 15),
    "bf16": FloatFormat("bf16", 8, -126, 127),
    "tf32": FloatFormat("tf32", 11, -126, 127),
    "f32": FloatFormat("f32", 24, -126, 127),
}


def _half_away(values: Array) -> Array:
    return np.copysign(np.floor(np.abs(values) + 0.5), values)


MODES: dict[str, Callable[[Array], Array]] = {
    "rn": np.rint,
    "rz": np.trunc,
    "rm": np.floor,
    "rp": np.ceil,
    "rna": _half_away,
}
INTEGER_MODES: dict[str, Callable[[Array], Array]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def round_to(values: Array, target: FloatFormat, mode: str) -> Array:
    """Returns float64 ``values`` rounded once to the format ``target``, as float64.

    ``mode`` is "rn" (nearest, ties to even), "rna" (ties away from zero), "rz" (towards zero), "rm" (down) or
    "rp" (up). Subnormals, infinities and NaN are kept; overflow gives infinity or the largest number, as in
    IEEE 754.
    """
    _, exponents = np.frexp(values)
    unit = np.ldexp(1.0, np.maximum(exponents - 1, target.smallest) - target.precision + 1)
    rounded = MODES[mode](values / unit) * unit
    largest = np.ldexp(2.0 - 2.0 ** (1 - target.precision), target.largest)
    is_over = (np.abs(rounded) > largest) & np.isfinite(values)
    rounded = np.where(is_over, _overflow(values, largest, mode), rounded)
    return np.where(np.isfinite(values), np.copysign(rounded, values), values)


def _overflow(values: Array, largest: Array, mode: str) -> Array:
    """Returns infinity, or the largest finite number where the mode rounds towards zero. IEEE 754, 7.4."""
    to_infinity = {
        "rn": np.ones_like(values, bool),
        "rna": np.ones_like(values, bool),
        "rz": np.zeros_like(values, bool),
        "rm": values < 0,
        "rp": values > 0,
    }[mode]
    return np.copysign(np.where(to_infinity, np.inf, largest), values)


def to_tf32(values: Array, mode: str = "rna") -> Array:
    """Returns float32 ``values`` rounded to tf32, as the bits (uint32) of float32; the 13 low bits are zero.

    A NaN keeps its low bits. ``mode`` is a rounding of ``round_to``.
    """
    rounded = round_to(np.asarray(values, np.float64), FORMATS["tf32"], mode)
    return rounded.astype(np.float32).view(np.uint32)


def read_tf32(bits: Array) -> Array:
    """Returns tf32 ``bits`` (uint32) as float32, as tensor cores read them: the 13 low bits are ignored."""
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)


def narrow_sum(total: Array, error: Array | None, dtype: "np.dtype[np.generic]") -> Array:
    """Returns the float64 sum ``total + error`` rounded once to the narrower type ``dtype``, to nearest.

    ``error`` is the rounding error of ``total``, as ``two_sum`` returns it; None: zero.
    """
    if error is not None:
        total = to_odd(total, error)
    if dtype == BFLOAT16:
        return round_to(total, FORMATS["bf16"], "rn").astype(np.float32).astype(BFLOAT16)
    return total.astype(dtype)


def to_odd(total: Array, error: Array) -> Array:
    """Returns the sum ``total + error``, both from ``two_sum``, rounded to odd, as float64.

    An inexact sum gets an odd last bit, so that rounding it again does no harm (Boldo and Melquiond 2008).
    """
    bits = total.view(np.int64)
    is_even = (bits & 1) == 0
    grows = (error > 0) == (total > 0)
    nudged = (bits + np.where(grows, 1, -1)).view(np.float64)
    is_inexact = (error != 0) & np.isfinite(total) & np.isfinite(error)
    return np.where(is_inexact & is_even, nudged, total)


def needs_odd_f32(total: Array) -> Array:
    """Returns for each float64 sum whether its conversion to float32 may suffer from double rounding.

    Such sums must be rounded with ``to_odd`` first.
    """
    bits = total.view(np.uint64)
    risky: Array = ((bits & DROPPED_BITS) == HALFWAY_BITS) | (np.abs(total) < SMALLEST_NORMAL_F32)
    return risky
