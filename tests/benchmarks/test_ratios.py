"""Figures of benchmarks: intervals of ratios, means, tables of models, false alarms."""

import itertools
import json
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import model_tables, model_zoo
from benchmarks.check_alarms import has_passed
from benchmarks.cpu_matmul import _line, _summary
from benchmarks.model_tables import COLUMNS, MODELS_1_THREAD, models_intervals, models_sentence, models_table
from benchmarks.paired_timing import ROUNDS
from benchmarks.quantized_tables import quantized_rows, quantized_table
from benchmarks.ranking import knowing_loops
from benchmarks.ratios import (
    ZEN4_1_THREAD,
    Ratio,
    RatioPair,
    coverage,
    geometric_mean,
    had_one_processor,
    mean_of_pairs,
    ratios_in,
)
from benchmarks.result_tables import libraries_table
from benchmarks.results_file import RESULTS

LARGE, SKINNY = "1024x1024x1024", "16x4096x4096"
WRONG: dict[str, Any] = {"shape": "100x100x100", "failure": "onednn: 1213 of 10000 elements are wrong"}
RATIO = {"median": 1.5, "low": 1.25, "high": 1.75}
BOTH = {"eager": RATIO, "compile": RATIO}
TWICE = {name: {key: 2 * value for key, value in found.items()} for name, found in BOTH.items()}


def ratio(shape: str, value: float, gflop_per_s: float = 100.0) -> Ratio:
    speeds = (gflop_per_s, gflop_per_s / value)
    return Ratio(shape, value, value - 0.1, value + 0.1, ROUNDS, *speeds, "library 1.0")


@pytest.mark.parametrize("rounds", [3, 7, 11])
def test_coverage_is_the_share_of_all_outcomes_that_enclose_the_median(rounds: int) -> None:
    """Each of the values lies above the median of the distribution or below it, both equally likely."""
    enclosed = 0
    for above in itertools.product((-1.0, 1.0), repeat=rounds):
        low, _, high = statistics.quantiles(above, n=4)
        enclosed += low < 0 < high
    assert coverage(rounds) == pytest.approx(enclosed / 2**rounds)


def test_quartiles_enclose_more_than_95_percent_and_a_disturbed_ratio_is_left_out_of_the_mean() -> None:
    low, _, high = statistics.quantiles(range(1, ROUNDS + 1), n=4)
    assert (low, high) == ((ROUNDS + 1) / 4, ROUNDS + 1 - (ROUNDS + 1) / 4)
    assert 0.96 < coverage(ROUNDS) < 0.97
    assert ratio("1003x701x331", 1.0).is_large
    assert not ratio("128x4096x1024", 1.0).is_large
    quiet = RatioPair(ratio(LARGE, 2.0), ratio(LARGE, 2.0, 190.0))
    disturbed = RatioPair(ratio(LARGE, 8.0), ratio(LARGE, 100.0, 101.0))
    assert mean_of_pairs([quiet, disturbed]) == pytest.approx((4.0, 2.0))
    rows: list[dict[str, Any]] = [{"shape": "4x4x4", "ratio": 2.0}, WRONG, {"shape": "8x8x8", "ratio": 0.5}]
    assert _summary(rows) == {"geomean": 1.0, "worst": 0.5, "failed": 1}
    assert _summary([WRONG]) == {"failed": 1}
    assert _line(WRONG).split() == ["100x100x100", *WRONG["failure"].split()]


@pytest.mark.parametrize(
    ("shape", "two_threads", "is_disturbed"),
    [(LARGE, 101.0, True), (LARGE, 190.0, False), (SKINNY, 101.0, False)],  # memory limits skinny ones
)
def test_two_threads_as_slow_had_one_processor(shape: str, two_threads: float, is_disturbed: bool) -> None:
    assert had_one_processor(ratio(shape, 1.0), ratio(shape, 1.0, two_threads)) == is_disturbed


@pytest.mark.parametrize(
    ("unchanged", "slower", "busy", "passes"),
    [
        ({"not slower": 50}, {"slower": 50}, {"cannot tell": 10}, True),
        ({"not slower": 48, "cannot tell": 2}, {"slower": 45, "not slower": 5}, {"cannot tell": 10}, True),
        ({"not slower": 49, "slower": 1}, {"slower": 50}, {"cannot tell": 10}, False),
        ({"not slower": 50}, {"slower": 44, "cannot tell": 6}, {"cannot tell": 10}, False),
        ({"not slower": 50}, {"slower": 50}, {"cannot tell": 9, "slower": 1}, False),
        ({"not slower": 50}, {"slower": 50}, {"cannot tell": 9, "failed": 1}, False),
        ({"not slower": 49, "failed": 1}, {"slower": 50}, {"cannot tell": 10}, False),
    ],
)
def test_false_alarms_missed_slowdowns_and_answers_on_a_busy_machine_fail(
    unchanged: dict[str, int], slower: dict[str, int], busy: dict[str, int], passes: bool
) -> None:
    counts = {"unchanged": Counter(unchanged), "slower": Counter(slower), "busy": Counter(busy)}
    assert has_passed(counts) is passes


