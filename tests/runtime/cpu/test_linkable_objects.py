"""Object files for a linker: code that may lie anywhere, its data and calls; arrays; what is refused."""

import ctypes
from pathlib import Path

import pytest

from tests.models.library.c.c_programs import NEEDS_CC, shared_object
from tests.runtime.cpu.test_loaded_object import object_of
from tests.support.architectures import ON_X86_64
from tuner.runtime.cpu.linkable_objects import linkable_object

pytestmark = [pytest.mark.mlir, NEEDS_CC, ON_X86_64]
ARRAYS = (b"first", bytes(70), b"third")
SOURCE = """
#include <stdint.h>
void hidden_one(int64_t *to, int64_t index);
void hidden_two(int64_t *to, int64_t index);
extern const char *const arrays[];
void one(int64_t *to, int64_t index) { hidden_one(to, index); }
void two(int64_t *to, int64_t index) { hidden_two(to, index); }
const char *array(int i) { return arrays[i]; }
"""


def test_code_of_several_files_has_its_own_data_each_calls_the_c_library_and_reads_arrays(
    tmp_path: Path,
) -> None:
    code = object_of(tmp_path, "labs")
    made = linkable_object({"hidden_one": code, "hidden_two": code}, "add", "arrays", ARRAYS)
    (tmp_path / "made.o").write_bytes(made)
    (tmp_path / "source.c").write_text(SOURCE)
    options = ("-Wno-missing-prototypes", "-Wl,-z,text", "-Wl,--fatal-warnings")
    library = shared_object(tmp_path, "source.c", "made.o", options=options)
    result = ctypes.c_int64()
    for function, index, expected in (("one", 0, 1), ("one", 1, 21), ("two", 3, 4000), ("one", 3, 4021)):
        library[function](ctypes.byref(result), ctypes.c_int64(index))
        assert result.value == expected  # each file has the sum of what was added before
    library.array.restype = ctypes.c_void_p
    addresses = [library.array(number) for number in range(len(ARRAYS))]
    for address, array in zip(addresses, ARRAYS, strict=True):
        assert ctypes.string_at(address, len(array)) == array
        assert address % 64 == 0
    assert not hasattr(library, "hidden_one")


def test_code_that_refers_to_data_in_another_way_than_the_jit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"relocations of type \d+ are not supported"):
        linkable_object({"f": object_of(tmp_path, "labs", is_position_independent=True)}, "add", "t", ())
    code = object_of(tmp_path, "labs")
    start = code.index(b"\x48\xb8" + bytes(8))  # movabs $address, %rax
    changed = code[:start] + b"\x48\xc7" + code[start + 2 :]
    with pytest.raises(ValueError, match="has an address, and is not movabs"):
        linkable_object({"f": changed}, "add", "t", ())
    with pytest.raises(ValueError, match="no object file of x86-64"):
        linkable_object({"f": b"MZ" + bytes(100)}, "add", "t", ())
