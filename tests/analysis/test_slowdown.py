import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trials import measurement
from tuner.analysis.selected_result import slowdown
from tuner.analysis.slowdown import (
    LEAST_SESSIONS,
    LIBRARY,
    RECORDED_TIME,
    REFERENCE_KERNEL,
    Finding,
    InterleavedSession,
    RoundTimes,
    SlowdownLimits,
    finding_of,
    paired_slowdown,
    relative_slowdown,
)
from tuner.core.candidate import RecordedRound
from tuner.core.records import Measurement
from tuner.runtime.timing import summarize

ROUNDS = 40
Sessions = tuple[InterleavedSession, ...]
RECORDED = RecordedRound(kernel_s=1e-3, noise=0.01, library_s=2e-3, panel_product_s=5e-4)
SESSIONS = 6


def timed(samples: list[float]) -> Measurement:
    return summarize(samples, 1, np.random.default_rng(0))


def test_samples_of_a_round_are_drawn_together_and_unequally_many_apart() -> None:
    one = timed([1.0, 1.1, 0.9, 1.05])
    found = slowdown(one, one)
    assert (found.median, found.interval) == (0.0, (0.0, 0.0))
    rounds = [1.0, 2.0, 1.5, 3.0, 1.2, 1.1]
    found = slowdown(timed([2 * each for each in rounds]), timed(rounds))
    assert found.interval == pytest.approx((1.0, 1.0))
    assert slowdown(measurement(1.5), measurement(1.0)).interval == (0.5, 0.5)  # of a single sample
    found = slowdown(timed([2.0, 2.1, 1.9]), timed([1.0, 1.0, 1.01, 0.99]))
    assert found.median == pytest.approx(1.0)
    assert 0.8 < found.interval[0] < found.interval[1] < 1.2


@given(st.lists(st.floats(0.5, 2.0), min_size=2, max_size=30), st.floats(1.0, 3.0))
def test_the_median_lies_in_the_interval(samples: list[float], scale: float) -> None:
    found = slowdown(timed([scale * each for each in samples]), timed(samples))
    assert found.interval[0] - 1e-9 <= found.median <= found.interval[1] + 1e-9


def sessions(count: int, slower: float, noise: float = 0.01, busy: float = 0.0, seed: int = 0) -> Sessions:
    """Draws sessions; of ``busy`` samples each takes four times as long, as next to another process."""
    rng = np.random.default_rng(seed)

    def samples(factor: float) -> tuple[float, ...]:
        drawn = factor * np.exp(rng.normal(0, noise, ROUNDS))
        return tuple(np.where(rng.random(ROUNDS) < busy, 4 * drawn, drawn))

    return tuple(InterleavedSession(samples(1.0), samples(1.0), samples(1 + slower)) for _ in range(count))


def scaled(session: InterleavedSession, *factors: float) -> InterleavedSession:
    times = zip((session.then_s, session.again_s, session.now_s), factors, strict=True)
    return InterleavedSession(*(tuple(factor * each for each in samples) for samples, factor in times))


def test_a_slowdown_is_found_in_its_interval_and_what_the_same_code_differs_by_is_none() -> None:
    for busy in (0.0, 0.3):
        for slower, expected in ((0.05, Finding.SLOWER), (0.0, Finding.NOT_SLOWER)):
            slowdowns = [paired_slowdown(sessions(8, slower, busy=busy, seed=seed)) for seed in range(4)]
            assert {finding_of(one, 8, SlowdownLimits.up_to()) for one in slowdowns} == {expected}
    found = paired_slowdown(tuple(scaled(each, 1, 1.2, 1.1) for each in sessions(6, 0.05)))
    assert found.noise > 0.15
    assert finding_of(found, 6, SlowdownLimits.up_to()) is not Finding.SLOWER
    found = paired_slowdown(sessions(8, 0.05))
    assert found.interval[0] < 0.05 < found.interval[1]
    assert found.median == pytest.approx(0.05, abs=0.01)
    assert 0 < found.noise < 0.01
    still = sessions(6, 0.05)
    moved = tuple(scaled(each, *[1 + index] * 3) for index, each in enumerate(still))
    assert paired_slowdown(moved).median == pytest.approx(paired_slowdown(still).median)
    quiet = sessions(9, 0.0)
    found = paired_slowdown((*quiet, scaled(quiet[0], 1, 1, 2)))
    assert abs(found.median) < 0.01
    assert finding_of(found, 10, SlowdownLimits.up_to()) is not Finding.SLOWER


