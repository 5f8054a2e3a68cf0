import ctypes
from typing import Any

import numpy as np
import pytest

from tuner.programs.run.runner_functions import HostHeap
from tuner.simulator.device.happens_before import HostDefect
from tuner.simulator.device.simulated_device import SimulatedDevice


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


def test_aligned_memory_is_of_the_heap_as_well() -> None:
    heap = HostHeap(None)
    allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)(
        heap.addresses()["aligned_alloc"]
    )
    address = allocate(512, 1024)
    assert address % 512 == 0
    heap.free(address)
    assert heap.take_freed() == (address,)
    heap.give_back((address,))


def test_memory_that_is_not_there_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    heap = HostHeap(None)  # its functions live as long as it does
    malloc, _ = functions(heap)
    assert malloc(2**62) is None
    assert capfd.readouterr().err == f"found no {2**62} bytes of host memory\n"


def test_memory_of_others_is_left_alone() -> None:
    heap = HostHeap(None)
    heap.free(np.zeros(4).ctypes.data)
    assert heap.take_freed() == ()


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
