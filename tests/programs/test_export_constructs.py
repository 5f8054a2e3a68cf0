"""Constructs of torch-mlir's exports, reduced by hand: on the simulated GPU and the CPU as numpy computes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.errors import CandidateError
from tuner.core.gpu import DeviceError
from tuner.programs.run.device_function import DeviceFunction
from tuner.programs.run.host_function import HostFunction
from tuner.simulator.device.simulated_device import SimulatedDevice

pytestmark = pytest.mark.mlir

TARGETS = {"cpu": TargetName("cpu"), "simulator": TargetName("simulator", "sm_90")}
FIXED = """#map = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#one = affine_map<(i) -> (i)>
#none = affine_map<() -> ()>
"""
NAN, INF = math.nan, math.inf
SPECIAL = np.array([[0.0, -0.0, INF, -INF, NAN, 1e-40], [-1e-42, 3e38, 88.0, -104.0, 0.5, -3.0]], np.float32)


def ran(target: str, text: str, *arguments: Any) -> Any:
    code = compiler_of(TARGETS[target]).compile(FIXED + text, is_checked=True).code
    if target == "cpu":
        return HostFunction(code)(*arguments)
    device = SimulatedDevice()
    function = DeviceFunction(code, device)
    try:
        results = function(*arguments)
    finally:
        function.close()
    assert not device.reports
    return results


def each(body: str, element: str = "f32", result: str = "", inputs: int = 1) -> str:
    """A function that computes ``body``, of %x0, %x1, ... to %y, for each of 2 x 6 elements."""
    result = result or element
    kind, of = f"tensor<2x6x{element}>", f"tensor<2x6x{result}>"
    names = [f"%a{number}" for number in range(inputs)]
    maps = ", ".join(["#map"] * (inputs + 1))
    takes = ", ".join(f"{name}: {kind}" for name in names)
    variables = ", ".join([*(f"%x{number}: {element}" for number in range(inputs)), f"%out: {result}"])
    return f"""func.func @main({takes}) -> {of} {{
      %e = tensor.empty() : {of}
      %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
        ins({", ".join(names)} : {", ".join([kind] * inputs)}) outs(%e : {of}) {{
      ^bb0({variables}):
        {body}
        linalg.yield %y : {result}
      }} -> {of}
      return %r : {of}
    }}"""


Reference = Callable[[Any], Any]
FLOATS: dict[str, tuple[str, Reference]] = {
    "gelu by a cube": (
        """%three = arith.constant 3 : i64
        %cube = math.fpowi %x0, %three : TYPE, i64
        %c = arith.constant 4.471500e-02 : TYPE
        %z = arith.mulf %cube, %c : TYPE
        %s = arith.addf %x0, %z : TYPE
        %y = math.tanh %s : TYPE""",
        lambda x: np.tanh(x + x**3 * 0.044715),
    ),
    "silu": (
        """%n = arith.negf %x0 : TYPE
        %e1 = math.exp %n : TYPE
        %one = arith.constant 1.0 : TYPE
        %d = arith.addf %e1, %one : TYPE
        %y = arith.divf %x0, %d : TYPE""",
        lambda x: x / (np.exp(-x) + 1),
    ),
    "gelu by erf": ("%y = math.erf %x0 : TYPE", np.vectorize(math.erf)),
    "sine": ("%y = math.sin %x0 : TYPE", np.sin),
    "relu that keeps nan": (
        """%zero = arith.constant 0.0 : TYPE
        %is = arith.cmpf ugt, %x0, %zero : TYPE
        %y = arith.select %is, %x0, %zero : TYPE""",
        lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)),
    ),
    "cmod": ("%c = arith.constant 0.375 : TYPE %y = arith.remf %x0, %c : TYPE", lambda x: np.fmod(x, 0.375)),
    "power": (
        """%small = arith.constant 1.7 : TYPE
        %a = math.absf %x0 : TYPE
        %y = math.powf %a, %small : TYPE""",
        lambda x: np.abs(x) ** 1.7,
    ),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("name", FLOATS)
def test_special_numbers_are_those_of_numpy(name: str, element: str, target: str) -> None:
    """Infinities, NaN and numbers below the smallest normal one, which torch keeps."""
    body, reference = FLOATS[name]
    values: Any = SPECIAL.astype(np.float64 if element == "f64" else np.float32)
    if name == "sine":
        values = np.where(np.abs(values) < 1e6, values, 2.0).astype(values.dtype)
    found = ran(target, each(body.replace("TYPE", element), element), values)
    with np.errstate(all="ignore"):
        expected = reference(values).astype(values.dtype)
    np.testing.assert_allclose(found, expected, rtol=3e-6 if element == "f32" else 1e-13, atol=0)


INTEGERS: dict[str, tuple[str, str, str, Reference]] = {
    "sum and product of i64": (
        "%s = arith.addi %x0, %x1 : i64 %y = arith.muli %s, %x0 : i64",
        "i64",
        "i64",
        lambda a: (a[0] + a[1]) * a[0],
    ),
    "size of i64": (
        "%d = arith.subi %x0, %x1 : i64 %y = math.absi %d : i64",
        "i64",
        "i64",
        lambda a: abs(a[0] - a[1]),
    ),
    "floor of a quotient": ("%y = arith.floordivsi %x0, %x1 : i32", "i32", "i32", lambda a: a[0] // a[1]),
    "a mask": ("%y = arith.cmpi slt, %x0, %x1 : i8", "i8", "i1", lambda a: a[0] < a[1]),
    "and not": (
        "%true = arith.constant true %n = arith.xori %x1, %true : i1 %y = arith.andi %x0, %n : i1",
        "i1",
        "i1",
        lambda a: a[0] & ~a[1],
    ),
}
DTYPES = {"i64": np.int64, "i32": np.int32, "i8": np.int8, "i1": np.bool_}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_and_masks_are_exact(name: str, target: str) -> None:
    body, element, result, reference = INTEGERS[name]
    rng = np.random.default_rng(0)
    values: Any = rng.integers(-100, 100, (2, 2, 6)).astype(DTYPES[element])
    if element == "i32":
        values[1][values[1] == 0] = 7
    found = ran(target, each(body, element, result, inputs=2), *values)
    assert found.dtype == DTYPES[result]
    np.testing.assert_array_equal(found, reference(values))


EMBEDDING = text_beside(__file__, "EMBEDDING")
CHECKS = """%less = arith.cmpi slt, %i, %c9 : i64
    cf.assert %less, "index must be smaller than dim size"
    %more = arith.cmpi sge, %i, %c0 : i64
    cf.assert %more, "index must be larger or equal to 0\""""
