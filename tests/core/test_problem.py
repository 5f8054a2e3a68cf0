"""The problem: words and sizes that are allowed, and what is counted."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.default_suite import ALL
from tests.epilogues import EPILOGUES
from tuner.core import dtypes
from tuner.core import problem as problems
from tuner.core.errors import UsageError
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.problem import Problem, split_extents
from tuner.core.problem_classes import MatmulProblem
from tuner.core.problem_text import parse_shape, parse_sizes, shape_text

OUTPUT = "^output dtype: found"


SIZES = st.tuples(*[st.integers(1, problems.SIZE_LIMIT)] * 3)
NARROW = [(dtype, output) for dtype, outputs in dtypes.NARROW_OUTPUTS.items() for output in outputs]
TYPES = st.sampled_from([*((dtype, "") for dtype in dtypes.INPUT_DTYPES), *NARROW])
FORMS = st.sampled_from(problems.LAYOUTS), st.sampled_from(EPILOGUES)


@st.composite
def drawn_problems(draw: st.DrawFn) -> Problem:
    (dtype, output), (m, n, k) = draw(TYPES), draw(SIZES)
    layout, epilogue = map(draw, FORMS)
    sizes = (m, n, min(k, dtypes.number_type(dtype).depth_limit or k))
    return MatmulProblem("matmul", sizes, dtype, layout, epilogue, output)


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"operation": "conv"}, r"^operation: found 'conv', allowed matmul, batch_matmul$"),
        ({"dtype": "f8"}, r"^dtype: found 'f8', allowed f32, f64, bf16"),
        ({"dtype": "f16", "output": "bf16"}, f"{OUTPUT} 'bf16', allowed f32 or f16 for dtype f16$"),
        ({"dtype": "e4m3", "output": "e4m3"}, f"{OUTPUT} 'e4m3', allowed f32 or f16 or bf16 for dtype e4m3$"),
        ({"dtype": "tf32", "output": "tf32"}, f"{OUTPUT} 'tf32', allowed f32 for dtype tf32$"),
        ({"layout": "tt"}, r"^layout: found 'tt', allowed nn, nt, tn$"),
        ({"epilogue": "softplus"}, r"^epilogue: found 'softplus', allowed none, bias_relu, "),
        ({"sizes": (1, 1)}, r"^sizes: found \(1, 1\), allowed three numbers \(m, n, k\)$"),
        ({"sizes": (0, 1, 1)}, r"^size m: found 0, allowed 1\.\.2147483647$"),
        ({"sizes": (1, 1.5, 1)}, r"^size n: found 1\.5, allowed 1\.\.2147483647$"),
        ({"sizes": (1, 1, "2")}, r"^size k: found '2', allowed 1\.\.2147483647$"),
        ({"sizes": (1, -3, 1)}, r"^size n: found -3, allowed"),
        ({"sizes": (1, 1, 2**31)}, r"^size k: found 2147483648, allowed"),
        ({"sizes": (1, 1, 2**17), "dtype": "i8"}, r"^size k: found 131072, allowed 1\.\.131071 for i8"),
        ({"operation": "batch_matmul", "batch": 0}, r"^batch: found 0, allowed 1\.\.65535 for batch_"),
        ({"operation": "batch_matmul", "batch": 65536}, r"^batch: found 65536, allowed 1\.\.65535"),
        ({"batch": 2}, r"^batch: found 2, allowed 1 for matmul$"),
        ({"align": "32"}, r"^align: found '32', allowed 16, 64, any$"),
        ({"cache": "hot"}, r"^cache: found 'hot', allowed warm, weights-cold, cold$"),
    ],
    ids=str,
)
def test_a_word_or_size_that_is_not_allowed_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        MatmulProblem(**{"operation": "matmul", "sizes": (1, 1, 1), "dtype": "f32"} | changes)


@given(st.integers(1, 65535), SIZES)
def test_a_shape_is_read_as_written_and_a_batch_leads_it(batch: int, sizes: tuple[int, int, int]) -> None:
    assert parse_shape(Matmul(*sizes).shape) == sizes
    problem = BatchMatmul(batch, *sizes)
    assert parse_sizes("batch_matmul", problem.shape) == (batch, sizes)
    assert split_extents("batch_matmul", problem.extents) == (batch, sizes)
    assert split_extents("matmul", Matmul(*sizes).extents) == (1, sizes)


NO_SHAPES = (
    *(("matmul", text) for text in ("", "1x2x", "1x2x-3", "1 x2x3", "1x2x3\n", "axbxc", "1.0x2x3")),
    *(("matmul", "1x2x3x4x5"), ("matmul", "9" * 5000)),
    *(("batch_matmul", text) for text in ("", "1x2x3x4x5", "1x2x3x")),
)


@pytest.mark.parametrize(("operation", "text"), NO_SHAPES)
def test_a_shape_that_is_none_is_quoted(operation: str, text: str) -> None:
    allowed = "MxNxK such as 512x512x512" if operation == "matmul" else "BxMxNxK such as 8x512x512x512"
    with pytest.raises(UsageError, match=rf"^shape: found .*, allowed {allowed}$"):
        parse_shape(text) if operation == "matmul" else parse_sizes(operation, text)


@pytest.mark.parametrize(
    ("operation", "text", "advice"),
    [
        ("matmul", "7", ": N and K missing"),
        ("matmul", "7x8", ": K missing"),
        ("matmul", "2X7x8x9", "; with a batch it is: batch_matmul 2x7x8x9"),
        ("batch_matmul", "7x8", ": N and K missing"),
        ("batch_matmul", "7x8x9", "; without a batch it is: matmul 7x8x9"),
    ],
)
def test_a_shape_of_another_number_of_sizes_says_what_to_type(operation: str, text: str, advice: str) -> None:
    with pytest.raises(UsageError, match=rf"^shape: found '{text}', allowed .* such as [0-9x]+{advice}$"):
        parse_sizes(operation, text)


def test_a_shape_and_types_are_spelled_as_a_problem_and_numpy_spell_them() -> None:
    for operation, written, text in (
        *((None, "512X512X0512", "512x512x512"), (None, "2X7X8X9", "2x7x8x9")),
        *(("matmul", "7x8x9", "7x8x9"), ("batch_matmul", "2x7x8x9", "2x7x8x9")),
    ):
        assert shape_text(operation, written) == text
    types = (
        *(("f32", np.float32), ("f32", "float32"), ("f64", np.dtype("float64")), ("f16", np.float16)),
        *(("bf16", ml_dtypes.bfloat16), ("bf16", "bfloat16"), ("i8", np.int8)),
        *(("e4m3", np.dtype(ml_dtypes.float8_e4m3fn)), ("e5m2", ml_dtypes.float8_e5m2)),
    )
    for name, dtype in types:
        assert Matmul(8, 8, 8, dtype=dtype) == Matmul(8, 8, 8, dtype=name)
    with pytest.raises(UsageError, match=r"^dtype: found .*complex64.*, allowed f32, f64, bf16"):
        Matmul(8, 8, 8, dtype=np.complex64)
    with pytest.raises(UsageError, match=r"^output dtype: found 3, allowed f32 or bf16 for dtype bf16$"):
        Matmul(8, 8, 8, "bf16", output=3)


@pytest.mark.parametrize("size", [np.int64(7), np.uint8(7), np.int32(7)])
def test_integers_of_numpy_become_pythons(size: int) -> None:
    found = Matmul(size, size, size), BatchMatmul(size, size, size, size)
    assert found == (Matmul(7, 7, 7), BatchMatmul(7, 7, 7, 7))
    assert all(type(extent) is int for problem in found for extent in problem.extents)


@pytest.mark.parametrize("size", [True, np.True_, np.float64(7), 7.0, "7", None])
def test_what_is_no_integer_is_no_size(size: int) -> None:
    with pytest.raises(UsageError, match=r"^m: found .*, allowed an integer$"):
        Matmul(size, 8, 8)
    with pytest.raises(UsageError, match=r"^batch: found .*, allowed an integer$"):
        BatchMatmul(size, 8, 8, 8)


def test_a_batch_counts_each_matrix_flop_and_bytes_each_element_and_operands_are_aligned() -> None:
    problem = BatchMatmul(7, 2, 3, 5, layout="nt", epilogue="bias_relu")
    assert (problem.flop, problem.bytes) == (7 * Matmul(2, 3, 5).flop, 4 * (7 * (10 + 15 + 6) + 3))
    assert (problem.a_shape, problem.b_shape, problem.c_shape) == ((7, 2, 5), (7, 3, 5), (7, 2, 3))
    assert problem.one_matmul == Matmul(2, 3, 5, layout="nt", epilogue="bias_relu")
    assert (problem.rows, dict(problem.variables())["batch"]) == (14, 7)
    for dtype, align, offset in (("f32", 16, 16), ("f64", 64, 0), ("i8", "any", 4)):
        assert Matmul(2, 3, 5, dtype, align=align).offset_bytes == offset
    assert (Matmul(2, 3, 5).flop, Matmul(2, 3, 5).bytes) == (2 * 2 * 3 * 5, 4 * (10 + 15 + 6))
    assert Matmul(2, 3, 5, "f64").bytes == 8 * (10 + 15 + 6)
    assert Matmul(2, 3, 5, "bf16", epilogue="bias_relu").bytes == 2 * (10 + 15) + 4 * (6 + 3)
    sizes = {"m": 2, "n": 3, "k": 5, "input_bytes": 2, "output_bytes": 4}
    options = {"layout": "nt", "epilogue": "none", "dtype": "bf16", "output": "f32"}
    assert dict(Matmul(2, 3, 5, "bf16", "nt").variables()).items() >= (sizes | options).items()


@given(drawn_problems(), drawn_problems())
def test_only_equal_problems_share_a_key(one: Problem, other: Problem) -> None:
    assert (one.key == other.key) == (one == other)


KEYS = {
    "matmul 2x3x5 f32 nn none": Matmul(2, 3, 5),
    "matmul 2x3x5 f32 nn none align=64": Matmul(2, 3, 5, align=64),
    "batch_matmul 2x2x3x5 f32 nn none align=any": BatchMatmul(2, 2, 3, 5, align="any"),
    "matmul 2x3x5 f32 nn none align=64 cache=cold": Matmul(2, 3, 5, align=64, cache="cold"),
    "matmul 2x3x5 f16 nn none": Matmul(2, 3, 5, "f16"),
    "matmul 2x3x5 f16->f16 nn none": Matmul(2, 3, 5, "f16", output="f16"),
}


@pytest.mark.parametrize("key", KEYS)
def test_alignment_cache_and_narrow_output_are_in_the_key_but_for_the_usual(key: str) -> None:
    assert KEYS[key].key == key


@pytest.mark.parametrize(
    ("dtype", "output", "types", "bytes_of_both"),  # types: stored, accumulator, result
    [
        ("f32", "", ("f32", "f32", "f32"), (4, 4)),
        ("f64", "", ("f64", "f64", "f64"), (8, 8)),
        ("tf32", "", ("f32", "f32", "f32"), (4, 4)),
        ("f16", "", ("f16", "f32", "f32"), (2, 4)),
        ("f16", "f16", ("f16", "f32", "f16"), (2, 2)),
        ("bf16", "bf16", ("bf16", "f32", "bf16"), (2, 2)),
        ("i8", "", ("i8", "i32", "i32"), (1, 4)),
        ("e4m3", "", ("f8E4M3FN", "f32", "f32"), (1, 4)),
        ("e5m2", "bf16", ("f8E5M2", "f32", "bf16"), (1, 2)),
    ],
)
def test_types_follow_from_dtype_and_output(
    dtype: str, output: str, types: tuple[str, ...], bytes_of_both: tuple[int, int]
) -> None:
    problem = Matmul(1, 1, 1, dtype, output=output)
    assert (problem.stored_dtype, problem.accumulator, problem.result_dtype) == types
    assert (problem.input_bytes, problem.output_bytes) == bytes_of_both


@pytest.mark.parametrize("dtype", dtypes.INPUT_DTYPES)
def test_the_natural_output_said_aloud_is_the_same_problem(dtype: str) -> None:
    assert Matmul(8, 8, 8, dtype, output=dtypes.natural_output(dtype)) == Matmul(8, 8, 8, dtype)
    for name in dtypes.output_names(dtype):
        assert Matmul(8, 8, 8, dtype, output=name).result_dtype == name
    assert dtypes.narrow_output(dtype, "f8") == "f8"
