import numpy as np
import pytest

from tuner.core.gpu import DeviceError
from tuner.simulator.device.memory import MAP_BYTES, EncodedMap, MemoryKind, SimulatedMemory, is_map

MEMORY = SimulatedMemory()
REGION = MEMORY.allocate(4096, MemoryKind.DEVICE)


def test_a_map_says_in_128_bytes_what_it_was_made_of() -> None:
    found = EncodedMap(REGION.address + 256, (64, 8), (128,), (32, 4), 6, 2)
    content = found.encode()
    assert (len(content), is_map(content), is_map(bytes(128))) == (MAP_BYTES, True, False)
    assert EncodedMap.decode(content) == found


def test_a_map_views_its_tensor_outermost_first() -> None:
    tensor = EncodedMap(REGION.address + 256, (64, 8), (128,), (32, 4), 6, 2).tensor(MEMORY.near)
    tensor.array[1, 3] = 7
    assert REGION.bytes[256 + 128 + 6 : 256 + 128 + 8].view(np.float16)[0] == 7
    assert (tensor.array.shape, tensor.box, tensor.swizzle_bytes) == ((8, 64), (4, 32), 64)


def test_tf32_is_f32_that_copies_round() -> None:
    tensor = EncodedMap(REGION.address, (64, 8), (256,), (32, 4), 11, 3).tensor(MEMORY.near)
    assert (tensor.is_tf32, tensor.array.dtype) == (True, np.dtype(np.float32))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (EncodedMap(0, (), (), (), 7, 0), "tensor map: found 0 sizes, allowed 1 to 5"),
        (EncodedMap(0, (8, 8), (), (8, 8), 7, 0), "tensor map: found 2 sizes, allowed 1 to 5 with strides"),
        (EncodedMap(0, (8,), (), (8,), 12, 0), "found type 12 and swizzle 0, which are not simulated"),
        (EncodedMap(0, (8,), (), (8,), 7, 4), "found type 7 and swizzle 4, which are not simulated"),
    ],
)
def test_what_is_not_simulated_is_refused(broken: EncodedMap, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        broken.encode()


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (EncodedMap(16, (8,), (), (8,), 7, 0), "found 32 bytes at 0x10, which are in no buffer"),
        (EncodedMap(REGION.address + 4080, (8,), (), (8,), 7, 0), "which are in no buffer"),
        (
            EncodedMap(REGION.address, (8, 8), (64,), (8, 8), 7, 0),
            r"found strides \(64, 4\), allowed a contig",
        ),
    ],
)
def test_a_tensor_must_lie_in_a_buffer(broken: EncodedMap, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        broken.tensor(MEMORY.near)
