"""A matmul with scales of blocks: its reference, what that shows, its payload, and what refuses it."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tuner
from tests.default_suite import ALL
from tuner.core.dtypes import FLOAT8S
from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.core.numpy_types import widened
from tuner.core.problem import SCALES, Problem
from tuner.core.problem_documents import ProblemDocument
from tuner.core.problem_text import tune_command
from tuner.core.queries import TaskQuery
from tuner.db.rows import problem_of, problem_row
from tuner.gpu.interpreter.host_functions import read_function
from tuner.gpu.payload.scratch import scratch_in
from tuner.payload.comparison import changed_inputs, compare
from tuner.payload.cpu import tensor_type
from tuner.payload.drawing import draw, draw_base
from tuner.payload.inputs import draw_extremes
from tuner.payload.reference import Float64, Inputs
from tuner.payload.scaled_product import factor_types, scaled_product

BLOCK = 128
SHAPES = ((5, 7, 3), (130, 200, 300), (64, 256, 256))


def scaled(m: int, n: int, k: int, dtype: str = "e4m3") -> Problem:
    return Matmul(m, n, k, dtype, "nt", scales=SCALES)


def drawn(problem: Problem) -> Inputs:
    rng = np.random.default_rng(7)
    return draw(problem, draw_base(problem, rng), rng)


def by_blocks(inputs: Inputs, order: int = 1) -> Float64:
    """Returns C as a kernel adds it up: sums of each 128 of K times their scales; of B in another order."""
    a, b, of_a, of_b = (widened(array).astype(np.float64) for array in inputs.arrays)
    total = np.zeros((len(a), len(b)))
    for block in range(of_a.shape[1]):
        steps = slice(block * BLOCK, (block + 1) * BLOCK)
        of_columns = of_b[::order, block].repeat(BLOCK)[: len(b)]
        total += of_a[:, block, None] * of_columns * (a[:, steps] @ b[:, steps].T)
    return total


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize("dtype", FLOAT8S)
@pytest.mark.parametrize("shape", SHAPES)
def test_reference_is_the_sum_over_blocks_times_their_scales(shape: tuple[int, int, int], dtype: str) -> None:
    problem = scaled(*shape, dtype)
    for inputs in (drawn(problem), draw_extremes(problem, np.random.default_rng(7))):
        result = by_blocks(inputs)
        np.testing.assert_allclose(inputs.expected, result, rtol=1e-12, atol=1e-12 * np.abs(result).max())
        verdict, text = compare(inputs, result.astype(np.float32))
        assert verdict.max_error < 0.01, text
        part, _ = inputs.tile(slice(1, 4), slice(2, 5))
        np.testing.assert_allclose(part, inputs.expected[1:4, 2:5], rtol=1e-9)


def test_scales_of_wrong_columns_rows_and_blocks_are_seen() -> None:
    inputs = drawn(scaled(130, 200, 300))
    of_a, of_b = inputs.base.scales
    changed = (
        (of_a[::-1], of_b),
        (of_a[:, ::-1], of_b),
        (np.ones_like(of_a), of_b),
        (of_a, np.ones_like(of_b)),
    )
    for scales in changed:
        other = replace(inputs, base=replace(inputs.base, scales=scales))
        verdict, _ = compare(inputs, by_blocks(other).astype(np.float32))
        assert verdict.max_error > 1.0
    verdict, _ = compare(inputs, by_blocks(inputs, order=-1).astype(np.float32))
    assert verdict.max_error > 1.0


def test_drawn_scales_are_spread_over_powers_of_two() -> None:
    for scales in drawn(scaled(256, 512, 1024)).base.scales:
        assert scales.dtype == np.float32
        assert scales.max() / scales.min() > 2**4


def test_changed_scales_are_named() -> None:
    inputs = drawn(scaled(64, 256, 256))
    a, b, of_a, of_b = inputs.arrays
    assert changed_inputs(inputs, (a, b, of_a, 2 * of_b)) == "scale_b"


def test_problem_is_the_same_from_document_row_and_command() -> None:
    problem = Matmul(256, 512, 384, "e4m3", "nt", output="bf16", scales=SCALES)
    assert problem.key == "scaled_matmul 256x512x384 e4m3->bf16 nt none scales=1x128,128x128"
    assert [(argument.name, argument.shape) for argument in problem.arguments[2:4]] == [
        ("scale_a", (256, 3)),
        ("scale_b", (4, 3)),
    ]
    assert ProblemDocument.of(problem).problem == problem
    assert problem_of(problem_row(problem)) == problem
    command = "tuner tune matmul 256x512x384 --scales 1x128,128x128 --dtype e4m3 --layout nt"
    task = TaskQuery(operation=problem.operation, shape=problem.shape, dtype="e4m3", layout="nt")
    assert tune_command(task) == command


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "f16"}, "dtype with scales: found 'f16', allowed e4m3, e5m2"),
        ({"layout": "nn"}, "layout with scales: found 'nn', allowed nt"),
        ({"epilogue": "relu"}, "epilogue with scales: found 'relu', allowed none"),
        ({"output": "f16"}, "output dtype with scales: found 'f16', allowed f32, bf16"),
        ({"scales": "1x64"}, "scales: found '1x64', allowed 1x128,128x128"),
        ({"weights": "i4"}, "scales cannot be combined with packed weights"),
    ],
)
def test_what_has_no_scales_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        Matmul(64, 64, 64, **{"dtype": "e4m3", "layout": "nt", "scales": SCALES, **options})


@pytest.mark.mlir
def test_the_payload_as_written_multiplies_with_scales() -> None:
    problem = scaled(5, 130, 140)
    kind = tensor_type(problem.c_shape, "f32")
    names = ("%A", "%B", "%SCALE_A", "%SCALE_B")
    types = factor_types(problem)
    arguments = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, types, strict=True))
    text = f"""func.func @f({arguments}) -> {kind} {{
    %zero = arith.constant 0.0 : f32
    %start = tensor.empty() : {kind}
{scaled_product(problem, "%start", kind)}    return %product : {kind}
}}
"""
    inputs = drawn(problem)
    a, b, *scales = inputs.arrays
    floats = [array.view(ml_dtypes.float8_e4m3fn) for array in (a, b)]
    (result,) = read_function(text, "f")((*floats, *scales), lambda _: None)
    verdict, worst = compare(inputs, result)
    assert verdict.max_error < 0.01, worst


def test_packed_operands_are_refused() -> None:
    with pytest.raises(UsageError, match="packed: found a, allowed none with scales of blocks"):
        scratch_in("// packed: a\n", scaled(64, 64, 64))


REASONS = {
    "cpu": "; cuda and simulator take it",
    "simulator:sm_80": "on sm_80; sm_89 and later take it",
    "simulator:sm_89": "matmul_gpu_wgmma: the GPU has no wgmma",
    "simulator:sm_90a": "'scale_depth == 0 or k % 16 == 0' leaves none of the",
}


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize("target", REASONS)
def test_targets_and_sizes_without_a_kernel_are_refused_in_one_line(target: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=re.escape(REASONS[target])) as refused:
        tuner.tune(scaled(256, 256, 250), target, trials=1, db=f"{tmp_path}/none.db")
    assert "\n" not in refused.value.message
