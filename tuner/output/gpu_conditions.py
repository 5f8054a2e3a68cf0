"""Lines shown with a time measured on a GPU: the cold-cache time, sensor readings, throttled clocks."""

from tuner.core.gpu_conditions import GpuState, Span
from tuner.core.record import Measurement
from tuner.core.time_text import seconds_text


def gpu_lines(measurement: Measurement) -> list[str]:
    """Returns lines on a measurement that only GPUs have: cold-cache time, sensors, clocks, throttling.

    [] for a measurement on a CPU.
    """
    lines = []
    if measurement.cold_median_s is not None:
        lines.append(f"cold      {seconds_text(measurement.cold_median_s)} with the cache flushed before")
    conditions = measurement.conditions
    if conditions is not None:
        lines.append(f"sensors   {_state_text(conditions.before)}; after: {_state_text(conditions.after)}")
        lines += _span_lines(conditions.between)
    return lines + slowdown_lines(measurement)


def slowdown_lines(measurement: Measurement) -> list[str]:
    """Returns a line on why the GPU throttled its clocks during a measurement; [] if it did not."""
    slowdowns = () if measurement.conditions is None else measurement.conditions.slowdowns
    text = "throttled by {}: the GPU can be faster than this time"
    return [text.format(", ".join(slowdowns))] * bool(slowdowns)


def _span_lines(span: Span | None) -> list[str]:
    if span is None or span.lowest_sm_clock_hz is None or span.highest_sm_clock_hz is None:
        return []
    low, high = (clock_hz / 1e6 for clock_hz in (span.lowest_sm_clock_hz, span.highest_sm_clock_hz))
    return [f"clocks    SM {low:.0f} to {high:.0f} MHz in {span.readings} readings between the rounds"]


def _state_text(state: GpuState) -> str:
    readings = (
        ("SM", state.sm_clock_hz, 1e6, "MHz"),
        ("memory", state.memory_clock_hz, 1e6, "MHz"),
        ("", state.temperature_c, 1.0, "C"),
        ("", state.power_w, 1.0, "W"),
    )
    given = (
        f"{name} {value / scale:.0f} {unit}".strip()
        for name, value, scale, unit in readings
        if value is not None
    )
    return ", ".join(given) or "nothing reported"