def test_costs_of_a_loop_are_scaled_by_the_median_of_its_times_and_failures_say_nothing() -> None:
    loops = np.array([[4.0, 4.0, 8.0, 8.0, 8.0], [1.0, 1.0, 2.0, 2.0, 2.0]])
    costs = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    times_s = np.array([0.5, 1.0, 6.0, 4.0, 20.0])  # half of what is counted; twice, as much, four times
    assert knowing_loops(costs, times_s, loops) == pytest.approx([0.5, 1.0, 6.0, 8.0, 10.0])
    times_s = np.array([np.nan, 3.0, np.nan, 2.0, 2.0])
    assert knowing_loops(np.ones(5), times_s, loops) == pytest.approx([3.0, 3.0, 2.0, 2.0, 2.0])


def row(model: str, ratios: dict[str, Any]) -> dict[str, Any]:
    category = model_zoo.LARGE if model == "a" else model_zoo.SMALL
    return {"model": model, "category": category, "best_compile": "compile", "ratios": ratios}


def test_a_model_that_a_file_lacks_has_a_dash_and_counts_as_it_was_measured_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_tables, "RESULTS", tmp_path)
    files = [file for each in COLUMNS.values() for file in each]
    models = ({"a": BOTH, "b": BOTH}, {"a": {"eager": RATIO}}, {"b": BOTH}, {"b": TWICE})
    for file, found in zip(files, models, strict=True):
        (tmp_path / file).write_text(json.dumps({"rows": [row(*each) for each in found.items()]}))
    _, _, first, second, *means = models_table().splitlines()
    assert first == "| a | 1.50 | 1.50 | - | - |"
    assert second == "| b | 1.50 | 1.50 | - | 3.00 |"
    assert means == [
        "| geometric mean, large | **1.50** | **1.50** | - | - |",
        "| geometric mean, small | **1.50** | **1.50** | - | **3.00** |",
    ]


def test_the_widest_interval_of_each_column_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_tables, "RESULTS", tmp_path)
    wide = {"eager": {"median": 1.0, "low": 0.5, "high": 1.5}, "compile": RATIO}
    for file in (file for each in COLUMNS.values() for file in each):
        rows = [row("a", BOTH), row("b", wide if file == MODELS_1_THREAD else BOTH)]
        (tmp_path / file).write_text(json.dumps({"rows": rows}))
    texts = "100% (f32, 1 thread), 20% (f32, 2 threads), 20% (bf16, 1 thread)"
    assert models_intervals() == f"The widest intervals reach {texts} from their ratio."


def test_a_cell_of_quantized_matmuls_is_the_mean_and_the_least_of_its_shapes() -> None:
    ratios = [
        each["ratio"]["median"]
        for each in quantized_rows()
        if each["format"] == "w8a8" and "g128" in each["problem"] and " 512x" in each["problem"]
    ]
    (line,) = (each for each in quantized_table().splitlines() if each.startswith("| W8A8 | 128 |"))
    assert len(ratios) == 3
    assert f"| {statistics.geometric_mean(ratios):.2f} ({min(ratios):.2f}) |" in line


def test_the_table_of_libraries_has_means_and_the_least_of_each_type() -> None:
    _, _, first, *_ = (line.split(" | ") for line in libraries_table().splitlines())
    zen4 = ratios_in(ZEN4_1_THREAD["f32"])
    assert first[:2] == ["| Zen 4, f32", f"{geometric_mean(each for each in zen4 if each.is_large):.2f}"]
    assert first[3].startswith(f"{min(each.ratio for each in zen4):.2f} [")
    assert first[4] == f"{sum(each.ratio < 1 for each in zen4)} of {len(zen4)} |"


def test_the_sentence_names_budget_and_means() -> None:
    found = json.loads((RESULTS / MODELS_1_THREAD).read_text())
    sentence = models_sentence()
    assert f"tuned for {found['settings']['budget']:.0f} seconds each" in sentence
    assert f"large ones are {found['summary']['large_over_eager']:.2f} times" in sentence
