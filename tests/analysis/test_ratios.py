import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.matrices import instance
from tests.trials import measurement, trial
from tuner.analysis import ratios, selected_result
from tuner.analysis.ratios import Comparable, NotComparable, comparison
from tuner.analysis.selected_result import (
    Compromise,
    SelectedResult,
    best_compromise,
    complexity,
    half_width,
    select_result,
)
from tuner.core.candidate import Candidate, Value
from tuner.core.errors import Failure, Stage
from tuner.core.matmul import Matmul
from tuner.core.records import Measurement, MedianInterval, OffsetTime
from tuner.core.reliability import RELIABLE, Reliability, unreliable
from tuner.core.round_quality import LEAST_SAMPLES, Evidence
from tuner.core.trials import StoredTrial
from tuner.runtime.timing import summarize

MS = 1e-3
ALIGNED = Matmul(8, 8, 8, align=64)
QUIET = Evidence(is_interleaved=True, noise=0.01)
STEADY = tuple(1e-3 * (1 + 0.001 * step) for step in range(15))
FAILED = Failure(Stage.COMPILE, "no")


def timed(*medians_ms: float, half_width: float = 0.01) -> Measurement:
    times = [measurement(ms * MS, 2 * half_width) for ms in medians_ms]
    offsets = [OffsetTime(16 * place, each.median_s, each.interval_s) for place, each in enumerate(times)]
    return replace(measurement(MS, 0.01), offsets=tuple(offsets))


def test_a_kernel_says_where_it_is_slower_unless_times_are_missing_noisy_or_overlap() -> None:
    for problem, medians_ms, text in (
        (ALIGNED, (1.0, 1.3, 1.31, 1.2), "1.31 times as long with operands 32 bytes past a"),
        (Matmul(8, 8, 8), (1.2, 1.0, 1.0, 1.0), "1.20 times as long with operands on a cache line"),
        (Matmul(8, 8, 8), (0.7, 1.0, 1.04, 1.0), ""),
        (Matmul(8, 8, 8, align="any"), (1.0, 2.0, 2.0, 2.0), ""),  # its own offset was not timed
    ):
        found = ratios.sensitivity_text(timed(*medians_ms), problem, 0.01, RELIABLE)
        assert found.startswith(text)
        assert bool(found) == bool(text)
    for measured in (timed(1.0, 1.3, 1.0, 1.0, half_width=0.2), measurement(MS, 0.01), None):
        assert ratios.sensitivity_text(measured, ALIGNED, 0.01, RELIABLE) == ""
    for medians_ms, noise, reliability in (
        ((1.0, 1.3, 1.3, 1.3), None, RELIABLE),  # nothing was timed twice
        ((1.0, 1.3, 1.3, 1.3), 0.01, unreliable("the baseline drifted by 34%: load")),
        ((1.0, 1.3, 1.3, 1.3), 0.31, RELIABLE),  # less than two timings of the same code differ by
        ((0.6, 0.9, 0.9, 0.9), 0.01, RELIABLE),  # the same code at the same addresses took 1 ms in the round
        ((12.0, 14.0, 14.54, 14.0), 0.01, RELIABLE),
    ):
        assert ratios.sensitivity_text(timed(*medians_ms), ALIGNED, noise, reliability) == ""


def of_samples(*samples_s: float) -> Measurement:
    return summarize(list(samples_s), 1, np.random.default_rng(0))


REFERENCE = of_samples(*STEADY)


def slower(by: float) -> Measurement:
    return of_samples(*((1 + by) * each for each in STEADY))


