"""What no GPU can do faults on the simulator: programs whose mixed memory the compiler leaves as it is."""

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.program_compiler import compiler_of
from tests.programs.payload_runs import BUFFER, SIMULATOR, A, B, launched, payload
from tests.texts import text_beside
from tuner.core.gpu import DeviceError
from tuner.simulator.device.streams import ORDERS

pytestmark = pytest.mark.mlir

device_lowering = pytest.importorskip("tuner.programs.lowering.device")

BEGIN = (f"%d = gpu.alloc () : {BUFFER}", f"gpu.memcpy %d, %a : {BUFFER}, {BUFFER}", launched("inc", "d"))
END = f"gpu.dealloc %d : {BUFFER}"
OF_DEVICE = (
    r"of byte {} of d0 \(64 bytes\), which is device memory, allowed host memory, gpu.alloc host_shared"
)
FAULTS = {
    "load": (
        (f"%x = memref.load %d[%c3] : {BUFFER}", f"memref.store %x, %b[%c0] : {BUFFER}"),
        "host: found a load or store " + OF_DEVICE.format(12),
    ),
    "store": (
        (f"memref.store %one, %d[%c1] : {BUFFER}",),
        "host: found a load or store " + OF_DEVICE.format(4),
    ),
    "copy": (
        (f"memref.copy %d, %b : {BUFFER} to {BUFFER}",),
        "host: found a load or store " + OF_DEVICE.format(0),
    ),
    "print": (
        (
            f"%u = memref.cast %d : {BUFFER} to memref<*xf32>",
            "call @printMemrefF32(%u) : (memref<*xf32>) -> ()",
        ),
        "host: found a print " + OF_DEVICE.format(0),
    ),
    "kernel": (
        (launched("add", "d", "b", "d"),),
        "kernel add: .*found global address .*; host memory that is not registered is in parameter 1",
    ),
}


def loaded(text: str, written: list[str]) -> Iterator[Any]:
    """Yields the program for each order, compiled once."""
    from tuner.programs.run.device_function import DeviceFunction
    from tuner.simulator.device.simulated_device import SimulatedDevice

    code = compiler_of(SIMULATOR).compile(text, "main", None).code
    for order in ORDERS:
        yield DeviceFunction(code, SimulatedDevice("sm_90", order), written.append)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", FAULTS)
def test_memory_out_of_reach_is_a_fault(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_lowering, "mixes_memory", lambda *_, **__: False)
    lines, fault = FAULTS[name]
    written: list[str] = []
    for program in loaded(payload(*BEGIN, *lines, END), written):
        with pytest.raises(DeviceError, match=fault):
            program(A.copy(), B.copy())
    assert not written


def test_shared_and_registered_memory_are_in_reach_of_both() -> None:
    text = payload(text_beside(__file__, "shared_and_registered_memory_are_in_reach_of_both"))
    for program in loaded(text, []):
        first, second = A.copy(), B.copy()
        program(first, second)
        assert not program.device.reports
        assert list(second) == list(A + B)
