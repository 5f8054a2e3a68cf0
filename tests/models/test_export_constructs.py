"""Constructs of torch-mlir's exports, reduced by hand: on the simulated GPU and the CPU as numpy computes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.models.file_check import filled
from tests.models.kernel_programs import called
from tests.support.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.errors import CandidateError, DeviceError, UsageError
from tuner.core.numpy_types import DTYPES as NUMPY_DTYPES
from tuner.models.run.host_function import HostFunction

pytestmark = pytest.mark.mlir
TARGETS = {"cpu": TargetName("cpu"), "simulator": TargetName("simulator", "sm_90")}
NAN, INF = math.nan, math.inf
SPECIAL = np.array([[0.0, -0.0, INF, -INF, NAN, 1e-40], [-1e-42, 3e38, 88.0, -104.0, 0.5, -3.0]], np.float32)
EMBEDDING = text_beside(__file__, "EMBEDDING")
MUST_BE = "index must be (smaller|larger)"
CHECKS = text_beside(__file__, "CHECKS")
TABLE = np.arange(36, dtype=np.float32).reshape(9, 4)
QUOTED = '"odd name, with } and #-}"'
ALIGNMENT_BYTES = (4).to_bytes(4, "little")  # with which the data begin
GLOBAL = text_beside(__file__, "GLOBAL")


def ran(target: str, text: str, *arguments: Any) -> Any:
    maps = text_beside(__file__, "MAPS")
    code = compiler_of(TARGETS[target]).compile(maps + text, is_checked=True).code
    return HostFunction(code)(*arguments) if target == "cpu" else called(code, *arguments)


FLOATS: dict[str, Callable[[Any], Any]] = {
    "gelu_by_a_cube": lambda x: np.tanh(x + x**3 * 0.044715),
    "silu": lambda x: x / (np.exp(-x) + 1),
    "gelu_by_erf": np.vectorize(math.erf),
    "sine": np.sin,
    "relu_that_keeps_nan": lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)),
    "cmod": lambda x: np.fmod(x, 0.375),
    "power": lambda x: np.abs(x) ** 1.7,
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("name", FLOATS)
def test_special_numbers_are_those_of_numpy(name: str, element: str, target: str) -> None:
    """Infinities, NaN and numbers below the smallest normal one, which torch keeps."""
    text = text_beside(__file__, "EACH").replace("BODY", text_beside(__file__, name))
    values: Any = SPECIAL.astype(np.float64 if element == "f64" else np.float32)
    if name == "sine":
        values = np.where(np.abs(values) < 1e6, values, 2.0).astype(values.dtype)
    found = ran(target, text.replace("TYPE", element), values)
    with np.errstate(all="ignore"):
        expected = FLOATS[name](values).astype(values.dtype)
    np.testing.assert_allclose(found, expected, rtol=3e-6 if element == "f32" else 1e-13, atol=0)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("checks", [CHECKS, ""])
def test_rows_of_a_table_are_looked_up(target: str, checks: str) -> None:
    at = np.array([8, 0, 3, 3, 7])
    found = ran(target, EMBEDDING.replace("CHECKS", checks), TABLE, at)
    np.testing.assert_array_equal(found, TABLE[at])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("wrong", [9, -1, 1 << 40])
@pytest.mark.parametrize(("checks", "said"), [(CHECKS, MUST_BE), ("", "outside of dimension 0")])
def test_a_row_that_is_not_there_is_an_error(checks: str, said: str, wrong: int, target: str) -> None:
    at = np.array([8, 0, wrong, 3, 7])
    with pytest.raises((CandidateError, DeviceError), match=said):
        ran(target, EMBEDDING.replace("CHECKS", checks), TABLE, at)


@pytest.mark.parametrize("target", TARGETS)
def test_maxima_come_with_places_masked_rows_are_nan_and_names_have_any_characters(target: str) -> None:
    values = np.random.default_rng(1).standard_normal((2, 6)).astype(np.float32)
    most, place = ran(target, text_beside(__file__, "ARGMAX"), values)
    np.testing.assert_array_equal(most, values.max(1))
    np.testing.assert_array_equal(place, values.argmax(1))
    x = np.random.default_rng(4).standard_normal((1, 2, 7, 7)).astype(np.float32)
    x[0, 1, 6, 6] = NAN
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-INF)
    np.testing.assert_array_equal(
        ran(target, text_beside(__file__, "POOL"), x), windows(padded, 3, 2, 1).max((-2, -1))
    )
    values = np.random.default_rng(2).standard_normal((2, 6)).astype(np.float32)
    mask = np.array([[False, True, False, True, False, False], [True] * 6])
    found = ran(target, text_beside(__file__, "SOFTMAX"), values, mask)
    kept = np.where(mask[0], 0, np.exp(values[0].astype(np.float64)))
    np.testing.assert_allclose(found[0], kept / kept.sum(), rtol=1e-6)
    assert np.isnan(found[1]).all()
    numbers = np.array(1.5, np.float32), np.arange(4, dtype=np.float32)
    total, scaled = ran(target, text_beside(__file__, "RANK0"), *numbers)
    assert (total.shape, float(total)) == ((), 18.0)
    np.testing.assert_array_equal(scaled, np.arange(4) * 3)
    values = np.ones((3, 6), np.float32)
    np.testing.assert_array_equal(ran(target, text_beside(__file__, "DYNAMIC"), values), values + values)
    constant, argument = np.arange(185.0).reshape(37, 5), np.ones((37, 5))
    text = program(plus_constant(QUOTED, "f64"), **{QUOTED: constant})
    np.testing.assert_array_equal(ran(target, text, argument), constant + 1)


def windows(x: Any, size: int, stride: int, dilation: int) -> Any:
    reach = (size - 1) * dilation + 1
    all_of = np.lib.stride_tricks.sliding_window_view(x, (reach, reach), (-2, -1))
    return all_of[..., ::stride, ::stride, ::dilation, ::dilation]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (2, 3)])
def test_depthwise_convolutions_have_strides_and_dilations(stride: int, dilation: int, target: str) -> None:
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(size).astype(np.float32) for size in ((1, 3, 9, 9), (3, 3, 3)))
    expected = np.einsum("bcijkl,ckl->bcij", windows(x, 3, stride, dilation), w)
    text = filled(__file__, "DEPTHWISE", rows=expected.shape[-1], stride=stride, dilation=dilation)
    np.testing.assert_allclose(ran(target, text, x, w), expected, rtol=1e-5, atol=1e-5)


def program(body: str, **constants: Any) -> str:
    data = {name: (ALIGNMENT_BYTES + array.tobytes()).hex().upper() for name, array in constants.items()}
    listed = ",\n".join(f'{name}: "0x{digits}"' for name, digits in data.items())
    resources = f"{{-#\n  dialect_resources: {{\n    builtin: {{\n{listed}\n    }}\n  }}\n#-}}\n"
    return f"module {{\n{body}\n}}\n\n{resources}"


def plus_constant(name: str, element: str) -> str:
    add = "addi" if element.startswith("i") else "addf"
    return filled(__file__, "PLUS_CONSTANT", constant=name, element=element, add=add)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("element", ["f32", "f64", "f16", "i64", "i32", "i8"])
def test_constants_of_each_type_are_those_of_the_file(target: str, element: str) -> None:
    rng, dtype = np.random.default_rng(1), NUMPY_DTYPES[element].name
    constant, argument = ((rng.standard_normal((37, 5)) * 9).astype(dtype) for _ in range(2))
    name = f"torch_tensor_37_5_torch.{dtype}"
    text = program(plus_constant(name, element), **{name: constant})
    np.testing.assert_array_equal(ran(target, text, argument), constant + argument)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "size"), [("cpu", 544), ("simulator", 40)])  # 544: more than a megabyte
def test_a_weight_is_multiplied_with_as_it_is_and_turned(target: str, size: int) -> None:
    rng = np.random.default_rng(2)
    weight = (rng.standard_normal((size, size)) / size**0.5).astype(np.float32)
    argument = rng.standard_normal((4, size)).astype(np.float32)
    turned = text_beside(__file__, "TIMES_CONSTANT").replace("SIZE", str(size))
    text = program(turned, **{f"torch_tensor_{size}_{size}_torch.float32": weight})
    expected = argument.astype(np.float64) @ weight.T @ weight
    np.testing.assert_allclose(ran(target, text, argument), expected, atol=1e-4)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("body", "name", "allowed"),
    [(plus_constant("w", "f32"), "w", 740), (plus_constant(QUOTED, "i8"), QUOTED, 185), (GLOBAL, "w", 16)],
    ids=["tensor", "quoted", "memref"],
)
def test_a_constant_with_data_of_another_size_is_refused(
    target: str, body: str, name: str, allowed: int
) -> None:
    for size in (0, 1, allowed - 1, allowed + 1):
        text = program(body, other_w=np.zeros(9), **{name: np.zeros(size, np.int8)})
        found = f"found {size} bytes, allowed {allowed} of tensor"
        with pytest.raises(UsageError, match=f"^payload: the data of dense_resource<{name}>: {found}"):
            compiler_of(TARGETS[target]).compile(text)


@pytest.mark.parametrize("name", ["__elided__", "torch_tensor_37_5_torch.float32"])
def test_a_constant_whose_data_are_left_out_is_refused_with_its_name(name: str) -> None:
    found = rf"^payload: dense_resource<{name}> has no data .*large_elements_limit=None$"
    for text in (plus_constant(name, "f32"), program(plus_constant(name, "f32"), other=np.zeros(1))):
        with pytest.raises(UsageError, match=found):
            compiler_of(TARGETS["cpu"]).compile(text)
