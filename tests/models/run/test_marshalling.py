"""What compiled code is passed and leaves, by C's layout; MLIR's runner functions, and what they print."""

import ctypes
import math
from collections.abc import Callable
from ctypes import c_double, c_float, c_int64, c_uint16, c_void_p
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.kernel_programs import ran
from tests.models.lowering.compiled import host_function
from tests.texts import text_beside
from tuner.core.device_programs import BufferType, DeviceProgram, ScalarType, ValueType
from tuner.core.errors import UsageError
from tuner.core.numpy_types import DTYPES, dtype_of
from tuner.gpu.ptxsim.device.happens_before import HostDefect
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.mlir.effects.runner_signatures import C_INTERFACE, MEMREFS, RUNNER_FUNCTIONS, number_text
from tuner.runtime.arrays import ArrayView, ExpectedArray, MemRef, is_unsigned_form
from tuner.runtime.programs import marshalling, runner_functions
from tuner.runtime.programs.host_heap import HostHeap
from tuner.runtime.programs.runner_functions import RunnerFunctions, memref_text

C_TYPES: dict[str, Any] = {f"i{bits}": getattr(ctypes, f"c_int{bits}") for bits in (8, 16, 32, 64)}
C_TYPES |= {"f16": ctypes.c_uint16, "bf16": ctypes.c_uint16, "f32": ctypes.c_float, "f64": ctypes.c_double}
C_TYPES |= {"i1": ctypes.c_bool, "index": ctypes.c_int64}
SCALARS = st.sampled_from(sorted(C_TYPES)).map(ScalarType)
BUFFERS = st.integers(0, 3).map(lambda rank: BufferType("f32", (None,) * rank))
BUFFER = BufferType("f32", (None,))
A = ExpectedArray("a", (4,), np.dtype(np.float32), "f")


def of_one(type_: ValueType) -> DeviceProgram:
    """Returns a program with one argument, which it does not write."""
    return DeviceProgram("", "f", (type_,), (), (False,))


