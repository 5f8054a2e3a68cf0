"""The GPU's clocks while it works: a thread that reads the sensors every few milliseconds."""

import statistics
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tuner.core.records import GpuState

PERIOD_S = 0.01


@dataclass
class ClockSamples:
    """Readings of one measurement."""

    states: list[GpuState] = field(default_factory=list)

    @property
    def facts(self) -> dict[str, Any]:
        """Returns the median clock, power and temperature, and what slowed the GPU; {} without readings."""
        clocks = [state.sm_clock_hz for state in self.states if state.sm_clock_hz is not None]
        powers = [state.power_w for state in self.states if state.power_w is not None]
        if not clocks:
            return {}
        slowdowns = sorted({name for state in self.states for name in state.slowdowns})
        return {
            "sm_clock_hz": statistics.median(clocks),
            "least_sm_clock_hz": min(clocks),
            "power_w": statistics.median(powers) if powers else None,
            "readings": len(self.states),
            "slowdowns": slowdowns,
        }


@contextmanager
def sampled_clocks(read: Callable[[], GpuState | None]) -> Iterator[ClockSamples]:
    """Gives readings that are taken until the block ends, one at once; none of a GPU without sensors."""
    samples = ClockSamples()
    is_over = threading.Event()

    def sample() -> None:
        while (state := read()) is not None:
            samples.states.append(state)
            if is_over.wait(PERIOD_S):
                return

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        is_over.set()
        thread.join()
