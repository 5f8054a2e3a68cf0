"""Slices of two milliseconds, one way after the other, with a clock that the calls move on."""

from collections.abc import Callable

import pytest

from tuner.runtime.timing import LEAST_ROUNDS, WAKING_CALLS, before_slice_of, interleaved_times


class Machine:
    """Calls that take a known time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.called: list[str] = []

    def call(self, name: str, seconds: float) -> Callable[[], None]:
        def run() -> None:
            self.called.append(name)
            self.now += seconds

        return run


@pytest.fixture
def machine() -> Machine:
    return Machine()


def times_of(machine: Machine, seconds: float, **lengths: float) -> dict[str, tuple[float, ...]]:
    calls = {name: machine.call(name, length) for name, length in lengths.items()}
    return interleaved_times(calls, seconds, lambda: machine.now)


def test_times_are_seconds_per_call(machine: Machine) -> None:
    found = times_of(machine, 0.1, short=1e-4, long=5e-3)
    assert found["short"] == pytest.approx([1e-4] * len(found["short"]))
    assert found["long"] == pytest.approx([5e-3] * len(found["long"]))


def test_a_slice_has_as_many_calls_as_take_two_milliseconds_and_at_least_one(machine: Machine) -> None:
    rounds = len(times_of(machine, 0.1, short=1e-4, long=5e-3)["short"])
    first = 3  # calls that measure how long one takes
    assert machine.called.count("short") == 20 * rounds + first
    assert machine.called.count("long") == rounds + first


def test_rounds_go_on_until_the_time_is_over(machine: Machine) -> None:
    assert len(times_of(machine, 1.0, a=2e-3, b=2e-3)["a"]) == 250


def test_some_rounds_are_run_however_little_time_there_is(machine: Machine) -> None:
    assert len(times_of(machine, 0.0, a=1.0)["a"]) == LEAST_ROUNDS


def test_each_round_begins_with_another_one(machine: Machine) -> None:
    rounds = len(times_of(machine, 0.0, a=2e-3, b=2e-3, c=2e-3)["a"])
    measured = machine.called[9:]
    assert [measured[3 * number] for number in range(rounds)] == list("abcabca")


def test_what_precedes_a_slice_is_not_timed(machine: Machine) -> None:
    call = machine.call("a", 2e-3)

    def before_slice(given: Callable[[], object]) -> None:
        assert given is call
        machine.now += 1.0

    found = interleaved_times({"a": call}, 5.0, lambda: machine.now, before_slice)
    assert found["a"] == pytest.approx([2e-3] * LEAST_ROUNDS)


def test_threads_are_woken_by_calls_before_a_slice_of_several_threads(machine: Machine) -> None:
    before_slice_of(2)(machine.call("a", 1.0))
    assert machine.called == ["a"] * WAKING_CALLS
    before_slice_of(1)(machine.call("b", 1.0))
    assert "b" not in machine.called
