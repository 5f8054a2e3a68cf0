"""A GPU's sensors during a measurement: readings before it, between its rounds, and after it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class GpuState:
    """One reading of a GPU's sensors; None for a sensor that the GPU does not report."""

    sm_clock_hz: float | None
    memory_clock_hz: float | None
    temperature_c: float | None
    power_w: float | None
    slowdowns: tuple[str, ...] = ()  # why the clocks are held down: "power cap", "thermal (hardware)", ...


@dataclass(frozen=True)
class Span:
    """A summary of the sensor readings that were taken between the rounds of one measurement."""

    readings: int
    lowest_sm_clock_hz: float | None  # None: not reported
    highest_sm_clock_hz: float | None
    slowdowns: tuple[str, ...] = ()  # of any reading

    @classmethod
    def of(cls, states: Sequence[GpuState]) -> "Span":
        """Summarizes sensor readings: their number, their lowest and highest SM clock, all slowdown reasons.

        The clocks are None if no reading reports one.
        """
        clocks = [state.sm_clock_hz for state in states if state.sm_clock_hz is not None]
        lowest, highest = (min(clocks), max(clocks)) if clocks else (None, None)
        return cls(len(states), lowest, highest, _distinct(states))


@dataclass(frozen=True)
class Conditions:
    """A GPU's sensor readings before and after one measurement, and a summary of those in between, if any."""

    before: GpuState
    after: GpuState
    between: Span | None = None

    @property
    def slowdowns(self) -> tuple[str, ...]:
        """Returns why the GPU held its clocks down at any reading, each reason once; () for no slowdown."""
        return _distinct([self.before, *([self.between] if self.between else []), self.after])


def _distinct(readings: Sequence[GpuState | Span]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reason for reading in readings for reason in reading.slowdowns))
