"""A row has its kernel's figures next to those of the library and of tuner's kernel of the same budget."""

import argparse
from pathlib import Path

import pytest

from benchmarks.race import __main__ as command
from benchmarks.race import rows
from benchmarks.race.contest import KernelTiming
from benchmarks.race.environments import PeerEnvironment
from benchmarks.race.peer import LoggedTrial, PeerKernel, PeerResult, RaceMatmul

MATMUL = RaceMatmul(10, 10, 10, "f32")
KERNEL = PeerKernel("bare", "kernel.so", "f")
SECONDS = {"openblas": 4e-6, "tuner 10 s": 2e-6, "tuner 60 s": 1e-6, "xtc 10 s": 8e-6, "iree": 2e-6}
TIMINGS = tuple(
    KernelTiming(name, offset, tuple((number, seconds) for number in range(4)))
    for name, seconds in SECONDS.items()
    for offset in (0, 16)
    if (name, offset) != ("iree", 16)
)
CRASHED = KernelTiming("iree", 16, failure="crashes (signal 11)")


def row(name: str, entry: PeerResult) -> rows.Row:
    return rows.row_of(MATMUL, name, entry, (*TIMINGS, CRASHED), 4e9)


def test_a_peer_is_compared_with_tuner_of_the_same_budget_and_a_compiler_with_the_longest() -> None:
    trials = (LoggedTrial(3.0, None, is_failed=True), LoggedTrial(5.0, 8e-6), LoggedTrial(6.0, None))
    xtc = row("xtc", PeerResult(10.0, 10.1, KERNEL, "", 2.0, trials, 8e-6))
    assert (xtc["trials"], xtc["failed"], xtc["improvements"]) == (3, 1, [(5.0, 8e-6)])
    part = xtc["offsets"]["0"]
    assert part["gflop_per_s"] == pytest.approx(0.25)
    assert (part["of_best"], part["of_peak"]) == pytest.approx((0.125, 0.0625))
    assert (part["ratio"]["median"], part["over_tuner"]["median"]) == (0.5, 0.25)
    assert part["seconds_to"] == {"0.95": None, "0.98": None}
    compiled = row("iree", PeerResult(None, 1.5, KERNEL))["offsets"]
    assert compiled["0"]["over_tuner"]["median"] == 0.5
    assert compiled["16"] == {"failure": "crashes (signal 11)", "error": None, "median_s": None}


def test_a_peer_without_a_kernel_is_a_row_with_its_reason_and_no_figures() -> None:
    found = row("tvm", PeerResult(10.0, 10.0, reason="ends with 1: /a/folder/of.so is missing"))
    assert (found["reason"], found["offsets"]) == ("ends with 1: of.so is missing", {})


def test_means_are_by_peer_budget_and_offset() -> None:
    found = [
        row("iree", PeerResult(None, 1.5, KERNEL)),
        row("xtc", PeerResult(10.0, 10.1, KERNEL)),
        row("tvm", PeerResult(10.0, 10.0, reason="no result yet")),
    ]
    means = rows.summary_of(found)["geometric_means"]
    assert means == {
        "0": pytest.approx({"iree": 2.0, "xtc 10 s": 0.5}),
        "16": pytest.approx({"xtc 10 s": 0.5}),
    }


def test_a_peer_that_is_missing_is_skipped_by_name_with_its_reason() -> None:
    missing = PeerEnvironment(Path("none"), reason="not installed")
    options = argparse.Namespace(budgets=(10.0,), core=0)
    assert command.entries_of("tvm", MATMUL, missing, options) == [
        PeerResult(None, 0.0, reason="not installed")
    ]
