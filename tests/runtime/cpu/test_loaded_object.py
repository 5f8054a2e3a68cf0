"""Object files are loaded without a linker: code, data, calls of the C library; damaged ones are refused."""

import ctypes
from pathlib import Path

import pytest

from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.core.instruction_sets import X86_64
from tuner.runtime.cpu.host import own_architecture
from tuner.runtime.cpu.linkable_objects import merged_object
from tuner.runtime.cpu.object_files import LoadedObject, read_object
from tuner.targets.cpu.compiler import write_object

pytestmark = pytest.mark.mlir
TEXT = text_beside(__file__, "TEXT")
CALLING = text_beside(__file__, "CALLING")


def object_of(tmp_path: Path, function: str, *, is_position_independent: bool = False) -> bytes:
    """Returns the object file of a function that calls ``function`` of the C library."""
    file, text = tmp_path / "code.o", TEXT.replace("FUNCTION", function)
    write_object(text, file, is_position_independent=is_position_independent, entry="add")
    return file.read_bytes()


def test_code_reads_its_data_keeps_its_state_and_calls_the_c_library(tmp_path: Path) -> None:
    loaded = LoadedObject(object_of(tmp_path, "labs"))
    add = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(loaded.addresses["add"])
    result = ctypes.c_int64()
    for index, expected in ((0, 1), (1, 21), (3, 4021)):
        add(ctypes.addressof(result), index)
        assert result.value == expected


def test_an_unknown_function_and_what_is_no_whole_object_of_this_model_are_refused(tmp_path: Path) -> None:
    code = object_of(tmp_path, "labs").replace(b"\0labs\0", b"\0lobs\0")
    with pytest.raises(CandidateError, match="machine code: calls 'lobs', which the C library does not have"):
        LoadedObject(code)
    if own_architecture() is X86_64:  # position-independent code of AArch64 has the same relocations
        with pytest.raises(CandidateError, match=r"machine code: relocations of type \d+ are not supported"):
            LoadedObject(object_of(tmp_path, "labs", is_position_independent=True))
    for code in (b"", b"\x7fELF\x02\x01" + bytes(58), b"MZ" + bytes(100)):
        with pytest.raises(
            CandidateError, match=r"machine code: (no object file|the object file is cut off)"
        ):
            LoadedObject(code)
    code = object_of(tmp_path, "labs")
    for size in range(0, len(code), 97):
        with pytest.raises(ValueError, match=r"cut off|no object file|not found|decode"):
            read_object(code[:size])


def test_files_become_one_in_which_one_calls_the_others_and_each_has_its_own_data(tmp_path: Path) -> None:
    file = tmp_path / "calling.o"
    write_object(CALLING, file, entry="both")
    other = object_of(tmp_path, "labs")
    merged = merged_object(file.read_bytes(), {"first_add": other, "second_add": other}, "add")
    loaded = LoadedObject(merged)
    both = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(loaded.addresses["both"])
    results = (ctypes.c_int64 * 2)()
    for index, expected in ((0, [1, 1]), (1, [21, 21]), (3, [4021, 4021])):  # each file has its own sum
        both(ctypes.addressof(results), index)
        assert list(results) == expected
    assert "add" not in loaded.addresses
    again = LoadedObject(merged_object(merged, {}, "add"))
    both = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(again.addresses["both"])
    both(ctypes.addressof(results), 2)
    assert list(results) == [300, 300]


def test_a_file_without_the_function_that_is_called_is_refused(tmp_path: Path) -> None:
    code = object_of(tmp_path, "labs")
    with pytest.raises(ValueError, match="the object file of 'g0' has no function 'fusion'"):
        merged_object(code, {"g0": code}, "fusion")
    with pytest.raises(ValueError, match="no object file"):
        merged_object(code, {"g0": b"MZ" + bytes(100)}, "fusion")
