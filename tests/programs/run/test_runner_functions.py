"""MLIR's runner functions: called by address, as compiled code does, and what they print."""

import ctypes
from collections.abc import Callable
from ctypes import c_double, c_float, c_int64, c_uint16, c_void_p
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.programs.kernel_programs import ran
from tests.programs.lowering.compiled import host_function
from tests.texts import text_beside
from tuner.mlir.effects.op_effects import C_INTERFACE, MEMREFS, RUNNER_FUNCTIONS
from tuner.programs.run.marshalling import dtype_of
from tuner.programs.run.runner_functions import (
    HostHeap,
    RunnerFunctions,
    math_symbols,
    memref_text,
    number_text,
)
from tuner.runtime.arrays import MemRef
from tuner.simulator.device.happens_before import HostDefect
from tuner.simulator.device.simulated_device import SimulatedDevice


class Printed:
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


@pytest.mark.parametrize(("name", "element"), MEMREFS.items())
def test_every_element_type_is_printed(name: str, element: str) -> None:
    array = np.arange(4).astype(dtype_of(element))
    options = descriptor(MemRef.of(array.ctypes.data, (4,)))
    head = f"Unranked Memref base@ = {array.ctypes.data:#x} rank = 1 offset = 0 sizes = [4] strides = [1]"
    text = f"{head} data = \n[0,  1,  2,  3]\n"
    assert Printed().call(name, c_int64(1), c_void_p(ctypes.addressof(options))) == text


def test_views_of_any_rank_are_printed_by_their_strides() -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    options = descriptor(MemRef.of(array.ctypes.data, (2, 3)))
    unranked = (c_int64 * 2)(2, ctypes.addressof(options))  # whose address the C interface takes
    text = Printed().call(C_INTERFACE + "printMemrefI32", c_void_p(ctypes.addressof(unranked)))
    assert text.split("data = \n")[1] == "[[0,   1,   2], \n [3,   4,   5]]\n"
    wide = np.arange(12, dtype=np.float32).reshape(3, 4)
    view = MemRef(wide.ctypes.data, wide.ctypes.data, 1, (3, 2), (4, 2))
    assert memref_text(view, "f32").split("data = \n")[1] == "[[1,   3], \n [5,   7], \n [9,   11]]\n"
    number = np.array(7, dtype=np.int64)
    assert memref_text(MemRef.of(number.ctypes.data, ()), "i64").endswith("data = \n[7]\n")
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


def functions(heap: HostHeap) -> tuple[Any, Any]:
    addresses = heap.addresses()
    malloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(addresses["malloc"])
    return malloc, ctypes.CFUNCTYPE(None, ctypes.c_void_p)(addresses["free"])


def test_freed_memory_stays_until_it_is_given_back() -> None:
    heap = HostHeap(None)
    malloc, free = functions(heap)
    first, second = malloc(64), malloc(0)
    free(first)
    free(first)
    free(None)
    assert malloc(64) != first
    assert heap.take_freed() == (first,)
    assert heap.take_freed() == ()
    free(second)
    heap.give_back((first, *heap.take_freed()))


def test_aligned_memory_is_of_the_heap_as_well_and_memory_of_others_is_not() -> None:
    heap = HostHeap(None)
    kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
    address = kind(heap.addresses()["aligned_alloc"])(512, 1024)
    assert address % 512 == 0
    heap.free(np.zeros(4).ctypes.data)
    heap.free(address)
    assert heap.take_freed() == (address,)
    heap.give_back((address,))


def test_memory_that_is_not_there_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    heap = HostHeap(None)  # its functions live as long as it does
    malloc, _ = functions(heap)
    assert malloc(2**62) is None
    assert capfd.readouterr().err == f"found no {2**62} bytes of host memory\n"


def test_on_a_checking_device_new_memory_is_nan_and_an_early_free_is_a_race() -> None:
    device = SimulatedDevice()
    heap = HostHeap(device.watch)
    malloc, free = functions(heap)
    address, stream = malloc(16), device.create_stream()
    assert np.isnan(np.array((ctypes.c_float * 4).from_address(address))).all()
    there = device.allocate(16, stream)
    device.copy(there, address, 16, stream)
    free(address)
    assert [report.kind for report in device.reports] == [HostDefect.RACE]
    assert "a write by the host" in device.reports[0].text


@pytest.mark.mlir
@pytest.mark.parametrize("name", ["exp", "tanh", "log", "sqrt", "abs", "floor"])
def test_functions_of_numbers_give_what_numpy_gives(name: str) -> None:
    a = np.linspace(0.1, 4, 16, dtype=np.float32)
    text = text_beside(__file__, "OF_TENSORS").replace("NAME", name)
    np.testing.assert_allclose(host_function(text)(a), getattr(np, name)(a), rtol=1e-6)


ISNAN = "%is = math.isnan %z : f32 %r = arith.select %is, %x, %z : f32"
FORMULAS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "%r = math.rsqrt %x : f32": lambda x, _z, _k: 1 / np.sqrt(x),
    "%r = math.copysign %x, %z : f32": lambda x, z, _k: np.copysign(x, z),
    "%r = math.fpowi %z, %k : f32, i32": lambda _x, z, k: z.astype(np.float64) ** k,
    ISNAN: lambda x, z, _k: np.where(np.isnan(z), x, z),
}


@pytest.mark.mlir
@pytest.mark.parametrize("op", FORMULAS)
def test_what_the_library_lacks_gives_what_numpy_gives(op: str) -> None:
    a, b = (np.linspace(low, high, 16, dtype=np.float32) for low, high in ((0.1, 4), (-2, 2)))
    b[3] = np.nan
    n, y = np.arange(-8, 8, dtype=np.int32), np.zeros(16, np.float32)
    host_function(text_beside(__file__, "OP").replace("COMPUTE", op))(a, b, n, y)
    np.testing.assert_allclose(y, FORMULAS[op](a, b, n), rtol=1e-6)


@pytest.mark.mlir
def test_math_next_to_kernels_gives_what_numpy_gives() -> None:
    y = np.zeros(64, np.float32)
    ran(text_beside(__file__, "NEXT_TO_KERNELS"), np.float32(0.5), y)
    np.testing.assert_allclose(y, np.exp(-0.25), rtol=1e-6)


def test_only_what_the_library_has_is_found() -> None:
    text = "llvm.func @math_expf(f32) -> f32\nllvm.func @math_none(f32) -> f32\nllvm.func @malloc(i64)"
    assert set(math_symbols(text)) == {"math_expf"}
