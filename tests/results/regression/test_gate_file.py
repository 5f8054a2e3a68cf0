import base64
import datetime
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.trials import measurement
from tuner.core.candidate import Candidate, ChosenStrategy, TargetName
from tuner.core.errors import UsageError
from tuner.core.gpu_code import KernelBuffer, KernelProgram, Launch
from tuner.core.interfaces import Artifact, Partition
from tuner.core.problem import Matmul
from tuner.results.regression import gate
from tuner.results.regression.gate import GateEntry, GateFile, gate_file_bytes, read_gate_file

NOW = datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)
PROGRAM = KernelProgram(
    chip="sm_90",
    ptx=".version 8.0 // \N{GREEK SMALL LETTER MU}",
    cubin=b"\x7fELF\x00\xff",
    launches=(Launch("k", (1, 1, 1), (32, 1, 1), 0, ("a", "b", "c")),),
    buffers=(KernelBuffer("a", 4, "input"),),
)


def entry(artifact: Artifact, n: int = 8, **changes: Any) -> GateEntry:
    values = {
        "problem": Matmul(8, n, 8),
        "target": TargetName("cpu"),
        "threads": 2,
        "strategy": ChosenStrategy("mine", Path("/a/mine.mlir")),
        "candidate": Candidate.of("mine", {"tile_m": 4, "order": "mnk"}),
        "script_sha256": "5c",
        "artifact": artifact,
        "measurement": measurement(1e-3, 0.01),
        "machine": "Xeon",
        "mlir": "LLVM 23",
        "compiler": "LLVM 23 pipeline:1",
    }
    return GateEntry(**{**values, **changes})


ON_CPU = entry(Artifact("llvm.func @f() {}", "aa", (Partition("f", 0, 0, 8, 8),)))
ON_GPU = entry(Artifact("", "bb", program=PROGRAM), target=TargetName("cuda", "sm_90"), threads=1)
FILE = GateFile(NOW, "0.1.0", (ON_CPU, ON_GPU))


def written(folder: Path, content: bytes) -> Path:
    path = folder / "gate.json"
    path.write_bytes(content)
    return path


def test_entries_of_before_were_timed_on_a_cache_line(tmp_path: Path) -> None:
    document = json.loads(gate_file_bytes(FILE))
    for each in document["entries"]:
        assert each["problem"].pop("align") == "16"
    found = read_gate_file(written(tmp_path, json.dumps(document).encode()))
    assert [each.problem.align for each in found.entries] == ["64", "16"]


def test_code_of_processors_and_gpus_comes_back_whole(tmp_path: Path) -> None:
    assert read_gate_file(written(tmp_path, gate_file_bytes(FILE))) == FILE


def test_an_entry_takes_the_place_of_one_of_its_problem_target_and_threads() -> None:
    faster = entry(ON_CPU.artifact, measurement=measurement(5e-4))
    other = entry(ON_CPU.artifact, n=16)
    assert FILE.with_entries((faster, other)).entries == (faster, ON_GPU, other)
    assert [each.key for each in FILE.entries] == [
        "matmul 8x8x8 f32 nn none cpu 2 threads",
        "matmul 8x8x8 f32 nn none cuda:sm_90",
    ]


def edited(folder: Path, place: tuple[Any, ...], value: Any) -> Path:
    document = json.loads(gate_file_bytes(FILE))
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return written(folder, json.dumps(document).encode())


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("format",), "zip", "found format 'zip', allowed 'tuner-gate'"),
        (("version",), 2, "found version 2 of tuner-gate, allowed 1"),
        (("entries",), [], "entries: is empty"),
        (("entries", 0, "threads"), "two", r"entries\[0\].threads: found 'two', allowed a whole number"),
        (("entries", 0, "code"), "!", r"entries\[0\]: code: found damaged code"),
        (("entries", 0, "code"), base64.b64encode(b"zlib").decode(), "found damaged code"),
        (("entries", 0, "code"), base64.b64encode(zlib.compress(b"x")[:-4]).decode(), "found code cut off"),
        (("entries", 0, "code"), base64.b64encode(zlib.compress(b"\xff")).decode(), "code: is not text"),
        (("entries", 1, "program", "cubin"), "!", r"entries\[1\]: program.cubin: found damaged code"),
        (("entries", 0, "problem", "sizes"), [0, 1, 1], "size m: found 0, allowed"),
        (("created",), "2026-01-31", "allowed a moment with its zone"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_by_its_place(
    tmp_path: Path, place: tuple[Any, ...], value: Any, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        read_gate_file(edited(tmp_path, place, value))


def test_code_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "CODE_LIMIT_BYTES", 10)
    with pytest.raises(UsageError, match="cut off or above 10 bytes"):
        read_gate_file(written(tmp_path, gate_file_bytes(FILE)))


@pytest.mark.parametrize("content", [b"{", b"[" * 100_000, b"[]"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(UsageError, match=r"is not JSON|found format None, allowed 'tuner-gate'"):
        read_gate_file(written(tmp_path, content))
