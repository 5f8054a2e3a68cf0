"""gpu.memcpy of views and gpu.memset of every size, in every form and order, compared with numpy."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.programs.kernel_programs import arrays, ran
from tests.texts import text_beside
from tuner.programs.request import FORMS, DeviceOptions
from tuner.simulator.device.streams import ORDERS

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.copies")

NUMBERS: dict[str, tuple[Any, str]] = {
    "i8": (np.int8, "-5"),
    "i16": (np.int16, "-300"),
    "i32": (np.int32, "70000"),
    "i64": (np.int64, "5000000000"),
    "f16": (np.float16, "1.5"),
    "bf16": (ml_dtypes.bfloat16, "1.5"),
    "f32": (np.float32, "1.5"),
    "f64": (np.float64, "1.1"),
}
ARRAY = "memref<2x64xf32>"
COLUMNS = "memref<2x32xf32, strided<[64, 1], offset: 16>>"
ANY_COLUMNS = "memref<2x?xf32, strided<[64, 1], offset: ?>>"
ROW = "memref<1x64xf32, strided<[64, 1], offset: 64>>"
EVERY_SECOND = "memref<2x32xf32, strided<[64, 2]>>"


def program(*lines: str, element: str = "f32", more: str = "") -> str:
    """Returns @main of host arrays %x and %y, with %d in device memory, all of 2 x 64 elements."""
    array = ARRAY.replace("f32", element)
    return f"""func.func @main(%x: {array}, %y: {array}{more}) {{
  %zero = arith.constant 0.0 : f32
  %d = gpu.alloc () : {array}
  {" ".join(lines)}
  gpu.dealloc %d : {array}
  return
}}"""


def copied(first: str, second: str, kind: str) -> str:
    return f"gpu.memcpy {second}, {first} : {kind}, {kind}"


def part(name: str, of: str, where: str, kind: str) -> str:
    return f"{name} = memref.subview {of}{where} : {ARRAY} to {kind}"


def checked(text: str, expected: Any, *more: Any, order: str = "fifo", form: Any = "streams") -> None:
    x, y = arrays()
    ran(text, x, y, *more, order=order, options=DeviceOptions(form=form))
    np.testing.assert_array_equal(y, expected(x))


FILL = f"gpu.memset %d, %zero : {ARRAY}, f32"
BACK = copied("%d", "%y", ARRAY)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("element", NUMBERS)
def test_fills_of_every_size(element: str, form: Any) -> None:
    dtype, number = NUMBERS[element]
    array = ARRAY.replace("f32", element)
    lines = (
        f"%k = arith.constant {number} : {element}",
        f"gpu.memset %d, %k : {array}, {element}",
        copied("%d", "%y", array),
    )
    x, y = arrays(dtype)
    ran(program(*lines, element=element), x, y, options=DeviceOptions(form=form))
    np.testing.assert_array_equal(
        y, np.full((2, 64), dtype(float(number) if "f" in element else int(number)))
    )


def test_a_fill_with_tokens_keeps_its_place() -> None:
    x, y = arrays(np.int8)
    ran(text_beside(__file__, "TOKENS"), x, y, 7)
    np.testing.assert_array_equal(y, np.full((2, 64), 7, np.int8))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("form", FORMS)
def test_copies_of_columns_to_the_device_and_back(order: str, form: Any) -> None:
    where = "[0, 16] [2, 32] [1, 1]"
    parts = (part("%a", "%x", where, COLUMNS), part("%b", "%d", where, COLUMNS))
    text = program(FILL, *parts, copied("%a", "%b", COLUMNS), BACK)
    inside = (np.arange(64) >= 16) & (np.arange(64) < 48)
    checked(text, lambda x: np.where(inside, x, 0), order=order, form=form)


def test_copies_whose_place_only_the_run_knows() -> None:
    where = "[0, %at] [2, %size] [1, 1]"
    parts = (part("%a", "%x", where, ANY_COLUMNS), part("%b", "%d", where, ANY_COLUMNS))
    text = program(FILL, *parts, copied("%a", "%b", ANY_COLUMNS), BACK, more=", %at: index, %size: index")
    inside = (np.arange(64) >= 5) & (np.arange(64) < 12)
    checked(text, lambda x: np.where(inside, x, 0), 5, 7)


@pytest.mark.parametrize("form", FORMS)
def test_copies_of_contiguous_memory_after_an_offset(form: Any) -> None:
    where = "[1, 0] [1, 64] [1, 1]"
    parts = (part("%a", "%x", where, ROW), part("%b", "%d", where, ROW), part("%c", "%y", where, ROW))
    text = program(*parts, copied("%a", "%b", ROW), copied("%b", "%c", ROW))
    checked(text, lambda x: x * [[0], [1]], form=form)


def test_copies_of_elements_apart_and_among_memory_of_the_device() -> None:
    where = "[0, 0] [2, 32] [1, 2]"
    parts = (part("%a", "%x", where, EVERY_SECOND), part("%b", "%e", where, EVERY_SECOND))
    again = part("%c", "%d", where, EVERY_SECOND)
    text = program(
        *(f"%e = gpu.alloc () : {ARRAY}", FILL, *parts, copied("%a", "%b", EVERY_SECOND)),
        *(again, copied("%b", "%c", EVERY_SECOND), BACK, f"gpu.dealloc %e : {ARRAY}"),
    )
    checked(text, lambda x: x * (np.arange(64) % 2 == 0))


def test_fills_of_a_part() -> None:
    where = "[0, 16] [2, 32] [1, 1]"
    lines = (part("%b", "%d", where, COLUMNS), f"gpu.memset %b, %zero : {COLUMNS}, f32")
    text = program(copied("%x", "%d", ARRAY), *lines, BACK)
    inside = (np.arange(64) >= 16) & (np.arange(64) < 48)
    checked(text, lambda x: np.where(inside, 0, x))
