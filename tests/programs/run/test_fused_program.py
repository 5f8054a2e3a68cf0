"""A program of fusions is called, exported, loaded."""

import json
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.programs.fusions.hand_written import compiled_code, compiled_function
from tests.programs.run.test_marshalling import Tensor
from tuner.core.errors import UsageError
from tuner.core.fusions import TensorType
from tuner.programs.run import exported
from tuner.programs.run.exported import CODE, DOCUMENT, WEIGHTS, code_of, document_text
from tuner.programs.run.fused_code import Fill
from tuner.programs.run.fused_program import FusedFunction, load

pytestmark = pytest.mark.mlir


WEIGHT = np.linspace(-1, 1, 8).astype(np.float32)
X, Y = np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32)


@pytest.fixture
def function() -> FusedFunction:
    return compiled_function(WEIGHT)


def expected(x: Any, y: Any) -> Any:
    return np.exp(np.asarray(x) * WEIGHT + np.asarray(y))


def test_results_are_right_and_used_again_only_when_they_are_dropped(function: FusedFunction) -> None:
    first, thrice = function(X, Y)
    again, _ = function(Y, X)
    np.testing.assert_allclose(first, expected(X, Y), rtol=1e-6)
    np.testing.assert_allclose(thrice, 3 * expected(X, Y), rtol=1e-6)
    np.testing.assert_allclose(again, expected(Y, X), rtol=1e-6)
    assert len({function(X, Y)[0].ctypes.data for _ in range(5)}) == 1  # memory of dropped results


def test_other_arrays_of_host_memory_are_taken(function: FusedFunction) -> None:
    read_only = X.copy()
    read_only.flags.writeable = False
    with_unit = np.ones((1, 8), np.float32)[0]
    for x in (Tensor(X), read_only, with_unit, X.view(np.memmap)):
        found = function(x, Y)[0]
        np.testing.assert_allclose(found, expected(x.array if isinstance(x, Tensor) else x, Y), rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X,), "main: found 1 arguments, allowed 2"),
        ((X, Y, X), "main: found 3 arguments, allowed 2"),
        ((X, Y[:4]), "main: argument 1: found float32 of shape 4, allowed float32 of shape 8"),
        ((X.astype(float), Y), r"argument 0: found float64 of shape 8.*convert it: .astype\('float32'\)"),
        ((np.zeros(16, np.float32)[::2], Y), r"argument 0: found strides \(8,\), allowed a C-contiguous"),
        ((X, 3.0), "argument 1: found float, allowed a numpy array"),
        ((X, np.ma.masked_array(Y)), "argument 1: masked arrays are not supported"),
    ],
)
def test_what_does_not_fit_is_named(
    function: FusedFunction, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        function(*arguments)
    np.testing.assert_allclose(function(X, Y)[0], expected(X, Y), rtol=1e-6)  # it can still be called


def test_it_takes_no_stream_and_has_no_graph(function: FusedFunction) -> None:
    with pytest.raises(UsageError, match="main: takes no stream: the program runs on the host"):
        function(X, Y, stream=0)
    with pytest.raises(UsageError, match="only a program on a GPU has a graph"):
        function.as_graph(X, Y)


def test_threads_wait_for_one_another(function: FusedFunction) -> None:
    def is_right(seed: int) -> bool:
        x, y = np.random.default_rng(seed).standard_normal((2, 8)).astype(np.float32)
        return all(np.allclose(function(x, y)[0], expected(x, y), rtol=1e-5) for _ in range(200))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(is_right, range(4)))


def test_a_prepared_call_is_repeated_whole_and_fusion_by_fusion(function: FusedFunction) -> None:
    function.repeat(function.prepare(X, Y), 3)
    assert function.allocations == 0
    call = function.prepare(np.zeros(8, np.float32), Y)
    for number in (0, 1, 2):
        function.repeat_fusion(call, number, 1)
    results = function.run([each.ctypes.data for each in call.arrays])
    np.testing.assert_allclose(results[0], np.exp(Y), rtol=1e-6)
    with pytest.raises(IndexError, match="fusion 5: found no such fusion, allowed 0 to 4"):
        function.repeat_fusion(call, 5, 1)


def test_a_program_is_not_pickled(function: FusedFunction) -> None:
    with pytest.raises(TypeError, match=r"load it in the other process: tuner\.compile_program"):
        pickle.dumps(function)
    assert pickle.loads(pickle.dumps(compiled_code())) == compiled_code()


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
    command: list[str | Path] = [sys.executable, "-c", IN_A_FRESH_PROCESS, folder]
    command += [tmp_path / "xy.npy", tmp_path / "z.npy"]
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
