"""What a GPU was like while it was timed: its sensors before and after."""

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
class Conditions:
    """Sensors around the samples of one measurement."""

    before: GpuState
    after: GpuState

    @property
    def slowdowns(self) -> tuple[str, ...]:
        """Returns why the clocks were held down at either moment; such a time is not the GPU's best."""
        return tuple(dict.fromkeys((*self.before.slowdowns, *self.after.slowdowns)))