def test_quiet_times_have_a_ratio_and_its_interval_and_a_difference_within_the_noise_is_none() -> None:
    found = instance(Comparable, comparison(slower(0.25), REFERENCE, QUIET))
    assert found.ratio == pytest.approx(1.25)
    assert found.interval == pytest.approx((1.25, 1.25))
    assert found.speed == pytest.approx(0.8)
    assert found.longer == pytest.approx(0.25)
    assert found.speed_interval == pytest.approx((0.8, 0.8))
    within = instance(NotComparable, comparison(slower(0.009), REFERENCE, QUIET))
    ratio = "the ratio of times is within 1.009 .. 1.009"
    assert within.reason == f"not distinguishable, {ratio}, the noise floor is 1.0%"
    assert within.is_equal
    assert isinstance(comparison(slower(-0.011), REFERENCE, QUIET), Comparable)
    shuffled = of_samples(*STEADY[1::2], *STEADY[::2])
    within = instance(NotComparable, comparison(shuffled, REFERENCE, replace(QUIET, noise=0.0)))
    assert "not distinguishable, the 95 % interval of the ratio of times is 0.99" in within.reason
    assert within.is_equal
    unsteady = of_samples(*(1e-3, 3e-3) * 10)
    within = instance(NotComparable, comparison(unsteady, of_samples(*(1e-3,) * 20), QUIET))
    assert "95 % interval of the ratio of times is 1.00 .. 3.00" in within.reason


def test_without_evidence_of_quiet_or_enough_samples_there_is_a_reason_and_no_ratio() -> None:
    drifted = "the reference kernel drifted by 40%"
    for evidence, reason in (
        (replace(QUIET, reliability=unreliable(f"{drifted}: load")), drifted),
        (replace(QUIET, is_interleaved=False), "not timed interleaved in one round"),
        (replace(QUIET, noise=None), "noise floor is not known"),
        (replace(QUIET, noise=1.22), "two timings of the same code differ by a factor of 2.2"),
    ):
        assert reason in instance(NotComparable, comparison(slower(0.5), REFERENCE, evidence)).reason
    few = LEAST_SAMPLES - 1
    for poor, reason in (
        (replace(REFERENCE, is_complete=False), "stopped early"),
        (of_samples(*STEADY[:few]), f"found {few} samples, {LEAST_SAMPLES} are needed"),
    ):
        for pair in ((poor, REFERENCE), (REFERENCE, poor)):
            assert reason in instance(NotComparable, comparison(*pair, QUIET)).reason


def test_pairs_of_slices_have_the_median_of_their_ratios_unless_they_disagree_with_it() -> None:
    found = instance(Comparable, ratios.paired_comparison([2e-3] * 40, [1e-3] * 40, QUIET))
    assert (found.ratio, found.interval) == (2.0, (2.0, 2.0))
    assert found.faster_text == "0.50 times as fast (95 % interval 0.50 .. 0.50)"
    ours, theirs = [1e-3, 1e-3, 16e-3] * 20, [2e-3, 2e-3, 2e-3] * 20
    assert isinstance(ratios.paired_comparison(ours[::-1], theirs, QUIET), Comparable)
    drifting = [1e-3 * (1 + place / 10) for place in range(40)]
    found_drifting = instance(NotComparable, ratios.paired_comparison(drifting, drifting[::-1], QUIET))
    assert found_drifting.interval is not None
    distrusted = replace(QUIET, reliability=unreliable("load"))
    assert ratios.paired_comparison([1e-3] * 40, [2e-3] * 40, distrusted) == NotComparable("load")


def test_processes_have_the_median_ratio_unless_none_of_them_can_distinguish_the_times() -> None:
    slow = Comparable(1.04, (1.03, 1.05), 0.01)
    slower_yet = Comparable(1.06, (1.05, 1.07), 0.03)
    in_noise = [NotComparable("in the noise", (low, 1.02), is_equal=True) for low in (1.005, 1.01)]
    unknown = NotComparable("load")
    assert ratios.joint_comparison([slow, slower_yet]) == Comparable(1.05, (1.03, 1.07), 0.03)
    assert ratios.joint_comparison(in_noise) is in_noise[-1]
    mixed = instance(Comparable, ratios.joint_comparison([in_noise[0], slow, slower_yet]))
    assert (mixed.ratio, mixed.interval) == (1.04, (1.005, 1.07))
    assert ratios.joint_comparison([slow, unknown]) is unknown
    faster = Comparable(0.9, (0.89, 0.91), 0.01)
    equal = instance(NotComparable, ratios.joint_comparison([slow, faster]))
    assert "over 2 processes is 0.890 .. 1.050" in equal.reason
    assert equal.is_equal


