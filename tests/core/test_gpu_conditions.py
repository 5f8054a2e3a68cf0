"""Conditions: why the clocks were held down, at any reading."""

from tuner.core.gpu_conditions import Conditions, GpuState, Span


def state(*slowdowns: str, sm_clock_hz: float | None = 1.98e9) -> GpuState:
    return GpuState(sm_clock_hz, 2.6e9, 60.0, 500.0, slowdowns)


def test_slowdowns_of_both_moments_are_told_once() -> None:
    assert Conditions(state(), state()).slowdowns == ()
    assert Conditions(state("power cap"), state("thermal", "power cap")).slowdowns == ("power cap", "thermal")


def test_a_slowdown_between_the_rounds_is_told_though_both_ends_had_none() -> None:
    between = Span.of([state(), state("power cap"), state("thermal", "power cap"), state()])
    assert Conditions(state(), state(), between).slowdowns == ("power cap", "thermal")


def test_the_clocks_between_the_rounds_are_kept_from_the_lowest_to_the_highest() -> None:
    clocks = (1.9e9, 1.2e9, None, 1.7e9)
    assert Span.of([state(sm_clock_hz=each) for each in clocks]) == Span(4, 1.2e9, 1.9e9)


def test_clocks_that_are_not_told_have_no_range() -> None:
    assert Span.of([state(sm_clock_hz=None)]) == Span(1, None, None)
