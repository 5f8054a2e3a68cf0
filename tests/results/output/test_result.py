import csv
import json
from dataclasses import replace

import pytest

from tests.cli.conftest import counts
from tests.trials import disturbed, measurement, run, top_trial, trial
from tuner.analysis.selected_result import SelectedResult, select_result
from tuner.core.errors import Failure, Stage
from tuner.core.matmul import Matmul
from tuner.core.queries import Counts, DatabaseInfo
from tuner.core.records import Conditions, GpuState, Verdict
from tuner.core.reliability import unreliable
from tuner.core.roofline import Roofline
from tuner.core.runs import LibraryTime, Run
from tuner.core.trials import AlikeFailures, StoredTrial, alike_failures
from tuner.results.output import formatting, json_documents, run_result
from tuner.results.output.json_documents import csv_cell, history_csv, history_document, trial_document
from tuner.results.output.run_result import counts_text, failure_lines, tied_lines, why_lines
from tuner.results.output.tables import run_lines
from tuner.results.report.content import BestKnown
from tuner.results.report.headline_card import card_of
from tuner.tuning.tuned_run import TunedRun

COUNTS = Counts(12, 9, 0, 3, 4)
FLOP, MOVED = run().settings.problem.flop, run().settings.problem.bytes


def answered(*trials: StoredTrial, noise: float | None = 0.01) -> SelectedResult:
    selected = select_result(trials, noise)
    assert selected is not None
    return selected


def lines(*trials: StoredTrial, baseline_s: float | None = 2e-3, of: Run | None = None) -> str:
    stored = of or run(baseline_s=baseline_s)
    selected = answered(*trials, noise=stored.noise)
    return "\n".join(run_result.result_lines(TunedRun(stored, COUNTS, selected, 12.5), selected))


def test_the_answer_is_reported_with_interval_and_noise_or_why_it_is_unreliable() -> None:
    best = top_trial(0, measurement(1e-3, 0.02))
    drifted = "the baseline drifted by 34%: load"
    quiet = lines(best)
    doubted = lines(disturbed(best, drifted), of=run(reliability=unreliable(drifted)))
    assert "time      1 ms (95 % interval 990 us .. 1.01 ms; noise floor 1.0%)" in quiet
    assert "200.0% of FakeBLAS 1.0" in quiet
    assert not [word for word in ("tied", "unreliable", "libraries", "idle") if word in quiet]
    assert ", unreliable next to FakeBLAS 1.0 (2 ms, " in doubted
    assert "% of FakeBLAS" not in doubted
    assert f"reliable  no: {drifted}\n" in doubted
    assert f"on a quiet machine: tuner tune --resume {run().id} --retime" in doubted
    given = lines(best, of=replace(run(), search_s=8.0, idle_s=1.0))
    assert "in 12 s; measuring worker idle 12% of the search" in given


def screen(best: StoredTrial, of: Run) -> list[str]:
    """Returns the lines that ``tuner tune`` ends with on a terminal of 80 columns."""
    selected = answered(best, noise=of.noise)
    return formatting.wrapped(run_result.tune_lines(TunedRun(of, COUNTS, selected, 12.5), selected))


def test_tune_ends_with_best_time_ratio_and_next_command_and_says_what_has_the_rest() -> None:
    best = top_trial(0, measurement(1e-3, 0.02))
    number = run().id
    assert screen(best, run(baseline_s=2e-3)) == [
        f"best      trial {best.id} of run {number}: fake",
        "time      1 ms (95 % interval 990 us .. 1.01 ms), 0.001024 GFLOP/s, reliable",
        "ratio     2.00 times as fast as FakeBLAS 1.0 (2 ms), 95 % interval 2.00 .. 2.00",
        f"next      tuner export --trial {best.id} -o best.mlir",
        f"more      12 trials in 12 s, 3 failed: tuner show run:{number}",
    ]


def labels_of(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines if not line.startswith(" ")]


