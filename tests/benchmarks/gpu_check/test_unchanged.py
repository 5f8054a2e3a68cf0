"""What passed before with the same code is not asked again; all else is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu_check import strategies
from benchmarks.gpu_check.checks import CheckOutcome, failed, passed
from benchmarks.gpu_check.device_under_test import SIMULATOR, Bed
from benchmarks.gpu_check.points import Case, built, cases
from benchmarks.gpu_check.strategies import checks
from benchmarks.gpu_check.unchanged import EarlierRows, ptx_sha256

ROW = {"part": "strategies", "check": "a", "status": "passed", "words": "fine", "seconds": 1.0}


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "earlier.json"
    path.write_text(json.dumps({"rows": rows, "date": "2026-11-20"}))
    return path


def asked(outcome: CheckOutcome, calls: list[str]) -> Callable[[], CheckOutcome]:
    def ask() -> CheckOutcome:
        calls.append("asked")
        return outcome

    return ask


@pytest.mark.parametrize(
    ("row", "is_asked"),
    [
        (ROW | {"ptx_sha256": "1234", "gpu_error": 0.5}, False),
        (ROW | {"ptx_sha256": "4321"}, True),
        (ROW | {"ptx_sha256": "1234", "status": "failed"}, True),
        (ROW | {"ptx_sha256": "1234", "status": "skipped"}, True),
        (ROW | {"ptx_sha256": "1234", "check": "b"}, True),
        (ROW | {"ptx_sha256": "1234", "part": "sanitizer"}, True),
        (ROW, True),
    ],
)
def test_only_what_passed_with_the_same_code_is_not_asked(
    tmp_path: Path, row: dict[str, Any], is_asked: bool
) -> None:
    calls: list[str] = []
    earlier = EarlierRows.read(written(tmp_path, row))
    outcome = earlier.or_ask("strategies", "a", "1234", asked(passed("now"), calls))
    assert calls == ["asked"] * is_asked
    assert (outcome.status, outcome.facts["ptx_sha256"]) == ("passed", "1234")
    if not is_asked:
        assert outcome.words == "same code as it passed on 2026-11-20"
        assert (outcome.facts["gpu_error"], outcome.facts["since"]) == (0.5, "2026-11-20")


def test_the_date_of_the_first_pass_stays_and_a_failure_has_its_hash_too(tmp_path: Path) -> None:
    path = written(tmp_path, ROW | {"ptx_sha256": "1234", "since": "2026-11-01"})
    outcome = EarlierRows.read(path).or_ask("strategies", "a", "1234", asked(passed(), []))
    assert outcome.facts["since"] == "2026-11-01"
    outcome = EarlierRows.read(path).or_ask("strategies", "a", "5678", asked(failed("wrong", rows=3), []))
    assert (outcome.status, outcome.facts) == ("failed", {"rows": 3, "ptx_sha256": "5678"})


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"rows": [{}], "date": ""}', '{"rows": 3}'])
def test_a_file_that_is_no_results_file_has_nothing_that_passed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "earlier.json"
    path.write_text(text)
    assert EarlierRows.read(path) == EarlierRows.read(tmp_path / "none.json") == EarlierRows.read(None)


@pytest.mark.mlir
def test_a_strategy_runs_again_once_its_ptx_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bed = Bed(SIMULATOR, "sm_90", is_quick=True)
    check = next(check for check in checks(bed) if check.name.startswith("matmul_gpu_naive"))
    case = next(case for case in cases("sm_90", 1) if case.name == check.name)
    sha256 = ptx_sha256(built(case, bed.target)[1])
    runs: list[Case] = []

    def agree(case: Case, *_: object) -> CheckOutcome:
        runs.append(case)
        return passed()

    monkeypatch.setattr(strategies, "agree", agree)
    for known, count in ((sha256, 0), ("0" * 64, 1)):
        path = written(tmp_path, ROW | {"check": check.name, "ptx_sha256": known})
        again = {each.name: each for each in checks(Bed(SIMULATOR, "sm_90", True, earlier=path))}
        outcome = again[check.name].ask()
        assert (outcome.facts["ptx_sha256"], len(runs)) == (sha256, count)
