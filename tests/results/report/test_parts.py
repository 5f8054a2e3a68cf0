"""What a page is made of, part by part."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results.report.values import many, reported
from tests.trials import measurement, run, top_trial, trial
from tuner.analysis.importance import Ablation, ablate
from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, Stage
from tuner.core.records import Measurement, Verdict
from tuner.core.reliability import unreliable
from tuner.core.roofline import Roofline
from tuner.core.runs import SEED, WARM_START, InitialConfiguration
from tuner.core.trials import StoredTrial
from tuner.results.report import content, run_plots
from tuner.results.report.content import HEIGHT, TICKS, WHISKER, WIDTH, Bar, powers_of_ten, shown_trials
from tuner.results.report.roofline_plot import roofline_of
from tuner.results.report.run_plots import Phase, convergence_of, importance_bars, phases_of
from tuner.results.report.run_section import LINKS_SHOWN, ListedTrial, failure_kinds, stage_bars, trial_rows


def test_reliability_says_what_a_session_is_worth_and_why() -> None:
    differ = "Two timings of the same code differ by"
    replay = replace(run().settings, target=TargetName("replay", "gemm"))
    for of, kind, word, reason in (
        (run(noise=0.012), "good", "noise 1.2%", f"{differ} 1.2%: smaller differences mean nothing."),
        (run(noise=0.3), "warning", "unreliable", "differ by 30.0%: something else was running"),
        (
            run(reliability=unreliable("drifted by 34%: load")),
            "warning",
            "unreliable",
            "drifted by 34%: load.",
        ),
        (run(noise=None), "unknown", "noise not measured", "No code was timed twice"),
        (run(settings=replay), "", "replayed", ""),
    ):
        found = content.reliability_of(of)
        assert (found.colour if kind else "", found.word) == (kind, word)
        assert reason in found.reason


def test_a_bar_is_as_long_as_its_share_and_an_interval_is_seen_however_narrow() -> None:
    assert Bar("tile_m", 0.25, "25 %").length == 0.25 * content.BARS_WIDTH
    assert Bar("tile_m", 1.0, "100 %").whisker is None
    for interval, x, width in (
        ((0.4, 0.6), 400, 200),
        ((0.5, 0.5), 500 - WHISKER / 2, WHISKER),
        ((1.0, 1.0), content.BARS_WIDTH - WHISKER, WHISKER),
    ):
        assert Bar("a", 0.5, "", interval=interval).whisker == pytest.approx((x, width))


WRONG = Failure(Stage.VERIFY, "wrong")


def test_trials_are_listed_fastest_first_and_of_too_many_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = (trial(0, WRONG), trial(1, measurement(2.0)), trial(3, measurement(1.0)))
    assert [each.number for each in shown_trials(reported(trials), 1)] == [3, 1, 0]
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
    assert content.varying_knobs(trials) == {"knob_0"}


def test_a_few_round_numbers_lie_below_the_top_and_powers_of_ten_between_both_ends() -> None:
    for top in (1e-9, 0.7, 1.0, 42.0, 1e9):
        numbers = content.round_numbers(top)
        assert numbers[0] == 0
        assert numbers[-1] < top
        assert TICKS / 2 < len(numbers) <= 2 * TICKS
    assert powers_of_ten(0.5, 200.0) == [1.0, 10.0, 100.0]
    assert powers_of_ten(1.0, 1.0) == [1.0]
    assert powers_of_ten(2.0, 9.0) == []


STAGES = ((Stage.COMPILE, 12), (Stage.COMPILE, 7), (Stage.RUN, 7))
SPILLS = tuple(trial(n, Failure(stage, f"spills {size} bytes")) for n, (stage, size) in enumerate(STAGES))


def test_failures_are_gathered_by_stage_and_reason_without_numbers_with_a_bar_for_each_stage() -> None:
    kinds = failure_kinds(3, (*SPILLS, trial(3, measurement(1.0))))
    assert [(each.stage, each.reason, each.trials) for each in kinds] == [
        (Stage.COMPILE, "spills 12 bytes", (100, 101)),
        (Stage.RUN, "spills 7 bytes", (102,)),
    ]
    found = [(bar.name, bar.share, bar.figure) for bar in stage_bars(failure_kinds(3, SPILLS[::-1]))]
    assert found == [("compile", 1.0, "2 trials"), ("run", 0.5, "1 trial")]


def test_a_kind_leads_to_its_trials_that_are_listed_of_many_to_some_and_rare_ones_have_no_place() -> None:
    spills, crashes = failure_kinds(3, SPILLS)
    assert spills.linked(frozenset({100, 102})) == (100,)
    assert crashes.linked(frozenset({100, 102})) == (102,)
    (many,) = failure_kinds(3, tuple(trial(n, Failure(Stage.COMPILE, "no")) for n in range(LINKS_SHOWN + 5)))
    assert many.linked(frozenset(many.trials)) == many.trials[:LINKS_SHOWN]
    rare = tuple(trial(n, Failure(Stage.COMPILE, "x" * n)) for n in range(1, 20))
    places = [kind.element_id for kind in failure_kinds(3, rare)]
    assert places == [*(f"failure-3-{index}" for index in range(12)), *[""] * 7]


def ablation_of(trials: tuple[StoredTrial, ...]) -> Ablation:
    found = ablate(trials)
    assert isinstance(found, Ablation)
    return found


def test_the_most_important_knob_has_the_longest_bar_and_gains_are_of_trusted_times_only() -> None:
    ablation = ablation_of(many(40))
    shares = [bar.share for bar in importance_bars(ablation)]
    assert (shares, shares[0]) == (sorted(shares, reverse=True), 1)
    assert [", gain" in bar.figure for bar in importance_bars(ablation)] == [True, True]
    assert not any("gain" in bar.figure for bar in importance_bars(ablation, is_trusted=False))
    for rows in (run_plots.knob_rows(ablation), run_plots.strategy_rows(ablation)):  # as wide as their head
        assert len({len(row) for row in rows}) == 1
        assert len(rows) > 1
    alike = ablation_of(tuple(trial(n, measurement(1e-3), knobs=0) for n in range(30)))
    assert importance_bars(alike) == ()
    assert len(run_plots.strategy_rows(alike)) == 2


PROBLEM = run().settings.problem
BEST = top_trial(0, measurement(1e-3))
ROOF = Roofline(PROBLEM.flop / 0.5e-3, PROBLEM.bytes / 0.2e-3)


def test_both_times_are_points_within_the_drawing_and_none_lies_above_the_roofs() -> None:
    drawn = roofline_of(run(2e-3), ROOF, BEST)
    best, baseline = map(drawn.y, drawn.speeds)
    assert 0 < best < baseline < HEIGHT
    assert 0 < drawn.x(drawn.intensity) < WIDTH
    assert all(0 <= y <= HEIGHT for y, _ in drawn.up)
    assert all(0 <= x <= WIDTH for x, _ in drawn.across)
    alone = roofline_of(run(None), ROOF, BEST)
    heights = [float(y) for y in alone.roofs[1:].split(" ")[1::2]]
    assert heights[0] > heights[1] == heights[2]
    assert heights[2] < alone.y(alone.speeds[0])
    low = roofline_of(run(0.5e-3), Roofline(1e6, 1e6), BEST)
    assert low.roof.flop_per_s == max(low.speeds)
    assert low.share == pytest.approx(0.5)  # of the baseline's speed


def test_the_share_of_the_bound_is_reported() -> None:
    for cache_bytes, is_held in ((10**9, True), (1, False)):
        drawn = roofline_of(run(None, machine=replace(run().machine, l3_bytes=cache_bytes)), ROOF, BEST)
        assert drawn.share == pytest.approx(0.5)
        assert (drawn.is_held, drawn.objection) == (is_held, "")


def test_a_row_reports_speed_time_and_the_knobs_that_differ_and_links_to_a_kind_that_is_shown() -> None:
    assert trial_rows((trial(0, measurement(1e-3)), trial(1, WRONG)), {101: "failure-3-0"}) == (
        ListedTrial(100, ("0.001024 GFLOP/s", "1 ms", "unknown"), "knob_0=0"),
        ListedTrial(101, ("failed: verify",), "knob_0=1", "failure-3-0"),
    )
    assert trial_rows((trial(1, WRONG),), {})[0].link == ""
    assert trial_rows((trial(0, Verdict(0.0, 64)),), {})[0].outcome == ("verified",)


# Plots of a run: the best so far.

SIX = tuple(trial(n, measurement(1e-3)) for n in range(6))


def curve(*trials: StoredTrial, baseline_s: float | None = None) -> run_plots.Convergence:
    found = convergence_of(run(baseline_s), trials)
    assert found is not None
    return found


def at(*times_s: float | None) -> list[StoredTrial]:
    return [trial(n, WRONG if s is None else measurement(s)) for n, s in enumerate(times_s)]


def best_line(of: run_plots.Convergence) -> list[tuple[str, float]]:
    """Returns the commands of the path of the best so far; the first one is the start's x."""
    start, rest = re.fullmatch(r"M(\S+) (.*)", of.staircase).groups()  # type: ignore[union-attr]
    return [("M", float(start)), *((c, float(v)) for c, v in re.findall(r"([HV])([\d.]+)", rest))]