@pytest.mark.parametrize(
    ("why", "baseline_s", "labels", "ratio"),
    [
        ("", None, ["best", "time", "next", "more"], ""),
        ("", 1e-3, ["best", "time", "ratio", "next", "more"], "none to FakeBLAS 1.0 (1 ms): "),
        (
            "the baseline drifted by 34%: load, other programs kept 1.2 processors busy",
            2e-3,
            ["best", "time", "ratio", "next", "reliable", "more"],
            "none to FakeBLAS 1.0 (2 ms), as the time is unreliable",
        ),
    ],
)
def test_tune_ends_within_eight_lines_of_80_columns_whatever_became_of_its_times(
    why: str, baseline_s: float | None, labels: list[str], ratio: str
) -> None:
    best = top_trial(0, measurement(1e-3, 0.02))
    of = run(baseline_s=baseline_s)
    if why:
        best = disturbed(best, why)
        of = run(baseline_s=baseline_s, reliability=unreliable(why))
    shown = screen(best, of)
    assert labels_of(shown) == labels
    assert len(shown) <= 8
    assert max(map(len, shown)) <= 80
    assert ratio in "\n".join(shown)


MKL = LibraryTime("mkl", "MKL 2026.2 avx512", 2e-3, (1.9e-3, 2.1e-3))
BLIS = LibraryTime("blis", "", failure="exited with SIGSEGV")


def compared_with(*libraries: LibraryTime, of: Run = run()) -> Run:  # noqa: B008 - frozen
    assert of.baseline is not None
    settings = replace(of.settings, baseline_library="best")
    return replace(of, settings=settings, baseline=replace(of.baseline, libraries=libraries))


def test_the_libraries_of_a_chosen_baseline_are_listed_with_times_and_operands() -> None:
    openblas = LibraryTime("openblas", "openblas 0.3.30 SkylakeX", 3e-3, (2.9e-3, 3.1e-3))
    best = compared_with(MKL, openblas, BLIS)
    assert (
        "\nlibraries MKL 2026.2 avx512 2 ms; openblas 0.3.30 SkylakeX 3 ms; "
        "blis: failed: exited with SIGSEGV (1 thread, operands 16 bytes past a cache line)\n"
    ) in lines(top_trial(0, measurement(1e-3, 0.02)), of=best)
    one = lines(top_trial(0, measurement(1e-3, 0.02)), of=compared_with())
    assert "\nlibraries FakeBLAS 1.0 (1 thread, operands 16 bytes past a cache line)\n" in one


def test_a_round_that_cannot_separate_trials_calls_none_tied() -> None:
    trials = tuple(top_trial(number, measurement(1e-3 * (1 + 0.6 * number), 0.02)) for number in range(2))
    noisy, clear = answered(*trials, noise=0.7), answered(*trials)
    line, again = tied_lines(noisy, run())
    assert line.startswith("unclear   this round of timing cannot separate it from trial 101 (+60.0%)")
    assert again == f"          on a quiet machine: tuner tune --resume {run().id} --retime"
    doubted = answered(*map(disturbed, trials), noise=0.7)
    # its line on reliability has the command
    (without,) = tied_lines(doubted, run(reliability=unreliable("load")))
    assert without == line.replace(" (+60.0%)", "")
    assert tied_lines(clear, run()) == []


def test_the_answer_is_compared_with_the_limits_of_the_machine() -> None:
    share = "of what 1 thread can do"
    reached = f"roofline  100.0% {share} ({FLOP / 1e6:.4g} GFLOP/s, reached by a kernel and"
    for limits, text in (
        (Roofline(FLOP / 0.5e-3, MOVED / 0.2e-3), f"roofline  50.0% {share}"),
        (Roofline(1e5, 1e9), reached),  # at least what the best trial reached
        (Roofline(2e12, 1e11, "measured by AMX"), "(2000 GFLOP/s by AMX and 100.0 GB/s, measured)"),
        (Roofline(2e12, 1e11, "measured by FMA"), "(2000 GFLOP/s and 100.0 GB/s, measured)"),
    ):
        assert text in lines(top_trial(0, measurement(1e-3)), of=run(baseline_s=None, roofline=limits))
    of = run(baseline_s=None, reliability=unreliable("load"), roofline=limits)
    said = "roofline  no share, as the time is unreliable; 1 thread can do 2000 GFLOP/s and 100.0 GB/s"
    assert said in lines(disturbed(top_trial(0, measurement(1e-3))), of=of)


