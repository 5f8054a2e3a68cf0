"""Timing against a clock that moves only when the action says so."""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.targets.evaluation import rng
from tuner.core.interfaces import Effort
from tuner.core.records import Measurement
from tuner.runtime import timing
from tuner.runtime.timing import LEAST_ROUNDS, WAKING_CALLS, before_slice_of, interleaved_times

EFFORT = Effort(budget_s=0.08, min_samples=5, max_samples=60)


@dataclass
class Clock:
    now_s: float = 100.0
    called: list[str] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now_s

    def call(self, name: str, seconds: float) -> Callable[[], None]:
        def run() -> None:
            self.called.append(name)
            self.now_s += seconds

        return run


@dataclass
class Action:
    """Takes ``call_s`` a call; ``drift_s`` is added to it after every repeat."""

    call_s: float
    drift_s: float = 0.0
    clock: Clock = field(default_factory=Clock)
    repeats: list[int] = field(default_factory=list)

    def __call__(self, times: int) -> None:
        self.repeats.append(times)
        self.clock.now_s += self.call_s * times
        self.call_s += self.drift_s


def measured(action: Action, effort: Effort = EFFORT) -> Measurement:
    return timing.measure(action, effort, rng(), action.clock)


@pytest.mark.parametrize("call_s", [1e-9, 1e-7, 3e-6, 1e-4, 9e-4, 1e-3, 0.5, 30.0])
def test_a_fast_action_is_repeated_until_a_sample_is_long_enough(call_s: float) -> None:
    action = Action(call_s)
    inner = timing.calibrate(timing.stopwatch_of(action, action.clock), EFFORT)
    if call_s < 1e-3:
        assert timing.SAMPLE_S <= inner * call_s <= 3 * timing.SAMPLE_S
    else:  # called once a sample
        assert inner == 1
        assert action.repeats == [1, 1]  # the first warms up


def test_a_slow_first_call_is_not_the_rule_and_one_good_sample_saves_an_action() -> None:
    action = Action(1.0, drift_s=-1.0 + 1e-6)
    timing.sample(action, 1, action.clock)
    action.drift_s = 0.0
    assert timing.calibrate(timing.stopwatch_of(action, action.clock), EFFORT) * 1e-6 >= timing.SAMPLE_S
    action = Action(1.4e-3, drift_s=-0.1e-3)  # below the limit at the fifth sample at the latest
    assert measured(action, replace(EFFORT, stop_above_s=1.15e-3, max_samples=6)).is_complete


@given(st.floats(1e-8, 1.0))
def test_the_times_of_a_steady_action_are_its_own(call_s: float) -> None:
    result = measured(Action(call_s, clock=Clock(0.0)))
    assert (result.median_s, *result.interval_s) == pytest.approx((call_s,) * 3, rel=1e-6)
    assert result.is_complete
    assert EFFORT.min_samples <= len(result.samples_s) <= EFFORT.max_samples


@pytest.mark.parametrize(("call_s", "samples"), [(1e-3, 40), (4e-3, 10), (0.02, 5), (1.0, 5)])
def test_the_budget_decides_how_many_samples_are_taken(call_s: float, samples: int) -> None:
    """A short call counts twice: an untimed one may lead it."""
    assert len(measured(Action(call_s)).samples_s) == samples


@pytest.mark.parametrize(
    ("call_s", "samples", "is_complete"),
    [
        (0.021, 1, False),  # twice the limit: one long sample is enough
        (2.1e-3, 2, False),
        (1.9e-3, 3, False),
        (1.01e-3, 3, False),
        (0.99e-3, 27, True),  # the budget, for three calls a sample
    ],
)
def test_a_early_stopped_action_stops_early(call_s: float, samples: int, is_complete: bool) -> None:
    result = measured(Action(call_s), replace(EFFORT, stop_above_s=1e-3))
    assert (len(result.samples_s), result.is_complete) == (samples, is_complete)


@pytest.mark.parametrize(("call_s", "is_complete"), [(3e-4, True), (9e-4, False)])
def test_a_turn_of_another_process_makes_no_action_early_stopped(call_s: float, is_complete: bool) -> None:
    inner = timing.calibrate(lambda calls: call_s, EFFORT)
    turns_s = iter([0.0, 0.0, 0.0, 4e-3])  # two calls warm up, a sample calibrates, the next is the first

    def take(calls: int) -> float:
        return call_s + next(turns_s, 0.0) / calls

    result = timing.measure_by(take, replace(EFFORT, stop_above_s=4e-4), rng())
    assert result.samples_s[0] == call_s + 4e-3 / inner
    assert result.is_complete is is_complete


