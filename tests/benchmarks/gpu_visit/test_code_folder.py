"""The folder that travels: what is stored is read, what is missing is said, its size is limited."""

import dataclasses
import importlib
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gpu_visit import __main__ as command
from benchmarks.gpu_visit import prepare as preparation
from benchmarks.gpu_visit.candidates import planned
from benchmarks.gpu_visit.code_folder import FOLDER, LIMIT_BYTES, CodeEntry, CodeFolder, Manifest, store
from benchmarks.gpu_visit.disassembly import disassembled
from benchmarks.gpu_visit.prepare import jobs, prepare
from benchmarks.gpu_visit.sections import SECTIONS, TOTAL_S
from tuner.core.candidate import Candidate
from tuner.core.compiled_code import KernelBuffer, Launch
from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.gpu.target.compiler import Ptxas, locate

CHIP = "sm_90a"
ROOT = Path(__file__).parents[3]
LAUNCH = Launch("k", (2, 1, 1), (32, 1, 1), 0, ("c",))


def folder_of(path: Path, *entries: CodeEntry) -> CodeFolder:
    code = CodeFolder(path, Manifest(CHIP, "13.0", entries))
    code.write()
    return code


def test_what_is_stored_is_read_again_with_its_knobs_and_predictions(tmp_path: Path) -> None:
    entry = CodeEntry(
        "f32",
        "a",
        "key",
        problem=Matmul(64, 32, 16, "f16", "nt"),
        candidate=Candidate.of("matmul_gpu_simt", {"block_m": 64, "cluster": "2x1"}),
        launches=(LAUNCH,),
        buffers=(KernelBuffer("c", 4, "output"),),
        code=store(tmp_path, b"machine code"),
        by_knobs=1.5,
        inputs=(("image", store(tmp_path, np.arange(3, dtype=np.uint32).tobytes())),),
    )
    failed = CodeEntry("f32", "b", "other", "refused")
    folder_of(tmp_path, entry, failed)
    code = CodeFolder.read(tmp_path)
    assert code.of("f32") == (entry,)
    assert code.failures("f32") == (failed,)
    assert code.program(entry).binary == b"machine code"
    assert code.input_words(entry)["image"].tolist() == [0, 1, 2]
    assert [name for name, _ in code.files] == ["manifest.json", entry.code, entry.inputs[0][1]]
    assert code.size_bytes == sum(file.stat().st_size for file in tmp_path.iterdir())
    with pytest.raises(UsageError, match="found no c in f32"):
        code.named("f32", "c")


@pytest.mark.parametrize("text", [None, "", "{}", '{"chip": 3}'])
def test_a_folder_without_a_manifest_is_refused_in_one_line(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    call = [sys.executable, "-m", "benchmarks.gpu_visit", "run", "--code", str(tmp_path)]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_git_ignores_the_folder_so_that_it_can_be_carried() -> None:
    assert subprocess.run(["git", "check-ignore", "-q", str(FOLDER)], cwd=ROOT, check=False).returncode == 0


def test_a_folder_above_the_limit_is_reported_with_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = folder_of(tmp_path, CodeEntry("f32", "a", "key", code=store(tmp_path, b"x" * 100)))
    monkeypatch.setattr(preparation, "prepare", lambda *_, **__: code)
    for limit, exit_code in ((LIMIT_BYTES, 0), (code.size_bytes - 1, 1)):
        monkeypatch.setattr(command, "LIMIT_BYTES", limit)
        monkeypatch.setattr(sys, "argv", ["gpu_visit", "prepare", "--code", str(tmp_path)])
        with pytest.raises(SystemExit) as exited:
            command.main()
        assert exited.value.code == exit_code
    printed = capsys.readouterr().out
    assert "f32                         1        0" in printed
    assert "2 files, 0.00 MiB" in printed


def test_sections_take_their_seconds_in_the_order_of_what_they_decide() -> None:
    assert sum(section.seconds for section in SECTIONS) == TOTAL_S == 450
    assert [section.name for section in SECTIONS[:4]] == ["code", "micro_kernels", "f32", "tf32"]
    assert len(SECTIONS) == 11


@pytest.mark.slow
def test_the_plan_has_candidates_for_each_section_and_names_none_twice() -> None:
    wanted = planned(CHIP)
    counts = Counter(each.section for each in wanted)
    assert counts == {
        "f32": 59,
        "tf32": 31,
        "f32_by_tensor_cores": 52,
        "eight_bits": 33,
        "decode": 105,
        "experts": 12,
        "regression": 6,
        "ranking": 40,
    }
    names = [(job.section, job.name) for job in jobs(CHIP, is_quick=False)]
    assert len(names) == len(set(names))
    shapes = [each.point.problem for each in wanted if each.section == "f32"]
    assert {problem.layout for problem in shapes} == {"nn", "nt", "tn"}
    assert len({problem.sizes for problem in shapes[:2]}) == 2  # the most promising first, on both shapes


@pytest.mark.slow
@pytest.mark.mlir
def test_what_is_compiled_is_kept_and_a_whole_visit_is_below_its_limit(
    quick_code: CodeFolder, ptxas: Ptxas
) -> None:
    messages: list[str] = []
    before = {name: (quick_code.path / name).stat().st_mtime_ns for name, _ in quick_code.files[1:]}
    again = prepare(quick_code.path, CHIP, is_quick=True, report=messages.append)
    assert messages[0].endswith(" 0 to be compiled")
    assert again.manifest == quick_code.manifest
    assert {name: (again.path / name).stat().st_mtime_ns for name, _ in again.files[1:]} == before
    assert not [entry for entry in again.manifest.entries if entry.failure]
    assert again.manifest.ptxas == ptxas.version
    (one, *_) = again.of("f32")
    assert one.problem is not None
    assert (one.by_knobs or 0) > 0
    programs = sum(1 for _ in jobs(CHIP, is_quick=False))
    assert again.size_bytes / len(again.manifest.entries) * programs < LIMIT_BYTES


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.skipif(locate("nvdisasm") is None, reason="needs nvdisasm (pip install -e '.[bench]')")
def test_every_cubin_goes_through_nvdisasm_and_another_program_is_found(quick_code: CodeFolder) -> None:
    outcome = disassembled(quick_code)
    assert outcome.status == "passed"
    assert outcome.facts["cubins"] == len({entry.code for entry in quick_code.manifest.entries})
    entries = tuple(
        dataclasses.replace(entry, candidate=Candidate("matmul_gpu_wgmma", ()))
        if entry.section == "f32"
        else entry
        for entry in quick_code.manifest.entries
    )
    wrong = CodeFolder(quick_code.path, Manifest(CHIP, "13.0", entries))
    outcome = disassembled(wrong)
    assert outcome.status == "failed"
    assert "none of HGMMA, IGMMA, QGMMA" in outcome.words


def test_a_visit_needs_numpy_and_ml_dtypes_alone() -> None:
    code = (
        "import sys\n"
        "for name in ('numba_cuda_mlir', 'torch_mlir', 'torch', 'triton', 'cupy', 'optuna', 'sqlalchemy',\n"
        "    'click', 'rich', 'yaml', 'jinja2', 'platformdirs', 'threadpoolctl'):\n"
        "    sys.modules[name] = None\n"
        "import benchmarks.gpu_visit.child, benchmarks.gpu_visit.watched_run, benchmarks.gpu_visit.__main__\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert importlib.util.find_spec("benchmarks.gpu_visit.prepare") is not None
