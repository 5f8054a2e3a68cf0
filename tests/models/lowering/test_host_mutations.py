"""Mutants of compiled host programs: waits left out, wrong sizes, memory of the wrong side; each is found."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.models.lowering import device_programs as texts
from tests.models.lowering.device_programs import lowered
from tests.texts import text_beside
from tuner.core.device import STREAM_ORDERS, StreamOrder
from tuner.core.device_programs import DeviceProgram, Form
from tuner.core.errors import DeviceError
from tuner.gpu.ptxsim.device.happens_before import HostDefect
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.run.device_function import DeviceFunction
from tuner.mlir.effects import accesses as buffer_regions

pytestmark = pytest.mark.mlir

# Kinds of findings beside those of ``HostDefect``.
FAULT = "fault"  # the device refused a call, or a kernel or the host reached for what it cannot
NUMBERS = "other numbers"  # the caller's arrays are not as they should be
Finding = HostDefect | str


@dataclass(frozen=True)
class Outcome:
    arrays: list[list[float]]
    reports: tuple[Any, ...]
    fault: str

    @property
    def is_clean(self) -> bool:
        return not self.reports and not self.fault

    def findings(self, right: "Outcome") -> set[Finding]:
        found: set[Finding] = {report.kind for report in self.reports}
        if self.fault:
            return found | {FAULT}
        return found | {NUMBERS} if str(self.arrays) != str(right.arrays) else found  # NaN is like NaN


def run(program: DeviceProgram, others: tuple[Any, ...], order: StreamOrder) -> Outcome:
    device = SimulatedDevice("sm_90", order)
    arrays = [np.arange(16, dtype=np.float32) * (number + 1) for number in range(2)]
    loaded, fault = DeviceFunction(program, device), ""
    try:
        loaded(*arrays, *others)
    except DeviceError as error:
        fault = str(error)
    return Outcome([array.tolist() for array in arrays], device.reports, fault)


def with_line(program: DeviceProgram, number: int, *lines: str) -> DeviceProgram:
    """Returns a program with other lines, or none, in the place of one."""
    old = program.llvm.splitlines()
    return replace(program, llvm="\n".join([*old[:number], *lines, *old[number + 1 :]]))


UNORDERED = {HostDefect.RACE, HostDefect.MISSING_FORK, HostDefect.MISSING_JOIN, HostDefect.UNFINISHED}
# Call -> what shows that it is left out, one of these at least.
SHOWN_BY: dict[str, set[Finding]] = {
    "StreamWaitEvent": {*UNORDERED, NUMBERS},  # the host waits for a stream that waits
    "EventRecord": {HostDefect.NEVER_RECORDED},
    "StreamSynchronize": {HostDefect.RACE, NUMBERS},
    "EventSynchronize": {HostDefect.RACE, NUMBERS},
    "Memcpy": {HostDefect.UNWRITTEN, NUMBERS},
    "MemFree": {HostDefect.LEAK},
}
# With tokens a stream is synchronized before it is destroyed, whether that is needed or not.
NEEDED: dict[str, set[str]] = {"streams": {*SHOWN_BY}, "tokens": {*SHOWN_BY} - {"StreamSynchronize"}}
ORDERS: tuple[StreamOrder, ...] = ("lifo", "fifo")  # the first shows most
FLAGS: dict[str, tuple[tuple[bool, ...], ...]] = {"branch": ((True,), (False,))}
PROGRAMS = {
    "two_chains": texts.TWO_CHAINS,
    "loop_with_host": texts.LOOP_WITH_HOST,
    "loop_of_chains": texts.host_function(text_beside(__file__, "LOOP_OF_CHAINS")),
    "branch": texts.BRANCH,
    "host_between": texts.host_function(text_beside(__file__, "HOST_BETWEEN")),
    "diamond": texts.host_function(text_beside(__file__, "DIAMOND")),
    "halves": texts.HALVES,
    "overlapping_parts": texts.OVERLAPPING_PARTS,
}


def runs(program: DeviceProgram, name: str) -> Iterator[Outcome]:
    for others in FLAGS.get(name, ((),)):
        for order in ORDERS:
            yield run(program, others, order)


def found_in(mutant: DeviceProgram, name: str, right: list[Outcome], wanted: set[Finding]) -> set[Finding]:
    found: set[Finding] = set()
    for outcome, expected in zip(runs(mutant, name), right, strict=True):
        found |= outcome.findings(expected)
        if found & wanted:
            break
    return found


def without_each(program: DeviceProgram, calls: set[str]) -> Iterator[tuple[str, str, DeviceProgram]]:
    """Yields (call, its line, the program without it)."""
    pattern = rf" llvm\.call @mgpu({'|'.join(sorted(calls))})\("
    for number, line in enumerate(program.llvm.splitlines()):
        if found := re.search(pattern, line):
            yield found[1], f"line {number}: {line.strip()}", with_line(program, number)


@pytest.mark.parametrize("form", ["streams", "tokens"])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.slow
def test_nothing_can_be_left_out(name: str, form: Form) -> None:
    program = lowered(PROGRAMS[name], form=form)
    right = list(runs(program, name))
    assert all(outcome.is_clean for outcome in right), right
    undetected = [
        f"{what}: {found}"
        for call, what, mutant in without_each(program, NEEDED[form])
        if not (found := found_in(mutant, name, right, SHOWN_BY[call])) & SHOWN_BY[call]
    ]
    assert not undetected, "\n".join(undetected)


@pytest.mark.parametrize("order", ORDERS)
def test_parts_wrongly_held_disjoint_race(order: StreamOrder, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(lowered(texts.OVERLAPPING_PARTS), (), order).is_clean
    monkeypatch.setattr(buffer_regions.StridedRegion, "overlaps", lambda *_: False)
    reports = run(lowered(texts.OVERLAPPING_PARTS), (), order).reports
    assert any("race" in str(report) for report in reports), reports


TEXT = texts.host_function(text_beside(__file__, "SIZES"))
LESS, MORE = "%less", "%more"  # bytes, where 64 are right
COPY = r"(call @mgpuMemcpy\()(%\w+), (%\w+), (%\w+)"
ALLOCATION = r"(call @mgpuMemAlloc\()(%\w+)"
MEMSET = r"(call @mgpuMemset32\(%\w+, %\w+, )(%\w+)"
THREADS = r"(threads in \()(%\w+)"
ON_HOST = "host: found a load or store .* is device memory"
HOST_MEMORY = "kernel .*: .*host memory that is not registered"


class Change:
    def __init__(self, pattern: str, instead: str, *shown_by: Finding, says: str = "") -> None:
        self.pattern, self.instead = pattern, instead  # HOST is an array of the caller, DEVICE memory there
        self.shown_by = set(shown_by)  # at least one of these
        self.says = says  # in the fault


CHANGES = {
    "a copy of more": Change(COPY, rf"\1\2, \3, {MORE}", HostDefect.OUT_OF_BOUNDS),
    "a copy of less": Change(COPY, rf"\1\2, \3, {LESS}", NUMBERS),
    "a copy of nothing": Change(COPY, r"\1\2, \3, %nothing", HostDefect.UNWRITTEN, NUMBERS),
    "a copy in the wrong direction": Change(COPY, r"\1\3, \2, \4", HostDefect.UNWRITTEN, NUMBERS),
    "an allocation of less": Change(ALLOCATION, rf"\1{LESS}", HostDefect.OUT_OF_BOUNDS),
    "an allocation of nothing": Change(ALLOCATION, r"\1%nothing", HostDefect.OUT_OF_BOUNDS),
    "a memset of more": Change(MEMSET, r"\1%one_more", HostDefect.OUT_OF_BOUNDS),
    "a memset of less": Change(MEMSET, r"\1%fewer", NUMBERS),
    "a memset of nothing": Change(MEMSET, r"\1%nothing", HostDefect.UNWRITTEN, NUMBERS),
    "more threads": Change(THREADS, r"\1%one_more", FAULT, says="kernel .*: .*4 bytes at byte 64 of"),
    "fewer threads": Change(THREADS, r"\1%fewer", NUMBERS),
    "no threads": Change(THREADS, r"\1%nothing", FAULT, says="CUDA_ERROR_INVALID_VALUE"),
    "more blocks": Change(r"(@inc blocks in \()(%\w+)", r"\1%two", HostDefect.KERNEL),
    "a host load from the device": Change(r"(llvm\.load )(%\w+)", r"\1DEVICE", FAULT, says=ON_HOST),
    "a host store to the device": Change(r"(llvm\.store %\w+, )(%\w+)", r"\1DEVICE", FAULT, says=ON_HOST),
    "a kernel on host memory": Change(r"(launch_func .* args\()(%\w+)", r"\1HOST", FAULT, says=HOST_MEMORY),
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
    program = lowered(TEXT)
    return program, run(program, (), "lifo")


@pytest.mark.drawn(2)
@pytest.mark.parametrize("order", STREAM_ORDERS)
def test_the_program_is_right_as_it_is(order: StreamOrder) -> None:
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