@pytest.mark.parametrize("paused", range(12))
def test_a_pause_of_the_process_does_not_make_an_action_early_stopped(paused: int) -> None:
    """Whichever call it falls into, one that warms up, that calibrates or one of a sample."""
    pauses_s = iter([0.0] * paused + [12.0])
    effort = replace(EFFORT, stop_above_s=4e-4)
    result = timing.measure_by(lambda calls: 3e-4 + next(pauses_s, 0.0) / calls, effort, rng())
    assert result.is_complete
    assert result.median_s == 3e-4


def test_interleaved_actions_keep_their_own_times_and_drift_hits_them_alike() -> None:
    clock = Clock()
    actions = tuple(Action(call_s, clock=clock) for call_s in (1e-3, 4e-3, 2e-4))
    results = timing.measure_together(actions, EFFORT, rng(), clock)
    assert [result.median_s for result in results] == pytest.approx([1e-3, 4e-3, 2e-4])
    assert len({len(result.samples_s) for result in results}) == 1
    assert [result.inner_calls > 1 for result in results] == [False, False, True]
    pauses_s = iter([0.0] * 5 + [12.0])
    takes = (lambda calls: 2e-3 + next(pauses_s, 0.0)), (lambda calls: 2e-3)
    results = timing.measure_together_by(takes, replace(EFFORT, min_samples=15), rng())
    assert [len(result.samples_s) for result in results] == [15, 15]
    assert [result.median_s for result in results] == [2e-3, 2e-3]
    shared, apart = Action(3e-3, drift_s=4e-5), Action(3e-3, drift_s=4e-5)
    one, other = timing.measure_together((shared, shared), EFFORT, rng(), shared.clock)
    assert one.median_s == pytest.approx(other.median_s, rel=0.02)
    first, second = (measured(apart) for _ in range(2))
    assert second.median_s > 1.1 * first.median_s  # what one after the other would have given


@pytest.mark.parametrize(("within_s", "samples"), [(None, 15), (60.0, 15), (0.085, 9), (0.01, 6), (0.0, 6)])
def test_what_is_timed_together_ends_in_time_after_six_samples(within_s: float | None, samples: int) -> None:
    clock = Clock()
    actions = tuple(timing.stopwatch_of(Action(call_s, clock=clock), clock) for call_s in (4e-3, 4e-3))
    effort = Effort(budget_s=0.01, min_samples=15, within_s=within_s)
    results = timing.measure_together_by(actions, effort, rng(), clock=clock)
    assert [len(result.samples_s) for result in results] == [samples] * 2


def test_what_is_left_of_an_effort_is_never_less_than_nothing() -> None:
    assert Effort().after(3.0) == Effort()
    assert Effort(within_s=5.0).after(3.0) == Effort(within_s=2.0)
    assert Effort(within_s=5.0).after(9.0) == Effort(within_s=0.0)


def together_after_untimed_calls(actions: tuple[Action, ...], effort: Effort) -> int:
    """Measures actions together; returns the number of samples of each."""
    stopwatches = (timing.stopwatch_of(action, action.clock) for action in actions)
    measured = timing.measure_together_by(tuple(map(timing.with_untimed_calls, stopwatches)), effort, rng())
    return len(measured[0].samples_s)


@pytest.mark.parametrize("call_s", [0.02, 0.07, 0.12, 0.5, 4.0])
def test_a_top_trial_costs_ten_long_calls_or_a_second(call_s: float) -> None:
    clock = Clock()
    actions = tuple(Action(call_s * share, clock=clock) for share in (1.0, 0.9, 0.5))
    rounds = together_after_untimed_calls(actions, Effort(budget_s=0.4, min_samples=15, max_samples=200))
    calls = sum(actions[0].repeats) + 2  # of a verification
    assert calls <= 10 or calls * call_s <= 1.0
    assert rounds >= timing.FEW_SAMPLES


def test_a_call_that_is_not_timed_fills_the_caches_before_a_sample_of_short_calls() -> None:
    clock = Clock()
    actions = (Action(1e-3, clock=clock), Action(0.1, clock=clock))
    rounds = together_after_untimed_calls(actions, EFFORT)
    assert sum(actions[0].repeats) == 3 + 2 * rounds  # the second call of the calibration is led as well
    assert sum(actions[1].repeats) == 2 + rounds