SAMPLES = st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=20).map(lambda samples: of_samples(*samples))


@given(
    SAMPLES,
    SAMPLES,
    st.booleans(),
    st.none() | st.floats(0.0, 2.0),
    st.sampled_from((RELIABLE, unreliable("load"))),
)
def test_a_ratio_is_reported_only_with_all_the_evidence(
    ours: Measurement, reference: Measurement, is_interleaved: bool, noise: float | None, quality: Reliability
) -> None:
    found = comparison(ours, reference, Evidence(is_interleaved, noise, quality))
    if isinstance(found, Comparable):
        assert (is_interleaved, quality) == (True, RELIABLE)
        assert noise is not None
        assert noise <= 0.05
        assert min(len(ours.samples_s), len(reference.samples_s)) >= LEAST_SAMPLES
        low, high = found.interval
        assert low / (1 + 1e-9) <= found.ratio <= high * (1 + 1e-9)
        assert not low <= 1 <= high
    else:
        assert found.reason


def times(*medians_s: float | None) -> tuple[StoredTrial, ...]:
    """Returns the trials of one machine, one per candidate; None: it failed there."""
    outcomes = (FAILED if median_s is None else measurement(median_s) for median_s in medians_s)
    return tuple(trial(number, outcome) for number, outcome in enumerate(outcomes))


def test_the_candidate_with_times_everywhere_that_is_nowhere_much_slower_is_chosen() -> None:
    found = instance(Compromise, best_compromise((times(1.0, 2.0, 1.2), times(9.0, 3.0, 3.3))))
    assert [each.number for each in found.trials] == [2, 2]
    assert found.slowdowns == pytest.approx((0.2, 0.1))
    assert found.worst == pytest.approx(0.2)
    final = replace(trial(0, measurement(0.9)), final=measurement(1.0))
    machines = (final, trial(1, measurement(0.5))), times(1.0, 9.0)
    found = instance(Compromise, best_compromise(machines))
    assert (found.trials[0], found.slowdowns) == (final, (0.0, 0.0))
    found = instance(Compromise, best_compromise((times(1.0, 2.0), times(None, 3.0))))
    assert found.slowdowns == pytest.approx((1.0, 0.0))
    assert best_compromise((times(1.0, None), times(None, 3.0))) is None
    # were early-stopped ones candidates, a machine with nothing else would have no fastest trial
    assert best_compromise(((trial(0, replace(measurement(5.0), is_complete=False)),), times(1.0))) is None


# Ratios of interleaved rounds: intervals from order statistics.
def test_the_interval_holds_the_median_in_95_of_100_cases_and_few_values_are_all_in_it() -> None:
    found = [ratios.median_interval(signs) for signs in itertools.product((-1.0, 1.0), repeat=15)]
    assert 0.95 < sum(each.low < 0 < each.high for each in found) / len(found) < 0.99
    assert ratios.median_interval([3.0, 1.0, 2.0]) == MedianInterval(2.0, 1.0, 3.0)
    assert ratios.median_interval([5.0]) == MedianInterval(5.0, 5.0, 5.0)
    busy = [1.0, 10.0, 100.0]  # the machine slows down: the ratio does not change
    assert ratios.paired_ratio([2 * each for each in busy], busy) == MedianInterval(2.0, 2.0, 2.0)


# Which trial is the best.
def selected_of(noise: float | None, *trials: StoredTrial) -> SelectedResult:
    return instance(SelectedResult, select_result(trials, noise))


def noisy(median_s: float, spread: float, seed: int = 0) -> Measurement:
    """Returns a timing of 40 samples; its interval is about a third of the spread to each side."""
    rng = np.random.default_rng(seed)
    samples = median_s * (1 + spread * rng.standard_normal(40))
    return summarize(list(samples / np.median(samples) * median_s), 1, rng)


