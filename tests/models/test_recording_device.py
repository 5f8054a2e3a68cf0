"""A recorded trace names memory by the allocation that has it now."""

from tests.gpu.target.scripted_device import ScriptedDevice
from tuner.models.recording_device import RecordingDevice


def test_memory_inside_of_a_freed_block_has_the_name_of_the_new_block() -> None:
    device = RecordingDevice(ScriptedDevice())  # its addresses are 1, 2, 3 and so on
    first = device.allocate(16, 0)
    device.free(first, 0)
    second = device.allocate(8, 0)
    device.fill(second + 4, 0, 4, 1, 0)
    device.fill(first, 0, 4, 1, 0)
    assert (first, second) == (1, 2)
    assert device.trace == [
        "allocate 16 on default -> d0",
        "free d0 on default",
        "allocate 8 on default -> d1",
        "fill d1+4 with 1 x 0x00000000 on default",
        "fill host with 1 x 0x00000000 on default",
    ]