TABLE = np.arange(36, dtype=np.float32).reshape(9, 4)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("checks", [CHECKS, ""])
def test_rows_of_a_table_are_looked_up(target: str, checks: str) -> None:
    at = np.array([8, 0, 3, 3, 7])
    found = ran(target, EMBEDDING.replace("CHECKS", checks), TABLE, at)
    np.testing.assert_array_equal(found, TABLE[at])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("wrong", [9, -1, 1 << 40])
@pytest.mark.parametrize(
    ("checks", "said"), [(CHECKS, "index must be (smaller|larger)"), ("", "outside of dimension 0")]
)
def test_a_row_that_is_not_there_is_an_error(checks: str, said: str, wrong: int, target: str) -> None:
    at = np.array([8, 0, wrong, 3, 7])
    with pytest.raises((CandidateError, DeviceError), match=said):
        ran(target, EMBEDDING.replace("CHECKS", checks), TABLE, at)


ARGMAX = text_beside(__file__, "ARGMAX")


@pytest.mark.parametrize("target", TARGETS)
def test_the_largest_of_a_row_comes_with_its_place(target: str) -> None:
    values = np.random.default_rng(1).standard_normal((2, 6)).astype(np.float32)
    most, place = ran(target, ARGMAX, values)
    np.testing.assert_array_equal(most, values.max(1))
    np.testing.assert_array_equal(place, values.argmax(1))


SOFTMAX = text_beside(__file__, "SOFTMAX")


@pytest.mark.parametrize("target", TARGETS)
def test_a_masked_softmax_has_zeros_and_a_row_of_masks_is_nan(target: str) -> None:
    values = np.random.default_rng(2).standard_normal((2, 6)).astype(np.float32)
    mask = np.array([[False, True, False, True, False, False], [True] * 6])
    found = ran(target, SOFTMAX, values, mask)
    kept = np.where(mask[0], 0, np.exp(values[0].astype(np.float64)))
    np.testing.assert_allclose(found[0], kept / kept.sum(), rtol=1e-6)
    assert np.isnan(found[1]).all()


RANK0 = text_beside(__file__, "RANK0")


@pytest.mark.parametrize("target", TARGETS)
def test_tensors_without_dimensions_are_numbers(target: str) -> None:
    total, scaled = ran(target, RANK0, np.array(1.5, np.float32), np.arange(4, dtype=np.float32))
    assert (total.shape, float(total)) == ((), 18.0)
    np.testing.assert_array_equal(scaled, np.arange(4) * 3)


def windows(x: Any, size: int, stride: int, dilation: int) -> Any:
    """Returns each window of the last two dimensions: (..., rows, columns, size, size)."""
    reach = (size - 1) * dilation + 1
    all_of = np.lib.stride_tricks.sliding_window_view(x, (reach, reach), (-2, -1))
    return all_of[..., ::stride, ::stride, ::dilation, ::dilation]


DEPTHWISE = text_beside(__file__, "DEPTHWISE")


@pytest.mark.drawn(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (2, 3)])
def test_depthwise_convolutions_have_strides_and_dilations(stride: int, dilation: int, target: str) -> None:
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(size).astype(np.float32) for size in ((1, 3, 9, 9), (3, 3, 3)))
    expected = np.einsum("bcijkl,ckl->bcij", windows(x, 3, stride, dilation), w)
    text = DEPTHWISE
    for name, number in (("ROWS", expected.shape[-1]), ("STRIDE", stride), ("DILATION", dilation)):
        text = text.replace(name, str(number))
    np.testing.assert_allclose(ran(target, text, x, w), expected, rtol=1e-5, atol=1e-5)


POOL = text_beside(__file__, "POOL")


@pytest.mark.parametrize("target", TARGETS)
def test_pooling_pads_with_the_least_number_and_keeps_nan(target: str) -> None:
    x = np.random.default_rng(4).standard_normal((1, 2, 7, 7)).astype(np.float32)
    x[0, 1, 6, 6] = NAN
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-INF)
    np.testing.assert_array_equal(ran(target, POOL, x), windows(padded, 3, 2, 1).max((-2, -1)))


SIZED = "%c0 = arith.constant 0 : index %d = tensor.dim %a0, %c0 : tensor<?x6xf32>\n%e = tensor.empty(%d)"
DOUBLED = each("%y = arith.addf %x0, %x0 : f32")
DYNAMIC = DOUBLED.replace("2x6", "?x6").replace("%e = tensor.empty()", SIZED)


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_of_the_call_are_taken(target: str) -> None:
    values = np.ones((3, 6), np.float32)
    np.testing.assert_array_equal(ran(target, DYNAMIC, values), values + values)
