"""A model of f32 by six products of bf16, whose products are simulated ones or those of an H100."""

from dataclasses import dataclass

import numpy as np

from tests.gpu.target.strategies.three_products import Accumulate, Floats

STEP = 16  # of K, of one product
PROMOTE = 64  # of K, after which sums of the large products are added to totals
BF16_SHIFT = 16  # bits of an f32 beyond those of a bf16
UPPER_HALF = -0x10000


@dataclass(frozen=True)
class Planes:
    """A matrix of f32 as the sum of three of bf16, nearly."""

    high: Floats
    middle: Floats
    low: Floats


def in_bf16(numbers: Floats) -> Floats:
    """Returns numbers rounded to bf16, ties to even."""
    bits = numbers.view(np.int32)
    is_odd = (bits >> BF16_SHIFT) & 1
    rounded = ((bits + (0x7FFF + is_odd)) & UPPER_HALF).view(np.float32)
    return np.where(np.isnan(numbers), numbers, rounded)


def split(numbers: Floats) -> Planes:
    """Returns the upper half of the bits, what is left, rounded, and what is left of that, rounded."""
    high = (numbers.view(np.int32) & UPPER_HALF).view(np.float32)
    with np.errstate(invalid="ignore"):
        rest = numbers - high
        middle = in_bf16(rest)
        return Planes(high, middle, in_bf16(rest - middle))


def six_products(a: Planes, b: Planes, accumulate: Accumulate, promote: int = PROMOTE) -> Floats:
    """Returns A B: sums of high x high of ``promote`` of K go to totals, those of the others at the end."""
    depth = a.high.shape[1]
    totals = np.zeros((len(a.high), b.high.shape[1]), np.float32)
    small = np.zeros(totals.shape)
    for stage in range(0, depth, promote):
        large = np.zeros(totals.shape)
        for k in range(stage, min(stage + promote, depth), STEP):
            at = slice(k, k + STEP)
            large = accumulate(a.high[:, at].astype(float), b.high[at].astype(float), large)
            pairs = (
                (a.low, b.high),
                (a.high, b.low),
                (a.middle, b.middle),
                (a.middle, b.high),
                (a.high, b.middle),
            )
            for x, y in pairs:
                small = accumulate(x[:, at].astype(float), y[at].astype(float), small)
        totals = totals + large.astype(np.float32)
    return totals + small.astype(np.float32)
