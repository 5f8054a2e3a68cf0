"""Comparison of sampled rows with the float64 reference, where all rows would take too long."""

import itertools
from dataclasses import replace

import numpy as np

from tuner.core.record import Verdict
from tuner.payload.bf16 import is_nan, widened
from tuner.payload.reference import Array, Inputs, compare, compare_tile

WHOLE_FLOP = 2**40  # of the largest problem compared whole: some 10 s in float64 on a few cores
SAMPLED_ROWS = 256
GOLDEN = 0.6180339887  # multiples modulo 1: a low-discrepancy sequence, no period as tiles have


def compare_sampled(inputs: Inputs, result: Array) -> tuple[Verdict, str]:
    """Compares ``result`` with the expected C: all of it, or some rows of a problem of more than 2**40 flop.

    These are at most 256 rows. Returns the verdict, and a text with the number of wrong elements and the
    worst element. In either case each element of C must be finite: C is filled with NaN before the kernel
    runs, so unwritten elements show. Where only rows are compared and an element of C is not finite, the text
    has the number of such elements only.
    """
    if inputs.problem.flop <= WHOLE_FLOP:
        return compare(inputs, result)
    m, n = inputs.problem.rows, inputs.problem.sizes[1]
    unwritten = not_finite(result)
    if unwritten:
        return Verdict(np.inf, m * n), f"{unwritten} of {m * n} elements are NaN or infinite"
    rows = np.array(sampled_rows(m))
    verdict, text = compare_tile(inputs, result, rows, slice(0, n), "elements looked at")
    return replace(verdict, notes=(f"{len(rows)} of {m} rows compared, all elements finite",)), text


def sampled_rows(m: int) -> tuple[int, ...]:
    """Returns the numbers of at most 256 of ``m`` rows, one in each of equal parts, at varying places.

    The first and the last row are included. A wrong tile higher than two parts contains a sampled row,
    wherever the tile is.
    """
    parts = min(SAMPLED_ROWS, m)
    bounds = [part * m // parts for part in range(parts + 1)]
    inner = [
        low + int(part * GOLDEN % 1 * (high - low))
        for part, (low, high) in enumerate(itertools.pairwise(bounds))
    ]
    return tuple(dict.fromkeys((0, *inner[1:-1], m - 1)))


def not_finite(result: Array) -> int:
    """Returns how many elements are NaN or infinite; of signed integers, how many are the smallest number."""
    step = max(1, 2**20 // max(result.shape[1], 1))
    parts = (result[start : start + step] for start in range(0, len(result), step))
    return sum(int(np.count_nonzero(is_nan(part) | np.isinf(widened(part)))) for part in parts)
