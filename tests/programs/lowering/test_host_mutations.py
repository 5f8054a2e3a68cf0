"""Wrong sizes, and memory of the wrong side, in host programs: the simulated GPU finds each and names it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from tests.programs.lowering.device_programs import BUFFER, alloc, copy, free, host_function, launch
from tests.programs.lowering.host_mutations import FAULT, NUMBERS, Finding, Outcome, lowered, run, with_line
from tuner.core.gpu_code import DeviceProgram
from tuner.simulator.device.happens_before import HostDefect
from tuner.simulator.device.streams import ORDERS, Order

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.device")

# Two chains, memory of threes, and the host in the middle, which writes the last element.
TEXT = host_function(
    *("%three = arith.constant 3.0 : f32", "%c15 = arith.constant 15 : index"),
    *(alloc("da"), alloc("db"), alloc("dz"), f"gpu.memset %dz, %three : {BUFFER}, f32"),
    *(copy("da", "a"), copy("db", "b"), launch("inc", "da"), launch("inc", "db"), copy("a", "da")),
    *(f"%x = memref.load %a[%c1] : {BUFFER}", f"memref.store %x, %a[%c15] : {BUFFER}"),
    *(copy("da", "a"), launch("add", "da", "dz", "da"), launch("add", "db", "dz", "db")),
    *(launch("inc", "dz"), launch("add", "da", "dz", "da")),
    *(copy("a", "da"), copy("b", "db"), free("da"), free("db"), free("dz")),
)
LESS, MORE = "%less", "%more"  # bytes, where 64 are right
COPY = r"(call @mgpuMemcpy\()(%\w+), (%\w+), (%\w+)"
ALLOCATION = r"(call @mgpuMemAlloc\()(%\w+)"
MEMSET = r"(call @mgpuMemset32\(%\w+, %\w+, )(%\w+)"
THREADS = r"(threads in \()(%\w+)"
ON_HOST = "host: found a load or store .* is device memory"
HOST_MEMORY = "kernel .*: .*host memory that is not registered"


@dataclass(frozen=True)
class Change:
    """One way to be wrong, in a line of LLVM dialect."""

    pattern: str
    instead: str  # HOST is an array of the caller, DEVICE memory of the device
    shown_by: frozenset[Finding]  # at least one of these
    says: str = ""  # in the fault


def change(pattern: str, instead: str, *shown_by: Finding, says: str = "") -> Change:
    return Change(pattern, instead, frozenset(shown_by), says)


CHANGES = {
    "a copy of more": change(COPY, rf"\1\2, \3, {MORE}", HostDefect.OUT_OF_BOUNDS),
    "a copy of less": change(COPY, rf"\1\2, \3, {LESS}", NUMBERS),
    "a copy of nothing": change(COPY, r"\1\2, \3, %nothing", HostDefect.UNWRITTEN, NUMBERS),
    "a copy in the wrong direction": change(COPY, r"\1\3, \2, \4", HostDefect.UNWRITTEN, NUMBERS),
    "an allocation of less": change(ALLOCATION, rf"\1{LESS}", HostDefect.OUT_OF_BOUNDS),
    "an allocation of nothing": change(ALLOCATION, r"\1%nothing", HostDefect.OUT_OF_BOUNDS),
    "a memset of more": change(MEMSET, r"\1%one_more", HostDefect.OUT_OF_BOUNDS),
    "a memset of less": change(MEMSET, r"\1%fewer", NUMBERS),
    "a memset of nothing": change(MEMSET, r"\1%nothing", HostDefect.UNWRITTEN, NUMBERS),
    "more threads": change(THREADS, r"\1%one_more", FAULT, says="kernel .*: .*4 bytes at byte 64 of"),
    "fewer threads": change(THREADS, r"\1%fewer", NUMBERS),
    "no threads": change(THREADS, r"\1%nothing", FAULT, says="CUDA_ERROR_INVALID_VALUE"),
    "more blocks": change(r"(@inc blocks in \()(%\w+)", r"\1%two", HostDefect.KERNEL),
    "a host load from the device": change(r"(llvm\.load )(%\w+)", r"\1DEVICE", FAULT, says=ON_HOST),
    "a host store to the device": change(r"(llvm\.store %\w+, )(%\w+)", r"\1DEVICE", FAULT, says=ON_HOST),
    "a kernel on host memory": change(r"(launch_func .* args\()(%\w+)", r"\1HOST", FAULT, says=HOST_MEMORY),
}
CONSTANTS = {"less": 56, "more": 68, "nothing": 0, "fewer": 14, "one_more": 17, "two": 2}


def mutants(program: DeviceProgram, wrong: Change) -> Iterator[tuple[str, DeviceProgram]]:
    """Yields (the changed line, the program with it) for each line that can be wrong in this way."""
    lines = program.llvm.splitlines()
    begin = next(number for number, line in enumerate(lines) if "llvm.func @main(" in line)
    end = next(number for number, line in enumerate(lines) if number > begin and line == "  }")
    host = re.findall(r"%\w+", lines[begin])[1]  # the aligned pointer of the first array
    device = re.search(r"(%\w+) = llvm\.call @mgpuMemAlloc", program.llvm)
    assert device
    made = [f"    %{name} = llvm.mlir.constant({number} : i64) : i64" for name, number in CONSTANTS.items()]
    for number in range(begin + 1, end):
        line = re.sub(wrong.pattern, wrong.instead, lines[number])
        line = line.replace("HOST", host).replace("DEVICE", device[1])
        if line != lines[number]:
            yield line.strip(), with_line(with_line(program, number, line), begin, lines[begin], *made)


@cache
def right() -> tuple[DeviceProgram, Outcome]:
    """Returns the program as it should be, and how it ends."""
    program = lowered(TEXT)
    return program, run(program, (), "lifo")


@pytest.mark.drawn(2)
@pytest.mark.parametrize("order", ORDERS)
def test_the_program_is_right_as_it_is(order: Order) -> None:
    outcome = run(right()[0], (), order)
    assert outcome.is_clean, (outcome.reports, outcome.fault)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", CHANGES)
def test_each_wrong_size_and_side_is_found(name: str) -> None:
    wrong, (program, expected) = CHANGES[name], right()
    changed = list(mutants(program, wrong))
    assert changed
    for line, mutant in changed:
        outcome = run(mutant, (), "lifo")
        found = outcome.findings(expected)
        assert found & wrong.shown_by, (line, found, outcome.reports, outcome.fault)
        assert re.search(wrong.says, outcome.fault, re.DOTALL), (line, outcome.fault)
