"""An exported program: loaded without compilers, refused where it was changed or cannot run."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.programs.fusions.compiled import compiled_code, compiled_function
from tuner.core.errors import UsageError
from tuner.core.fusions import TensorType
from tuner.programs.run import exported
from tuner.programs.run.exported import CODE, DOCUMENT, WEIGHTS, code_of, document_text
from tuner.programs.run.fused_code import Fill
from tuner.programs.run.fused_program import load

pytestmark = pytest.mark.mlir

WEIGHT = np.linspace(-1, 1, 8).astype(np.float32)
X, Y = np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32)
IN_A_FRESH_PROCESS = """
import sys
import numpy as np
import tuner
x, y = np.load(sys.argv[2])
np.save(sys.argv[3], tuner.load(sys.argv[1])(x, y)[0])
heavy = {"torch", "torch_mlir", "numba_cuda_mlir", "sqlalchemy", "optuna", "ml_dtypes", "click"}
print(sorted(heavy & {name.partition(".")[0] for name in sys.modules}))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    compiled_function(WEIGHT).export(tmp_path / "program")
    return tmp_path / "program"


def test_a_fresh_process_runs_it_without_a_compiler(folder: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "xy.npy", np.stack([X, Y]))
    command: list[str | Path] = [
        sys.executable,
        "-c",
        IN_A_FRESH_PROCESS,
        folder,
        tmp_path / "xy.npy",
        tmp_path / "z.npy",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("[]\n", "", 0)
    np.testing.assert_array_equal(np.load(tmp_path / "z.npy"), compiled_function(WEIGHT)(X, Y)[0])


def test_a_loaded_program_is_exported_again(folder: Path, tmp_path: Path) -> None:
    load(folder).export(tmp_path / "again")
    load(folder).export(folder)
    for name in (DOCUMENT, CODE, WEIGHTS):
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_a_document_has_all_of_a_program() -> None:
    whole = compiled_code()
    fills = (Fill(64, TensorType((2, 3), "bf16"), float("-inf")),)
    changed = type(whole)(**{**vars(whole), "fills": fills, "needs": ("avx512",)})
    assert code_of(json.loads(document_text(changed, {})), whole.object_code) == changed


@pytest.mark.parametrize("name", [CODE, WEIGHTS])
def test_a_changed_file_is_refused(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[-1] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(UsageError, match=f"{name}: was changed after the export: its SHA-256 is another$"):
        load(folder)


def test_a_changed_document_is_refused(folder: Path) -> None:
    document = json.loads((folder / DOCUMENT).read_text())
    (folder / DOCUMENT).write_text(json.dumps({**document, "arena_bytes": 1}))
    with pytest.raises(UsageError, match=rf"{DOCUMENT}: was changed after the export"):
        load(folder)
    (folder / DOCUMENT).write_text(json.dumps({**document, "format": 1}))
    with pytest.raises(UsageError, match=rf"{DOCUMENT}: found format 1, allowed 2"):
        load(folder)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 1}', "\0", "[" * 100_000])
def test_a_damaged_document_is_refused(folder: Path, text: str) -> None:
    (folder / DOCUMENT).write_text(text)
    with pytest.raises(UsageError, match=rf"{DOCUMENT}: is damaged: "):
        load(folder)


def test_a_folder_without_a_program_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing: program\.json is missing: it is no program"):
        load(tmp_path / "nothing")
    (folder / CODE).unlink()
    with pytest.raises(UsageError, match=r"code\.o: cannot be read: No such file or directory"):
        load(folder)


def test_another_processor_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compiled_code()
    other = type(whole)(**{**vars(whole), "needs": ("sve",)})
    exported.save_program(other, compiled_function(WEIGHT).weights, folder)
    with pytest.raises(UsageError, match=r"program: needs sve, which this processor does not have$"):
        load(folder)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"has other files, such as notes\.txt; name a new folder"):
        compiled_function(WEIGHT).export(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file: cannot be written: File exists"):
        compiled_function(WEIGHT).export(tmp_path / "file")


def test_an_export_that_is_cut_off_is_no_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exported, "_write_array", fails)
    with pytest.raises(UsageError, match="program: cannot be written: No space left on device"):
        compiled_function(WEIGHT).export(folder)
    with pytest.raises(UsageError, match=r"program\.json is missing"):
        load(folder)
