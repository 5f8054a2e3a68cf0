"""Code that calls ``puts`` and ``abort`` as lowered assertions do, and code that fails otherwise."""

import ctypes
import threading
from collections.abc import Callable

import pytest

from tuner.core.errors import CandidateError, Stage
from tuner.core.gpu import DeviceError
from tuner.programs.run.host_errors import ABORT, PUTS, HostAssertions, HostFaults, with_checks
from tuner.simulator.device.simulated_device import SimulatedDevice


def failing(assertions: HostAssertions, *, aborts: bool) -> Callable[[], None]:
    addresses = assertions.addresses()
    puts = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(addresses[PUTS])
    abort = ctypes.CFUNCTYPE(None)(addresses[ABORT])

    def code() -> None:
        puts(b"x is\nodd")
        if aborts:
            abort()

    return code


@pytest.mark.parametrize("aborts", [False, True])
def test_an_assertion_is_an_error_of_the_call(*, aborts: bool) -> None:
    assertions = HostAssertions(aborts=aborts)
    code = failing(assertions, aborts=aborts)
    with pytest.raises(CandidateError, match=r"^the program's assertion fails: x is odd$") as failure:
        assertions.call(code)
    assert failure.value.stage is Stage.RUN
    assertions.call(lambda: None)  # the next call has forgotten it


@pytest.mark.parametrize("aborts", [False, True])
def test_another_exception_reaches_the_caller(*, aborts: bool) -> None:
    def code() -> None:
        raise ValueError("no such function")

    with pytest.raises(ValueError, match="no such function"):
        HostAssertions(aborts=aborts).call(code)


def test_only_so_many_failures_may_keep_a_thread() -> None:
    assertions = HostAssertions(aborts=True, limit=2)
    code = failing(assertions, aborts=True)
    for _ in range(2):
        with pytest.raises(CandidateError, match="assertion fails"):
            assertions.call(code)
    threads = threading.active_count()
    with pytest.raises(
        CandidateError, match=r"^found 2 failed assertions of the program, allowed 2"
    ) as error:
        assertions.call(code)
    assert error.value.stage is Stage.RUN
    assert threading.active_count() == threads


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
