"""Where compiled code leaves its results, against the layout that C gives the same struct."""

import ctypes
import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import UsageError
from tuner.core.gpu_code import BufferType, DeviceProgram, ScalarType, ValueType
from tuner.core.numpy_types import DTYPES
from tuner.programs.run import marshalling
from tuner.runtime.arrays import DeviceArray, MemRef

C_TYPES: dict[str, Any] = {f"i{bits}": getattr(ctypes, f"c_int{bits}") for bits in (8, 16, 32, 64)}
C_TYPES |= {"f16": ctypes.c_uint16, "bf16": ctypes.c_uint16, "f32": ctypes.c_float, "f64": ctypes.c_double}
C_TYPES |= {"i1": ctypes.c_bool, "index": ctypes.c_int64}
SCALARS = st.sampled_from(sorted(C_TYPES)).map(ScalarType)
BUFFERS = st.integers(0, 3).map(lambda rank: BufferType("f32", (None,) * rank))
BUFFER = BufferType("f32", (None,))


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


def test_one_number_is_left_in_the_last_slot() -> None:
    five = marshalling.PassedArgument(np.int64(5).tobytes(), False, None, None)
    frame = marshalling.CallFrame((five,), (7,), (ScalarType("i64"),))
    slots = (ctypes.c_uint64 * 3).from_address(frame.address)
    assert [ctypes.c_int64.from_address(slot).value for slot in slots[:2]] == [5, 7]
    ctypes.c_int64.from_address(slots[2]).value = 42
    assert frame.results()[0] == np.int64(42)


def test_a_struct_is_passed_before_the_arguments_and_buffers_by_a_pointer_more() -> None:
    options = np.array(MemRef.of(64, (2,)).words, np.int64).tobytes()
    passed = marshalling.PassedArgument(options, True, None, None)
    frame = marshalling.CallFrame((passed,), (), (BufferType("f32", (2,)),))
    slots = (ctypes.c_uint64 * 2).from_address(frame.address)
    storage, descriptor = (ctypes.c_uint64.from_address(slot).value for slot in slots)
    assert MemRef.at(descriptor, 1) == MemRef.of(64, (2,))
    ctypes.memmove(storage, options, len(options))
    assert frame.results() == (MemRef.of(64, (2,)),)


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


def test_element_types_are_those_of_numpy() -> None:
    assert [marshalling.dtype_of(name).itemsize for name in ("i1", "bf16", "f16", "index")] == [1, 2, 2, 8]
    with pytest.raises(UsageError, match="element type: found i4, allowed f16, bf16"):
        marshalling.dtype_of("i4")


def test_unsigned_integers_have_the_bits_of_signed_ones_and_nothing_else_has() -> None:
    pairs = product(("u1", "u2", "u4", "u8", "i4", "f4"), DTYPES)
    same = {pair for pair in pairs if marshalling.is_same_bits(np.dtype(pair[0]), DTYPES[pair[1]])}
    unsigned = {("u1", "i8"), ("u2", "i16"), ("u4", "i32"), ("u8", "i64"), ("u8", "index")}
    assert same == unsigned | {("i4", "i32"), ("f4", "f32")}


def device_memory(first: int, *, is_read_only: bool = False) -> DeviceArray:
    return DeviceArray(4096 + 4 * first, (8,), None, np.dtype(np.float32), None, is_read_only)


@pytest.mark.parametrize("on_device", [False, True])
def test_a_written_argument_shares_no_memory_with_another(on_device: bool) -> None:
    array = np.zeros(16, np.float32)

    def passed(program: DeviceProgram, *starts: int) -> tuple[marshalling.PassedArgument, ...]:
        arrays = [device_memory(each) if on_device else array[each : each + 8] for each in starts]
        return tuple(marshalling.pass_value("f", each, BUFFER, program, 0) for each in arrays)

    reads, first, second = (
        DeviceProgram("", "f", (BUFFER, BUFFER), (), written, device_arguments=on_device)
        for written in ((False, False), (True, False), (False, True))
    )
    marshalling.check_distinct(reads, passed(reads, 0, 4))
    for number, writes in enumerate((first, second)):
        marshalling.check_distinct(writes, passed(writes, 0, 8))
        other = 1 - number
        message = f"f: argument {number}, which is written, shares memory with argument {other}"
        with pytest.raises(UsageError, match=message):
            marshalling.check_distinct(writes, passed(writes, 0, 4))


