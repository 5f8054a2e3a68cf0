import numpy as np
import pytest

from tuner.analysis.slowdown import (
    LEAST_SESSIONS,
    Finding,
    InterleavedSession,
    SlowdownLimits,
    finding_of,
    paired_slowdown,
)

ROUNDS = 40


def sessions(
    count: int, slowdown: float, noise: float = 0.01, busy: float = 0.0, seed: int = 0
) -> tuple[InterleavedSession, ...]:
    """Draws sessions; of ``busy`` samples each takes four times as long, as beside another process."""
    rng = np.random.default_rng(seed)

    def samples(factor: float) -> tuple[float, ...]:
        drawn = factor * np.exp(rng.normal(0, noise, ROUNDS))
        return tuple(np.where(rng.random(ROUNDS) < busy, 4 * drawn, drawn))

    return tuple(InterleavedSession(samples(1.0), samples(1.0), samples(1 + slowdown)) for _ in range(count))


@pytest.mark.parametrize("busy", [0.0, 0.3])
def test_a_slowdown_is_found_and_its_absence_as_well(busy: float) -> None:
    slower = [paired_slowdown(sessions(8, 0.05, busy=busy, seed=seed)) for seed in range(4)]
    same = [paired_slowdown(sessions(8, 0.0, busy=busy, seed=seed)) for seed in range(4)]
    assert {finding_of(one, 8, SlowdownLimits()) for one in slower} == {Finding.SLOWER}
    assert {finding_of(one, 8, SlowdownLimits()) for one in same} == {Finding.NOT_SLOWER}


def test_the_interval_holds_the_slowdown() -> None:
    found = paired_slowdown(sessions(8, 0.05))
    assert found.interval[0] < 0.05 < found.interval[1]
    assert found.median == pytest.approx(0.05, abs=0.01)
    assert 0 < found.noise < 0.01


def test_drift_of_the_whole_machine_does_not_count() -> None:
    def drifting(session: InterleavedSession, factor: float) -> InterleavedSession:
        return InterleavedSession(
            *(
                tuple(seconds * factor for seconds in samples)
                for samples in (session.then_s, session.again_s, session.now_s)
            )
        )

    still = sessions(6, 0.05)
    moved = tuple(drifting(session, 1 + index) for index, session in enumerate(still))
    assert paired_slowdown(moved).median == pytest.approx(paired_slowdown(still).median)


def test_one_disturbed_session_of_many_shows_nothing() -> None:
    quiet = sessions(9, 0.0)
    odd = InterleavedSession(quiet[0].then_s, quiet[0].again_s, tuple(2 * s for s in quiet[0].now_s))
    found = paired_slowdown((*quiet, odd))
    assert abs(found.median) < 0.01
    assert finding_of(found, 10, SlowdownLimits()) is not Finding.SLOWER


def test_what_the_same_code_differs_by_is_no_slowdown() -> None:
    noisy = tuple(
        InterleavedSession(one.then_s, tuple(1.2 * s for s in one.again_s), tuple(1.1 * s for s in one.now_s))
        for one in sessions(6, 0.05)
    )
    found = paired_slowdown(noisy)
    assert found.noise > 0.15
    assert finding_of(found, 6, SlowdownLimits()) is not Finding.SLOWER


def test_few_sessions_show_nothing() -> None:
    found = paired_slowdown(sessions(LEAST_SESSIONS - 1, 0.5))
    assert finding_of(found, LEAST_SESSIONS - 1, SlowdownLimits()) is Finding.UNCLEAR


def test_a_tolerated_slowdown_is_unclear_until_a_larger_one_is_ruled_out() -> None:
    found = paired_slowdown(sessions(8, 0.05, noise=0.001))
    assert finding_of(found, 8, SlowdownLimits(tolerated=0.06, excluded=0.04)) is Finding.UNCLEAR
    assert finding_of(found, 8, SlowdownLimits(tolerated=0.06, excluded=0.06)) is Finding.NOT_SLOWER


@pytest.mark.parametrize("lengths", [(1, 2, 2), (0, 0, 0)])
def test_samples_of_other_rounds_are_refused(lengths: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="allowed equally many of each"):
        InterleavedSession(*((1.0,) * length for length in lengths))
