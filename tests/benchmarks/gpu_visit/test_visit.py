"""A visit: results are whole after each check, also of a run that is killed; a dry run has every section."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu_check.checks import PartResult, Row, failed, passed
from benchmarks.gpu_check.device_under_test import STUB, Bed
from benchmarks.gpu_check.runner import Child
from benchmarks.gpu_visit import __main__ as command
from benchmarks.gpu_visit.__main__ import Visit, earlier_rows
from benchmarks.gpu_visit.code_folder import CodeFolder, Manifest
from benchmarks.gpu_visit.sections import SECTIONS
from tuner.gpu.target.compiler import locate

ROOT = Path(__file__).parents[3]
NAMES = [section.name for section in SECTIONS]
DRY_RUN_S = 60.0


@pytest.fixture
def empty(tmp_path: Path) -> CodeFolder:
    code = CodeFolder(tmp_path, Manifest("sm_90a", "13.0", ()))
    code.write()
    return code


def rows_in(output: Path) -> list[tuple[str, str, str]]:
    document: dict[str, Any] = json.loads(output.read_text())
    return [(row["part"], row["check"], row["status"]) for row in document["rows"]]


def test_results_are_written_after_each_check_with_what_they_decide(
    empty: CodeFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "visit.json"
    seen = []

    def run_part(part: str, _bed: Bed, limit_s: float, _child: Child, after_row: Any) -> PartResult:
        rows: tuple[Row, ...] = ()
        for number, outcome in enumerate((passed("fine", cycles_per_operation=4.0), failed("wrong"))):
            rows += (Row(f"check {number}", outcome, 0.1),)
            after_row(PartResult(part, rows, ("later",), 0.1, limit_s))
            seen.append(rows_in(output))
        return PartResult(part, rows, (), 0.2, limit_s)

    monkeypatch.setattr(command, "run_part", run_part)
    visit = Visit(Bed(STUB, "sm_90a"), empty, 10.0, output, time.monotonic())
    visit.run("code", 5.0)
    visit.run("f32", 5.0)
    assert [len(rows) for rows in seen] == [1, 2, 3, 4]
    assert seen[-1][-1] == ("f32", "check 1", "failed")
    summary = json.loads(output.read_text())["summary"]
    assert summary["sections"]["f32"] == {
        "passed": 1,
        "failed": 1,
        "skipped": 0,
        "left_out": [],
        "seconds": 0.2,
    }
    assert summary["decided"][0]["answer"] == "open"


def started(code: Path, output: Path, *options: str) -> "subprocess.Popen[str]":
    call = [sys.executable, "-m", "benchmarks.gpu_visit", "run", "--device", STUB, "--code", str(code)]
    return subprocess.Popen(
        [*call, "--output", str(output), *options],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )


def killed_after(section: str, child: "subprocess.Popen[str]") -> None:
    assert child.stderr is not None
    for line in child.stderr:
        if line.startswith(f"{section}: written"):
            break
    child.send_signal(signal.SIGKILL)
    child.wait(timeout=60)
    child.stderr.close()


@pytest.mark.usefixtures("built_stub")
def test_a_run_that_is_killed_leaves_the_sections_that_were_written(
    empty: CodeFolder, tmp_path: Path
) -> None:
    output = tmp_path / "visit.json"
    killed_after("code", started(empty.path, output, "--sections", "code", "f32", "ranking"))
    assert ("code", "modules", "passed") in rows_in(output)
    assert "ranking" not in [part for part, _, _ in rows_in(output)]


@pytest.mark.slow
@pytest.mark.usefixtures("built_stub")
@pytest.mark.parametrize("section", ["micro_kernels", "f32", "eight_bits", "correctness"])
def test_a_run_that_is_killed_after_any_section_leaves_all_before(
    quick_code: CodeFolder, tmp_path: Path, section: str
) -> None:
    output = tmp_path / "visit.json"
    killed_after(section, started(quick_code.path, output))
    parts = list(dict.fromkeys(part for part, _, _ in rows_in(output)))
    written = NAMES[: NAMES.index(section) + 1]
    assert parts[: len(written)] == written
    document = json.loads(output.read_text())
    assert len(document["summary"]["decided"]) > 10


@pytest.mark.slow
@pytest.mark.usefixtures("built_stub")
def test_a_dry_run_has_every_section_and_finds_nothing_wrong(quick_code: CodeFolder, tmp_path: Path) -> None:
    output = tmp_path / "visit.json"
    child = started(quick_code.path, output)
    _, text = child.communicate(timeout=600)
    assert child.returncode == 0, text
    document = json.loads(output.read_text())
    assert list(document["summary"]["sections"]) == NAMES
    assert {row["status"] for row in document["rows"]} == {"passed", "skipped"}
    assert not any(section["left_out"] for section in document["summary"]["sections"].values())
    timed = [row for row in document["rows"] if row["part"] in ("f32", "tf32", "ranking") and "knobs" in row]
    assert len(timed) == 6
    assert all({"by_knobs", "by_machine_code", "ptx_sha256", "registers"} <= row.keys() for row in timed)
    assert not any("median_s" in row for row in document["rows"])  # a stand-in has no clock
    if locate("nvdisasm") is not None:
        (cubins,) = (row for row in document["rows"] if row["check"] == "cubins through nvdisasm")
        assert cubins["cubins"] == len({entry.code for entry in quick_code.manifest.entries})


def test_what_an_earlier_visit_found_is_kept_while_its_file_is_overwritten(tmp_path: Path) -> None:
    output = tmp_path / "visit.json"
    assert earlier_rows(output, tmp_path) is None
    output.write_text("earlier")
    copy = earlier_rows(output, tmp_path)
    output.write_text("new")
    assert copy is not None
    assert copy.read_text() == "earlier"


def test_code_of_another_chip_is_refused(empty: CodeFolder, tmp_path: Path, built_stub: Path) -> None:
    other = CodeFolder(empty.path, Manifest("sm_80", "13.0", ()))
    other.write()
    assert built_stub.exists()
    child = started(other.path, tmp_path / "visit.json")
    _, text = child.communicate(timeout=60)
    assert child.returncode == 2
    assert text == "error: the code is for sm_80, the GPU here is stub GPU 0, sm_90\n"
