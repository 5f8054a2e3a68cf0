"""The processor next to the GPU: which problems, on which cores, and what is written of each."""

import json
import os
import subprocess
import sys
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu_visit import host_matmul
from benchmarks.gpu_visit.host_matmul import HostProblem, contests, cores_in, line_of, problems, rows_of
from benchmarks.paired_timing import Contest
from tuner.core.errors import TunerError, UsageError
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem

ROOT = Path(__file__).parents[3]
SMALL = HostProblem(Matmul(64, 64, 64), 1)


def test_cores_are_numbers_and_ranges() -> None:
    assert cores_in("8-15") == tuple(range(8, 16))
    assert cores_in("0,2,4-5") == (0, 2, 4, 5)
    with pytest.raises(ArgumentTypeError, match="found 'all', allowed numbers such as 8-15 or 0,2"):
        cores_in("all")


def test_all_types_and_threads_of_a_shape_come_before_the_next_shape() -> None:
    found = list(problems(("64x64x64", "8x8x8"), ("f32", "i8"), (1, 2, 8), cores=2))
    assert [(each.problem.sizes[0], each.threads, each.problem.dtype) for each in found] == [
        *((64, 1, "f32"), (64, 1, "i8"), (64, 2, "f32"), (64, 2, "i8")),
        *((8, 1, "f32"), (8, 1, "i8"), (8, 2, "f32"), (8, 2, "i8")),
    ]


def test_a_library_that_fails_does_not_end_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def race(_problem: Problem, _script: str, _threads: int, library: str) -> Contest:
        if library == "mkl":
            raise TunerError("mkl: it crashed")
        return Contest(1e-3, 2e-3, 2.0, 1.9, 2.1, 15)

    monkeypatch.setattr(host_matmul, "is_installed", lambda name, _: name in ("mkl", "onednn", "openblas"))
    found = contests(SMALL, "script", race)
    assert found["mkl"] == {"failure": "mkl: it crashed"}
    assert (found["onednn"]["ratio"], list(found)) == (2.0, ["mkl", "onednn"])
    monkeypatch.setattr(host_matmul, "is_installed", lambda name, _: name == "openblas")
    assert list(contests(SMALL, "script", race)) == ["openblas"]


def test_a_choice_that_is_missing_is_a_row_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(_: HostProblem) -> tuple[str, dict[str, Any]]:
        raise UsageError("no rule ships for avx2, f32")

    monkeypatch.setattr(host_matmul, "by_rule", nothing)
    monkeypatch.setattr(host_matmul, "by_search", lambda *_: ("script", {"strategy": "s", "knobs": {}}))
    monkeypatch.setattr(host_matmul, "contests", lambda *_: {"openblas": {"ratio": 1.5}})
    rows = list(rows_of(SMALL, 1.0))
    assert [row["source"] for row in rows] == ["shipped rule", "search"]
    assert line_of(rows[0]).endswith("shipped rule: no rule ships for avx2, f32")
    assert line_of(rows[1]).endswith("search: openblas 1.500 s")
    output = tmp_path / "host.json"
    host_matmul.write(output, rows, {})
    assert json.loads(output.read_text())["summary"]["least_ratio"] == 1.5


def test_cores_that_this_process_may_not_use_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["host_matmul", "--cores", "4000"])
    with pytest.raises(SystemExit, match=r"^error: cores: found \(4000,\), allowed of \["):
        host_matmul.main()


@pytest.mark.slow
@pytest.mark.mlir
def test_a_dry_run_has_both_choices_and_stays_on_its_cores(tmp_path: Path) -> None:
    output = tmp_path / "host.json"
    core = min(os.sched_getaffinity(0))
    options = f"--cores {core} --threads 1 2 --dtypes f32 --shapes 64x64x64 --search 1 --output {output}"
    call = [sys.executable, "-m", "benchmarks.gpu_visit.host_matmul", *options.split()]
    subprocess.run(call, cwd=ROOT, check=True, timeout=300, capture_output=True)
    document = json.loads(output.read_text())
    assert [row["source"] for row in document["rows"]] == ["shipped rule", "search"]  # two threads: two cores
    assert document["settings"]["cores"] == [core]
    assert all({"libraries", "failure"} & row.keys() for row in document["rows"])
