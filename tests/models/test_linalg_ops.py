"""Each named operation of linalg in a program gives what the interpreter and numpy give, or is refused."""

from typing import Any

import numpy as np
import pytest

from tests.models.linalg_table import TABLE, LinalgOp
from tests.support.program_compiler import compiler_of
from tests.texts import filled, text_beside
from tuner.core.candidate import TargetName
from tuner.core.errors import CandidateError
from tuner.core.numpy_types import DTYPES
from tuner.gpu.interpreter.host_functions import read_function
from tuner.mlir.bindings import op_names
from tuner.models.execution import host_function

pytestmark = pytest.mark.mlir
NO_COMPUTATION = {"generic", "index", "yield"}  # parts of others, which all other tests have
TRANSFORMS = {f"winograd_{part}_transform" for part in ("filter", "input", "output")}
POSITIVE = ("log", "sqrt", "rsqrt", "powf", "div_unsigned")
NUMBERS = {"f32": 1.5, "f64": 2.5, "i32": 3}


def compiled(text: str, arguments: tuple[Any, ...], *, as_fusions: bool) -> Any:
    program = compiler_of(TargetName("cpu")).compile(text, as_fusions=as_fusions)
    found = host_function(program, lambda _: None)(*arguments)
    return found[0] if isinstance(found, tuple | list) else found


def drawn(type_: str, rng: np.random.Generator, *, is_positive: bool) -> Any:
    if type_ in NUMBERS:
        return NUMBERS[type_]
    *sizes, element = ("f32",) if type_ == "rank 0" else type_.split("x")
    shape = tuple(map(int, sizes))
    if element == "i1":
        return rng.integers(0, 2, shape).astype(bool)
    numbers = rng.standard_normal(shape) if element == "f32" else rng.integers(-100, 100, shape)
    return np.array(np.abs(numbers) + 1 if is_positive else numbers, DTYPES[element])


def test_the_table_has_each_operation_of_linalg() -> None:
    assert {op.name for op in TABLE} | TRANSFORMS | NO_COMPUTATION == op_names("linalg")


@pytest.mark.drawn(4)
@pytest.mark.parametrize("op", TABLE, ids=lambda op: str(op.name))
def test_an_operation_of_linalg_computes_as_interpreted(op: LinalgOp) -> None:
    rng = np.random.default_rng(0)
    is_positive = op.name in POSITIVE
    arguments = tuple(drawn(type_, rng, is_positive=is_positive) for type_ in (*op.operands, op.result))
    (expected,) = read_function(op.text, "main")(arguments, lambda _: None)
    for as_fusions in (True, False):
        found = compiled(op.text, arguments, as_fusions=as_fusions)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.drawn(3)
@pytest.mark.parametrize("as_fusions", [True, False])
@pytest.mark.parametrize(
    ("shape", "axis", "element", "error"),
    [
        *(((6, 100), 1, "f32", 1e-6), ((6, 19), 0, "f32", 1e-6), ((3, 4, 17), 1, "f32", 1e-6)),
        *(((6, 33), 1, "f64", 1e-12), ((6, 33), 1, "f16", 1e-2), ((6, 33), 1, "bf16", 3e-2)),
    ],
)
def test_softmax_is_as_in_numpy_with_nan_and_infinity_too(
    shape: tuple[int, ...], axis: int, element: str, error: float, as_fusions: bool
) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(DTYPES[element])
    rows = np.moveaxis(x, axis, -1)
    rows[0, ..., 1] = np.inf
    rows[1, ..., 2] = np.nan
    rows[2, ..., :] = -np.inf
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        powers = np.exp(wide - wide.max(axis, keepdims=True))
        expected = powers / powers.sum(axis, keepdims=True)
    text = filled(__file__, "SOFTMAX", shape="x".join([*map(str, shape), element]), axis=axis)
    found = compiled(text, (x,), as_fusions=as_fusions)
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=error, atol=error, equal_nan=True)


@pytest.mark.parametrize("as_fusions", [True, False])
def test_winograd_transforms_make_a_convolution(as_fusions: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 10, 10, 5)).astype(np.float32)
    kernel = rng.standard_normal((2, 3, 3, 5)).astype(np.float32)
    found = compiled(text_beside(__file__, "WINOGRAD"), (x, kernel), as_fusions=as_fusions)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))  # n, h, w, c, 3, 3
    np.testing.assert_allclose(found, np.einsum("nhwcij,fijc->nhwf", windows, kernel), atol=1e-4)


@pytest.mark.parametrize("as_fusions", [True, False])
def test_a_bitcast_of_a_tensor_keeps_bits(as_fusions: bool) -> None:
    x = np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6)
    found = compiled(text_beside(__file__, "BITCAST"), (x,), as_fusions=as_fusions)
    np.testing.assert_array_equal(found, x.view(np.int32))


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ("ON_MEMREFS", r"linalg.softmax at line 2:\d+: found memref<6x100xf32>, allowed tensors"),
        (
            "DYNAMIC_WINOGRAD",
            r"winograd_filter_transform .*: found tensor<\?x3x3x5xf32>, allowed .* static",
        ),
        ("GATHER", r"tensor.gather at line 2:\d+: found no lowering for it, allowed tensor.extract and "),
    ],
)
def test_what_upstream_does_not_lower_is_refused_by_name(part: str, line: str) -> None:
    with pytest.raises(CandidateError, match=line):
        compiler_of(TargetName("cpu")).compile(text_beside(__file__, part), as_fusions=True)
