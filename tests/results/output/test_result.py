from dataclasses import replace

import pytest

from tests.trials import measurement, run, top_trial
from tuner.analysis.selected_result import SelectedResult, select_result
from tuner.core.machine import Conditions, GpuState, Roofline
from tuner.core.runs import Counts, LibraryTime, Run, StoredTrial
from tuner.results.output.run_result import (
    baseline_text,
    counts_text,
    failure_lines,
    result_lines,
    tied_lines,
)
from tuner.tuning.tuned_run import TunedRun

COUNTS = Counts(12, 9, 0, 3, 4)


def answered(*trials: StoredTrial, noise: float | None = 0.01) -> SelectedResult:
    selected = select_result(trials, noise)
    assert selected is not None
    return selected


def lines(*trials: StoredTrial, baseline_s: float | None = 2e-3, of: Run | None = None) -> str:
    stored = of or run(baseline_s=baseline_s)
    selected = answered(*trials, noise=stored.noise)
    return "\n".join(result_lines(TunedRun(stored, COUNTS, selected, 12.5), selected))


def test_the_answer_is_reported_with_its_interval_and_noise() -> None:
    text = lines(top_trial(0, measurement(1e-3, 0.02)))
    assert "time      1 ms (95 % interval 990 us .. 1.01 ms; noise floor 1.0%)" in text
    assert "200.0% of FakeBLAS 1.0" in text
    assert "tied" not in text


def test_an_unreliable_answer_says_why_in_place_of_a_percentage() -> None:
    disturbed, quiet = (
        lines(top_trial(0, measurement(1e-3, 0.02)), of=run(unreliable=reason))
        for reason in ("the baseline drifted by 34%: load", "")
    )
    assert ", unreliable next to FakeBLAS 1.0 (2 ms, " in disturbed
    assert "% of FakeBLAS" not in disturbed
    assert "badge     unreliable: the baseline drifted by 34%: load\n" in disturbed
    assert f"on a quiet machine: tuner tune --resume {run().id} --retime" in disturbed
    assert "unreliable" not in quiet
    assert "200.0% of FakeBLAS 1.0" in quiet


def test_the_libraries_of_a_chosen_baseline_are_listed_with_times_and_operands() -> None:
    libraries = (
        LibraryTime("mkl", "MKL 2026.2 avx512", 2e-3, (1.9e-3, 2.1e-3)),
        LibraryTime("openblas", "openblas 0.3.30 SkylakeX", 3e-3, (2.9e-3, 3.1e-3)),
        LibraryTime("blis", "", failure="exited with SIGSEGV"),
    )
    stored = run()
    assert stored.baseline is not None
    chosen = replace(stored.settings, baseline_library="best")
    best = replace(stored, settings=chosen, baseline=replace(stored.baseline, libraries=libraries))
    assert (
        "\nlibraries MKL 2026.2 avx512 2 ms; openblas 0.3.30 SkylakeX 3 ms; "
        "blis: failed: exited with SIGSEGV (1 thread, operands 16 bytes past a cache line)\n"
    ) in lines(top_trial(0, measurement(1e-3, 0.02)), of=best)
    one = lines(top_trial(0, measurement(1e-3, 0.02)), of=replace(stored, settings=chosen))
    assert "\nlibraries FakeBLAS 1.0 (1 thread, operands 16 bytes past a cache line)\n" in one
    assert "libraries" not in lines(top_trial(0, measurement(1e-3, 0.02)))


def test_a_round_that_cannot_separate_trials_calls_none_tied() -> None:
    trials = tuple(top_trial(number, measurement(1e-3 * (1 + 0.6 * number), 0.02)) for number in range(2))
    noisy, clear = answered(*trials, noise=0.7), answered(*trials)
    line, again = tied_lines(noisy, run())
    assert line.startswith("unclear   this round of timing cannot separate it from 101 (+60.0%)")
    assert again == f"          on a quiet machine: tuner tune --resume {run().id} --retime"
    (unreliable,) = tied_lines(noisy, run(unreliable="load"))  # its badge has the command
    assert unreliable == line.replace(" (+60.0%)", "")
    assert tied_lines(clear, run()) == []