def test_cold_weights_of_few_rows_have_a_share_of_the_read_bandwidth() -> None:
    def line(cache: str, m: int, n: int = 4096) -> str:
        problem = Matmul(m, n, 4096, layout="nt", weights="i4-g32-f16", cache=cache)
        stored = run(baseline_s=None, roofline=Roofline(1e15, problem.bytes / 0.5e-3))
        machine = replace(stored.machine, l2_bytes=2**20)
        stored = replace(stored, settings=replace(stored.settings, problem=problem), machine=machine)
        return lines(top_trial(0, measurement(1e-3)), of=stored)

    assert ", measured), 50% of read bandwidth\n" in line("weights-cold", 16)
    others = line("weights-cold", 17) + line("warm", 1) + line("weights-cold", 1, n=1)
    assert "of read bandwidth" not in others


def test_what_the_cache_holds_is_not_moved() -> None:
    limits = Roofline(FLOP / 0.5e-3, MOVED / 0.2e-3)
    least_s = [limits.least_s(FLOP, 10 * MOVED, cache_bytes) for cache_bytes in (10 * MOVED - 1, 10 * MOVED)]
    assert least_s == pytest.approx([2e-3, 0.5e-3])


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


def test_without_a_baseline_only_the_speed_is_reported() -> None:
    text = lines(top_trial(0, measurement(1e-3)), baseline_s=None)
    assert "%" not in text.split("speed")[1].splitlines()[0]
    assert run_result.baseline_text(run(baseline_s=None), top_trial(0, measurement(1.0))) == ""


def test_the_tied_are_listed_but_not_without_end_and_a_throttled_time_is_reported() -> None:
    text = lines(*(top_trial(number, measurement(1e-3 + number * 1e-8, 0.02)) for number in range(12)))
    assert "tied      with trials 101, 102, 103" in text
    assert "108 and 3 more: not shown to differ by more than noise; the simplest" in text
    state = GpuState(1.4e9, 2.6e9, 84.0, 700.0, ("power cap",))
    timed = replace(measurement(1e-3), conditions=Conditions(state, state))
    assert "throttled by power cap: the GPU can be faster than this time" in lines(top_trial(0, timed))


def test_counts_and_a_run_that_found_nothing_report_what_became_of_trials() -> None:
    assert counts_text(COUNTS) == "12 trials: 9 measured, 3 failed, 4 of them reused (same code)"
    assert counts_text(Counts(1, 1)) == "1 trial: 1 measured, 0 failed"
    assert counts_text(Counts(4, 1)) == "4 trials: 1 measured, 0 failed, 3 without an outcome"
    assert failure_lines(TunedRun(run(), Counts(), None, 1.0)) == ["no candidate was tried"]
    alike = AlikeFailures(Failure(Stage.RUN, "killed by SIGSEGV"), (4, 5, 6))
    failed = TunedRun(run(), Counts(3, 0, 0, 3), None, 1.0, failures=(alike,))
    assert failure_lines(failed) == [
        "no candidate worked: 3 trials: 0 measured, 3 failed",
        "  3 x run: killed by SIGSEGV",
        "  more: tuner explain 4",
        "        tuner history --run 3 --status failed",
    ]


