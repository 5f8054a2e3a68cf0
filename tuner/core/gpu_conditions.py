"""What a GPU was like while it was timed: its sensors before, between the rounds, and after."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class GpuState:
    """What the sensors of a GPU say at one moment; None for what it does not tell."""

    sm_clock_hz: float | None
    memory_clock_hz: float | None
    temperature_c: float | None
    power_w: float | None
    slowdowns: tuple[str, ...] = ()  # why the clocks are held down: "power cap", "thermal (hardware)", ...


@dataclass(frozen=True)
class Span:
    """What the readings between the rounds of a measurement had between them."""

    readings: int
    lowest_sm_clock_hz: float | None  # None: not told
    highest_sm_clock_hz: float | None
    slowdowns: tuple[str, ...] = ()  # of any reading

    @classmethod
    def of(cls, states: Sequence[GpuState]) -> "Span":
        """Summarizes readings."""
        clocks = [state.sm_clock_hz for state in states if state.sm_clock_hz is not None]
        lowest, highest = (min(clocks), max(clocks)) if clocks else (None, None)
        return cls(len(states), lowest, highest, _distinct(states))


@dataclass(frozen=True)
class Conditions:
    """Sensors around the samples of one measurement, and where it took turns with others, among them."""

    before: GpuState
    after: GpuState
    between: Span | None = None

    @property
    def slowdowns(self) -> tuple[str, ...]:
        """Returns why the clocks were held down at any reading; such a time is not the GPU's best."""
        return _distinct([self.before, *([self.between] if self.between else []), self.after])


def _distinct(readings: Sequence[GpuState | Span]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reason for reading in readings for reason in reading.slowdowns))