def test_the_answer_is_compared_with_the_measured_limits_of_the_machine() -> None:
    flop, moved = run().settings.problem.flop, run().settings.problem.bytes
    limits = Roofline(flop / 0.5e-3, moved / 0.2e-3)
    given = lines(top_trial(0, measurement(1e-3)), of=run(baseline_s=None, roofline=limits))
    assert "roofline  50.0% of what 1 thread can do" in given
    assert limits.least_s(flop, 10 * moved, 10 * moved - 1) == pytest.approx(2e-3)
    assert limits.least_s(flop, 10 * moved, 10 * moved) == pytest.approx(0.5e-3)


def test_a_roofline_is_at_least_what_the_best_trial_reached() -> None:
    flop = run().settings.problem.flop
    given = lines(top_trial(0, measurement(1e-3)), of=run(baseline_s=None, roofline=Roofline(1e5, 1e9)))
    reached = f"{flop / 1e-3 / 1e9:.4g} GFLOP/s"
    assert f"roofline  100.0% of what 1 thread can do ({reached}, reached by a kernel and" in given


@pytest.mark.parametrize(
    ("source", "peak"),
    [("measured by AMX", "2000 GFLOP/s by AMX and"), ("measured by FMA", "2000 GFLOP/s and")],
)
def test_a_roofline_of_other_instructions_than_multiply_adds_names_them(source: str, peak: str) -> None:
    limits = Roofline(2e12, 1e11, source)
    given = lines(top_trial(0, measurement(1e-3)), of=run(baseline_s=None, roofline=limits))
    assert f"({peak} 100.0 GB/s, measured)" in given


def test_on_a_gpu_nothing_is_said_of_threads_and_the_source_of_the_peak_is() -> None:
    stored = run(baseline_s=2e-3)
    assert stored.baseline is not None
    gpu = replace(stored.machine, name="NVIDIA H200", chip="sm_90", isa="ptx")
    limits = Roofline(989e12, 4.8e12, "documented, at 1980 MHz")
    stored = replace(stored, machine=gpu, baseline=replace(stored.baseline, threads=0), roofline=limits)
    text = lines(top_trial(0, measurement(1e-3)), of=stored)
    peaks = "9.89e+05 GFLOP/s, documented, at 1980 MHz and 4800.0 GB/s, measured"
    assert f"of what this GPU can do ({peaks})" in text
    assert "thread" not in text


def test_a_throttled_time_is_reported_as_such() -> None:
    state = GpuState(1.4e9, 2.6e9, 84.0, 700.0, ("power cap",))
    timed = replace(measurement(1e-3), conditions=Conditions(state, state))
    assert "throttled by power cap: the GPU can be faster than this time" in lines(top_trial(0, timed))


def test_without_a_baseline_only_the_speed_is_reported() -> None:
    assert (
        "%" not in lines(top_trial(0, measurement(1e-3)), baseline_s=None).split("speed")[1].splitlines()[0]
    )
    assert baseline_text(run(baseline_s=None), top_trial(0, measurement(1.0))) == ""


def test_the_tied_are_listed_but_not_without_end() -> None:
    text = lines(*(top_trial(number, measurement(1e-3 + number * 1e-8, 0.02)) for number in range(12)))
    assert "tied      with 101, 102, 103" in text
    assert "108 and 3 more: not shown to differ by more than noise; the simplest" in text


def test_the_idle_share_of_the_measuring_worker_is_reported_where_it_is_known() -> None:
    stored = replace(run(), search_s=8.0, idle_s=1.0)
    given = lines(top_trial(0, measurement(1e-3)), of=stored)
    assert "in 12 s; measuring worker idle 12% of the search" in given
    assert "idle" not in lines(top_trial(0, measurement(1e-3)))


def test_counts_report_what_was_reused() -> None:
    assert counts_text(COUNTS) == "12 trials: 9 measured, 3 failed, 4 of them reused (same code)"
    assert counts_text(Counts(1, 1)) == "1 trial: 1 measured, 0 failed"


def test_a_run_that_found_nothing_reports_the_commonest_reasons() -> None:
    nothing = failure_lines(TunedRun(run(), Counts(0, 0, 0, 0), None, 1.0), [])
    assert nothing == ["no candidate was tried: the budget was spent before the first"]
    given = failure_lines(TunedRun(run(), Counts(3, 0, 0, 3), None, 1.0), [("run: killed by SIGSEGV", 3)])
    assert given[0] == "no candidate worked: 3 trials: 0 measured, 3 failed"
    assert given[1] == "  3 x run: killed by SIGSEGV"
    assert "tuner history --run 3 --status failed" in given[2]
