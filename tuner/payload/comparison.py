"""A kernel's C compared with the reference: whole, by parts, or by sampled rows.

``compare``, ``compare_rows`` and ``compare_sampled`` take all of C, ``compare_tile`` and ``compare_parts`` a
part. Each returns a ``Verdict``, or it and a text that names the worst element.
"""

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import SupportsInt

import numpy as np

from tuner.core.bounded import F16, units_of_error
from tuner.core.errors import CandidateError, Stage
from tuner.core.numpy_types import are_equal, is_nan, widened
from tuner.core.records import Verdict
from tuner.payload.drawing import scaled
from tuner.payload.reference import Array, Inputs, by_rows

BLOCK_ELEMENTS = 2**14  # compared at once: of larger arrays, each intermediate one is new memory
WHOLE_FLOP = 2**40  # of the largest problem compared whole: some 10 s in float64 on a few cores
SAMPLED_ROWS = 256
GOLDEN = 0.6180339887  # multiples modulo 1: a low-discrepancy sequence, no period as tiles have


def compare(inputs: Inputs, result: Array) -> tuple[Verdict, str]:
    """Compares all of ``result``, a kernel's C, with the expected values; NaN and infinity must agree too.

    Returns (verdict, text): ``max_error`` is relative to the tolerance, right up to 1; the text gives the
    number of wrong elements and the worst one.
    """
    return compare_rows(inputs, result, 0, inputs.problem.rows)


