from dataclasses import replace

from tests.library.bundle.values import PROBLEM, RESULTS, measured, timed
from tuner.core.remote_results import FinalTime, RemoteResults
from tuner.library.bundle.session import MeasuringCounts, best_lines, best_of, summary_document


def test_without_remeasurement_the_fastest_is_the_best() -> None:
    slow, fast = measured(0, timed(2e-3)), measured(1, timed(1e-3))
    assert best_of(replace(RESULTS, trials=(slow, fast), final_times=()))[PROBLEM][0] == fast


def test_where_there_are_remeasurement_only_they_count() -> None:
    lucky, steady, slow = (measured(number, timed(s)) for number, s in ((0, 1e-3), (1, 2e-3), (2, 3e-3)))
    final_times = tuple(
        FinalTime(trial.origin, PROBLEM, timed(s)) for trial, s in ((steady, 2.1e-3), (slow, 2.9e-3))
    )
    results = RemoteResults(RESULTS.provenance, (lucky, steady, slow), final_times)
    assert best_of(results)[PROBLEM] == (steady, timed(2.1e-3))


def test_times_that_were_cut_short_are_no_best() -> None:
    cut = measured(0, replace(timed(), is_complete=False))
    assert best_of(replace(RESULTS, trials=(cut,), final_times=())) == {}


def test_a_line_reports_time_speed_and_the_baseline_next_to_it() -> None:
    (line,) = best_lines(RESULTS)
    assert line.startswith(
        "matmul 16x8x8 f32 nn none: 2 ms (reliable), 0 GFLOP/s, 1.50x (1.50 .. 1.50) cuBLAS 13.1.0; "
        "trial 100: "
    )


def test_the_document_holds_the_same() -> None:
    document = summary_document("r.jsonl", MeasuringCounts(1, 1, 2, 3), RESULTS, 4.0)
    assert document["counts"] == {"measured": 1, "failed": 1, "left": 2, "other_chips": 3}
    (best,) = document["best"]
    assert (best["trial"], best["median_s"], best["baseline_s"]) == (100, 2e-3, 3e-3)
    assert document["machine"] == "Stub GPU"