def test_the_line_is_a_staircase_that_only_rises_and_reaches_the_edge_with_bands_for_phases() -> None:
    found = curve(*at(4e-6, 2e-6, None, 3e-6, 1e-6))
    line = best_line(found)
    assert [x for command, x in line if command in "MH"] == [72, 216, 648, WIDTH]
    heights = [y for command, y in line if command == "V"]
    assert heights == sorted(heights, reverse=True)
    assert [each.trial for each in found.dots] == [100, 101, 104, 103]
    assert found.failures.startswith("M360 ")
    assert found.best == pytest.approx(2 * 8**3 / 1e-6 / 1e9)
    assert (found.count, found.failed) == (5, (2,))
    assert curve(*at(4e-6, 3e-6)).bands == (run_plots.Band("random", 0, WIDTH),)
    assert run_plots.Band("random", 0, 50).has_space
    assert not run_plots.Band("random", 0, 48).has_space


def test_top_trials_have_a_band_of_their_own_with_their_second_time() -> None:
    timed = replace(trial(0, measurement(2e-3)), final=Measurement((1e-3,), 1, 1e-3, (1e-3, 1e-3)))
    found = curve(timed, trial(1, measurement(2e-3)))
    assert found.final_times[0].gflop_per_s > found.best
    assert WIDTH < found.final_x(1) < found.right == WIDTH + run_plots.FINALS
    assert found.bands[-1] == run_plots.Band("final re-measurement", WIDTH, run_plots.FINALS)
    assert curve(trial(0, measurement(1e-3))).right == WIDTH