def test_where_nothing_worked_the_most_frequent_failure_and_a_command_that_shows_one_are_named() -> None:
    reasons = ("tile 4: too large", "exited", "tile 8: too large")
    trials = [trial(place, Failure(Stage.COMPILE, reason)) for place, reason in enumerate(reasons)]
    failed = TunedRun(run(), Counts(3, 0, 0, 3), None, 1.0, failures=alike_failures(trials))
    why = "2 of 3 trials failed at compile: tile 4: too large"
    assert why_lines(failed, " --db a.db") == [why, "tuner explain 100 --db a.db"]
    assert run_lines(failed)[-2:] == [f"why       {why}", "          tuner explain 100"]
    worked = replace(failed, counts=Counts(4, 0, 1, 3))
    assert why_lines(worked) == why_lines(TunedRun(run(), Counts(), None, 1.0)) == []


# The keys of command-line.md, which other programs rely on.

MEASURED = top_trial(7, measurement(1e-3, 0.02))
FAILED = trial(8, Failure(Stage.VERIFY, "element (0, 1): found 2, expected 1"))
DOCUMENT_COUNTS = Counts(5, 3, 1, 1, 2)
HISTORY_KEYS = {
    *("trial", "run", "problem", "target", "strategy", "knobs"),
    *("status", "stage", "reason", "median_s", "gflop_per_s", "created"),
}


def tuned_document(of: Run = run(), best: StoredTrial | None = MEASURED) -> json_documents.Document:  # noqa: B008 - frozen
    selected = None if best is None else answered(best)
    return json_documents.tune_document(of, DOCUMENT_COUNTS, selected, 12.5)


def test_tune_has_the_keys_of_the_contract_and_null_for_what_it_did_not_find() -> None:
    document = tuned_document()
    assert document.keys() >= {"run", "problem", "target", "counts", "best", "seconds"}
    assert document["problem"].keys() >= {"op", "shape", "dtype", "layout"}
    assert document["counts"] == counts(proposed=5, measured=3, verified=1, failed=1, reused=2)
    assert document["best"].keys() == {
        *("trial", "strategy", "knobs", "median_s", "interval_s", "gflop_per_s", "baseline"),
        *("cold_median_s", "conditions", "reliability", "unreliable", "custom_ops", "offsets", "sensitive"),
    }
    assert document["best"]["baseline"].keys() >= {"name", "median_s", "ratio"}
    best = document["best"]
    assert (document["problem"]["shape"], best["trial"], document["seconds"]) == ([8, 8, 8], 107, 12.5)
    assert best["gflop_per_s"] == pytest.approx(2 * 8**3 / 1e-3 / 1e9)
    assert best["interval_s"] == [pytest.approx(0.99e-3), pytest.approx(1.01e-3)]
    assert best["baseline"]["ratio"] == pytest.approx(2.0)  # twice as fast as the baseline
    own = trial(7, measurement(1e-3, 0.02), script='"tuner.dot"(%x)\n')
    assert tuned_document(best=own)["best"]["custom_ops"] == ["tuner.dot"]
    assert tuned_document()["best"]["custom_ops"] == []
    assert tuned_document(best=None)["best"] is None
    assert tuned_document(run(baseline_s=None))["best"]["baseline"] is None


def test_a_baseline_names_what_was_chosen_and_every_library_with_its_time_or_its_failure() -> None:
    document = tuned_document(compared_with(MKL, BLIS))["best"]["baseline"]
    assert (document["choice"], document["threads"], document["operands_offset_bytes"]) == ("best", 1, 16)
    mkl, blis = document["libraries"]
    assert (mkl["library"], mkl["name"], mkl["median_s"]) == ("mkl", "MKL 2026.2 avx512", 2e-3)
    assert (blis["library"], blis["median_s"], blis["failure"]) == ("blis", None, "exited with SIGSEGV")
    default = tuned_document()["best"]["baseline"]
    assert (default["choice"], default["libraries"]) == (None, [])


