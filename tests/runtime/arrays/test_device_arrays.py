"""Arrays and streams of other packages: what DLPack and __cuda_array_interface__ say, read without them."""

import ctypes
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.device_programs import BufferType, DeviceProgram
from tuner.core.errors import DeviceError, UsageError
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.runtime import arrays
from tuner.runtime.programs.marshalling import pass_value

CUDA, CPU = (2, 0), (1, 0)
AT_0 = (0, False)


class Tensor:
    """A tensor of host memory that says where it is: numpy's own capsule under another device."""

    def __init__(self, array: Any, device: tuple[int, int] = CUDA) -> None:
        self.array, self.device = array, device
        self.stream: Any = None

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, stream: Any = None) -> Any:
        self.stream = stream
        return self.array.__dlpack__()


def test_a_dlpack_tensor_bfloat16_too_and_a_cuda_array_interface_are_viewed_in_place() -> None:
    array = np.zeros((3, 4), np.float32)[1:]
    tensor, other = Tensor(array), Tensor(array)
    found = arrays.device_array("a", tensor, 99)
    arrays.device_array("a", other, 0)
    assert (found.address, found.shape, found.dtype) == (array.ctypes.data, (2, 4), np.dtype(np.float32))
    assert found.strides in (None, (4, 1))
    assert (tensor.stream, other.stream) == (99, 1)  # 1: the default stream's number in the protocol
    strided = interface(data=(4096, False), shape=(2, 3), typestr="<f2", strides=(16, 2))
    found = arrays.device_array("a", strided, 0)
    assert (found.address, found.shape, found.strides) == (4096, (2, 3), (8, 1))
    assert (found.dtype, found.is_read_only) == (np.dtype(np.float16), False)
    assert arrays.device_array("a", interface(data=(4096, True), shape=(2,)), 0).is_read_only
    tensor = Tensor(np.zeros(4, np.float16))
    capsule = tensor.array.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # data pointer, device, ndim, then the type's code
    ctypes.c_uint8.from_address(pointer(capsule, b"dltensor") + 20).value = 4
    tensor.array = SimpleNamespace(__dlpack__=lambda: capsule)
    assert arrays.device_array("a", tensor, 0).dtype == ml_dtypes.bfloat16


def interface(**fields: Any) -> SimpleNamespace:
    return SimpleNamespace(__cuda_array_interface__={"typestr": "<f4", "version": 3, **fields})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros(4), "a: found ndarray, allowed DLPack or __cuda_array_interface__"),
        ([1.0], "a: found list, allowed DLPack"),
        (Tensor(np.zeros(4), CPU), r"a: found memory of DLPack device 1, allowed CUDA: \(2, 3, 13\)"),
        (Tensor(np.zeros(4, "c8")), r"a: found DLPack type \(5, 64, 1\), allowed floats and integers"),
        (interface(shape=(4,)), "a: found a __cuda_array_interface__ that is not valid: KeyError"),
        (interface(data=AT_0, shape=(4,), typestr="zz"), "a: found a __cuda_array_interface__ that is"),
        (interface(data=AT_0, shape=(4,), mask=1), "a: masked arrays are not supported"),
        (
            interface(data=AT_0, shape=(4,), strides=(5,)),
            r"a: found strides of \(5,\) bytes, allowed multiples of 4",
        ),
    ],
)
def test_what_is_no_array_on_a_gpu_is_refused(value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        arrays.device_array("a", value, 0)


def test_views_that_are_not_row_major_and_anything_but_a_stream_handle_are_refused() -> None:
    types = (BufferType("f32", (2, 3)), BufferType("f32", (None, 3)))
    program = DeviceProgram("", "f", types, (), (False, False), device_arguments=True, stream_slots=1)
    transposed = arrays.ArrayView(4096, (2, 3), (1, 2), np.dtype(np.float32), None)
    with pytest.raises(UsageError, match=r"argument 0: found strides \(1, 2\), allowed row-major \(3, 1\)"):
        pass_value(program, 0, transposed, 0)
    single = arrays.ArrayView(4096, (1, 3), (77, 1), np.dtype(np.float32), None)
    assert pass_value(program, 1, single, 0).is_buffer
    array = arrays.ArrayView(4096 + 4, (3,), None, np.dtype(np.float32), None)
    with pytest.raises(UsageError, match="a: found memory 4 bytes past a multiple of 16, allowed a multiple"):
        arrays.device_array("a", array, 0)
    empty = arrays.ArrayView(4, (0,), None, np.dtype(np.float32), None)
    assert arrays.device_array("a", empty, 0) is empty
    protocol = SimpleNamespace(__cuda_stream__=lambda: (0, 42))
    for stream in (42, protocol, SimpleNamespace(cuda_stream=42), SimpleNamespace(ptr=42)):  # PyTorch, CuPy
        assert arrays.stream_handle(stream) == 42
    with pytest.raises(UsageError, match="stream: found str, allowed a handle or an object with __cuda"):
        arrays.stream_handle("s0")


@pytest.mark.parametrize("is_by_host", [False, True])
def test_what_is_still_being_made_is_waited_for(is_by_host: bool) -> None:
    device = SimulatedDevice(order="lifo")
    source, copied = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    address, producer, stream = device.allocate(16, 0), device.create_stream(), device.create_stream()
    device.synchronize_stream(0)
    device.copy(address, source.ctypes.data, 16, producer)
    array = arrays.device_array("a", interface(data=(address, False), shape=(4,), stream=producer), stream)
    arrays.wait_for_producers(device, [array], None if is_by_host else stream)
    device.copy(copied.ctypes.data, address, 16, stream)
    device.synchronize_stream(stream)
    np.testing.assert_array_equal(copied, source)
    assert device.reports == ()


SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)


@given(SHAPES)
def test_row_major_memory_has_numpys_strides_and_extent(shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, np.float32)
    view = arrays.MemRef.of(64, shape)
    if array.size:
        assert tuple(stride * 4 for stride in view.strides) == np.zeros(shape, np.float32, "C").strides
    assert view.extent_bytes(4) == array.nbytes


@given(SHAPES, st.integers(0, 2**40), st.integers(0, 100))
def test_a_descriptor_is_read_as_it_was_written(shape: tuple[int, ...], address: int, offset: int) -> None:
    view = arrays.MemRef(address, address, offset, shape, arrays.MemRef.of(0, shape).strides)
    options = np.array(view.words, np.int64)
    assert arrays.MemRef.at(options.ctypes.data, len(shape)) == view
    assert view.address(8) == address + 8 * offset


def test_a_strided_view_ends_after_its_last_element_and_tensor_map_elements_have_their_sizes() -> None:
    assert arrays.MemRef(0, 0, 3, (2, 4), (100, 2)).extent_bytes(4) == (100 + 6 + 1) * 4
    sizes = [arrays.element_bytes_of_tensor_map(number) for number in (0, 6, 7, 8, 9, 11)]
    assert sizes == [1, 2, 4, 8, 2, 4]
    with pytest.raises(DeviceError, match="tensor map: found type 13, allowed 0 to 12"):
        arrays.element_bytes_of_tensor_map(13)
