"""PTX types as numpy types, rounding to narrower floats, and fused multiply-add with one rounding.

``read_bits`` and ``write_bits`` convert registers. ``round_to`` rounds once in any mode; ``two_sum``,
``two_product`` and ``to_odd`` are the exact steps by which ``fma`` rounds once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tuner.core.dtypes import FloatFormat, number_type

# PTX types as numpy types (PTX ISA, "Types"). Registers hold bits; the instruction determines the type.

Array: TypeAlias = npt.NDArray[Any]  # one value per lane, or one for all lanes
Bools: TypeAlias = npt.NDArray[np.bool_]
Indices: TypeAlias = npt.NDArray[np.int64]

UNSIGNED: dict[int, "np.dtype[Any]"] = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
SIGNED: dict[int, "np.dtype[Any]"] = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}
BOOL = np.dtype(bool)
BFLOAT16: "np.dtype[Any]" = np.dtype(ml_dtypes.bfloat16)
FLOAT8: dict[str, "np.dtype[Any]"] = {  # e4m3 has no infinity; its one NaN of each sign is all ones
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
_UNPACKED: dict[str, "np.dtype[Any]"] = {
    "pred": BOOL,
    "bf16": BFLOAT16,
    "tf32": UNSIGNED[4],
    **FLOAT8,
    **{f"f{8 * size}": np.dtype(f"f{size}") for size in (2, 4, 8)},
    **{f"{letter}{8 * size}": dtype for letter in "bu" for size, dtype in UNSIGNED.items()},
    **{f"s{8 * size}": dtype for size, dtype in SIGNED.items()},
}
# Low bits of a float64 that a float32 drops, and their pattern halfway between two float32 values.
DROPPED_BITS = np.uint64((1 << 29) - 1)
HALFWAY_BITS = np.uint64(1 << 28)
SMALLEST_NORMAL_F32 = 2.0**-126
# PTX type -> its format
FORMATS = {name: row.format for name in ("f16", "bf16", "tf32", "f32") if (row := number_type(name)).format}
SPLITTER = float(2**27 + 1)  # Veltkamp's constant: splits a float64 into two halves of 26 bits
# products of factors in this range neither overflow nor lose bits
SAFE_LOW = 2.0**-450
SAFE_HIGH = 2.0**450


@dataclass(frozen=True)
class PtxType:
    """A type of PTX, such as f32 or the packed f16x2, with the numpy type of its elements."""

    name: str
    dtype: "np.dtype[Any]"  # of one element
    elements: int = 1  # 2 for packed types such as f16x2

    @property
    def bytes(self) -> int:
        return self.dtype.itemsize * self.elements

    @property
    def is_float(self) -> bool:
        """Returns whether an element is a floating-point number; tf32 is held as bits (uint32)."""
        return self.dtype.kind == "f" or self.dtype in (BFLOAT16, *FLOAT8.values())

    @property
    def is_signed(self) -> bool:
        return self.dtype.kind == "i"

    @property
    def bits(self) -> int:
        """Returns the size of one element in bits; 16 for f16x2."""
        return 8 * self.dtype.itemsize

    @property
    def raw(self) -> "np.dtype[Any]":
        return UNSIGNED[self.bytes]


TYPES = {name: PtxType(name, dtype) for name, dtype in _UNPACKED.items()}
PACKED = ("bf16", "f16", "u16", "s16", "f32")  # f32 since sm_100
TYPES |= {f"{name}x2": PtxType(f"{name}x2", TYPES[name].dtype, 2) for name in PACKED}


def read_bits(bits: Array, type_: PtxType, lanes: int) -> Array:
    """Returns register bits as values of ``type_``: [lane * elements], packed elements next to each other."""
    if type_.dtype == BOOL:
        return bits
    if bits.dtype.itemsize > type_.bytes:
        bits = bits.astype(type_.raw)
    if type_.elements > 1:
        bits = np.ascontiguousarray(np.broadcast_to(bits, (lanes,)))
    return bits.view(type_.dtype)


def write_bits(values: Array, type_: PtxType, register: "np.dtype[Any]") -> Array:
    """Returns values as bits of a ``register`` type.

    Signed integers are sign-extended, others zero-extended.
    """
    if register == BOOL:
        return values
    if type_.elements > 1:
        bits = np.ascontiguousarray(values).view(type_.raw)
    else:
        bits = values.view(type_.raw)
    if register.itemsize == type_.bytes:
        return bits
    if type_.is_signed and type_.elements == 1:
        return values.astype(SIGNED[register.itemsize]).view(register)
    return bits.astype(register)


MODES: dict[str, Callable[[Array], Array]] = {
    "rn": np.rint,
    "rz": np.trunc,
    "rm": np.floor,
    "rp": np.ceil,
    "rna": lambda values: np.copysign(np.floor(np.abs(values) + 0.5), values),
}
INTEGER_MODES = {f"{mode}i": MODES[mode] for mode in ("rn", "rz", "rm", "rp")}


# Rounding to narrower floating-point formats. PTX ISA, "Rounding Modifiers".


def round_to(values: Array, target: FloatFormat, mode: str) -> Array:
    """Returns float64 ``values`` rounded once to the format ``target``, as float64.

    ``mode`` is "rn" (nearest, ties to even), "rna" (ties away from zero), "rz" (towards zero), "rm" (down) or
    "rp" (up). Overflow gives infinity or the largest number, as in IEEE 754.
    """
    _, exponents = np.frexp(values)
    unit = np.ldexp(1.0, np.maximum(exponents - 1, target.least) - target.fraction_bits)
    rounded = MODES[mode](values / unit) * unit
    is_over = (np.abs(rounded) > target.largest) & np.isfinite(values)
    to_infinity: dict[str, Bools | bool]
    to_infinity = {"rn": True, "rna": True, "rz": False, "rm": values < 0, "rp": values > 0}
    overflow = np.where(to_infinity[mode], np.inf, target.largest)  # IEEE 754, 7.4
    rounded = np.where(is_over, overflow, rounded)
    return np.where(np.isfinite(values), np.copysign(rounded, values), values)


def to_tf32(values: Array, mode: str = "rna") -> Array:
    """Returns float32 values rounded to tf32, as bits of float32 (uint32) whose 13 low bits are zero.

    ``mode``: of ``round_to``.
    """
    rounded = round_to(np.asarray(values, np.float64), FORMATS["tf32"], mode)
    return rounded.astype(np.float32).view(np.uint32)


def read_tf32(bits: Array) -> Array:
    """Returns tf32 bits (uint32) as float32; the 13 low bits are ignored, as tensor cores do."""
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)


def narrow_sum(total: Array, error: Array | None, dtype: "np.dtype[np.generic]") -> Array:
    """Returns ``total + error`` rounded once to the narrower type ``dtype``; ``error`` None: 0.

    ``error``: the rounding error of ``total``, from ``two_sum``.
    """
    if error is not None:
        total = to_odd(total, error)
    if dtype == BFLOAT16:
        return round_to(total, FORMATS["bf16"], "rn").astype(np.float32).astype(BFLOAT16)
    return total.astype(dtype)


def to_odd(total: Array, error: Array) -> Array:
    """Returns ``total + error`` rounded to odd, so that it can be rounded again (Boldo and Melquiond 2008).

    ``error``: the rounding error of ``total``, from ``two_sum``.
    """
    bits = total.view(np.int64)
    is_even = (bits & 1) == 0
    grows = (error > 0) == (total > 0)
    nudged = (bits + np.where(grows, 1, -1)).view(np.float64)
    is_inexact = (error != 0) & np.isfinite(total) & np.isfinite(error)
    return np.where(is_inexact & is_even, nudged, total)


def needs_odd_f32(total: Array) -> Array:
    """Returns which float64 sums must be rounded to odd before they are rounded to float32."""
    bits = total.view(np.uint64)
    risky: Array = ((bits & DROPPED_BITS) == HALFWAY_BITS) | (np.abs(total) < SMALLEST_NORMAL_F32)
    return risky


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Returns (a + b rounded, its exact rounding error): 2Sum, Knuth, TAOCP volume 2, 4.2.2, theorem B."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Returns (a * b rounded, its exact rounding error), elementwise, for float64.

    TwoProduct: Dekker 1971, with Veltkamp's split. Exact for 0 and magnitudes from 2**-450 to 2**450.
    """
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return product, error