def test_tied_is_what_is_not_slower_by_more_than_noise_and_a_slow_round_separates_nobody() -> None:
    selected = selected_of(0.01, trial(0, measurement(2.0)), trial(1, measurement(1.0)), trial(2, FAILED))
    assert (selected.best.number, selected.tied) == (1, (selected.best,))
    assert select_result((trial(0, FAILED),), 0.01) is None
    with pytest.raises(ValueError, match="trial 100 was not timed"):
        selected_result.timed(trial(0, FAILED))
    lucky, final = trial(0, measurement(0.5)), trial(1, measurement(0.9), final=measurement(1.0))
    selected = selected_of(None, lucky, final)
    assert (selected.best.number, selected.measurement.median_s) == (1, 1.0)
    tied = trial(3, measurement(1.005, 0.02)), trial(2, measurement(1.0, 0.02))
    assert selected_of(0.01, *tied).best.number == 2
    for slower_s, spread, noise, is_tied in (
        (1.005, 0.001, 0.01, True),  # certainly slower, by less than two timings of the same code differ
        (1.02, 0.001, 0.01, False),  # certainly slower by more than that
        (1.02, 0.2, 0.01, True),  # slower by more than that, and not certainly so
        (1.5, 0.2, 0.01, False),
        (1.02, 0.001, 0.05, True),  # the noise floor decides, however small the intervals
    ):
        pair = trial(0, noisy(1.0, spread)), trial(1, noisy(slower_s, spread, seed=1))
        assert len(selected_of(noise, *pair).tied) == 1 + is_tied
    fastest = noisy(1.0, 0.1)
    within = measurement(1 + 0.9 * half_width(fastest))
    selected = selected_of(None, trial(0, fastest), trial(1, within), trial(2, measurement(1.5)))
    assert [each.number for each in selected.tied] == [0, 1]
    rounds = 1 + np.random.default_rng(0).random(40) / 2  # both are slowed down; one is 3 % behind in each
    fast, slow = (summarize(list(rounds * scale), 1, np.random.default_rng(0)) for scale in (1.0, 1.03))
    assert slow.interval_s[0] < fast.interval_s[1]
    assert [each.number for each in selected_of(0.01, trial(0, fast), trial(1, slow)).tied] == [0]


@pytest.mark.parametrize(
    ("slower", "noise", "best"),
    [
        (noisy(1.03, 0.2, seed=1), 0.01, 0),  # tied only for being uncertain
        (noisy(1.5, 0.2, seed=1), 1.03, 0),  # two timings of the same code differed by 103 %
        (noisy(1.005, 0.001, seed=1), 0.01, 1),
    ],
    ids=["uncertain", "noisy session", "simpler"],
)
def test_of_the_tied_the_simplest_wins_unless_noisy(slower: Measurement, noise: float, best: int) -> None:
    trials = trial(0, noisy(1.0, 0.001 if best else 0.2), script="a\nb\n"), trial(1, slower, script="a\n")
    selected = selected_of(noise, *trials)
    assert selected.tied == trials
    assert selected.best is trials[best]
    assert select_result(trials, noise) == selected  # whenever it is asked for


def test_a_script_is_simple_by_its_lines_then_by_the_knobs_that_do_something() -> None:
    assert selected_result.script_lines("// why\n\nmodule {\n  // what\n}\n") == 2
    values: dict[str, Value] = {"block": 0, "unroll": 1, "split": "none", "tile": 8, "order": "ji"}
    assert selected_result.knobs_on(Candidate.of("s", values)) == 2
    timed = measurement(1.0)
    short, long = trial(4, timed, script="a\n", knobs=9), trial(4, timed, script="a\nb\n", knobs=1)
    assert complexity(short) < complexity(long)
    busy = trial(4, timed)
    idle = replace(busy, record=replace(busy.record, candidate=Candidate.of("fake", {"knob_0": 0})))
    assert complexity(idle) < complexity(busy)