def test_phases_are_named_by_the_origins_of_first_points_and_then_by_the_sampler() -> None:
    assert convergence_of(run(), ()) is convergence_of(run(), (trial(0, WRONG),)) is None
    origins = zip(SIX, (WARM_START, SEED, WARM_START), strict=False)
    first = tuple(InitialConfiguration(of.record.candidate, origin) for of, origin in origins)
    begun = replace(run(), settings=replace(run().settings, first=first))
    assert phases_of(begun, SIX) == (Phase("warm start, cost model", 0, 2), Phase("random", 3, 5))
    assert phases_of(run(), SIX[::-1]) == (Phase("random", 0, 5),)
    assert phases_of(run(), ()) == ()


@given(st.lists(st.none() | st.floats(1e-9, 1e3), min_size=1, max_size=60), st.none() | st.floats(1e-9, 1e3))
def test_everything_is_drawn_inside(times_s: list[float | None], baseline_s: float | None) -> None:
    found = curve(*at(1.0, *times_s), baseline_s=baseline_s)
    x = [found.x(each.number) for each in found.dots] + [v for c, v in best_line(found) if c in "MH"]
    y = [found.y(each.gflop_per_s) for each in found.dots] + [v for c, v in best_line(found) if c == "V"]
    y += [place for place, _ in found.up] + [found.y(found.baseline or 0.0)]
    assert all(0 <= each <= WIDTH for each in (*x, *(place for place, _ in found.across)))
    assert all(0 <= each <= HEIGHT for each in y)
    assert 1 <= len(found.up) <= 2 * TICKS


def test_a_long_run_is_thinned_out_but_not_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_plots, "DOTS", 10)
    found = curve(*at(*(1e-3 - 1e-6 * (n // 7) for n in range(300)), *([None] * 300)))
    assert len(found.dots) < 60
    assert found.failures.count("M") <= 10
    assert set(found.incumbents) <= set(found.dots)
