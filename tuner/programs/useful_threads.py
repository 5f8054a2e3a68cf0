"""How many threads a group of operations is divided among: all of the program, or one if it has little work.

A barrier takes a microsecond or more, and what a thread has written is in the caches of its processor. So a
group of some microseconds is run by one thread. Its time is estimated from its operations and bytes, at
rates that schedules reach on one thread (decision 72); they need not be exact.
"""

from tuner.core.explained_group import CompiledGroup
from tuner.core.grouped_program import ATTENTION, CONTRACTION, CONVOLUTION
from tuner.core.grouped_program import LOOPS as LOOPS_KIND

LEAST_S = 15e-6  # of a group that is divided
FLOP_PER_S = {ATTENTION: 80e9, CONTRACTION: 80e9, CONVOLUTION: 80e9, LOOPS_KIND: 1e9}
ELEMENTWISE_PER_S = 20e9  # operations of other groups on elements
BYTES_PER_S = 30e9  # of the caches


def useful_threads(group: CompiledGroup, threads: int) -> int:
    """Returns the number of threads to divide a group among: ``threads`` or 1."""
    return threads if estimated_s(group) >= LEAST_S else 1


def estimated_s(group: CompiledGroup) -> float:
    """Returns about how long a group takes on one thread."""
    return max(group.flop / FLOP_PER_S.get(group.kind, ELEMENTWISE_PER_S), group.moved_bytes / BYTES_PER_S)
