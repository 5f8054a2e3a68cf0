"""MLIR's runner functions: called by address, as compiled code does, and what they print."""

import ctypes
from ctypes import c_double, c_float, c_int64, c_uint16, c_void_p
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tuner.mlir.effects.op_effects import C_INTERFACE, MEMREFS, RUNNER_FUNCTIONS
from tuner.programs.run.marshalling import dtype_of
from tuner.programs.run.runner_functions import RunnerFunctions, memref_text, number_text
from tuner.runtime.arrays import MemRef


class Printed:
    """Calls functions by their addresses and keeps what they print."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._functions = RunnerFunctions(self.texts.append)

    def call(self, name: str, *arguments: Any) -> str:
        kinds = [type(argument) for argument in arguments]
        ctypes.CFUNCTYPE(None, *kinds)(self._functions.addresses()[name])(*arguments)
        return self.texts[-1]


def descriptor(view: MemRef) -> Any:
    return (c_int64 * len(view.words))(*view.words)


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("printI64", (c_int64(-7),), "-7"),
        ("printU64", (c_int64(-1),), "18446744073709551615"),
        ("printF32", (c_float(1 / 3),), "0.333333"),
        ("printF64", (c_double(1e20),), "1e+20"),
        ("printF16", (c_uint16(0x3E00),), "1.5"),
        ("printBF16", (c_uint16(0x3FC0),), "1.5"),
        ("printString", (ctypes.c_char_p(b"two words"),), "two words"),
        ("printOpen", (), "( "),
        ("printComma", (), ", "),
        ("printClose", (), " )"),
        ("printNewline", (), "\n"),
        ("_mlir_ciface_printNewline", (), "\n"),
        ("printFlops", (c_double(2.5e9),), "2.500000 GFLOPS\n"),
    ],
)
def test_a_scalar_is_printed_as_c_does(name: str, arguments: tuple[Any, ...], text: str) -> None:
    assert Printed().call(name, *arguments) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (np.float32(5376.0), "5376"),
        (np.float32(2.2) + np.float32(1.1), "3.3"),
        (np.float64("inf"), "inf"),
        (np.float64("-nan"), "-nan"),
        (np.float64("nan"), "nan"),
        (np.int8(-3), "-3"),
        (ml_dtypes.bfloat16(0.5), "0.5"),
        (np.float32(-0.0), "-0"),
    ],
)
def test_numbers_have_six_digits(number: Any, text: str) -> None:
    assert number_text(number) == text


@pytest.mark.parametrize("element", MEMREFS.values())
def test_every_element_type_is_printed(element: str) -> None:
    array = np.arange(4).astype(dtype_of(element))
    name = next(name for name, known in MEMREFS.items() if known == element)
    view = MemRef.of(array.ctypes.data, (4,))
    options = descriptor(view)
    head = f"Unranked Memref base@ = {array.ctypes.data:#x} rank = 1 offset = 0 sizes = [4] strides = [1]"
    text = f"{head} data = \n[0,  1,  2,  3]\n"
    assert Printed().call(name, c_int64(1), c_void_p(ctypes.addressof(options))) == text


def test_the_c_interface_takes_the_address_of_an_unranked_descriptor() -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    options = descriptor(MemRef.of(array.ctypes.data, (2, 3)))
    unranked = (c_int64 * 2)(2, ctypes.addressof(options))
    text = Printed().call(C_INTERFACE + "printMemrefI32", c_void_p(ctypes.addressof(unranked)))
    assert text.split("data = \n")[1] == "[[0,   1,   2], \n [3,   4,   5]]\n"


def test_a_view_is_printed_by_its_strides() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    view = MemRef(array.ctypes.data, array.ctypes.data, 1, (3, 2), (4, 2))
    assert memref_text(view, "f32").split("data = \n")[1] == "[[1,   3], \n [5,   7], \n [9,   11]]\n"


def test_a_memref_of_no_dimension_has_brackets() -> None:
    array = np.array(7, dtype=np.int64)
    assert memref_text(MemRef.of(array.ctypes.data, ()), "i64").endswith("data = \n[7]\n")


def test_the_shape_alone_prints_no_data() -> None:
    options = descriptor(MemRef.of(64, (2, 5)))
    text = Printed().call("printMemrefShapeF32", c_int64(2), c_void_p(ctypes.addressof(options)))
    assert text == "Unranked Memref base@ = 0x40 rank = 2 offset = 0 sizes = [2, 5] strides = [5, 1]\n"


def test_every_name_has_an_address() -> None:
    assert set(RunnerFunctions(str).addresses()) >= RUNNER_FUNCTIONS


@pytest.mark.parametrize(("name", "kind"), [("rtclock", c_double), ("nanoTime", c_int64)])
def test_a_clock_goes_forward(name: str, kind: type[Any]) -> None:
    functions = RunnerFunctions(lambda _: None)
    read = ctypes.CFUNCTYPE(kind)(functions.addresses()[name])
    assert 0 < read() <= read()
