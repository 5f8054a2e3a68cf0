import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.default_suite import ALL
from tuner.core.device_programs import BufferType, DeviceOptions, ScalarType, ValueType
from tuner.core.errors import CandidateError, Stage, TunerError, UsageError
from tuner.models.arguments import make_arguments
from tuner.models.payload_errors import in_file, named_in_errors
from tuner.runtime.arrays import read_npy

SCALARS = (ScalarType("index"), ScalarType("f32"))
WHOLE = (BufferType("i8", (2, 3)), BufferType("i1", (2, 3)))
TYPES = (BufferType("f32", (2, 3)), BufferType("bf16", (None, 4)), *SCALARS, *WHOLE)
ENOUGH = ("1=[5,4]random", "2=7")


def made(*options: str, types: tuple[ValueType, ...] = TYPES, seed: int = 0) -> tuple[Any, ...]:
    return make_arguments(types, options, np.random.default_rng(seed))


def test_what_no_word_names_is_random_and_follows_the_seed_integers_too() -> None:
    first, again, other = made(*ENOUGH), made(*ENOUGH), made(*ENOUGH, seed=1)
    assert (first[0].shape, first[0].dtype) == ((2, 3), np.float32)
    np.testing.assert_array_equal(first[0], again[0])
    assert (first[0] != other[0]).any()
    assert first[3] == again[3] != other[3]
    (found,) = made(types=(BufferType("i32", (50,)),))
    assert found.dtype == np.int32
    assert 0 <= found.min() <= found.max() < 100


def test_words_and_files_give_sizes_numbers_and_contents(tmp_path: Path) -> None:
    second, third, fourth = made(*ENOUGH, "3=0.5")[1:4]
    assert (second.shape, str(second.dtype), third, fourth) == ((5, 4), "bfloat16", 7, 0.5)
    filled: dict[str, Any] = {"zeros": 0, "ones": 1, "2.5": 2.5, "nan": np.nan, "-1e3": -1000}
    filled["range"] = [[0, 1, 2], [3, 4, 5]]
    for content, expected in filled.items():
        np.testing.assert_array_equal(made(*ENOUGH, f"0={content}")[0], np.full((2, 3), expected, np.float32))
    np.save(tmp_path / "a.npy", np.arange(6.0).reshape(2, 3))
    found = made(*ENOUGH, f"0=@{tmp_path / 'a.npy'}")[0]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.arange(6).reshape(2, 3))
    array = np.arange(20).reshape(5, 4).astype(made(*ENOUGH)[1].dtype)
    np.save(tmp_path / "b.npy", array)
    np.testing.assert_array_equal(made("2=7", f"1=[5,4]@{tmp_path / 'b.npy'}")[1], array)


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("x",), r"argument: found 'x', allowed NUMBER=\[SIZES\]CONTENT, such as 0=zeros"),
        (("6=7",), r"argument: found '6=7', allowed NUMBER=\[SIZES\]CONTENT with NUMBER below 6"),
        (("2=7",), r"argument 1: sizes of \?x4xbf16 are missing; for example --arg 1=\[64,4\]random"),
        (("1=[5,4]random",), "argument 2: a value of type index is missing; for example --arg 2=7"),
        ((*ENOUGH, "0=[3,3]ones"), r"argument 0: found sizes \[3, 3\], allowed those of 2x3xf32"),
        (("1=[5,5]ones", "2=7"), r"argument 1: found sizes \[5, 5\], allowed those of \?x4xbf16"),
        (("1=[999999999,4]ones", "2=7"), "argument 1: found .*, allowed 2147483648 elements"),
        ((*ENOUGH, "3=[2]ones"), r"argument 3: found sizes \[2\], allowed a number: it is f32"),
        ((*ENOUGH, "0=many"), "argument 0: found 'many', allowed random, range, zeros, .* of type float32"),
        ((*ENOUGH, "0=ones", "0=zeros"), "argument 0: '0=zeros' cannot be combined with an earlier one"),
        (("1=[5,4]random", "2=7.5"), "argument 2: found '7.5', allowed a number of type int64"),
        ((*ENOUGH, "0=[2,-3]ones"), r"argument 0: found '0=\[2,-3\]ones', allowed sizes such as \[64,64\]"),
        ((*ENOUGH, "0=@/dev/null"), "argument 0: /dev/null: cannot be read as .npy: No data left in file"),
        ((*ENOUGH, "0="), r"argument: found '0=', allowed NUMBER=\[SIZES\]CONTENT, such as"),
        ((*ENOUGH, "0=@none.npy"), r"argument 0: none\.npy: cannot be read as \.npy"),
        ((*ENOUGH, "4=300"), "argument 4: found 300, allowed numbers that int8 has"),
        ((*ENOUGH, f"4={10**30}"), f"argument 4: found {10**30}, allowed numbers that int8 has"),
        ((*ENOUGH, "5=5"), "argument 5: found 5, allowed numbers that bool has"),
    ],
)  # fmt: skip
def test_a_word_that_does_not_fit_is_refused(options: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        made(*options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (np.zeros(6), r"found shape \(6,\), allowed \(2, 3\)"),
        (np.full((2, 3), 300), r"found int64, allowed numbers that int8 has"),
        (np.full((2, 3), 0.5), r"found float64, allowed numbers that int8 has"),
        (np.full((2, 3), 1j), r"found complex128, allowed numbers that int8 has"),
        (np.full((2, 3), "x"), r"found <U1, allowed numbers that int8 has"),
    ],
)
def test_a_file_that_does_not_fit_the_type_is_refused(tmp_path: Path, content: Any, message: str) -> None:
    np.save(tmp_path / "a.npy", content)
    with pytest.raises(UsageError, match=message):
        made(*ENOUGH, f"4=@{tmp_path / 'a.npy'}")


