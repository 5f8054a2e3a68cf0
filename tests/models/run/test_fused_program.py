"""A program of fusions is called, exported, loaded; its weights are packed, its results used again."""

import gc
import json
import pickle
import subprocess
import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models.fusions.hand_written import compiled_code, compiled_function
from tests.models.run.test_marshalling import Tensor
from tuner.core.errors import CandidateError, UsageError
from tuner.core.fusions import TensorType
from tuner.core.serialization import encode
from tuner.models.run import exported, fused_code
from tuner.models.run.exported import CODE, DOCUMENT, WEIGHTS, decoded, document_text
from tuner.models.run.fused_program import FusedFunction
from tuner.models.run.loading import load
from tuner.models.run.program_weights import ALIGNMENT_BYTES

FACTORS = np.linspace(-1, 1, 8).astype(np.float32)
X, Y = np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32)


@pytest.fixture
def function() -> FusedFunction:
    return compiled_function(FACTORS)


def expected(x: Any, y: Any) -> Any:
    return np.exp(np.asarray(x) * FACTORS + np.asarray(y))


def test_results_are_used_again_only_when_dropped_and_other_arrays_of_host_memory_are_taken(
    function: FusedFunction,
) -> None:
    first, thrice = function(X, Y)
    again, _ = function(Y, X)
    np.testing.assert_allclose(first, expected(X, Y), rtol=1e-6)
    np.testing.assert_allclose(thrice, 3 * expected(X, Y), rtol=1e-6)
    np.testing.assert_allclose(again, expected(Y, X), rtol=1e-6)
    assert len({function(X, Y)[0].ctypes.data for _ in range(5)}) == 1  # memory of dropped results
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
        ((X, Y[:4]), r"main: argument 1: found float32 of shape \(4,\), allowed float32 of shape \(8,\)"),
        ((X.astype(float), Y), r"argument 0: found float64 of .*convert it: array.astype\('float32'\)"),
        ((np.zeros(16, np.float32)[::2], Y), r"argument 0: found strides \(8,\), allowed a C-contiguous"),
        ((X, 3.0), "argument 1: found float, allowed a numpy array"),
        ((X, np.ma.masked_array(Y)), "argument 1: masked arrays are not supported"),
    ],
)
def test_what_does_not_fit_is_named(function: FusedFunction, arguments: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        function(*arguments)
    np.testing.assert_allclose(function(X, Y)[0], expected(X, Y), rtol=1e-6)  # it can still be called


def test_it_takes_no_stream_has_no_graph_and_is_not_pickled(function: FusedFunction) -> None:
    with pytest.raises(UsageError, match="main: takes no stream: the program runs on the host"):
        function(X, Y, stream=0)
    with pytest.raises(UsageError, match="only a program on a GPU has a graph"):
        function.as_graph(X, Y)
    with pytest.raises(TypeError, match=r"load it in the other process: tuner\.compile_program"):
        pickle.dumps(function)
    assert pickle.loads(pickle.dumps(compiled_code())) == compiled_code()


def test_a_prepared_call_is_repeated_whole_and_fusion_by_fusion(function: FusedFunction) -> None:
    function.repeat(function.prepare(X, Y), 3)
    assert function.allocations == 0
    call = function.prepare(np.zeros(8, np.float32), Y)
    for number in (0, 1, 2):
        function.repeat_fusion(call, number, 1)
    results = function.run([each.ctypes.data for each in call.arrays])
    np.testing.assert_allclose(results[0], np.exp(Y), rtol=1e-6)
    owner = Tensor(np.ones(8, np.float32))
    prepared, kept = function.prepare(owner, Y), weakref.ref(owner)
    del owner
    assert kept() is not None  # its memory has no other owner
    assert prepared.arrays[0][0] == 1
    with pytest.raises(IndexError, match="fusion 5: found no such fusion, allowed 0 to 4"):
        function.repeat_fusion(call, 5, 1)


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
    compiled_function(FACTORS).export(tmp_path / "program")
    return tmp_path / "program"


def test_a_fresh_process_runs_it_without_a_compiler_and_exports_it_again(
    folder: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "xy.npy", np.stack([X, Y]))
    paths = map(str, (folder, tmp_path / "xy.npy", tmp_path / "z.npy"))
    command = [sys.executable, "-c", IN_A_FRESH_PROCESS, *paths]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("[]\n", "", 0)
    np.testing.assert_array_equal(np.load(tmp_path / "z.npy"), compiled_function(FACTORS)(X, Y)[0])
    load(folder).export(tmp_path / "again")
    load(folder).export(folder)
    for name in (DOCUMENT, CODE, WEIGHTS):
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_a_document_has_all_of_a_program() -> None:
    whole = compiled_code()
    fills = (fused_code.Fill(64, TensorType((2, 3), "bf16"), float("-inf")),)
    changed = replace(whole, fills=fills, needs=("avx512",))
    document = json.loads(document_text(encode(changed), {}))
    assert decoded(fused_code.FusedCode, document, Path()) == replace(changed, object_code=b"")


@pytest.mark.parametrize("name", [CODE, WEIGHTS])
def test_a_changed_file_is_refused(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[-1] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(UsageError, match=rf"{name}: was changed after the export: its \S+ is another$"):
        load(folder)


def test_a_changed_document_is_refused(folder: Path) -> None:
    document = json.loads((folder / DOCUMENT).read_text())
    changes = {
        "was changed after the export": {"arena_bytes": 1},
        "found format 1, allowed 8 or 9": {"format": 1},
    }
    for refused, change in changes.items():
        (folder / DOCUMENT).write_text(json.dumps(document | change))
        with pytest.raises(UsageError, match=f"{DOCUMENT}: {refused}"):
            load(folder)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 1}', "\0", "[" * 100_000])
def test_a_damaged_document_is_refused(folder: Path, text: str) -> None:
    (folder / DOCUMENT).write_text(text)
    with pytest.raises(UsageError, match=rf"{DOCUMENT}: is damaged: "):
        load(folder)


def test_a_folder_without_a_program_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing: program\.json is missing: it is not a program"):
        load(tmp_path / "nothing")
    (folder / CODE).unlink()
    with pytest.raises(UsageError, match=r"code\.o: cannot be read \(No such file or directory\)"):
        load(folder)


def test_an_export_goes_over_what_a_killed_one_has_left(tmp_path: Path) -> None:
    (tmp_path / f"{CODE}.part").write_bytes(b"half of a file")
    compiled_function(FACTORS).export(tmp_path)
    load(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"program.json", CODE, exported.WEIGHTS}


def test_another_processor_is_refused(folder: Path, function: FusedFunction) -> None:
    exported.save_program(replace(compiled_code(), needs=("sve",)), function.weights, folder)
    with pytest.raises(UsageError, match=r"program: needs sve, which this processor does not have$"):
        load(folder)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"has other files, such as notes\.txt; name a new folder"):
        compiled_function(FACTORS).export(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file: cannot be written: File exists"):
        compiled_function(FACTORS).export(tmp_path / "file")


def test_an_export_that_is_cut_off_is_no_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exported, "_write_weights", fails)
    with pytest.raises(UsageError, match="program: cannot be written: No space left on device"):
        compiled_function(FACTORS).export(folder)
    with pytest.raises(UsageError, match=r"program\.json is missing"):
        load(folder)


