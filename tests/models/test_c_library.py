"""Exported programs as C libraries: compiled, linked, loaded and run, at each size; compared with numpy."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tests.models.dynamic.programs import EXAMPLES, Array, Example
from tests.models.library.c.c_programs import BARE, NEEDS_CC, cc, shared_object
from tests.support.architectures import ON_X86_64
from tests.texts import text_beside
from tuner.core.dynamic_sizes import shape_at
from tuner.core.errors import UsageError
from tuner.core.instruction_sets import AARCH64
from tuner.models import c_library
from tuner.models.run.fused_code import numpy_type
from tuner.models.run.fused_program import FusedFunction
from tuner.models.run.sized_function import SizedFunction

pytestmark = [pytest.mark.mlir, NEEDS_CC, ON_X86_64]
OK, BAD_SIZE, NOT_HERE, FAILED = 0, -1, -3, -4  # what functions return
BY_NAME = {example.name: example for example in EXAMPLES}
LINKED = ("-Wl,-z,text", "-Wl,--fatal-warnings")  # no address is written into code when it is loaded
UNTOUCHED = 77
C_LIBRARY = {"malloc", "free", "aligned_alloc", "memcpy", "memset"}


class Library:
    """A C library of a program, loaded into this process, with one object."""

    def __init__(self, folder: Path, program: FusedFunction | SizedFunction, prefix: str = "made") -> None:
        program.export(folder / prefix)
        self.files = tuner.c_library(folder / prefix, folder)
        sources = [path.name for path in self.files[1:]]
        self.code = shared_object(folder, *sources, options=LINKED)
        self.prefix = prefix
        self._object = ctypes.c_void_p()
        assert self["create"](ctypes.byref(self._object)) == OK
        self["failure"].restype = ctypes.c_char_p

    def __getitem__(self, name: str) -> Any:
        return getattr(self.code, f"{self.prefix}_{name}")

    def run(self, arguments: tuple[Array, ...], results: list[Array], size: int | None = None) -> int:
        """Calls the function; returns its code."""
        addresses = [ctypes.c_void_p(array.ctypes.data) for array in (*arguments, *results)]
        sizes = () if size is None else (ctypes.c_int64(size),)
        return int(self["run"](self._object, *sizes, *addresses))

    @property
    def failure(self) -> str:
        text: bytes | None = self["failure"](self._object)
        return (text or b"").decode()


def unaligned(array: Array) -> Array:
    """Returns a copy whose address is a multiple of the size of its elements, and of nothing greater."""
    memory = np.empty(array.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + array.itemsize
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def require_right(library: Library, example: Example, program: SizedFunction, n: int) -> None:
    """Calls a library at a size: results are right, and nothing after them is written."""
    arguments = tuple(map(unaligned, example.draw(np.random.default_rng(n), n)))
    results = []
    guarded = []
    for type_ in program.signature.results:
        shape = shape_at(type_.shape, n)
        whole = unaligned(np.full(int(np.prod(shape)) + 9, UNTOUCHED, numpy_type(type_.element)))
        guarded.append(whole[-9:])
        results.append(whole[:-9].reshape(shape))
    assert library.run(arguments, results, n) == OK
    for result, expected in zip(results, example.results(*arguments), strict=True):
        np.testing.assert_allclose(result, expected, rtol=0, atol=2e-4)
    assert all((after == UNTOUCHED).all() for after in guarded)


def sized(example: Example, sizes: str) -> SizedFunction:
    program = tuner.compile_program(example.text, "cpu", sizes=sizes)
    assert isinstance(program, SizedFunction)
    return program


def static(text: str) -> FusedFunction:
    program = tuner.compile_program(text, "cpu")
    assert isinstance(program, FusedFunction)
    return program


@pytest.mark.slow
def test_a_program_runs_at_the_lowest_size_each_rung_between_them_and_the_greatest(tmp_path: Path) -> None:
    example = BY_NAME["ATTENTION"]
    program = sized(example, "3..12")
    assert program.ladder == (3, 4, 8, 10, 12)
    library = Library(tmp_path, program)
    for n in (12, 3, *range(3, 13), 5, 12, 3):
        require_right(library, example, program, n)
    for n in (2, 0, -1, 13, 2**40):
        untouched = np.full((2, 12, 4), UNTOUCHED, np.float32)
        assert library.run((untouched, untouched, untouched), [untouched], n) == BAD_SIZE
        assert (untouched == UNTOUCHED).all()
    library["destroy"](library._object)  # noqa: SLF001
    library["destroy"](None)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_shapes_types_masks_and_padding_of_each_kind_are_right_at_each_size(
    example: Example, tmp_path: Path
) -> None:
    program = sized(example, "6..10")
    library = Library(tmp_path, program)
    for n in (10, 6, 7, 8, 9, 10, 6):
        require_right(library, example, program, n)


def test_a_static_program_takes_no_size_and_a_wrong_index_is_a_text(tmp_path: Path) -> None:
    library = Library(tmp_path, static(text_beside(__file__, "ROWS")), "rows")
    header = library.files[0].read_text()
    assert "int rows_run(struct rows_object *object, const int64_t *argument_0, const float *arg" in header
    assert "BAD_SIZE" not in header
    table = np.arange(36, dtype=np.float32).reshape(9, 4)
    result = np.empty((3, 4), np.float32)
    numbers = np.array([8, 0, 3])
    for _ in range(2):
        assert (library.run((numbers, table), [result]), library.failure) == (OK, "")
        np.testing.assert_array_equal(result, table[numbers])
        assert library.run((np.array([8, 9, 3]), table), [result]) == FAILED
        assert "index" in library.failure


def test_weights_are_there_once_and_only_the_header_s_names_are_given(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float32)
    text = text_beside(__file__, "PRODUCT").replace("WEIGHT", weight.tobytes().hex())
    program = tuner.compile_program(text, "cpu", sizes="4..12")
    assert isinstance(program, SizedFunction)
    library = Library(tmp_path, program)
    header, _, code = library.files
    assert f"The {weight.nbytes} bytes of weights" in header.read_text()
    assert code.read_bytes().count(weight.tobytes()[: 4 * 16]) == 1  # the first row of a packed panel
    x = np.ones((7, 64), np.float32)
    result = np.empty((7, 128), np.float32)
    assert library.run((x,), [result], 7) == OK
    np.testing.assert_allclose(result, x @ weight, rtol=0, atol=1e-4)
    declared = set(re.findall(r"^MADE_API .*?\b(made_\w+)\(", header.read_text(), re.M))
    assert {f"made_{name}" for name in ("create", "destroy", "run", "failure")} == declared
    if shutil.which("nm"):
        assert _names("-D --defined-only", tmp_path / "library.so") == declared
        assert _names("--undefined-only", code) <= C_LIBRARY


def _names(options: str, file: Path) -> set[str]:
    done = subprocess.run(["nm", *options.split(), file], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines()}


@pytest.mark.parametrize("how", ["-pie", "-no-pie"])
def test_a_program_links_it_wherever_it_lies_and_asks_what_the_processor_has(
    how: str, tmp_path: Path
) -> None:
    Library(tmp_path, static(text_beside(__file__, "ROWS")), "rows")
    (tmp_path / "use.c").write_text(text_beside(__file__, "USE"))
    compiled_as = "-fPIE" if how == "-pie" else "-fno-pie"
    cc(tmp_path, compiled_as, how, *LINKED, "use.c", "rows.c", "rows_program.o", "-o", "use")
    done = subprocess.run([tmp_path / "use"], env=BARE, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "0: 4 5 6 7\n")
    source = (tmp_path / "rows.c").read_text()
    changed = re.sub(r"const unsigned needs = .*;", "const unsigned needs = 1u << 31;", source)
    (tmp_path / "rows.c").write_text(changed)  # as on a processor that lacks an instruction set
    cc(tmp_path, "use.c", "rows.c", "rows_program.o", "-o", "use")
    done = subprocess.run([tmp_path / "use"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, f"{NOT_HERE}\n")


def test_what_cannot_be_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"none: program\.json is missing"):
        tuner.c_library(tmp_path / "none", tmp_path)
    static(text_beside(__file__, "ROWS")).export(tmp_path / "My-Rows")
    with pytest.raises(UsageError, match="prefix: found 'My-Rows', allowed a lower-case letter"):
        tuner.c_library(tmp_path / "My-Rows", tmp_path)
    with pytest.raises(UsageError, match="prefix: 'int' is a reserved word"):
        tuner.c_library(tmp_path / "My-Rows", tmp_path, "int")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"file: "):
        tuner.c_library(tmp_path / "My-Rows", tmp_path / "file", "rows")
    monkeypatch.setattr(c_library, "own_architecture", lambda: AARCH64)
    with pytest.raises(UsageError, match="a C library of a program is for x86-64, this processor is not"):
        tuner.c_library(tmp_path / "My-Rows", tmp_path, "rows")