@given(st.lists(SCALARS | BUFFERS, min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_a_struct_of_results_is_read_as_c_lays_it_out(results: list[ValueType], random: Any) -> None:
    kinds = [
        ctypes.c_int64 * (3 + 2 * len(each.shape)) if isinstance(each, BufferType) else C_TYPES[each.element]
        for each in results
    ]
    fields = [(f"f{number}", kind) for number, kind in enumerate(kinds)]
    struct = type("Results", (ctypes.Structure,), {"_fields_": fields})()
    content = random.randbytes(ctypes.sizeof(struct))
    content = bytes(byte & 1 for byte in content)  # floats that equal themselves, flags that are 0 or 1
    ctypes.memmove(ctypes.addressof(struct), content, len(content))
    layout = marshalling.ResultLayout(tuple(results))
    assert layout.is_struct
    found = layout.read(bytes(struct) + bytes(8))
    for (name, _), value in zip(fields, found, strict=True):
        raw = bytes(np.array(value.words, np.int64)) if isinstance(value, MemRef) else value.tobytes()
        start = getattr(type(struct), name).offset
        assert raw == content[start : start + len(raw)]


def test_a_struct_is_passed_before_the_arguments_and_element_types_are_those_of_numpy() -> None:
    five = marshalling.PassedArgument(np.int64(5).tobytes(), False)
    frame = marshalling.CallFrame((five,), (7,), (ScalarType("i64"),))
    slots = (ctypes.c_uint64 * 3).from_address(frame.address)
    assert [ctypes.c_int64.from_address(slot).value for slot in slots[:2]] == [5, 7]
    ctypes.c_int64.from_address(slots[2]).value = 42
    assert frame.results()[0] == np.int64(42)
    options = np.array(MemRef.of(64, (2,)).words, np.int64).tobytes()
    passed = marshalling.PassedArgument(options, True)
    frame = marshalling.CallFrame((passed,), (), (BufferType("f32", (2,)),))
    slots = (ctypes.c_uint64 * 2).from_address(frame.address)
    storage, descriptor = (ctypes.c_uint64.from_address(slot).value for slot in slots)
    assert MemRef.at(descriptor, 1) == MemRef.of(64, (2,))
    ctypes.memmove(storage, options, len(options))
    assert frame.results() == (MemRef.of(64, (2,)),)
    assert [dtype_of(name).itemsize for name in ("i1", "bf16", "f16", "index")] == [1, 2, 2, 8]
    with pytest.raises(UsageError, match="element type: found i4, allowed f32, f64, bf16"):
        dtype_of("i4")
    pairs = product(("u1", "u2", "u4", "u8", "i4", "f4"), DTYPES)
    same = {pair for pair in pairs if is_unsigned_form(np.dtype(pair[0]), DTYPES[pair[1]])}
    assert same == {("u1", "i8"), ("u2", "i16"), ("u4", "i32"), ("u8", "i64"), ("u8", "index")}


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3), (2, 0)])
def test_a_view_of_a_buffer_is_its_memory(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    found = marshalling.view_of(MemRef.of(array.ctypes.data, shape), BufferType("f32", shape))
    np.testing.assert_array_equal(found, array)
    assert not array.size or np.shares_memory(found, array)
    strided = np.arange(24, dtype=np.float64).reshape(4, 6)
    start = strided.ctypes.data
    found = marshalling.view_of(MemRef(start, start, 7, (3, 2), (6, 2)), BufferType("f64", (3, 2)))
    np.testing.assert_array_equal(found, strided[1:, 1:5:2])


def device_memory(first: int, *, is_read_only: bool = False) -> ArrayView:
    return ArrayView(4096 + 4 * first, (8,), None, np.dtype(np.float32), None, is_read_only)


@pytest.mark.parametrize("on_device", [False, True])
def test_a_written_argument_shares_no_memory_with_another(on_device: bool) -> None:
    array = np.zeros(16, np.float32)

    def call(writes: tuple[bool, bool], *starts: int) -> None:
        arrays = tuple(device_memory(each) if on_device else array[each : each + 8] for each in starts)
        program = DeviceProgram("", "f", (BUFFER, BUFFER), (), writes, on_device)
        marshalling.pass_arguments(program, arrays, 0)

    call((False, False), 0, 4)
    for number, writes in enumerate(((True, False), (False, True))):
        call(writes, 0, 8)
        message = f"^f: argument {number}: is written to, but shares memory with argument {1 - number}$"
        with pytest.raises(UsageError, match=message):
            call(writes, 0, 4)


def test_read_only_device_memory_is_not_written_and_strides_are_the_tensors() -> None:
    program = DeviceProgram("", "f", (BUFFER,), (), (True,), device_arguments=True)
    marshalling.pass_value(program, 0, device_memory(0), 0)
    with pytest.raises(UsageError, match=r"^f: argument 0: is read-only, but is written to$"):
        marshalling.pass_value(program, 0, device_memory(0, is_read_only=True), 0)
    array = np.arange(12, dtype=np.int16).reshape(3, 4)
    np.testing.assert_array_equal(A.in_host_memory(Tensor(array.T[1:])), array.T[1:])
    assert A.in_host_memory(array) is array
    array.flags.writeable = False
    assert not A.in_host_memory(Tensor(array)).flags.writeable


@pytest.mark.parametrize(
    ("element", "values"),
    [
        ("i32", [math.nan, math.inf, 10**400, 1.5]),
        ("i1", [2]),
        ("i8", [300, "7", np.zeros(2)]),
        ("i64", [np.timedelta64(1, "s")]),
        ("f16", [1e5]),
        ("f32", [1e300, np.complex64(1), np.datetime64("2020"), np.str_("1")]),
        ("f64", [10**400]),
    ],
)
def test_a_number_that_a_type_does_not_have_is_refused(element: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(UsageError, match=f"f: argument 0: found .*, allowed a number of type {element}"):
            marshalling.pass_value(of_one(ScalarType(element)), 0, value, 0)


@pytest.mark.parametrize(
    ("element", "value", "found"),
    [
        ("i32", 3.0, np.int32(3)),
        ("i1", True, np.bool_(True)),
        ("f32", 0.1, np.float32(0.1)),
        ("f32", float("inf"), np.float32(np.inf)),
        ("f16", np.float64(2), np.float16(2)),
        ("f64", 3, np.float64(3)),
    ],
)
def test_a_number_is_passed_in_the_bytes_of_its_type(element: str, value: object, found: np.generic) -> None:
    passed = marshalling.pass_value(of_one(ScalarType(element)), 0, value, 0)
    assert passed.content == found.tobytes()


# Host arrays of other packages, seen through DLPack without those packages.

CPU, CUDA = (1, 0), (2, 0)


class Tensor:
    """A tensor of another package: numpy's capsule, and nothing else of numpy's."""

    def __init__(self, array: Any, device: tuple[int, int] = CPU) -> None:
        self.array, self.device = array, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)


class OldTensor(Tensor):
    def __dlpack__(self, **options: Any) -> Any:
        if "max_version" in options:
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(**options)


class Nowhere(Tensor):
    """One without memory, such as torch's of device meta."""

    def __dlpack_device__(self) -> tuple[int, int]:
        raise ValueError("unknown device type meta")


class Unplaced:
    def __dlpack__(self) -> None:
        """Is there, and ``__dlpack_device__`` is not."""


@pytest.mark.parametrize("kind", [Tensor, OldTensor])
@pytest.mark.parametrize("shape", [(3, 4), (), (0, 4)])
def test_a_tensor_is_viewed_in_place(kind: Any, shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, np.float32)
    found = A.in_host_memory(kind(array))
    found += 1
    assert (found.shape, found.dtype) == (shape, array.dtype)
    np.testing.assert_array_equal(array, np.ones(shape, np.float32))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0], "a: found list, allowed a numpy array, or one of host memory by DLPack"),
        (Tensor(np.zeros(4), CUDA), r"a: found memory of DLPack device 2, allowed the host's: \(1, 3\)"),
        (Nowhere(None), "a: found Nowhere that is not handed out: unknown device type meta"),
        (Unplaced(), "a: found Unplaced that is not handed out: .* no attribute '__dlpack_device__'"),
        (Tensor(np.zeros(4, ">f4")), "a: found Tensor that is not handed out: "),
    ],
)
def test_what_is_no_array_of_host_memory_is_refused(value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        A.in_host_memory(value)


def printed(name: str, *arguments: Any) -> str:
    texts: list[str] = []
    functions = RunnerFunctions(texts.append)  # which lives until the call has ended
    ctypes.CFUNCTYPE(None, *map(type, arguments))(functions.addresses()[name])(*arguments)
    return texts[-1]


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
    assert printed(name, *arguments) == text


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
    assert printed(name, c_int64(1), c_void_p(ctypes.addressof(options))) == text


def test_views_of_any_rank_are_printed_by_their_strides_and_every_name_has_an_address() -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    options = descriptor(MemRef.of(array.ctypes.data, (2, 3)))
    unranked = (c_int64 * 2)(2, ctypes.addressof(options))  # whose address the C interface takes
    text = printed(C_INTERFACE + "printMemrefI32", c_void_p(ctypes.addressof(unranked)))
    assert text.split("data = \n")[1] == "[[0,   1,   2], \n [3,   4,   5]]\n"
    wide = np.arange(12, dtype=np.float32).reshape(3, 4)
    view = MemRef(wide.ctypes.data, wide.ctypes.data, 1, (3, 2), (4, 2))
    assert memref_text(view, "f32").split("data = \n")[1] == "[[1,   3], \n [5,   7], \n [9,   11]]\n"
    number = np.array(7, dtype=np.int64)
    assert memref_text(MemRef.of(number.ctypes.data, ()), "i64").endswith("data = \n[7]\n")
    options = descriptor(MemRef.of(64, (2, 5)))
    text = printed("printMemrefShapeF32", c_int64(2), c_void_p(ctypes.addressof(options)))
    assert text == "Unranked Memref base@ = 0x40 rank = 2 offset = 0 sizes = [2, 5] strides = [5, 1]\n"
    assert set(RunnerFunctions(str).addresses()) >= RUNNER_FUNCTIONS
    text = "llvm.func @math_expf(f32) -> f32\nllvm.func @math_none(f32) -> f32\nllvm.func @malloc(i64)"
    assert set(runner_functions.math_symbols(text)) == {"math_expf"}


@pytest.mark.parametrize(("name", "kind"), [("rtclock", c_double), ("nanoTime", c_int64)])
def test_a_clock_goes_forward(name: str, kind: type[Any]) -> None:
    functions = RunnerFunctions(lambda _: None)
    read = ctypes.CFUNCTYPE(kind)(functions.addresses()[name])
    assert 0 < read() <= read()


def functions(heap: HostHeap) -> tuple[Any, Any]:
    addresses = heap.addresses()
    malloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(addresses["malloc"])
    return malloc, ctypes.CFUNCTYPE(None, ctypes.c_void_p)(addresses["free"])


def test_freed_memory_stays_until_it_is_given_back_aligned_one_too() -> None:
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
    assert functions(heap)[0](2**62) is None
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
