"""Programs that change arguments in place: what is written, what is read, and what is refused."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tests.models.library.c.c_programs import NEEDS_CC
from tests.models.test_c_library import FAILED, OK, Library
from tests.support.architectures import ON_X86_64
from tests.texts import text_beside
from tuner.core.errors import CandidateError, UsageError
from tuner.gpu.interpreter.host_functions import read_function
from tuner.models.run.fused_code import shared_memory
from tuner.models.run.fused_program import FusedFunction

pytestmark = pytest.mark.mlir
Array = Any
WRITE = ("tensor.scatter",)
NAN = np.float32("nan")


def text(name: str) -> str:
    return text_beside(__file__, name)


def compiled(name: str) -> FusedFunction:
    program = tuner.compile_program(text(name), "cpu")
    assert isinstance(program, FusedFunction)
    return program


def numbers(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def positions(*values: int, dtype: Any = np.int64) -> Array:
    return np.array(values, dtype)[:, None]


ARGUMENTS: dict[str, tuple[Array, ...]] = {
    "CACHE": (numbers(2, 16, 8), numbers(2, 3, 8), positions(2, 0, 2, 16, 31, 20)),
    "TWO_WRITES": (numbers(16, 8), numbers(3, 8), positions(1, 3, 15, dtype=np.int32)),
    "READ_AFTER": (numbers(16, 8), numbers(3, 8), positions(1, 3, 15)),
    "READ_BETWEEN": (numbers(16, 8), numbers(3, 8), positions(1, 3, 1)),
    "OWN_ROWS": (numbers(16, 8), positions(*range(1, 16), 0)),
    "SHIFTED": (numbers(16, 8), numbers(1, 8)),
    "COUNTED": (numbers(4), numbers(4)),
    "FILLED": (np.arange(128, dtype=np.int32).reshape(16, 8), positions(4, 0, 4)),
    "COPIED": (numbers(16, 8), numbers(3, 8), positions(4, 0, 4)),
}
# of the arguments, how many are written where they lie: no fusion reads or writes all of a copy
IN_PLACE = ("CACHE", "TWO_WRITES", "FILLED")


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_program_changes_its_arguments_as_the_text_says(name: str) -> None:
    program = compiled(name)
    reference = read_function(text(name), "step")
    own = tuple(array.copy() for array in ARGUMENTS[name])
    expected = tuple(array.copy() for array in ARGUMENTS[name])
    for _ in range(2):  # the second call begins with what the first one has left
        results = program(*own)
        of_reference = reference(expected, print)
        listed = results if isinstance(results, tuple) else (results,) * (results is not None)
        for result, other in zip((*listed, *own), (*of_reference, *expected), strict=True):
            np.testing.assert_allclose(result, other, rtol=1e-6, atol=1e-6)
    assert program.program.written == tuple(
        not np.array_equal(array, before) for array, before in zip(own, ARGUMENTS[name], strict=True)
    )


@pytest.mark.parametrize("name", [*IN_PLACE, "COPIED", "READ_AFTER"])
def test_only_what_is_read_after_the_write_is_copied(name: str) -> None:
    whole = ARGUMENTS[name][0].nbytes
    copies = [fusion for fusion in compiled(name).code.fusions if fusion.ops == ("linalg.copy",)]
    count = {"COPIED": 1, "READ_AFTER": 2}.get(name, 0)  # into memory of its own, then into the argument
    assert sum(fusion.moved_bytes == 2 * whole for fusion in copies) == count
    assert WRITE in [fusion.ops for fusion in compiled(name).code.fusions]


def test_what_no_position_names_is_neither_read_nor_written() -> None:
    cache = np.full((2, 16, 8), NAN)
    cache[:, :4] = 1
    new = numbers(2, 3, 8)
    result = compiled("CACHE")(cache, new, positions(2, 0, 2, 16, 19, 18))
    assert np.isfinite(result).all()
    assert np.isnan(cache[:, 4:]).all()
    np.testing.assert_array_equal(cache[0, [0, 2]], new[0, [1, 2]])  # of equal positions, the last
    np.testing.assert_array_equal(cache[1, [0, 3, 2]], new[1])


@pytest.mark.parametrize("wrong", [32, -1, 2**40])
def test_a_position_out_of_range_is_an_error_and_nothing_is_written(wrong: int) -> None:
    cache, new, at = (array.copy() for array in ARGUMENTS["CACHE"])
    at[5] = wrong
    with pytest.raises(IndexError, match=r"an index into tensor<32x8xf32> is outside of dimension 0$"):
        compiled("CACHE")(cache, new, at)
    np.testing.assert_array_equal(cache, ARGUMENTS["CACHE"][0])


def test_arrays_that_cannot_be_changed_are_refused() -> None:
    program = compiled("COUNTED")
    x = numbers(9)
    for call in (program, program.prepare):
        with pytest.raises(
            UsageError, match=r"step: argument 1: is written to, but shares memory with argument 0"
        ):
            call(x[:4], x[3:7])
        fixed = numbers(4)
        fixed.flags.writeable = False
        with pytest.raises(UsageError, match=r"step: argument 1: is read-only, but is written to"):
            call(x[:4], fixed)
    assert program(x[:4], x[4:8]) is None
    assert program(fixed, x[4:8]) is None  # what is only read may be read-only


@pytest.mark.parametrize(
    ("starts", "pair"),
    [
        ((0, 10, 20), None),
        ((0, 5, 20), (1, 0)),
        ((5, 0, 20), (1, 0)),
        ((0, 20, 5), None),
        ((3, 20, 20), (1, 2)),
    ],
)
def test_shared_memory_counts_where_one_of_the_two_is_changed(
    starts: tuple[int, ...], pair: tuple[int, int] | None
) -> None:
    assert shared_memory(starts, (10, 10, 10), (1,)) == pair
    assert shared_memory(starts, (10, 10, 10), ()) is None
    assert shared_memory(starts, (10, 0, 10), (1,)) is None


def test_what_is_not_written_by_fusions_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"only fusions on the CPU write an argument in place .*each other's old"
    ):
        tuner.compile_program(text("SWAPPED"), "cpu")
    with pytest.raises(
        UsageError, match=r"only fusions on the CPU write an argument in place .*no kernels of"
    ):
        tuner.compile_program(text("COUNTED"), "simulator")
    of_any_size = text("COUNTED").replace("tensor<4xf32>", "tensor<?xf32>")
    with pytest.raises(UsageError, match=r"sizes 1\.\.9 cannot be combined with an argument that is written"):
        tuner.compile_program(of_any_size, "cpu", sizes="1..9")
    wrong = text("COUNTED").replace("new_value = 0", "new_value = 1")
    with pytest.raises(UsageError, match=r"argument 1: found tuner\.new_value = 1, allowed the number of a"):
        tuner.compile_program(wrong, "cpu")


def test_a_write_of_other_than_rows_is_refused() -> None:
    other = re.sub(r"scatter_dims\(\[0\]\)", "scatter_dims([1])", text("COPIED")).replace(
        "tensor<3x8xf32>", "tensor<3x16xf32>"
    )
    with pytest.raises(CandidateError, match=r"allowed scatter_dims\(\[0\]\), one position for each row"):
        tuner.compile_program(other, "cpu")


def test_an_exported_program_changes_its_arguments(tmp_path: Path) -> None:
    compiled("CACHE").export(tmp_path / "step")
    program = tuner.load(tmp_path / "step")
    own = tuple(array.copy() for array in ARGUMENTS["CACHE"])
    expected = tuple(array.copy() for array in ARGUMENTS["CACHE"])
    np.testing.assert_array_equal(program(*own), compiled("CACHE")(*expected))
    np.testing.assert_array_equal(own[0], expected[0])
    with pytest.raises(UsageError, match="argument 0: is written to, but shares memory with argument 1"):
        program(own[0], own[0].reshape(-1)[:48].reshape(2, 3, 8), own[2])


@NEEDS_CC
@ON_X86_64
def test_a_c_library_changes_its_arguments(tmp_path: Path) -> None:
    program = compiled("CACHE")
    library = Library(tmp_path, program)
    header = library.files[0].read_text()
    assert "float *argument_0, const float *argument_1, const int64_t *argument_2, float *result_0" in header
    assert "a call writes argument_0 in place" in header
    own = tuple(array.copy() for array in ARGUMENTS["CACHE"])
    expected = tuple(array.copy() for array in ARGUMENTS["CACHE"])
    result = np.empty((2, 4, 8), np.float32)
    for _ in range(2):
        assert library.run(own, [result]) == OK
        np.testing.assert_array_equal(result, program(*expected))
        np.testing.assert_array_equal(own[0], expected[0])
    own[2][0] = 32
    assert library.run(own, [result]) == FAILED
    assert library.failure == "an index into tensor<32x8xf32> is outside of dimension 0"
    np.testing.assert_array_equal(own[0], expected[0])


@NEEDS_CC
@ON_X86_64
def test_a_c_function_may_return_nothing_but_what_it_changes(tmp_path: Path) -> None:
    library = Library(tmp_path, compiled("COUNTED"))
    x, count = (array.copy() for array in ARGUMENTS["COUNTED"])
    before = count.copy()
    assert library.run((x, count), []) == OK
    np.testing.assert_array_equal(count, x + before)