@given(st.lists(st.floats(1e-9, 10.0), min_size=1, max_size=60), st.integers(0, 2**32))
def test_the_interval_contains_the_median_and_lies_among_the_samples(samples: list[float], seed: int) -> None:
    result = timing.summarize(samples, 3, np.random.default_rng(seed))
    low_s, high_s = result.interval_s
    assert min(samples) <= low_s <= result.median_s <= high_s <= max(samples)
    assert (result.samples_s, result.inner_calls) == (tuple(samples), 3)


def test_the_interval_holds_the_true_median_of_a_real_clock_about_as_often_as_it_says() -> None:
    draws = np.random.default_rng(0)
    hits = 0
    for _ in range(300):
        low_s, high_s = timing.summarize(list(draws.normal(1.0, 0.1, 30)), 1, draws).interval_s
        hits += low_s <= 1.0 <= high_s
    assert 0.90 <= hits / 300 <= 0.99  # 0.95 is claimed
    result = timing.measure(lambda times: time.sleep(2e-3 * times), replace(EFFORT, budget_s=0.02), rng())
    assert 2e-3 <= result.median_s < 10


@pytest.mark.parametrize("lead", [1, 4])
def test_a_sample_of_short_calls_is_led_by_as_many_as_asked(lead: int) -> None:
    calls: list[int] = []

    def take(times: int) -> float:
        calls.append(times)
        return 1e-6

    assert timing.with_untimed_calls(take, lead)(5) == 1e-6
    assert calls == [lead, 5]


# Slices of two milliseconds, one way after the other, with a clock that the calls move on.


def test_single_calls_are_timed_without_what_comes_before_each() -> None:
    clock = Clock(0.0)

    def prepare() -> Callable[[], None]:
        clock.call("prepare", 10.0)()
        return clock.call("run", 2.0)

    evict = clock.call("evict", 100.0)
    assert timing.stopwatch_of_cold_calls(evict, prepare, clock)(3) == 2.0
    assert clock.called == ["prepare", "evict", "run"] * 3


def times_of(clock: Clock, seconds: float, **lengths: float) -> dict[str, tuple[float, ...]]:
    calls = {name: clock.call(name, length) for name, length in lengths.items()}
    return interleaved_times(calls, seconds, clock)


def test_a_slice_has_calls_of_two_milliseconds_and_what_precedes_it_is_not_timed() -> None:
    clock = Clock(0.0)
    found = times_of(clock, 0.1, short=1e-4, long=5e-3, other=2e-3)
    rounds = len(found["short"])
    assert found["short"] == pytest.approx([1e-4] * rounds)  # seconds per call
    assert found["long"] == pytest.approx([5e-3] * rounds)
    first = 3  # calls that measure how long one takes
    assert clock.called.count("short") == 20 * rounds + first
    assert clock.called.count("long") == rounds + first
    call = clock.call("a", 2e-3)

    def before_slice(given: Callable[[], object]) -> None:
        assert given is call
        clock.now_s += 1.0

    found = interleaved_times({"a": call}, 5.0, clock, before_slice)
    assert found["a"] == pytest.approx([2e-3] * LEAST_ROUNDS)


def test_a_call_with_two_names_never_follows_itself() -> None:
    clock = Clock(0.0)
    ours = clock.call("ours", 2e-3)
    calls = {"ours": ours, "theirs": clock.call("theirs", 2e-3), "ours again": ours}
    found = interleaved_times(calls, 0.0, clock)
    assert all(times == pytest.approx([2e-3] * LEAST_ROUNDS) for times in found.values())
    measured = clock.called[3 * len(calls) :]  # after those that measure how long a call takes
    assert all({first, second} != {"ours"} for first, second in itertools.pairwise(measured))
    clock.called.clear()
    interleaved_times({"ours": ours, "ours again": ours}, 0.0, clock)
    assert set(clock.called) == {"ours"}  # there is no other


def test_rounds_go_on_until_the_time_is_over_and_threads_are_woken_before_a_slice() -> None:
    clock = Clock(0.0)
    assert len(times_of(clock, 1.0, a=2e-3, b=2e-3, c=2e-3)["a"]) == 167
    assert len(times_of(clock, 0.0, a=1.0)["a"]) == LEAST_ROUNDS  # however little time there is
    clock.called.clear()
    rounds = len(times_of(clock, 0.0, a=2e-3, b=2e-3, c=2e-3)["a"])
    measured = clock.called[9:]
    assert [measured[3 * number] for number in range(rounds)] == list("abcabca")
    clock.called.clear()
    before_slice_of(2)(clock.call("a", 1.0))
    assert clock.called == ["a"] * WAKING_CALLS
    before_slice_of(1)(clock.call("b", 1.0))
    assert "b" not in clock.called
