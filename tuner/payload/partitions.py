"""The partitions of C, one per thread: how C is divided, and the comment of a script that lists them.

``partition`` divides C. ``partitions_comment`` writes the list, and ``partitions_in`` reads it and checks
that the partitions cover C exactly once.
"""

import itertools
import re

from tuner.core.errors import UsageError
from tuner.core.interfaces import Partition
from tuner.core.problem import Problem
from tuner.payload.cpu import ENTRY

# begins the line of a script for several threads: entry row column m n [first matrices]; ...
PARTITIONS_COMMENT = "// panels: "
PARTITIONS_LIMIT = 1024  # of a script; threads of the largest machines


def partition(problem: Problem, parts: int, split: str, multiple: int) -> tuple[Partition, ...]:
    """Divides C among at most ``parts`` threads; returns one partition for each.

    ``split``: "n" (columns of C), "m" (rows) or "none" (whole matrices of the batch). The rows or columns of
    a partition are a multiple of ``multiple``, except in the last one. Partitions of equal size have one
    function.
    """
    m, n, _ = problem.sizes
    if split == "none" or parts == 1:
        return _of_matrices(problem, parts)
    extent = n if split == "n" else m
    step = -(-extent // (parts * multiple)) * multiple
    if extent <= step:
        return (Partition(ENTRY, 0, 0, m, n, 0, problem.batch),)
    partitions = []
    for start in range(0, extent, step):
        size = min(step, extent - start)
        if split == "n":
            partitions.append(_of_rectangle(problem, 0, start, m, size))
        else:
            partitions.append(_of_rectangle(problem, start, 0, size, n))
    return tuple(partitions)


def _of_matrices(problem: Problem, parts: int) -> tuple[Partition, ...]:
    m, n, _ = problem.sizes
    partitions = []
    for part in range(parts):
        first = part * problem.batch // parts
        end = (part + 1) * problem.batch // parts
        if end > first:
            partitions.append(Partition(ENTRY, 0, 0, m, n, first, end - first))
    return tuple(partitions)


def _of_rectangle(problem: Problem, row: int, column: int, rows: int, columns: int) -> Partition:
    return Partition(f"{ENTRY}_{rows}x{columns}", row, column, rows, columns, 0, problem.batch)


def partitions_comment(partitions: tuple[Partition, ...]) -> str:
    """Returns the comment line by which a script lists its partitions of C; ``partitions_in`` parses it."""
    return PARTITIONS_COMMENT + "; ".join(map(_partition_text, partitions))


def partitions_in(script: str, problem: Problem) -> tuple[Partition, ...]:
    """Returns the partitions of C that a script's comment lists; without such a comment C as one partition.

    Raises UsageError for a list that cannot be read, and for partitions that do not cover C exactly once.
    """
    line = next((line for line in script.splitlines() if line.startswith(PARTITIONS_COMMENT)), None)
    if line is None:
        return partition(problem, 1, "none", 1)
    partitions = []
    for part in line.removeprefix(PARTITIONS_COMMENT).split("; "):
        match = re.fullmatch(r"(\w+)((?: \d{1,18}){4}(?: \d{1,18} \d{1,18})?)", part.strip())
        if match is None:
            text = "entry row column m n" + (" [first matrices]" if problem.lead else "")
            raise UsageError(f"script: panels: found {part!r}, allowed '{text}'")
        partitions.append(Partition(match[1], *map(int, match[2].split())))
    _require_cover(problem, tuple(partitions))
    return tuple(partitions)


def _partition_text(part: Partition) -> str:
    text = f"{part.entry} {part.row} {part.column} {part.m} {part.n}"
    is_whole = (part.first, part.matrices) == (0, 1)
    if is_whole:
        return text
    return f"{text} {part.first} {part.matrices}"


def _require_cover(problem: Problem, partitions: tuple[Partition, ...]) -> None:
    m, n, _ = problem.sizes
    if len(partitions) > PARTITIONS_LIMIT:
        raise UsageError(f"script: panels: found {len(partitions)}, allowed {PARTITIONS_LIMIT}")
    extents: dict[str, tuple[int, int]] = {}
    for part in partitions:
        if min(part.m, part.n) < 1 or part.row + part.m > m or part.column + part.n > n:
            raise UsageError(f"script: panels: found {part}, allowed within C, {m} x {n}")
        if part.matrices < 1 or part.first + part.matrices > problem.batch:
            raise UsageError(f"script: panels: found {part}, allowed within a batch of {problem.batch}")
        if extents.setdefault(part.entry, (part.m, part.n)) != (part.m, part.n):
            raise UsageError(f"script: panels: {part.entry!r} has two sizes")
    if any(_overlap(left, right) for left, right in itertools.combinations(partitions, 2)):
        raise UsageError("script: panels: two overlap")
    # within C and without overlap, panels of all elements cover it
    covered = sum(part.m * part.n * part.matrices for part in partitions)
    size = m * n * problem.batch
    if covered != size:
        raise UsageError(f"script: panels: cover {covered} elements of C, not all {size}")


def _overlap(left: Partition, right: Partition) -> bool:
    return (
        # matrices of the batch, rows and columns
        left.first < right.first + right.matrices
        and right.first < left.first + left.matrices
        and left.row < right.row + right.m
        and right.row < left.row + left.m
        and left.column < right.column + right.n
        and right.column < left.column + left.n
    )
