"""The keys of command-line.md, which other programs rely on."""

import csv
import io
import json
from dataclasses import replace

import pytest

from tests.trials import measurement, run, top_trial, trial
from tuner.analysis.selected_result import select_result
from tuner.core.errors import Failure, Stage
from tuner.core.records import Verdict
from tuner.core.reliability import unreliable
from tuner.core.runs import Counts, DatabaseInfo, LibraryTime, StoredTrial
from tuner.results.output.json_documents import (
    Document,
    csv_cell,
    database_document,
    history_csv,
    history_document,
    run_document,
    trial_document,
    tune_document,
)

MEASURED = top_trial(7, measurement(1e-3, 0.02))
FAILED = trial(8, Failure(Stage.VERIFY, "element (0, 1): found 2, expected 1"))
COUNTS = Counts(5, 3, 1, 1, 2)
HISTORY_KEYS = {
    *("trial", "run", "number", "problem", "target", "strategy", "knobs"),
    *("status", "stage", "reason", "median_s", "gflop_per_s", "created"),
}


def tuned() -> Document:
    return tune_document(run(), COUNTS, select_result((MEASURED,), 0.01), 12.5)


def test_tune_has_the_keys_of_the_contract() -> None:
    document = tuned()
    assert document.keys() >= {"run", "problem", "target", "counts", "best", "seconds"}
    assert document["problem"].keys() >= {"op", "shape", "dtype", "layout"}
    assert document["counts"] == {
        "proposed": 5,
        "measured": 3,
        "verified": 1,
        "failed": 1,
        "reused": 2,
        "compiled": 0,
    }
    assert document["best"].keys() == {
        *("trial", "strategy", "knobs", "median_s", "interval_s", "gflop_per_s", "baseline"),
        *("cold_median_s", "conditions", "reliability", "unreliable", "custom_ops", "offsets", "sensitive"),
    }
    assert document["best"]["baseline"].keys() >= {"name", "median_s", "ratio"}


def test_a_baseline_names_what_was_chosen_and_every_library_with_its_time_or_its_failure() -> None:
    libraries = (
        LibraryTime("mkl", "MKL 2026.2 avx512", 2e-3, (1.9e-3, 2.1e-3)),
        LibraryTime("blis", "", failure="exited with SIGSEGV"),
    )
    stored = run()
    assert stored.baseline is not None
    best = replace(
        stored,
        settings=replace(stored.settings, baseline_library="best"),
        baseline=replace(stored.baseline, libraries=libraries),
    )
    document = tune_document(best, COUNTS, select_result((MEASURED,), 0.01), 12.5)["best"]["baseline"]
    assert (document["choice"], document["threads"], document["operands_offset_bytes"]) == ("best", 1, 16)
    mkl, blis = document["libraries"]
    assert (mkl["library"], mkl["name"], mkl["median_s"]) == ("mkl", "MKL 2026.2 avx512", 2e-3)
    assert (blis["library"], blis["median_s"], blis["failure"]) == ("blis", None, "exited with SIGSEGV")
    default = tuned()["best"]["baseline"]
    assert (default["choice"], default["libraries"]) == (None, [])


def test_of_an_unreliable_answer_no_ratio_is_reported() -> None:
    selected = select_result((MEASURED,), 0.01)
    document = tune_document(run(unreliable="load"), COUNTS, selected, 12.5)
    best, tied = document["best"], document["tied_set"][0]
    assert best["unreliable"] == best["baseline"]["ratio_unknown"] == tied["slowdown_unknown"] == "load"
    assert best["baseline"]["ratio"] is best["baseline"]["ratio_interval"] is tied["slowdown"] is None
    assert document["can_separate"] is False
    assert tuned()["best"]["unreliable"] is None
    assert tuned()["can_separate"] is True
    assert history_document(replace(MEASURED, reliability=unreliable("load")))["unreliable"] == "load"


def test_tune_reports_the_numbers() -> None:
    document = tuned()
    best = document["best"]
    assert (document["problem"]["shape"], best["trial"], document["seconds"]) == ([8, 8, 8], 107, 12.5)
    assert best["gflop_per_s"] == pytest.approx(2 * 8**3 / 1e-3 / 1e9)
    assert best["interval_s"] == [pytest.approx(0.99e-3), pytest.approx(1.01e-3)]
    assert best["baseline"]["ratio"] == pytest.approx(2.0)  # twice as fast as the baseline


