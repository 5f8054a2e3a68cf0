"""Moves between lanes, and operations of math that no lowering has: targets and the interpreter agree."""

from typing import Any

import numpy as np
import pytest

import tuner
from tests.models.file_check import filled
from tests.texts import text_beside
from tuner.core.numpy_types import dtype_of
from tuner.gpu.interpreter.host_functions import read_function

pytestmark = pytest.mark.mlir
TARGETS = ("cpu", "simulator")
X = np.arange(64) * 1.5 - 20


def kernel(body: str, kind: str) -> str:
    text = filled(__file__, "KERNEL", body=text_beside(__file__, body))
    return text.replace("TYPE", kind)


def all_runs(text: str, *arguments: Any) -> list[tuple[Any, ...]]:
    """Returns the arguments after a call: interpreted as written, then compiled for each target."""
    runs = []
    for target in ("", *TARGETS):
        own = tuple(argument.copy() for argument in arguments)
        if target:
            tuner.compile_program(text, target)(*own)
        else:
            read_function(text, "main")(own, lambda _: None)
        runs.append(own)
    return runs


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", ["f32", "i32", "f16", "i8", "i64", "f64"])
@pytest.mark.parametrize("body", ["ROTATED", "BROADCAST", "FIRST"])
def test_a_value_moves_to_the_same_lanes_everywhere(body: str, kind: str) -> None:
    x = X.astype(dtype_of(kind))
    runs = all_runs(kernel(body, kind), x, np.zeros_like(x), np.zeros(64, np.int32))
    lane = np.arange(64)
    expected = {
        "ROTATED": np.where(lane % 32 < 16, x[lane // 16 * 16 + (lane + 5) % 16], x),
        "BROADCAST": x[lane // 32 * 32 + 5],
        "FIRST": x[lane // 32 * 32],
    }[body]
    for _, found, flags in runs:
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(flags, runs[0][2])


def test_the_first_active_lane_of_a_branch_is_refused_on_a_gpu() -> None:
    with pytest.raises(tuner.CandidateError, match="first_active_lane in a loop or a branch"):
        tuner.compile_program(kernel("IN_A_BRANCH", "f32"), "simulator")


def test_composed_functions_of_numbers_are_the_same_everywhere() -> None:
    x, n = X.astype(np.float32), np.arange(-30, 34).astype(np.int32)
    x[:5] = [np.nan, np.inf, -np.inf, 1e-40, -0.0]
    n[:3] = [2**31 - 1, -(2**31), 1]
    # sine and cosine of infinity are NaN, whose sign is not defined
    runs = all_runs(
        text_beside(__file__, "MATH"), x, n, np.zeros((64, 4), np.float32), np.zeros((64, 4), np.int32)
    )
    np.testing.assert_array_equal(runs[0][2][:, 0], np.clip(x, -2, 3.5))
    np.testing.assert_array_equal(runs[0][2][:5, 3], [0, 0, 0, 0, 0])
    assert runs[0][3][32, 0] == 0  # 2 ** -5
    for _, _, floats, integers in runs[1:]:
        np.testing.assert_allclose(floats, runs[0][2], rtol=1e-6)
        np.testing.assert_array_equal(integers, runs[0][3])


@pytest.mark.parametrize("target", TARGETS)
def test_a_range_is_part_of_a_fusion(target: str) -> None:
    x = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
    found = tuner.compile_program(text_beside(__file__, "CLAMPED"), target)(x)
    np.testing.assert_array_equal(found, np.clip(x, -0.5, 0.5))
