"""What a page is made of, part by part."""

from dataclasses import replace

import pytest

from tests.results.report.values import many, reported
from tests.trials import measurement, run, top_trial, trial
from tuner.analysis.importance import Ablation, ablate
from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, Stage
from tuner.core.machine import Roofline
from tuner.core.records import Verdict
from tuner.core.runs import StoredTrial
from tuner.results.report import content
from tuner.results.report.content import (
    HEIGHT,
    TICKS,
    WHISKER,
    WIDTH,
    Bar,
    badge_of,
    powers_of_ten,
    round_numbers,
    shown_trials,
    varying_knobs,
)
from tuner.results.report.run_plots import importance_bars, knob_rows, roofline_of, strategy_rows
from tuner.results.report.run_section import LINKS_SHOWN, ListedTrial, failure_kinds, stage_bars, trial_rows


def test_a_quiet_session_reports_its_noise() -> None:
    found = badge_of(run(noise=0.012))
    assert (found.kind, found.word) == ("good", "noise 1.2%")
    assert found.reason == "Two timings of the same code differ by 1.2%: smaller differences mean nothing."


def test_a_noisy_session_is_a_warning() -> None:
    found = badge_of(run(noise=0.3))
    assert (found.kind, found.word) == ("warning", "unreliable")
    assert "differ by 30.0%: something else was running" in found.reason


def test_an_unreliable_answer_says_why() -> None:
    found = badge_of(run(unreliable="the baseline drifted by 34%: load"))
    assert (found.kind, found.word) == ("warning", "unreliable")
    assert found.reason == "the baseline drifted by 34%: load."


def test_a_session_whose_noise_nobody_measured_is_unknown() -> None:
    found = badge_of(run(noise=None))
    assert (found.kind, found.word) == ("unknown", "noise not measured")


def test_a_replay_reports_that_nothing_ran() -> None:
    given = replace(run(), settings=replace(run().settings, target=TargetName("replay", "gemm")))
    assert badge_of(given).word == "replayed"


def test_a_bar_is_as_long_as_its_share() -> None:
    assert Bar("tile_m", 0.25, "25 %").length == 0.25 * content.BARS_WIDTH
    assert Bar("tile_m", 1.0, "100 %").whisker is None


@pytest.mark.parametrize(
    ("interval", "x", "width"),
    [
        ((0.4, 0.6), 400, 200),
        ((0.5, 0.5), 500 - WHISKER / 2, WHISKER),
        ((1.0, 1.0), content.BARS_WIDTH - WHISKER, WHISKER),
    ],
)
def test_an_interval_is_seen_however_narrow(interval: tuple[float, float], x: float, width: float) -> None:
    assert Bar("a", 0.5, "", interval=interval).whisker == pytest.approx((x, width))


WRONG = Failure(Stage.VERIFY, "wrong")


def test_trials_are_listed_fastest_first_and_failed_last() -> None:
    trials = (trial(0, WRONG), trial(1, measurement(2.0)), trial(3, measurement(1.0)))
    assert [each.number for each in shown_trials(reported(trials), 1)] == [3, 1, 0]


def test_of_too_many_trials_the_fastest_and_a_sample_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "TRIALS_SHOWN", 40)
    monkeypatch.setattr(content, "TRIALS_SHOWN_OF_RUN", 10)
    many = reported(tuple(trial(n, measurement(1.0 + n)) for n in range(100)))
    numbers = [each.number for each in shown_trials(many, 2)]
    assert len(numbers) == len(set(numbers)) == 20
    assert numbers[:10] == list(range(10))
    assert numbers[-1] > 90
    assert len(shown_trials(many, 20)) == 10
    assert len(shown_trials(reported(many.trials[:20]), 2)) == 20


def test_knobs_of_one_value_do_not_vary() -> None:
    trials = (trial(1, WRONG, knobs=2), trial(10, WRONG, knobs=1), trial(2, WRONG, knobs=1))
    assert varying_knobs(trials) == {"knob_0": (1, 2, 10)}


@pytest.mark.parametrize("top", [1e-9, 0.7, 1.0, 42.0, 1e9])
def test_a_few_round_numbers_lie_below_the_top(top: float) -> None:
    numbers = round_numbers(top)
    assert numbers[0] == 0
    assert numbers[-1] < top
    assert TICKS / 2 < len(numbers) <= 2 * TICKS


def test_powers_of_ten_lie_between_both_ends() -> None:
    assert powers_of_ten(0.5, 200.0) == [1.0, 10.0, 100.0]
    assert powers_of_ten(1.0, 1.0) == [1.0]
    assert powers_of_ten(2.0, 9.0) == []


SPILLS = (
    trial(0, Failure(Stage.COMPILE, "spills 12 bytes")),
    trial(1, Failure(Stage.COMPILE, "spills 7 bytes")),
    trial(2, Failure(Stage.RUN, "spills 7 bytes")),
)


def test_failures_are_gathered_by_stage_and_reason_without_numbers() -> None:
    kinds = failure_kinds(3, (*SPILLS, trial(3, measurement(1.0))))
    assert [(each.stage, each.reason, each.trials) for each in kinds] == [
        (Stage.COMPILE, "spills 12 bytes", (100, 101)),
        (Stage.RUN, "spills 7 bytes", (102,)),
    ]