def claiming(path: Path, shape: str) -> Path:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (16,)})
    header = file.getvalue().replace(b"(16,)", shape.encode())
    head, text = header[:10], header[10:].rstrip()
    text += b" " * (-(len(head) + len(text) + 1) % 64) + b"\n"
    path.write_bytes(head[:8] + len(text).to_bytes(2, "little") + text + bytes(64))
    return path


def test_a_file_is_read_as_it_was_written_whatever_its_type_and_what_is_no_array_is_refused(
    tmp_path: Path,
) -> None:
    array = np.arange(6.0).reshape(2, 3)
    np.save(tmp_path / "x.npy", array)
    assert np.array_equal(read_npy(tmp_path / "x.npy", "x"), array)
    np.save(tmp_path / "none.npy", np.zeros((0, 3)))
    assert read_npy(tmp_path / "none.npy", "x").shape == (0, 3)
    assert np.array_equal(read_npy(claiming(tmp_path / "y.npy", "(16,)"), "y"), np.zeros(16, np.float32))
    file = io.BytesIO()
    np.save(file, np.array([{}], dtype=object))
    for content in (b"", b"text", b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff{", file.getvalue()):
        (tmp_path / "x.npy").write_bytes(content)
        with pytest.raises(UsageError, match=r"^x: cannot be read as \.npy: ."):
            read_npy(tmp_path / "x.npy", "x")
    np.savez(tmp_path / "x.npz", np.zeros(1), np.zeros(2))
    with pytest.raises(UsageError, match=r"^x: several arrays in one file: save one as \.npy$"):
        read_npy(tmp_path / "x.npz", "x")


SHAPES = ["(17,)", "(10**3,)", f"({2**40},)", f"({2**70},)", f"({2**40}, {2**40})", "(-1,)", "(1e9,)", "7"]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_header_that_claims_more_than_there_is_or_no_shape_is_refused(tmp_path: Path, shape: str) -> None:
    path = claiming(tmp_path / "x.npy", shape)
    with pytest.raises(UsageError, match=r"^x: cannot be read as \.npy: .") as caught:
        read_npy(path, "x")
    assert "\n" not in str(caught.value)


def test_no_streams_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^max_streams: found 0, allowed 1 and more$"):
        DeviceOptions(max_streams=0)


PAYLOAD = """func.func @f(%x: memref<4xf32>) {
  %v = memref.load %x[%c9] : memref<4xf32>
  "my.op"(%v) : (f32) -> ()
  call @g() : () -> ()
"""


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("gpu.alloc at line 8:3: found X, allowed Y", "f.mlir:8:3: gpu.alloc: found X, allowed Y"),
        ("payload: error: line 20:15: found a.b of dialect a", "f.mlir:20:15: found a.b of dialect a"),
        ("program: payload: found a call (at line 9:2), allowed 0", "f.mlir:9:2: found a call, allowed 0"),
        ("payload: entry: found 'x', allowed main", "f.mlir: payload: entry: found 'x', allowed main"),
        ("program: killed by SIGSEGV", "f.mlir: killed by SIGSEGV"),
        ("line 73: ld.global: out of bounds", "f.mlir: line 73: ld.global: out of bounds"),  # of PTX
        ("op at line 9:5: found one at line 3:1", "f.mlir:9:5: op: found one at line 3:1"),
        ("kernel k: ld (at line 2:8): out of bounds", "f.mlir:2:8: memref.load: kernel k: ld: out of bounds"),
        ("memref.load at line 2:8: found X", "f.mlir:2:8: memref.load: found X"),  # it is named already
        ("line 3:3: unknown", "f.mlir:3:3: my.op: unknown"),
        ("line 4:3: no body", "f.mlir:4:3: call: no body"),
        ("line 9:1: unknown", "f.mlir:9:1: unknown"),
        ("line 2:3: unknown", "f.mlir:2:3: unknown"),  # a value begins there
    ],
)  # fmt: skip
def test_a_message_begins_with_the_file_the_place_in_it_and_its_operation(reason: str, expected: str) -> None:
    assert in_file(reason, "f.mlir", PAYLOAD) == expected


@pytest.mark.parametrize("kind", [UsageError, TunerError])
def test_errors_stay_of_their_kind(kind: type[TunerError]) -> None:
    with pytest.raises(kind, match=r"f\.mlir:1:2: no") as caught, named_in_errors("f.mlir", ""):
        raise kind("line 1:2: no")
    assert type(caught.value) is kind
    with pytest.raises(CandidateError, match=r"f\.mlir: no") as failed, named_in_errors("f.mlir", ""):
        raise CandidateError(Stage.LOAD, "no")
    assert failed.value.stage is Stage.LOAD
