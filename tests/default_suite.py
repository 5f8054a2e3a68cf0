"""Which cases ``make test`` leaves to ``make test-all``: those marked ``slow``, and most of long tables."""

import zlib
from collections import defaultdict
from collections.abc import Iterable

CASES = 8  # of one test function that are all run
DRAWN = 6  # of a function with more, drawn by their names


def left_out(names: Iterable[str]) -> frozenset[str]:
    """Returns the cases that the default suite does not run, of test functions with more than CASES (8).

    ``names`` are pytest's: ``file::function[parameters]``. The same names give the same cases.
    """
    functions: dict[str, list[str]] = defaultdict(list)
    for name in names:
        functions[name.partition("[")[0]].append(name)
    long_tables = (cases for cases in functions.values() if len(cases) > CASES)
    return frozenset(name for cases in long_tables for name in sorted(cases, key=_drawn_order)[DRAWN:])


def _drawn_order(name: str) -> int:
    return zlib.crc32(name.encode())