def compare_rows(inputs: Inputs, result: Array, first: int, end: int) -> tuple[Verdict, str]:
    """Compares rows ``first`` to ``end`` (exclusive) of ``result``, a kernel's C; many on threads.

    Returns (verdict, text): ``max_error`` is relative to the tolerance, right up to 1; the text gives the
    number of wrong elements and the worst one.
    """
    n = inputs.base.product.shape[1]  # the product is there before threads ask for it
    step = max(1, BLOCK_ELEMENTS // n)
    elements = (end - first) * n

    def compared(part: slice) -> list[tuple[float, int, int, float, int]]:
        """Returns per block: the worst error, its index, values found and expected, number of errors."""
        blocks = []
        for start in range(first + part.start, first + part.stop, step):
            stop = min(start + step, first + part.stop)
            expected, tolerance = inputs.block(start, stop)
            error = units_of_error(result[start:stop], expected, tolerance)
            row, column = divmod(int(np.argmax(error)), n)
            worst = float(error[row, column])
            wanted = float(expected[row, column])
            wrong = int(np.count_nonzero(error > 1.0)) if worst > 1.0 else 0
            blocks.append((worst, start + row, column, wanted, wrong))
        return blocks

    blocks = [*itertools.chain(*by_rows(end - first, elements, compared))]
    worst, row, column, wanted, _ = max(blocks, key=lambda block: block[0])  # of equal ones the first
    found = widened(result[row : row + 1])[0, column]
    wrong = sum(block[-1] for block in blocks)
    text = wrong_text(wrong, f"{elements} elements", (row, column), found, wanted)
    return Verdict(worst, elements), text


def wrong_text(wrong: int, of_all: str, place: Iterable[SupportsInt], found: float, expected: float) -> str:
    """Returns a line: ``wrong`` of ``of_all`` ("64 elements") are wrong, with the worst one at ``place``."""
    at = ", ".join(map(str, map(int, place)))
    return f"{wrong} of {of_all} are wrong; worst at [{at}]: found {found:.9g}, expected {expected:.9g}"


def changed_inputs(inputs: Inputs, arrays: tuple[Array, ...]) -> str:
    """Returns the names of the input ``arrays`` that a kernel changed, such as "A and bias"; "" for none.

    ``inputs`` must have neither ``flip`` nor ``special``: what these changed in A and B after the draw would
    be reported as changed by the kernel.
    """
    fresh = (
        *scaled(inputs.problem, inputs.base, inputs.rows, inputs.columns, None),
        *inputs.base.scales,
        *inputs.base.offsets,
        *inputs.extra,
    )
    extra = (*inputs.problem.scales, *inputs.problem.offsets, *inputs.problem.extra_arguments)
    names = ("A", "B", *(argument.name for argument in extra))
    named = zip(names, fresh, arrays, strict=True)
    return " and ".join(name for name, was, now in named if not are_equal(was, now))


def compare_tile(
    inputs: Inputs, result: Array, rows: slice | Array, columns: slice, elements: str = "elements"
) -> tuple[Verdict, str]:
    """Compares a part of ``result``, a kernel's C; computes only the expected values of this part.

    ``rows``: a slice, or row numbers; ``elements``: the word for elements in the text. Returns (verdict,
    text); the text gives the number of wrong elements and the worst one.
    """
    expected, tolerance = inputs.tile(rows, columns)
    found = widened(result[rows, columns])
    error = units_of_error(result[rows, columns], expected, tolerance)
    wrong = int(np.count_nonzero(error > 1.0))
    row, column = np.unravel_index(int(np.argmax(error)), error.shape)
    place = (np.arange(len(result))[rows][row], columns.start + column)
    of_all = f"{error.size} {elements}"
    text = wrong_text(wrong, of_all, place, found[row, column], expected[row, column])
    return Verdict(float(error[row, column]), error.size), text


def compare_parts(
    inputs: Inputs, result: Array, parts: Iterable[tuple[slice | Array, slice]], note: str
) -> Verdict:
    """Compares parts of C, each given by rows and columns; returns one verdict of all parts, with ``note``.

    Its ``max_error`` is the largest of the parts, ``elements`` their sum. Raises CandidateError(VERIFY) for
    the first part with a wrong element, ValueError without parts.
    """
    verdicts = []
    for rows, columns in parts:
        verdict, worst = compare_tile(inputs, result, rows, columns)
        if not verdict.max_error <= 1.0:
            raise CandidateError(Stage.VERIFY, worst)
        verdicts.append(verdict)
    largest = max(verdict.max_error for verdict in verdicts)
    return Verdict(largest, sum(verdict.elements for verdict in verdicts), (note,))


def compare_sampled(inputs: Inputs, result: Array) -> tuple[Verdict, str]:
    """Compares all of ``result``, a kernel's C, or 256 of its rows if the problem has more than 2**40 flop.

    Of the rows that are not compared, all elements must be finite: C is filled with NaN before, so that
    unwritten elements show. Returns the verdict and a text that names the worst element.
    """
    if inputs.problem.flop <= WHOLE_FLOP:
        return compare(inputs, result)
    m = inputs.problem.rows
    n = inputs.problem.sizes[1]
    unwritten = not_finite(result)
    if unwritten:
        return Verdict(np.inf, m * n), f"{unwritten} of {m * n} elements are NaN or infinite"
    rows = np.array(sampled_rows(m))
    verdict, text = compare_tile(inputs, result, rows, slice(0, n), "elements looked at")
    return replace(verdict, notes=(f"{len(rows)} of {m} rows compared, all elements finite",)), text


def sampled_rows(m: int) -> tuple[int, ...]:
    """Returns at most 256 row numbers below ``m``: the first, the last, and others at irregular distances."""
    parts = min(SAMPLED_ROWS, m)
    bounds = [part * m // parts for part in range(parts + 1)]
    inner = [
        low + int(part * GOLDEN % 1 * (high - low))
        for part, (low, high) in enumerate(itertools.pairwise(bounds))
    ]
    return tuple(dict.fromkeys((0, *inner[1:-1], m - 1)))


def not_finite(result: Array) -> int:
    """Returns how many elements are NaN or infinite; of signed integers, how many are the smallest number.

    An infinity in f16 counts as a number: a sum may be too large for f16.
    """
    step = max(1, 2**20 // max(result.shape[1], 1))
    parts = (result[start : start + step] for start in range(0, len(result), step))
    if result.dtype == F16:
        return sum(int(np.count_nonzero(np.isnan(part))) for part in parts)
    return sum(int(np.count_nonzero(is_nan(part) | np.isinf(widened(part)))) for part in parts)
