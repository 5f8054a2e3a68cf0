"""Kernels whose weights are packed once: the result, threads, and arrays that are refused."""

import re
from collections.abc import Callable

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from tests.support.own_script import own_script
from tuner.core.dtypes import CPU_DTYPES
from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.core.numpy_types import DTYPES
from tuner.core.packings import threads_comment
from tuner.core.problem import Problem
from tuner.core.problem_classes import quantized_problem
from tuner.core.quantization import WeightFormat
from tuner.mlir.reference.fusion_reference import evaluate, worst_error
from tuner.targets.cpu.callables import load_callable
from tuner.targets.cpu.packed_callables import PackingKernel

pytestmark = pytest.mark.mlir
Array = npt.NDArray[np.generic]
QUANTIZED = quantized_problem((3, 40, 64), "f32", WeightFormat(4, 32, has_zero_points=True))
CONSTANT = Matmul(3, 40, 64, "bf16", "nt", "bias_relu", weights="constant")


def loaded(problem: Problem, threads: int = 1) -> PackingKernel:
    kernel = load_callable(problem, threads_comment(threads) + own_script(problem).text, threads)
    assert isinstance(kernel, PackingKernel)
    return kernel


def quantized_arrays(seed: int = 0) -> tuple[Array, ...]:
    rng = np.random.default_rng(seed)
    integers, points = (rng.integers(-8, 8, shape).astype(np.int8) for shape in ((40, 64), (40, 2)))
    return (rng.standard_normal((3, 64)).astype(np.float32), integers, np.ones((40, 2), np.float16), points)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_layer_multiplies_by_the_weights_that_were_packed(threads: int) -> None:
    a, *weights = quantized_arrays()
    layer = loaded(QUANTIZED, threads).pack(*weights)
    expected = evaluate(QUANTIZED.text, (a, *weights))[0]
    for each in weights:
        each[...] = 0  # they were copied
    out = np.empty((3, 40), np.float32)
    assert layer(a, out=out) is out
    assert worst_error(expected, out) <= 1.0
    assert worst_error(expected, layer(a)) <= 1.0
    assert layer.nbytes < 40 * 64
    begin, end = f"PackedMatmul(PackingKernel({QUANTIZED.key}, ", f"); {layer.nbytes} bytes of weights)"
    assert repr(layer).startswith(begin)
    assert repr(layer).endswith(end)


def test_constant_weights_are_taken_in_the_layout_of_the_problem_with_their_bias() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((3, 64), (40, 64)))
    bias = rng.standard_normal(40).astype(np.float32)
    found = loaded(CONSTANT)(a, b, bias)
    wide = [each.astype(np.float64) for each in (a, b, bias)]
    np.testing.assert_allclose(found, np.maximum(wide[0] @ wide[1].T + wide[2], 0), rtol=1e-4, atol=1e-4)


AT_EACH_CALL = [(epilogue, dtype) for epilogue in ("residual", "scale") for dtype in CPU_DTYPES]
AT_EACH_CALL.remove(("scale", "i8"))


@pytest.mark.parametrize(("epilogue", "dtype"), [*AT_EACH_CALL, ("bias_relu_residual", "f32")])
def test_what_is_not_a_row_comes_at_each_call(epilogue: str, dtype: str) -> None:
    problem = Matmul(3, 40, 64, dtype, "nt", epilogue, weights="constant")
    rng = np.random.default_rng(0)
    arrays = {}
    for argument in problem.arguments[:-1]:
        arrays[argument.name] = rng.integers(-9, 10, argument.shape).astype(DTYPES[argument.dtype])
    weights = tuple(arrays[name] for name in ("b", "bias") if name in arrays)
    at_each_call = tuple(arrays[name] for name in ("a", "addend", "factor") if name in arrays)
    layer = loaded(problem).pack(*weights)
    for _ in range(2):
        np.add(at_each_call[-1], 1, out=at_each_call[-1])
        expected = expected_of(epilogue, arrays)
        out = np.empty((3, 40), DTYPES[problem.result_dtype])
        assert layer(*at_each_call, out=out) is out
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(layer(*at_each_call), expected)
    with pytest.raises(
        UsageError, match=f"found 1 arrays, allowed a, {'factor' if epilogue == 'scale' else 'addend'}$"
    ):
        layer(arrays["a"])
    with pytest.raises(UsageError, match="found float64 of shape"):
        layer(arrays["a"], np.zeros(5))


def expected_of(epilogue: str, arrays: dict[str, Array]) -> Array:
    """Returns C of small integers, which are exact in every type."""
    wide = {name: array.astype(np.float64) for name, array in arrays.items()}
    product = wide["a"] @ wide["b"].T
    if epilogue == "scale":
        return product * wide["factor"]
    shifted = product + wide.get("bias", 0.0)
    return (np.maximum(shifted, 0) if "relu" in epilogue else shifted) + wide["addend"]


def test_packing_and_multiplying_at_once_takes_all_arrays_in_their_order() -> None:
    problem = Matmul(3, 40, 64, epilogue="bias_residual", weights="constant")
    rng = np.random.default_rng(1)
    arrays = [rng.integers(-9, 10, argument.shape).astype(np.float32) for argument in problem.arguments[:-1]]
    a, b, bias, addend = arrays
    kernel = loaded(problem)
    np.testing.assert_array_equal(kernel(*arrays), a @ b + bias + addend)
    with pytest.raises(UsageError, match="residual: found 3 arrays, allowed a, b, bias, addend"):
        kernel(a, b, bias)
    with pytest.raises(UsageError, match="out: is written to, but shares memory with addend"):
        kernel(*arrays, out=addend)


REFUSED: dict[str, tuple[Callable[[PackingKernel, tuple[Array, ...]], object], str]] = {
    "few": (
        lambda kernel, arrays: kernel.pack(*arrays[1:3]),
        "pack: found 2 arrays, allowed b, scales, zero",
    ),
    "large": (
        lambda kernel, arrays: kernel.pack(np.full_like(arrays[1], 9), *arrays[2:]),
        "b: found integers that 4 bits do not hold, allowed -8 to 7",
    ),
    "shape": (
        lambda kernel, arrays: kernel.pack(arrays[1][:, :32].copy(), *arrays[2:]),
        "b: found int8 of shape",
    ),
    "type": (
        lambda kernel, arrays: kernel.pack(*arrays[1:])(arrays[0].astype("f8")),
        "a: found float64 of shape",
    ),
    "out": (
        lambda kernel, arrays: kernel.pack(*arrays[1:])(arrays[0], out=np.empty((3, 41), np.float32)),
        "out: found float32 of shape (3, 41), allowed float32 of shape (3, 40)",
    ),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_arrays_that_do_not_fit_are_refused(
    call: Callable[[PackingKernel, tuple[Array, ...]], object], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        call(loaded(QUANTIZED), quantized_arrays())


def test_a_result_that_cannot_be_written_is_refused() -> None:
    a, *weights = quantized_arrays()
    layer, out = loaded(QUANTIZED).pack(*weights), np.empty((3, 40), np.float32)
    out.flags.writeable = False
    with pytest.raises(UsageError, match="out: is read-only, but is written to"):
        layer(a, out=out)