def test_few_sessions_or_samples_of_other_rounds_show_nothing() -> None:
    found = paired_slowdown(sessions(LEAST_SESSIONS - 1, 0.5))
    assert finding_of(found, LEAST_SESSIONS - 1, SlowdownLimits.up_to()) is Finding.UNCLEAR
    found = paired_slowdown(sessions(8, 0.05, noise=0.001))
    assert finding_of(found, 8, SlowdownLimits(tolerated=0.06, excluded=0.04)) is Finding.UNCLEAR
    assert finding_of(found, 8, SlowdownLimits(tolerated=0.06, excluded=0.06)) is Finding.NOT_SLOWER
    for lengths in ((1, 2, 2), (0, 0, 0)):
        with pytest.raises(ValueError, match="allowed equally many of each"):
            InterleavedSession(*((1.0,) * length for length in lengths))


def round_times(
    kernel: float = 1.0, library: float = 1.0, reference_kernel: float = 1.0, seed: int = 0
) -> tuple[RoundTimes, ...]:
    rng = np.random.default_rng(seed)

    def samples(seconds: float) -> tuple[float, ...]:
        return tuple(seconds * np.exp(rng.normal(0, 0.01, ROUNDS)))

    drawn = [(samples(1e-3 * kernel), samples(2e-3 * library)) for _ in range(SESSIONS)]
    return tuple(RoundTimes(*times, 5e-4 * reference_kernel) for times in drawn)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("machine", [0.7, 1.0, 1.3])
@pytest.mark.parametrize(("code", "found"), [(1.0, Finding.NOT_SLOWER), (1.06, Finding.SLOWER)])
def test_how_fast_the_whole_machine_is_does_not_count(machine: float, code: float, found: Finding) -> None:
    timed = round_times(machine * code, machine, machine)
    whole = relative_slowdown(RECORDED, timed).whole
    assert finding_of(whole, len(timed), SlowdownLimits.up_to()) is found
    assert whole.median == pytest.approx(code - 1, abs=0.012)


def test_references_that_disagree_or_are_missing_count_as_a_changed_machine_or_the_recorded_time() -> None:
    for factors in ((1.2, 1.2, 1.0), (1.0, 0.8, 1.0), (1.2, 1.0, 1.2)):
        assert relative_slowdown(RECORDED, round_times(*factors)).disagreement > 0.15
    assert relative_slowdown(RECORDED, round_times()).disagreement < 0.01
    slowdown = relative_slowdown(RECORDED, round_times(kernel=1.1, library=1.04, reference_kernel=1.06))
    (library, by_library), (reference_kernel, by_kernel) = slowdown.by_reference
    assert (library, reference_kernel) == (LIBRARY, REFERENCE_KERNEL)
    assert slowdown.least == by_kernel.median < slowdown.whole.median < by_library.median
    assert slowdown.disagreement == by_library.median - by_kernel.median
    assert slowdown.whole.median == pytest.approx(1.1 / 1.05 - 1, abs=0.005)
    assert slowdown.whole.interval[0] < slowdown.whole.median < slowdown.whole.interval[1]
    assert slowdown.whole.noise == RECORDED.noise
    first, *others = round_times()
    alone = RoundTimes(first.kernel_s, None, first.panel_product_s)
    slowdown = relative_slowdown(RECORDED, (alone, *others))
    assert [name for name, _found in slowdown.by_reference] == [REFERENCE_KERNEL]
    assert not slowdown.cancels_drift
    slowdown = relative_slowdown(RecordedRound(1e-3, noise=0.0), round_times(kernel=1.3))
    assert [name for name, _found in slowdown.by_reference] == [RECORDED_TIME]
    assert slowdown.whole.median == pytest.approx(0.3, abs=0.02)
    assert not slowdown.cancels_drift
