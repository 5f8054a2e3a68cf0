"""A model of f32 by three products of tf32, whose products are simulated ones or those of an H100.

The simulator rounds a sum of the tensor cores to nearest, where an H200 cuts it off: the model has both, and
its errors are those of cut sums.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Accumulate = Callable[[Doubles, Doubles, Doubles], Doubles]
STEP = 8  # of K, of one product
HALF = 0x1000  # of the last bit of a tf32
TF32_SHIFT = 13  # bits of an f32 beyond those of a tf32
LEAST_BIT = 26  # that a tensor core keeps of a term, below the largest of a sum; M on an H200: 25 or more
SUM_BITS = 24  # of a sum
UNIT = 2.0**-24


@dataclass(frozen=True)
class Split:
    """A matrix of f32 as the sum of two of tf32, nearly."""

    high: Floats
    low: Floats


def kept(numbers: Floats, half: int = 0) -> Floats:
    """Returns numbers without their last 13 bits, ``half`` of the last one that is kept added before."""
    return ((numbers.view(np.int32) + half) & -0x2000).view(np.float32)


def split_rounded(numbers: Floats) -> Split:
    """Returns high bits rounded to nearest, and what tensor cores keep of the rest."""
    high = kept(numbers, HALF)
    with np.errstate(invalid="ignore"):
        rest = numbers - high
    return Split(high, kept(rest))


def split_to_even(numbers: Floats) -> Split:
    """Returns high bits rounded to nearest, ties to even, and what tensor cores keep of the rest."""
    is_odd = (numbers.view(np.int32) >> TF32_SHIFT) & 1
    high = ((numbers.view(np.int32) + (HALF - 1) + is_odd) & -0x2000).view(np.float32)
    with np.errstate(invalid="ignore"):
        return Split(high, kept(numbers - high))


def split_cut(numbers: Floats) -> Split:
    """Returns the bits that tensor cores keep, and the rest as the TMA rounds it."""
    high = kept(numbers)
    return Split(high, kept(numbers - high, HALF))


def three_products(
    a: Split, b: Split, promote: int, accumulate: Accumulate, *, is_b_first: bool = False
) -> Floats:
    """Returns A B, with sums of ``promote`` of K in the tensor cores; ``is_b_first``: low bits of B first."""
    pairs = [(a.low, b.high), (a.high, b.low)]
    if is_b_first:
        pairs.reverse()
    pairs.append((a.high, b.high))
    depth = a.high.shape[1]
    totals = np.zeros((len(a.high), b.high.shape[1]), np.float32)
    for stage in range(0, depth, promote):
        sums = np.zeros(totals.shape)
        for k in range(stage, min(stage + promote, depth), STEP):
            for x, y in pairs:
                sums = accumulate(x[:, k : k + STEP].astype(float), y[k : k + STEP].astype(float), sums)
        totals = totals + sums.astype(np.float32)
    return totals


def rounded(x: Doubles, y: Doubles, sums: Doubles) -> Doubles:
    """Returns the sums of a simulated product."""
    return (x @ y + sums).astype(np.float32).astype(float)


def cut_off(x: Doubles, y: Doubles, sums: Doubles, least_bit: int = LEAST_BIT) -> Doubles:
    """Returns the sums of an H100's product: terms and sum aligned to the largest, and cut off.

    ``least_bit``: of a term, below the largest; other chips keep fewer.
    """
    terms = np.concatenate([x[:, :, None] * y[None], sums[:, None]], axis=1)
    largest = np.frexp(np.abs(terms).max(axis=1))[1]
    unit = np.exp2(largest - float(least_bit))[:, None]
    total = (np.trunc(terms / unit) * unit).sum(axis=1)
    fraction, exponent = np.frexp(total)
    result: Doubles = np.ldexp(np.trunc(np.ldexp(fraction, SUM_BITS)), exponent - SUM_BITS)
    return result


def chain(a: Floats, b: Floats) -> Floats:
    """Returns A B by one multiply-add after the other, each rounded once."""
    sums = np.zeros((len(a), b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        sums = (a[:, k : k + 1].astype(float) * b[k : k + 1].astype(float) + sums).astype(np.float32)
    return sums


def draw(kind: str, depth: int, rng: np.random.Generator, rows: int = 24) -> tuple[Floats, Floats]:
    a, b = rng.standard_normal((rows, depth)), rng.standard_normal((depth, rows))
    if kind == "positive":
        a, b = rng.random((rows, depth)), rng.random((depth, rows))
    if kind == "badly scaled":
        a *= np.exp2(rng.integers(-10, 11, a.shape))
        b *= np.exp2(rng.integers(-10, 11, b.shape))
    if kind == "cancelling":
        a[:, 1::2] = a[:, ::2]
        b[1::2] = -b[::2] * (1 + 1e-3 * rng.standard_normal(b[::2].shape))
    return a.astype(np.float32), b.astype(np.float32)


def errors(c: Floats, a: Floats, b: Floats) -> Doubles:
    """Returns the errors of A B in units of 2^-24 of the sum of absolute products."""
    exact = a.astype(float) @ b.astype(float)
    absolute = np.abs(a).astype(float) @ np.abs(b).astype(float)
    units: Doubles = np.abs(c - exact) / (UNIT * absolute)
    return units
