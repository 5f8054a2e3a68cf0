"""Lines about times on GPUs."""

from tuner.core.gpu_conditions import Conditions, GpuState, Span
from tuner.core.record import Measurement
from tuner.output.gpu_conditions import gpu_lines

COOL = GpuState(1.98e9, 2.619e9, 41.0, 120.4)
HOT = GpuState(1.41e9, 2.619e9, 83.0, 699.8, ("power cap", "thermal"))
SILENT = GpuState(None, None, None, None)


def measured(cold_median_s: float | None, conditions: Conditions | None) -> Measurement:
    return Measurement((1e-3,), 1, 1e-3, (1e-3, 1e-3), True, cold_median_s, conditions)


def test_a_time_on_a_processor_has_no_such_lines() -> None:
    assert gpu_lines(measured(None, None)) == []


def test_cold_time_sensors_and_slowdowns_are_told() -> None:
    cool = "SM 1980 MHz, memory 2619 MHz, 41 C, 120 W"
    assert gpu_lines(measured(1.5e-3, Conditions(COOL, HOT))) == [
        "cold      1.5 ms with the cache flushed before",
        f"sensors   {cool}; after: SM 1410 MHz, memory 2619 MHz, 83 C, 700 W",
        "throttled by power cap, thermal: the GPU can be faster than this time",
    ]


def test_sensors_that_say_nothing_are_no_zeros() -> None:
    assert gpu_lines(measured(None, Conditions(SILENT, COOL)))[0].startswith(
        "sensors   nothing told; after: SM"
    )


def test_the_clocks_between_the_rounds_are_told_and_so_are_slowdowns_seen_only_there() -> None:
    between = Span(34, 1.41e9, 1.98e9, ("power cap",))
    assert gpu_lines(measured(None, Conditions(COOL, COOL, between)))[1:] == [
        "clocks    SM 1410 to 1980 MHz in 34 readings between the rounds",
        "throttled by power cap: the GPU can be faster than this time",
    ]
    assert len(gpu_lines(measured(None, Conditions(COOL, COOL, Span(2, None, None))))) == 1
