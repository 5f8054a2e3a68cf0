"""A range of rows: one matmul for each m from a least to a greatest, and the kernels that cover an m.

The rows of a product are independent: those of C need the same rows of A, and all of B. So kernels of a few
numbers of rows, of the same n and k, serve each m of a range. A call with m rows runs whole blocks, and the
last block over rows that are there already or over rows of padding. Measured times decide which blocks.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import fsum
from operator import attrgetter, mul
from statistics import median
from typing import final

from tuner.core.errors import UsageError
from tuner.core.problem import NamedProblem, Problem
from tuner.core.problem_classes import MatmulProblem
from tuner.core.problem_text import parse_row_range, parse_shape

ROWS_LIMIT = 65_536  # of a range: the cover of each m is computed
DENSE_LIMIT = 192  # up to here 3 x 2**i rows are tuned as well as 2**i: a rest is at most a third of padding
COPY_BYTES_PER_S = 4e9  # into fresh memory, whose pages are made: 2 to 6 GB/s on servers of 2021 to 2024
EQUAL = 1e-9  # relative: of covers whose times differ by less, the one with the largest first block is used


@final
@dataclass(frozen=True)
class RowRange:
    """A matmul for each number of rows m from ``least`` to that of ``problem``; n, k and types are the same.

    Args:
        problem: as ``tuner.Matmul`` returns it, with the greatest m, up to 65536. A is stored by rows: layout
            nn or nt.
        least: the least m, below the greatest.

    Raises:
        UsageError: a problem that is not such a matmul, or a least m that is not allowed.

    Example:
        >>> import tuner
        >>> tuner.RowRange(tuner.Matmul(24, 64, 32)).tuned_rows
        (1, 2, 3, 4, 6, 8, 12, 16, 24)
    """

    problem: Problem
    least: int = 1

    def __post_init__(self) -> None:
        """Raises UsageError unless the problem is a plain matmul of layout nn or nt with a valid range."""
        problem = self.problem
        if not isinstance(problem, MatmulProblem) or problem.lead:
            raise UsageError(f"range of rows: found {problem!r}, allowed a matmul without packed weights")
        if problem.layout == "tn":
            raise UsageError(
                "range of rows: layout tn stores A by columns, m numbers each", "--layout nn, or nt"
            )
        if type(self.least) is not int or not 1 <= self.least < self.greatest:
            line = f"range of rows: found {self.least!r}..{self.greatest}, allowed such as 1..{self.greatest}"
            raise UsageError(line)
        if self.greatest > ROWS_LIMIT:
            raise UsageError(
                f"range of rows: found a greatest m of {self.greatest}, allowed up to {ROWS_LIMIT}"
            )

    @property
    def greatest(self) -> int:
        """Returns the greatest m."""
        return self.problem.sizes[0]

    @property
    def text(self) -> str:
        """Returns the range as the command line takes it: 1..4096x4096x1024."""
        return f"{self.least}..{self.problem.shape}"

    @property
    def tuned_rows(self) -> tuple[int, ...]:
        """Returns the m to tune, ascending: the least, the greatest, and all powers of 2 below the greatest.

        Up to 192 (DENSE_LIMIT) also 3 x 2**i. Numbers of rows below ``least`` are included: a kernel of them
        computes the last rows of a call.
        """
        rows = {self.least, self.greatest}
        power = 1
        while power < self.greatest:
            rows.add(power)
            if 3 * power <= DENSE_LIMIT and 3 * power < self.greatest:
                rows.add(3 * power)
            power *= 2
        return tuple(sorted(rows))

    @property
    def tuned_problems(self) -> tuple[NamedProblem, ...]:
        """Returns the problems to tune, one for each of ``tuned_rows``, in their order.

        The count of a problem is (greatest m) // (its m): a campaign then spends about as much on each one.
        """
        _, n, k = self.problem.sizes
        problems = []
        for rows in self.tuned_rows:
            problem = replace(self.problem, sizes=(rows, n, k))
            problems.append(NamedProblem(problem, self.text, self.greatest // rows))
        return tuple(problems)


def stored_range(source: str, problems: Iterable[Problem]) -> RowRange | None:
    """Returns the range of rows that a campaign tuned; None if the campaign did not tune a range.

    ``source``: the ``source`` of the campaign's settings; ``problems``: the problems of its runs.
    """
    parts = parse_row_range(source)
    if parts is None:
        return None
    least, shape = parts
    first, *_ = problems
    return RowRange(replace(first, sizes=parse_shape(shape)), least)


@dataclass(frozen=True)
class RowBlock:
    """A kernel of a range: how many rows it computes, and its measured time."""

    rows: int
    time_s: float  # seconds per call


def smoothed_blocks(blocks: Sequence[RowBlock]) -> tuple[RowBlock, ...]:
    """Returns the blocks, the time of each replaced by that of a line: a + b x rows.

    On a busy machine a call that is longer than the time slices of other programs waits for them, so that
    many short calls seem to be faster than a long one. a (seconds per call) and b (seconds per row) have the
    least sum of squared relative errors; if that gives a < 0 or b <= 0, a is 0 and b the median time of a
    row.
    """
    of_call_s, of_row_s = _line(blocks)
    if of_call_s < 0 or of_row_s <= 0:  # then the median time of a row counts alone
        of_call_s = 0.0
        of_row_s = median(block.time_s / block.rows for block in blocks)
    return tuple(RowBlock(block.rows, of_call_s + of_row_s * block.rows) for block in blocks)


def _line(blocks: Sequence[RowBlock]) -> tuple[float, float]:
    """Returns the fitted seconds of a call and of a row, with the least sum of squared relative errors.

    (0, 0) if all blocks have one number of rows: many lines fit then.
    """
    if len(set(map(attrgetter("rows"), blocks))) == 1:
        return 0.0, 0.0
    calls = [1 / block.time_s for block in blocks]
    rows = [block.rows / block.time_s for block in blocks]
    # the normal equations of call_s * calls + row_s * rows = 1
    of_calls = _sum_of_products(calls, calls)
    of_rows = _sum_of_products(rows, rows)
    of_both = _sum_of_products(calls, rows)
    determinant = of_calls * of_rows - of_both * of_both
    call_s = (of_rows * sum(calls) - of_both * sum(rows)) / determinant
    row_s = (of_calls * sum(rows) - of_both * sum(calls)) / determinant
    return call_s, row_s


def _sum_of_products(left: Sequence[float], right: Sequence[float]) -> float:
    return fsum(map(mul, left, right))


@dataclass(frozen=True)
class CoverStep:
    """The block to run if the number of rows left is at least ``rows`` and below that of the next step."""

    rows: int
    block: int  # index of the block


@dataclass(frozen=True)
class BlockCall:
    """One call of a block: the block's index, the first row of C, and how many rows of C it computes."""

    block: int
    row: int  # the first one of the call
    rows: int  # fewer than the block has: the others are padding