def test_read_only_device_memory_is_not_written() -> None:
    program = DeviceProgram("", "f", (BUFFER,), (), (True,), device_arguments=True)
    marshalling.check_writable("a", marshalling.pass_value("a", device_memory(0), BUFFER, program, 0))
    read_only = device_memory(0, is_read_only=True)
    with pytest.raises(UsageError, match="a: is read-only, but is written to"):
        marshalling.check_writable("a", marshalling.pass_value("a", read_only, BUFFER, program, 0))


@pytest.mark.parametrize(
    ("element", "values"),
    [
        ("i32", [math.nan, math.inf, 10**400, 1.5]),
        ("i1", [2]),
        ("i8", [300, "7", np.zeros(2)]),
        ("i64", [np.timedelta64(1)]),
        ("f16", [1e5]),
        ("f32", [1e300, np.complex64(1), np.datetime64("2020"), np.str_("1")]),
        ("f64", [10**400]),
    ],
)
def test_a_number_that_a_type_does_not_have_is_refused(element: str, values: list[Any]) -> None:
    program = DeviceProgram("", "f", (ScalarType(element),), (), (False,))
    for value in values:
        with pytest.raises(UsageError, match=f"x: found .*, allowed a number of type {element}"):
            marshalling.pass_value("x", value, ScalarType(element), program, 0)


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
    program = DeviceProgram("", "f", (ScalarType(element),), (), (False,))
    assert marshalling.pass_value("x", value, ScalarType(element), program, 0).content == found.tobytes()


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
    """One from before DLPack 1.0."""

    def __dlpack__(self, **options: Any) -> Any:
        if "max_version" in options:
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(**options)


class Nowhere(Tensor):
    """One without memory, such as torch's of device meta."""

    def __dlpack_device__(self) -> tuple[int, int]:
        raise ValueError("unknown device type meta")


@pytest.mark.parametrize("kind", [Tensor, OldTensor])
@pytest.mark.parametrize("shape", [(3, 4), (), (0, 4)])
def test_a_tensor_is_viewed_in_place(kind: Any, shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, np.float32)
    found = marshalling.host_array("a", kind(array))
    found += 1
    assert (found.shape, found.dtype) == (shape, array.dtype)
    np.testing.assert_array_equal(array, np.ones(shape, np.float32))


def test_strides_and_read_only_are_the_tensors_and_an_array_of_numpy_is_itself() -> None:
    array = np.arange(12, dtype=np.int16).reshape(3, 4)
    np.testing.assert_array_equal(marshalling.host_array("a", Tensor(array.T[1:])), array.T[1:])
    assert marshalling.host_array("a", array) is array
    array.flags.writeable = False
    assert not marshalling.host_array("a", Tensor(array)).flags.writeable


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0], "a: found list, allowed a numpy array, or one of host memory by DLPack"),
        (Tensor(np.zeros(4), CUDA), r"a: found memory of DLPack device 2, allowed the host's: \(1, 3\)"),
        (Nowhere(None), "a: found Nowhere that is not handed out: unknown device type meta"),
        (np.ma.masked_array(np.zeros(4)), "a: masked arrays are not supported"),
        (Tensor(np.zeros(4, ">f4")), "a: found Tensor that is not handed out: "),
    ],
)
def test_what_is_no_array_of_host_memory_is_refused(value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        marshalling.host_array("a", value)
