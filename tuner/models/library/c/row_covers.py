"""Ranges of rows in a C library: kernels of a few m that serve each m of a range, on parts of its rows."""

from collections import Counter
from dataclasses import dataclass
from operator import attrgetter

from tuner.analysis.row_ranges import CoverStep, RowBlock, RowCover, RowRange, row_cover
from tuner.core.reliability import reliability_of_all
from tuner.models.library.c.kernels import CFunction, CpuKernel

CHECKED_FLOP = 10**9  # of a size that check.c multiplies in double: a second


@dataclass(frozen=True)
class CoveredRange:
    """A range of rows of a C function, the kernels that cover the range, and their positions in C code."""

    function: CFunction
    row_range: RowRange
    kernels: tuple[CpuKernel, ...]
    cover: RowCover  # its blocks are ``kernels``
    positions: tuple[int, ...]  # of ``kernels`` among all kernels of the function

    @property
    def needs(self) -> tuple[str, ...]:
        """Returns the instruction sets that the kernels need, each once."""
        needed = dict[str, None]()
        for kernel in self.kernels:
            needed |= dict.fromkeys(kernel.target.needs)
        return tuple(needed)

    @property
    def row_bytes(self) -> tuple[int, ...]:
        """Returns for each operand the bytes from one row of C to the next; 0: all rows share the operand."""
        problem = self.row_range.problem
        _, n, k = problem.sizes
        of_c = n * problem.output_bytes
        of_axes = {"mn": of_c, "n": 0, "": 0}
        of_epilogue = [of_axes[argument.axes] for argument in problem.after_product.arguments]
        return (k * problem.input_bytes, 0, *of_epilogue, of_c)

    @property
    def checked_rows(self) -> tuple[int, ...]:
        """Returns the numbers of rows m, ascending, for which check.c multiplies and compares.

        Both ends of the range, the first m of each step of the cover and one less; those that take more than
        CHECKED_FLOP (1e9) flop are left out.
        """
        _, n, k = self.row_range.problem.sizes
        rows = {self.row_range.least, self.row_range.greatest}
        for step in self.cover.first:
            rows |= {step.rows, max(1, step.rows - 1)}
        return tuple(count for count in sorted(rows) if 2 * count * n * k <= CHECKED_FLOP)

    def initializer(self, steps: tuple[CoverStep, ...]) -> str:
        """Returns the C initializer of an array of ``struct step`` (template rows.c)."""
        kernels = f"kernels_of_{self.function.name}"
        listed = [f"{{{step.rows}, &{kernels}[{self.positions[step.block]}]}}" for step in steps]
        return f"{{{', '.join(listed)}}}"


@dataclass(frozen=True)
class _TimedKernel:
    kernel: CpuKernel
    position: int  # among all kernels of its function
    block: RowBlock


def covered_ranges(kernels: tuple[CpuKernel, ...]) -> tuple[CoveredRange, ...]:
    """Returns the ranges of the kernels' entries, each with its cover; a kernel without a time is left out.

    ``kernels``: in the order in which C code lists the kernels of a function.
    """
    counts = Counter[str]()  # of the kernels of a function before this one
    found: dict[tuple[CFunction, RowRange], list[_TimedKernel]] = {}
    for kernel in kernels:
        position = counts[kernel.function.name]
        counts[kernel.function.name] += 1
        row_range = kernel.entry.row_range
        time_s = kernel.entry.median_s
        if row_range is not None and time_s is not None:
            block = RowBlock(kernel.entry.problem.sizes[0], time_s)
            found.setdefault((kernel.function, row_range), []).append(_TimedKernel(kernel, position, block))
    ranges = []
    for (function, row_range), members in found.items():
        ranges.append(_covered(function, row_range, members))
    return tuple(ranges)


def _covered(function: CFunction, row_range: RowRange, members: list[_TimedKernel]) -> CoveredRange:
    kernels = tuple(map(attrgetter("kernel"), members))
    positions = tuple(map(attrgetter("position"), members))
    reliability = reliability_of_all(list(map(attrgetter("entry.reliability"), kernels)))
    blocks = map(attrgetter("block"), members)
    cover = row_cover(blocks, row_range.problem, is_reliable=reliability.is_reliable)
    return CoveredRange(function, row_range, kernels, cover, positions)