def test_of_an_unreliable_answer_no_ratio_is_reported() -> None:
    document = tuned_document(run(reliability=unreliable("load")), disturbed(MEASURED))
    best, tied = document["best"], document["tied_set"][0]
    assert best["unreliable"] == best["baseline"]["ratio_unknown"] == tied["slowdown_unknown"] == "load"
    assert best["baseline"]["ratio"] is best["baseline"]["ratio_interval"] is tied["slowdown"] is None
    quiet = tuned_document()
    assert (document["can_separate"], quiet["can_separate"]) == (False, True)
    assert quiet["best"]["unreliable"] is None
    assert history_document(replace(MEASURED, reliability=unreliable("load")))["unreliable"] == "load"


def test_every_output_has_the_reliability_that_the_trial_carries() -> None:
    of = disturbed(MEASURED)
    assert "reliable  no: load\n" in lines(of)
    assert run_result.best_text(of, run()).endswith("; unreliable: load")
    document = tuned_document(best=of)
    assert (document["best"]["reliability"], document["best"]["unreliable"]) == ("unreliable: load", "load")
    assert document["can_separate"] is False
    history = history_document(of)
    assert (history["reliability"], history["unreliable"]) == ("unreliable: load", "load")
    assert card_of(BestKnown(answered(of), run())).is_doubted


def test_history_reports_what_became_of_a_trial() -> None:
    for tried, given in (
        (MEASURED, ("measured", None, None, 1e-3)),
        (FAILED, ("failed", "verify", "element (0, 1): found 2, expected 1", None)),
        (trial(9, Verdict(0.5, 64)), ("verified", None, None, None)),
        (trial(1, measurement(1.0), final=measurement(2.0)), ("measured", None, None, 2.0)),
    ):
        document = history_document(tried)
        assert document.keys() == history_document(MEASURED).keys() >= HISTORY_KEYS
        assert tuple(document[key] for key in ("status", "stage", "reason", "median_s")) == given
        assert (document["gflop_per_s"] is None) == (given[-1] is None)
        assert document["created"] == "2026-01-31T12:00:00Z"


def test_documents_are_json_and_hold_everything() -> None:
    document = trial_document(trial(1, measurement(1.0), final=measurement(2.0)))
    assert (document["measurement"]["samples_s"], document["final"]["median_s"]) == ([1.0] * 6, 2.0)
    assert document["stages_s"] == {"bind": 0.001, "measure": 0.2}
    assert document["verdict"] == {"max_error": 0.25, "elements": 64, "notes": []}
    assert (document["resources"], document["script"]) == ([], "module {}\n")
    document = json_documents.run_document(run(), DOCUMENT_COUNTS, select_result((MEASURED,), 0.01))
    assert (document["sampler"], document["seed"], document["trials"]) == ("random", 0, 12)
    assert document["compiler"].startswith("fake 1.0")
    for each in (tuned_document(), document, trial_document(FAILED)):
        assert json.loads(json.dumps(each, allow_nan=False)) == each
    info = DatabaseInfo("sqlite:///x.db", "0001", 2, 30, ("matmul 8x8x8 f32 nn none",))
    document = json_documents.database_document(info)
    assert (document["runs"], document["trials"], document["revision"]) == (2, 30, "0001")


def test_csv_reads_back() -> None:
    rows = list(csv.DictReader(history_csv((MEASURED, FAILED))))
    assert [row["trial"] for row in rows] == ["107", "108"]
    assert rows[0]["shape"] == "8x8x8"
    assert json.loads(rows[0]["knobs"]) == {"knob_0": 7}
    assert rows[1]["reason"] == "element (0, 1): found 2, expected 1"
    (header,) = history_csv(())
    assert header.startswith("trial,run,op,shape,")


def test_a_cell_that_would_be_a_formula_is_a_text_and_others_stay() -> None:
    for text in ("=1+1", "+SUM(A1)", "-2+3|cmd", "@x", "\tx", "\rx", "-", "--", "-1.5.2"):
        assert csv_cell(text) == "'" + text.replace("\t", "\\t").replace("\r", "\\r")
    for value in ("", "matmul", "8x8x8", "-1.5", "1e-3", "-1E-3", "+7", -1.5, 1e-3, None, True):
        assert csv_cell(value) == value