@dataclass(frozen=True)
class RowCover:
    """The blocks (kernels) of a range of rows, and tables that choose the blocks for a number of rows."""

    blocks: tuple[RowBlock, ...]
    first: tuple[CoverStep, ...]  # by m; the first step is of one row, as in ``rest``
    rest: tuple[CoverStep, ...]  # by the rows that are left after the calls before
    reads_output: bool  # C is read, as by the epilogue "accumulate": no row may be computed twice

    def calls(self, rows: int) -> tuple[BlockCall, ...]:
        """Returns the calls that compute ``rows`` rows, in their order.

        A last block with more rows than are left begins at an earlier row, and computes the rows in between
        once more. If ``rows`` is less than the block's rows, or if C is read, rows of padding are computed
        instead.
        """
        calls: list[BlockCall] = []
        row = 0
        while row < rows:
            left = rows - row
            index = _block_of(self.rest if calls else self.first, left)
            size = self.blocks[index].rows
            if size <= left:
                calls.append(BlockCall(index, row, size))
            elif size <= rows and not self.reads_output:
                calls.append(BlockCall(index, rows - size, size))
            else:
                calls.append(BlockCall(index, row, left))
            row += size
        return tuple(calls)

    def time_s(self, rows: int) -> float:
        """Returns the sum of the blocks' measured times for ``rows`` rows, in seconds, without copies."""
        return sum(self.blocks[call.block].time_s for call in self.calls(rows))


def _block_of(steps: Sequence[CoverStep], rows: int) -> int:
    return next(step.block for step in reversed(steps) if step.rows <= rows)


def row_cover(blocks: Iterable[RowBlock], problem: Problem, *, is_reliable: bool = True) -> RowCover:
    """Returns the cover with the least sum of measured times for each number of rows up to the problem's m.

    ``blocks``: at least one. A block that is larger than the rest counts with its whole time; one that is
    larger than m also with the time to copy m rows into memory with padding, and back (COPY_BYTES_PER_S).
    ``is_reliable`` False: times are those of ``smoothed_blocks``.
    """
    blocks = tuple(blocks)
    if not is_reliable:
        blocks = smoothed_blocks(blocks)
    greatest = problem.sizes[0]
    in_order = sorted(range(len(blocks)), key=lambda index: -blocks[index].rows)
    copy_s = 2 * _row_bytes(problem) / COPY_BYTES_PER_S  # of a row
    rest_s = [0.0]
    first: list[CoverStep] = []
    rest: list[CoverStep] = []
    for rows in range(1, greatest + 1):
        later = [blocks[index].time_s + rest_s[max(0, rows - blocks[index].rows)] for index in in_order]
        whole = list(later)
        for position, index in enumerate(in_order):
            if blocks[index].rows > rows:
                whole[position] += rows * copy_s
        _add_step(first, rows, in_order[_least(whole)])
        _add_step(rest, rows, in_order[_least(later)])
        rest_s.append(min(later))
    return RowCover(blocks, tuple(first), tuple(rest), problem.after_product.reads_output)


def _row_bytes(problem: Problem) -> int:
    """Returns the bytes of a row of A and a row of C, and of a row of each epilogue argument of C's shape."""
    _, n, k = problem.sizes
    matrices = sum(argument.axes == "mn" for argument in problem.after_product.arguments)
    return k * problem.input_bytes + (1 + matrices) * n * problem.output_bytes


def _least(times_s: Sequence[float]) -> int:
    """Returns the index of the first time that is at most EQUAL (a share) above the least time."""
    limit_s = min(times_s) * (1 + EQUAL)
    return next(position for position, time_s in enumerate(times_s) if time_s <= limit_s)


def _add_step(steps: list[CoverStep], rows: int, block: int) -> None:
    if not steps or steps[-1].block != block:
        steps.append(CoverStep(rows, block))
