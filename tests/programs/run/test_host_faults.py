from tuner.core.gpu import DeviceError
from tuner.programs.run.host_errors import HostFaults, with_checks
from tuner.simulator.device.simulated_device import SimulatedDevice

TYPES = "<{{isVolatile = false}}> : (!llvm.ptr, !llvm.ptr, i64) -> ()"
LINES = (  # {} stands for an address
    ("    %5 = llvm.load {} : !llvm.ptr -> f32", "%4"),
    ("    llvm.store %5, {} {{alignment = 4 : i64}} : f32, !llvm.ptr", "%4"),
    ('    "llvm.intr.memcpy"({}, {}, %3) ' + TYPES, "%1", "%2"),
    ('    "llvm.intr.memset"({}, %2, %3) : (!llvm.ptr, i8, i64) -> ()', "%1"),
)


def test_each_address_is_checked_in_front_of_its_use() -> None:
    for line, *addresses in LINES:
        checked = with_checks(f"module {{\n{line.format(*addresses)}\n}}").splitlines()
        expected = line.format(*(f"%checked{number}" for number in range(len(addresses))))
        calls = [number for number, each in enumerate(checked) if "llvm.call @tuner_on_host(" in each]
        assert len(calls) == len(addresses)
        assert max(calls) < checked.index(expected)


def test_a_fault_names_the_memory_and_the_code_goes_on_on_another_machine() -> None:
    device = SimulatedDevice()
    found: list[DeviceError] = []
    assert device.watch is not None
    faults = HostFaults(device.watch, found.append)
    address = device.allocate(64, 0)
    assert faults.is_fault(address + 8, "a print")
    assert str(found[0]).startswith("host: found a print of byte 8 of d0 (64 bytes), which is device memory")
    assert not faults.is_fault(device.allocate_host(64), "a print")
    assert len(found) == 1