def test_each_stage_has_a_bar_in_the_order_of_stages() -> None:
    found = stage_bars(failure_kinds(3, SPILLS[::-1]))
    assert [(bar.name, bar.share, bar.figure) for bar in found] == [
        ("compile", 1.0, "2 trials"),
        ("run", 0.5, "1 trial"),
    ]


def test_a_kind_leads_to_its_trials_that_are_listed_and_of_many_to_some() -> None:
    spills, crashes = failure_kinds(3, SPILLS)
    assert spills.linked(frozenset({100, 102})) == (100,)
    assert crashes.linked(frozenset({100, 102})) == (102,)
    trials = tuple(trial(n, Failure(Stage.COMPILE, "no")) for n in range(LINKS_SHOWN + 5))
    (many,) = failure_kinds(3, trials)
    assert many.linked(frozenset(many.trials)) == many.trials[:LINKS_SHOWN]


def test_rare_kinds_of_failure_have_no_place() -> None:
    trials = tuple(trial(n, Failure(Stage.COMPILE, "x" * n)) for n in range(1, 20))
    places = [kind.place for kind in failure_kinds(3, trials)]
    assert places == [*(f"failure-3-{index}" for index in range(12)), *[""] * 7]


def ablation_of(trials: tuple[StoredTrial, ...]) -> Ablation:
    found = ablate(trials)
    assert isinstance(found, Ablation)
    return found


def test_the_most_important_knob_has_the_longest_bar() -> None:
    shares = [bar.share for bar in importance_bars(ablation_of(many(40)))]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1


def test_gains_are_reported_of_times_that_are_trusted_only() -> None:
    ablation = ablation_of(many(40))
    assert [", gain" in bar.figure for bar in importance_bars(ablation)] == [True, True]
    assert not any("gain" in bar.figure for bar in importance_bars(ablation, is_trusted=False))


def test_each_row_of_the_tables_is_as_wide_as_its_head() -> None:
    for rows in (knob_rows(ablation_of(many(40))), strategy_rows(ablation_of(many(40)))):
        assert len({len(row) for row in rows}) == 1
        assert len(rows) > 1


def test_without_a_knob_that_varies_only_strategies_are_reported() -> None:
    alike = ablation_of(tuple(trial(n, measurement(1e-3), knobs=0) for n in range(30)))
    assert importance_bars(alike) == ()
    assert len(strategy_rows(alike)) == 2


PROBLEM = run().settings.problem
BEST = top_trial(0, measurement(1e-3))
ROOF = Roofline(PROBLEM.flop / 0.5e-3, PROBLEM.bytes / 0.2e-3)


def test_both_times_are_points_within_the_drawing() -> None:
    drawn = roofline_of(run(2e-3), ROOF, BEST)
    best, baseline = map(drawn.y, drawn.speeds)
    assert 0 < best < baseline < HEIGHT
    assert 0 < drawn.x(drawn.intensity) < WIDTH
    assert all(0 <= y <= HEIGHT for y, _ in drawn.up)
    assert all(0 <= x <= WIDTH for x, _ in drawn.across)


def test_the_roof_is_above_what_is_slower_than_it() -> None:
    drawn = roofline_of(run(None), ROOF, BEST)
    heights = [float(y) for y in drawn.roofs[1:].split(" ")[1::2]]
    assert heights[0] > heights[1] == heights[2]
    assert heights[2] < drawn.y(drawn.speeds[0])


@pytest.mark.parametrize(("cache_bytes", "is_held"), [(10**9, True), (1, False)])
def test_the_share_of_the_bound_is_reported(cache_bytes: int, is_held: bool) -> None:
    of = run(None, machine=replace(run().machine, l3_bytes=cache_bytes))
    drawn = roofline_of(of, ROOF, BEST)
    assert drawn.share == pytest.approx(0.5)
    assert (drawn.is_held, drawn.objection) == (is_held, "")


def test_no_point_lies_above_the_roofs() -> None:
    low = Roofline(1e6, 1e6)
    drawn = roofline_of(run(0.5e-3), low, BEST)
    assert drawn.roof.flop_per_s == max(drawn.speeds)
    assert drawn.share == pytest.approx(0.5)  # of the baseline's speed


FAILED = trial(1, Failure(Stage.VERIFY, "wrong"))


def test_a_row_reports_speed_time_and_the_knobs_that_differ() -> None:
    assert trial_rows((trial(0, measurement(1e-3)), FAILED), {101: "failure-3-0"}) == (
        ListedTrial(100, ("0.001024 GFLOP/s", "1 ms", "unknown"), "knob_0=0"),
        ListedTrial(101, ("failed: verify",), "knob_0=1", "failure-3-0"),
    )


def test_a_failure_of_a_kind_that_is_not_shown_is_no_link() -> None:
    assert trial_rows((FAILED,), {})[0].link == ""


def test_what_was_only_verified_has_no_time() -> None:
    assert trial_rows((trial(0, Verdict(0.0, 64)),), {})[0].outcome == ("verified",)