def _halves(value: Array) -> tuple[Array, Array]:
    scaled = SPLITTER * value
    high = scaled - (scaled - value)
    return high, value - high


def fma(a: Array, b: Array, c: Array) -> Array:
    """Returns a * b + c, rounded once to the type of the operands: f16, bf16, f32 or f64."""
    dtype = a.dtype
    if dtype == np.float64:
        return _fma_f64(a, b, c)
    product = a.astype(np.float64) * b.astype(np.float64)  # exact: at most 48 bits
    addend = c.astype(np.float64)
    if dtype == np.float32:
        total = product + addend
        risky = needs_odd_f32(total)
        if risky.any():
            total = np.where(risky, to_odd(*two_sum(product, addend)), total)
        return total.astype(np.float32)
    return narrow_sum(*two_sum(product, addend), dtype)


def _fma_f64(a: Array, b: Array, c: Array) -> Array:
    # Boldo and Melquiond, "Emulation of a FMA and Correctly Rounded Sums" (2008)
    a, b, c = np.broadcast_arrays(a, b, c)
    high, low = two_product(a, b)
    sum_high, sum_low = two_sum(c, low)
    value, rest = two_sum(high, sum_high)
    result = value + to_odd(*two_sum(sum_low, rest))
    unsafe = _is_unsafe(a) | _is_unsafe(b) | _is_unsafe(c)
    if unsafe.any():
        return _fma_by_fractions(a, b, c, result, unsafe)
    return result


def _is_unsafe(value: Array) -> Array:
    size = np.abs(value)
    is_safe: Array = ((size > SAFE_LOW) & (size < SAFE_HIGH)) | (value == 0)
    return ~is_safe


def _fma_by_fractions(a: Array, b: Array, c: Array, result: Array, where: Array) -> Array:
    """Returns ``result`` with the lanes ``where`` recomputed in rational arithmetic."""
    result = np.array(result)
    for lane in np.flatnonzero(where):
        x = float(a[lane])
        y = float(b[lane])
        z = float(c[lane])
        exact = Fraction(x) * Fraction(y) + Fraction(z) if np.isfinite([x, y, z]).all() else None
        if not exact:  # 0, or an operand is not finite
            result[lane] = a[lane] * b[lane] + c[lane]
            continue
        try:
            result[lane] = float(exact)
        except OverflowError:
            result[lane] = float("inf") if exact > 0 else float("-inf")
    return result
