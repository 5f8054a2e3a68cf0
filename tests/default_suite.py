"""Which cases ``make test`` leaves to ``make test-all``: those marked ``slow``, and most of long tables."""

import zlib
from collections import defaultdict
from collections.abc import Mapping

DRAWN = 2  # cases of one test function, drawn by their names
ALL = 1000  # of the mark ``drawn``: cases that reach what no other test of the default suite reaches


def left_out(cases: Mapping[str, int | None]) -> frozenset[str]:
    """Returns the cases that the default suite does not run, of test functions with too many.

    ``cases`` maps pytest's names, ``file::function[parameters]``, to the number of the mark ``drawn``, DRAWN
    (2) without it. The same names give the same cases.
    """
    functions: dict[str, list[str]] = defaultdict(list)
    for name in cases:
        functions[name.partition("[")[0]].append(name)
    rest: set[str] = set()
    for names in functions.values():
        drawn = cases[names[0]] or DRAWN
        rest.update(sorted(names, key=lambda name: zlib.crc32(name.encode()))[drawn:])
    return frozenset(rest)