def test_another_processor_and_tiles_are_refused_before_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = "folder: needs sve and neon, which this processor does not have"
    with pytest.raises(CandidateError, match=refused):
        fused_code.require_processor(("sve", "neon"), "folder")
    monkeypatch.setattr(fused_code, "own_flags", lambda: {"amx_tile", "amx_bf16"})
    monkeypatch.setattr(fused_code, "may_use_tiles", lambda: False)
    with pytest.raises(CandidateError, match="main: needs AMX, which the operating system refuses"):
        fused_code.require_processor(("amx-bf16",), "main")


# Results are used again only when nobody can see them any more.

F32 = np.dtype(np.float32)
TYPES = (fused_code.ArrayType((2, 3), F32), fused_code.ArrayType((), F32))


@pytest.fixture
def pool() -> fused_code.ResultPool:
    return fused_code.ResultPool(TYPES, 1, (7, 8))


def test_a_frame_has_room_for_arguments_results_and_constants_and_a_pool_keeps_few_results(
    pool: fused_code.ResultPool,
) -> None:
    taken = pool.take()
    assert list(taken.frame) == [0, *[each.ctypes.data for each in taken.arrays], 7, 8]
    assert [each.ctypes.data % ALIGNMENT_BYTES for each in taken.arrays] == [0, 0]
    assert [(each.shape, each.dtype) for each in taken.arrays] == [((2, 3), F32), ((), F32)]
    held = [pool.take().arrays[0] for _ in range(fused_code.POOL_LIMIT + 3)]
    assert len({each.ctypes.data for each in held}) == fused_code.POOL_LIMIT + 3
    first = held[0].ctypes.data
    del held
    assert first not in {pool.take().arrays[0].ctypes.data for _ in range(10)}


HOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "array": lambda first, _: first,
    "second": lambda _, second: second,
    "row": lambda first, _: first[1],
    "view of a view": lambda first, _: first.reshape(3, 2)[1:].T,
    "memoryview": lambda first, _: memoryview(first),
    "dlpack": lambda first, _: np.from_dlpack(first),
    "owner": lambda first, _: first.base,
}


@pytest.mark.drawn(3)
@pytest.mark.parametrize("hold", HOLDS.values(), ids=HOLDS)
def test_results_that_somebody_holds_are_not_used_again(pool: fused_code.ResultPool, hold: Any) -> None:
    assert pool.take() is pool.take()  # nobody holds it
    taken = pool.take()
    held = hold(*taken.arrays)
    assert not taken.is_free
    assert pool.take() is not taken
    del held
    gc.collect()
    assert taken.is_free