def test_tune_reports_which_custom_ops_the_best_script_calls() -> None:
    own = trial(7, measurement(1e-3, 0.02), script='"tuner.dot"(%x)\n')
    assert tune_document(run(), COUNTS, select_result((own,), 0.01), 1.0)["best"]["custom_ops"] == [
        "tuner.dot"
    ]
    assert tuned()["best"]["custom_ops"] == []


def test_what_tune_did_not_find_is_null() -> None:
    assert tune_document(run(), COUNTS, None, 1.0)["best"] is None
    document = tune_document(run(baseline_s=None), COUNTS, select_result((MEASURED,), None), 1.0)
    assert document["best"]["baseline"] is None


def test_history_has_the_keys_of_the_contract() -> None:
    assert history_document(MEASURED).keys() >= HISTORY_KEYS
    assert history_document(FAILED).keys() == history_document(MEASURED).keys()


@pytest.mark.parametrize(
    ("tried", "given"),
    [
        (MEASURED, ("measured", None, None, 1e-3)),
        (FAILED, ("failed", "verify", "element (0, 1): found 2, expected 1", None)),
        (trial(9, Verdict(0.5, 64)), ("verified", None, None, None)),
        (trial(1, measurement(1.0), final=measurement(2.0)), ("measured", None, None, 2.0)),
    ],
    ids=["measured", "failed", "verified", "timed again"],
)
def test_history_reports_what_became_of_a_trial(tried: StoredTrial, given: tuple[object, ...]) -> None:
    document = history_document(tried)
    assert tuple(document[key] for key in ("status", "stage", "reason", "median_s")) == given
    assert (document["gflop_per_s"] is None) == (given[-1] is None)
    assert document["created"] == "2026-01-31T12:00:00Z"


def test_a_trial_document_holds_everything() -> None:
    document = trial_document(trial(1, measurement(1.0), final=measurement(2.0)))
    assert document["measurement"]["samples_s"] == [1.0] * 6
    assert document["final"]["median_s"] == 2.0
    assert document["stages_s"] == {"bind": 0.001, "measure": 0.2}
    assert document["verdict"] == {"max_error": 0.25, "elements": 64, "notes": []}
    assert document["resources"] == []
    assert document["script"] == "module {}\n"


def test_documents_are_json() -> None:
    selected = select_result((MEASURED,), 0.01)
    for document in (tuned(), run_document(run(), COUNTS, selected), trial_document(FAILED)):
        assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_a_run_document_holds_its_settings() -> None:
    document = run_document(run(), COUNTS, None)
    assert (document["sampler"], document["seed"], document["trials"]) == ("random", 0, 12)
    assert document["compiler"].startswith("fake 1.0")


def test_csv_reads_back() -> None:
    rows = list(csv.DictReader(io.StringIO(history_csv((MEASURED, FAILED)))))
    assert [row["trial"] for row in rows] == ["107", "108"]
    assert rows[0]["shape"] == "8x8x8"
    assert json.loads(rows[0]["knobs"]) == {"knob_0": 7}
    assert rows[1]["reason"] == "element (0, 1): found 2, expected 1"
    assert history_csv(()).count("\n") == 1


def test_a_database_document_reports_what_it_holds() -> None:
    document = database_document(DatabaseInfo("sqlite:///x.db", "0001", 2, 30, ("matmul 8x8x8 f32 nn none",)))
    assert (document["runs"], document["trials"], document["revision"]) == (2, 30, "0001")


@pytest.mark.parametrize("text", ["=1+1", "+SUM(A1)", "-2+3|cmd", "@x", "\tx", "\rx", "-", "--", "-1.5.2"])
def test_a_cell_that_would_be_a_formula_is_a_text(text: str) -> None:
    assert csv_cell(text) == "'" + text.replace("\t", "\\t").replace("\r", "\\r")


@pytest.mark.parametrize(
    "value", ["", "matmul", "8x8x8", "-1.5", "1e-3", "-1E-3", "+7", -1.5, 1e-3, None, True]
)
def test_other_cells_stay(value: object) -> None:
    assert csv_cell(value) == value
