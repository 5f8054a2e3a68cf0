"""Libraries get the weights of a quantized matmul right, in each copy; a wrong result is not a baseline."""

from functools import partial

import numpy as np
import pytest

from tuner.core.errors import TunerError
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.mlir.reference.quantized_reference import dequantized
from tuner.models.quantized.quantized_baselines import (
    BUILDERS,
    BuiltMatmul,
    Copies,
    QuantizedMatmul,
    copies_needed,
    drawn_operands,
    verified_matmul,
)
from tuner.runtime.workers.worker import call_in_child
from tuner.targets.cpu.baseline_libraries import LIBRARIES, baseline_environment

pytestmark = pytest.mark.mlir
FORMATS = (
    *("i4-g32-f16", "i4-g128-bf16-zp", "i4-g64-f32", "i4-g32-f16-a8group", "i4-g128-f16-zp-a8row"),
    *("i8-g64-f16", "i8-g64-f16-zp-a8group", "i8-channel-f16", "i8-channel-f16-a8row", "i4-channel-f16"),
)


def problem_of(
    weights: str, dtype: str = "f32", sizes: tuple[int, int, int] = (3, 48, 256), cache: str = "weights-cold"
) -> Problem:
    return Matmul(*sizes, dtype=dtype, layout="nt", weights=weights, cache=cache)


def require_right(library: str, problem: Problem) -> str:
    """Returns the name of a library that multiplies three copies of random weights; wrong ones raise."""
    operands = drawn_operands(problem, np.random.default_rng(0))
    matmul = QuantizedMatmul(BUILDERS[library], problem, operands, 1, 3)
    assert matmul.require_right() > 0
    assert matmul.stopwatch(4) > 0
    assert matmul.result.shape == problem.c_shape
    return matmul.name


CASES = [
    (library, problem_of(weights, dtype, sizes))
    for library in BUILDERS
    for weights in FORMATS
    for dtype in ("f32", "bf16")
    for sizes in ((1, 48, 256), (3, 48, 384), (2, 40, 128))
    if LIBRARIES[library].multiplies(problem_of(weights, dtype, sizes))
]


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("library", "problem"), CASES, ids=[f"{name}-{each.key}" for name, each in CASES])
def test_a_library_multiplies_each_copy_right(library: str, problem: Problem) -> None:
    if LIBRARIES[library].find() is None:
        pytest.skip(f"{library} is not installed: {LIBRARIES[library].install}")
    work = partial(require_right, library, problem)
    environment = baseline_environment(library, 1)
    assert library in call_in_child("baseline", work, 120.0, environment=environment).lower()


@pytest.mark.parametrize("weights", FORMATS)
def test_the_expected_product_is_that_of_the_reference(weights: str) -> None:
    operands = drawn_operands(problem_of(weights), np.random.default_rng(1))
    columns, _ = dequantized(operands.integers, operands.scales, operands.zero_points)
    np.testing.assert_allclose(operands.product(), operands.a @ columns.T, rtol=1e-4, atol=1e-4)


def test_the_integers_are_those_of_the_format_and_unsigned_ones_are_shifted() -> None:
    operands = drawn_operands(problem_of("i4-g32-f16-zp"), np.random.default_rng(2))
    integers, points = operands.unsigned
    assert (operands.integers.min(), operands.integers.max()) == (-8, 7)
    assert (integers.min(), integers.max()) == (0, 15)
    assert operands.zero_points is not None
    np.testing.assert_array_equal(points, operands.zero_points.astype(np.int16) + 8)


@pytest.mark.parametrize(
    ("cache", "sizes", "copies"),
    [
        ("warm", (1, 4096, 4096), 1),
        ("weights-cold", (1, 4096, 4096), 12),  # of 9.4 MB: eleven others have 104 MB
        ("weights-cold", (1, 16, 64), 256),
    ],
)
def test_copies_of_cold_weights_are_three_times_the_cache(
    cache: str, sizes: tuple[int, int, int], copies: int
) -> None:
    assert copies_needed(problem_of("i4-g32-f16", sizes=sizes, cache=cache), 32 << 20) == copies


def wrong_in_a_copy(problem: Problem, copies: Copies, _threads: int) -> BuiltMatmul:
    """Builds a library that has the weights of the first copy in each."""
    product = copies[0].product()
    return BuiltMatmul("wrong 1.0", "f32", lambda: None, lambda: (product,) * len(copies))


def refusing(_problem: Problem, _copies: Copies, _threads: int) -> BuiltMatmul:
    raise RuntimeError("no kernel\nat line 3")


def test_a_library_that_is_wrong_or_refuses_is_no_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of("i4-g32-f16")
    operands = drawn_operands(problem, np.random.default_rng(0))
    assert QuantizedMatmul(wrong_in_a_copy, problem, operands, 1).require_right() == 0
    with pytest.raises(TunerError, match=r"wrong result: relative error 1.*, allowed 1e-04"):
        QuantizedMatmul(wrong_in_a_copy, problem, operands, 1, 2).require_right()
    monkeypatch.setitem(BUILDERS, "openvino", refusing)
    with pytest.raises(TunerError, match=r"^cannot compute this: no kernel$"):
        verified_matmul("openvino", problem, 1, np.random.default_rng(0))
