import numpy as np
import pytest

from tuner.analysis.slowdown import (
    LIBRARY,
    RECORDED_TIME,
    REFERENCE_KERNEL,
    Finding,
    RoundTimes,
    SlowdownLimits,
    finding_of,
    relative_slowdown,
)
from tuner.core.candidate import RecordedRound

RECORDED = RecordedRound(kernel_s=1e-3, noise=0.01, library_s=2e-3, panel_product_s=5e-4)
SESSIONS, ROUNDS = 6, 40


def sessions(
    kernel: float = 1.0, library: float = 1.0, reference_kernel: float = 1.0, seed: int = 0
) -> tuple[RoundTimes, ...]:
    """Draws sessions in which each takes so many times what was recorded, with 1 % of noise."""
    rng = np.random.default_rng(seed)

    def samples(seconds: float) -> tuple[float, ...]:
        return tuple(seconds * np.exp(rng.normal(0, 0.01, ROUNDS)))

    return tuple(
        RoundTimes(samples(1e-3 * kernel), samples(2e-3 * library), 5e-4 * reference_kernel)
        for _ in range(SESSIONS)
    )


def finding(*found: RoundTimes) -> Finding:
    return finding_of(relative_slowdown(RECORDED, found).whole, len(found), SlowdownLimits())


@pytest.mark.drawn(2)
@pytest.mark.parametrize("machine", [0.7, 1.0, 1.3])
@pytest.mark.parametrize(("code", "found"), [(1.0, Finding.NOT_SLOWER), (1.06, Finding.SLOWER)])
def test_how_fast_the_whole_machine_is_does_not_count(machine: float, code: float, found: Finding) -> None:
    timed = sessions(machine * code, machine, machine)
    assert finding(*timed) is found
    assert relative_slowdown(RECORDED, timed).whole.median == pytest.approx(code - 1, abs=0.012)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "timed",
    [sessions(kernel=1.2, library=1.2), sessions(library=0.8), sessions(kernel=1.2, reference_kernel=1.2)],
)
def test_a_machine_that_changed_makes_references_disagree(timed: tuple[RoundTimes, ...]) -> None:
    assert relative_slowdown(RECORDED, timed).disagreement > 0.15
    assert relative_slowdown(RECORDED, sessions()).disagreement < 0.01


def test_the_whole_slowdown_is_relative_to_the_mean_of_the_references() -> None:
    slowdown = relative_slowdown(RECORDED, sessions(kernel=1.1, library=1.04, reference_kernel=1.06))
    (library, by_library), (reference_kernel, by_kernel) = slowdown.by_reference
    assert (library, reference_kernel) == (LIBRARY, REFERENCE_KERNEL)
    assert slowdown.least == by_kernel.median < slowdown.whole.median < by_library.median
    assert slowdown.disagreement == by_library.median - by_kernel.median
    assert slowdown.whole.median == pytest.approx(1.1 / 1.05 - 1, abs=0.005)
    assert slowdown.whole.interval[0] < slowdown.whole.median < slowdown.whole.interval[1]
    assert slowdown.whole.noise == RECORDED.noise


def test_a_library_that_is_missing_in_one_session_is_no_reference() -> None:
    first, *others = sessions()
    alone = RoundTimes(first.kernel_s, None, first.reference_kernel_s)
    slowdown = relative_slowdown(RECORDED, (alone, *others))
    assert [name for name, _found in slowdown.by_reference] == [REFERENCE_KERNEL]
    assert not slowdown.cancels_drift


def test_without_references_the_recorded_time_is_compared_with() -> None:
    slowdown = relative_slowdown(RecordedRound(1e-3, noise=0.0), sessions(kernel=1.3))
    assert [name for name, _found in slowdown.by_reference] == [RECORDED_TIME]
    assert slowdown.whole.median == pytest.approx(0.3, abs=0.02)
    assert not slowdown.cancels_drift
