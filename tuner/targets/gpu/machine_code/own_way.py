"""One warp's way through a kernel: cycles that pass even if no other warp holds it up."""

from collections.abc import Iterator, Sequence

from tuner.cost_model.gpu import LATENCY
from tuner.targets.gpu.machine_code.executions import main_loop
from tuner.targets.gpu.machine_code.listing import Kernel

# Cycles until a load's result is there: shared memory about that of arXiv 1804.06826 and 1903.07486.
LATENCIES = {"LDG": LATENCY, "LDL": LATENCY, "LDS": 24.0, "LDSM": 24.0}
BARRIER_CYCLES = 40.0  # until all warps of a block go on


def own_way(kernel: Kernel, executed: Sequence[float]) -> float:
    """Returns the cycles: stall counts, and the latency of loads as far as nothing is done meanwhile."""
    spent = dict(_spent(kernel))  # the second turn of the main loop counts: what is loaded ahead is there
    return sum(executed[place] * cycles for place, cycles in spent.items())


def _spent(kernel: Kernel) -> Iterator[tuple[int, float]]:
    """Yields the cycles of each instruction, those of the main loop twice."""
    now, ready = 0.0, dict.fromkeys(range(6), 0.0)
    start, end = main_loop(kernel) or (0, 0)
    for place in (*range(end), *range(start, len(kernel.code))):
        one = kernel.code[place]
        begins = max([now, *(ready[number] for number in one.waits)])
        ends = begins + max(one.stall_cycles, 1) + (BARRIER_CYCLES if one.mnemonic == "BAR" else 0.0)
        if one.sets is not None:
            ready[one.sets] = max(ready[one.sets], begins + LATENCIES.get(one.mnemonic, 0.0))
        yield place, ends - now
        now = ends
