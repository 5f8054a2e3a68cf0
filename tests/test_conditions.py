"""Conditions: why the clocks were held down, at either end."""

from tuner.conditions import Conditions, GpuState


def state(*slowdowns: str) -> GpuState:
    return GpuState(1.98e9, 2.6e9, 60.0, 500.0, slowdowns)


def test_slowdowns_of_both_moments_are_told_once() -> None:
    assert Conditions(state(), state()).slowdowns == ()
    assert Conditions(state("power cap"), state("thermal", "power cap")).slowdowns == ("power cap", "thermal")
