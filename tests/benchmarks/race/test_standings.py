"""Ratios by round, and times to a share of the best known speed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.race.contest import KernelTiming, calls_for
from benchmarks.race.peer import LoggedTrial, PeerResult, RaceMatmul, best_until
from benchmarks.race.standings import (
    best_known_s,
    geometric_means,
    improvements,
    ratio_to,
    seconds_to,
    spread_of,
    without_folders,
)
from tests.tuning.fakes import present

OWN_TIMES = st.lists(st.none() | st.floats(1e-6, 1.0), max_size=20)


def timing(name: str, *samples: tuple[int, float]) -> KernelTiming:
    return KernelTiming(name, 0, samples)


def entry(*times_s: float | None, wall_s: float = 60.0) -> PeerResult:
    """Returns an entry with a trial at each second; the last one that succeeded is its kernel."""
    trials = tuple(LoggedTrial(float(second), own_s) for second, own_s in enumerate(times_s, 1))
    known = [own_s for own_s in times_s if own_s is not None]
    return PeerResult(60.0, wall_s, trials=trials, own_s=min(known, default=None))


def test_a_ratio_is_taken_in_each_round_that_both_were_timed_in() -> None:
    baseline = timing("library", *((number, 2.0 + number) for number in range(8)))
    slow = timing("slow", *((number, 4.0 + 2 * number) for number in (0, 3, 6)))
    ratio = present(ratio_to(baseline, slow))
    assert (ratio.median, ratio.low, ratio.high, ratio.rounds) == (0.5, 0.5, 0.5, 3)
    assert ratio_to(baseline, timing("once", (0, 1.0), (9, 1.0))) is None


def test_the_spread_of_times_is_relative_and_needs_some_rounds() -> None:
    assert spread_of(timing("a", *enumerate((1.0, 2.0, 3.0)))) == 1.0
    assert spread_of(timing("a", (0, 1.0), (1, 2.0))) is None


def test_the_best_known_is_of_any_kernel_that_has_a_time() -> None:
    assert best_known_s([timing("a", (0, 3.0)), timing("b", (0, 2.0)), KernelTiming("crashed", 0)]) == 2.0
    assert best_known_s([KernelTiming("crashed", 0, failure="crashes (signal 11)")]) is None


def test_a_share_is_reached_by_the_first_trial_that_is_fast_enough_as_the_race_times_the_last_one() -> None:
    found = entry(2.0, None, 1.04, 1.0)
    assert seconds_to(0.95, found, median_s=5.0, best_s=5.0) == 3.0
    assert seconds_to(0.98, found, median_s=5.0, best_s=5.0) == 4.0
    assert seconds_to(0.95, found, median_s=5.0, best_s=4.0) is None
    compiled = PeerResult(None, 1.5)
    assert seconds_to(0.95, compiled, median_s=1.0, best_s=0.96) == 1.5
    assert seconds_to(0.98, compiled, median_s=1.0, best_s=0.96) is None


@given(OWN_TIMES, st.floats(0.5, 1.0))
def test_a_lower_share_is_never_reached_later(times_s: list[float | None], best_s: float) -> None:
    found = entry(*times_s)
    reached = [seconds_to(share, found, 1.0, best_s) for share in (0.5, 0.9, 0.98)]
    known = [seconds for seconds in reached if seconds is not None]
    assert known == sorted(known)
    assert reached == known + [None] * (3 - len(known))


@given(OWN_TIMES, st.integers(0, 20))
def test_the_best_until_a_budget_is_the_last_improvement(times_s: list[float | None], budget: int) -> None:
    found = entry(*times_s)
    best = best_until(found.trials, float(budget))
    until = [pair for pair in improvements(found) if pair[0] <= budget]
    if best is None:
        assert until == []
        return
    number, trial = best
    assert found.trials[number] == trial
    assert until[-1] == (trial.elapsed_s, trial.own_s)


def test_a_sample_has_as_many_calls_as_its_time_needs_and_at_least_one() -> None:
    assert calls_for(4e-3, 1e-3) == 4
    assert calls_for(4e-3, 1.0) == 1


def test_means_leave_out_who_has_no_ratio() -> None:
    assert geometric_means({"a": [0.5, 2.0], "b": []}) == pytest.approx({"a": 1.0})


def test_reasons_have_file_names_without_folders() -> None:
    text = "OSError: /home/a-user/build.1/none.so: no such file, nor /etc; 3/4"
    assert without_folders(text) == "OSError: none.so: no such file, nor etc; 3/4"
    assert without_folders("crashes (signal 11)") == "crashes (signal 11)"


def test_a_matmul_counts_two_operations_per_product_and_names_the_type_of_c() -> None:
    case = RaceMatmul(2, 3, 4, "i8")
    assert (case.shape, case.flop, case.output) == ("2x3x4", 48, "i32")
    assert case.problem.flop == case.flop
    assert case.problem.result_dtype == case.output
