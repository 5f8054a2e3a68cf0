"""Each wait, record, synchronization, copy and free of a host program is needed: removing it is reported.

A synchronization's defect may show in numbers alone: the checker does not see what compiled host code loads.
"""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import costly
from tests.programs.lowering.device_programs import (
    BRANCH,
    HALVES,
    LOOP_WITH_HOST,
    OVERLAPPING_PARTS,
    TWO_CHAINS,
    alloc,
    copy,
    free,
    host_function,
    launch,
    store,
)
from tests.programs.lowering.host_mutations import NUMBERS, Finding, Outcome, lowered, run, with_line
from tuner.core.gpu_code import DeviceProgram
from tuner.programs.request import Form
from tuner.simulator.device.happens_before import HostDefect
from tuner.simulator.device.streams import Order

pytestmark = pytest.mark.mlir

buffer_regions = pytest.importorskip("tuner.mlir.effects.accesses")
pytest.importorskip("tuner.programs.lowering.device")

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
ORDERS: tuple[Order, ...] = ("lifo", "fifo")  # the first shows most
# The host reads in the middle what one chain has made, while the other goes on.
HOST_BETWEEN = host_function(
    *(alloc("da"), alloc("db"), copy("da", "a"), copy("db", "b")),
    *(launch("inc", "da"), copy("a", "da"), launch("inc", "da"), launch("inc", "db"), copy("b", "db")),
    *(*store("a"), copy("da", "a"), launch("add", "da", "db", "da")),
    *(copy("a", "da"), free("da"), free("db")),
)
# A diamond, whose sides are on two streams.
DIAMOND = host_function(
    *(alloc("da"), alloc("db"), alloc("dc"), copy("da", "a")),
    *(launch("inc", "da"), launch("twice", "da", "db"), launch("twice", "da", "dc"), launch("inc", "dc")),
    *(launch("add", "db", "dc", "da"), copy("b", "da"), free("da"), free("db"), free("dc")),
)
FLAGS: dict[str, tuple[tuple[bool, ...], ...]] = {"branch": ((True,), (False,))}
# A loop of two chains, which go on from iteration to iteration, and a sum of both.
LOOP_OF_CHAINS = host_function(
    *(alloc("da"), alloc("db"), alloc("dc"), copy("da", "a"), copy("db", "b")),
    "scf.for %i = %c0 to %n step %c1 {",
    *(launch("inc", "da"), launch("inc", "db"), launch("add", "da", "db", "dc")),
    *(launch("inc", "db"), launch("inc", "da")),
    "}",
    *(copy("a", "dc"), copy("b", "db"), free("da"), free("db"), free("dc")),
)
PROGRAMS = {
    "two_chains": TWO_CHAINS,
    "loop_with_host": LOOP_WITH_HOST,
    "loop_of_chains": LOOP_OF_CHAINS,
    "branch": BRANCH,
    "host_between": HOST_BETWEEN,
    "diamond": DIAMOND,
    "halves": HALVES,
    "overlapping_parts": OVERLAPPING_PARTS,
}


def runs(program: DeviceProgram, name: str) -> Iterator[Outcome]:
    for others in FLAGS.get(name, ((),)):
        for order in ORDERS:
            yield run(program, others, order)


def found_in(mutant: DeviceProgram, name: str, right: list[Outcome], wanted: set[Finding]) -> set[Finding]:
    """Returns the kinds of what is found in the runs up to the first that shows what is wanted."""
    found: set[Finding] = set()
    for outcome, expected in zip(runs(mutant, name), right, strict=True):
        found |= outcome.findings(expected)
        if found & wanted:
            break
    return found


def mutants(program: DeviceProgram, calls: set[str]) -> Iterator[tuple[str, str, DeviceProgram]]:
    """Yields (call, its line, the program without it)."""
    pattern = rf" llvm\.call @mgpu({'|'.join(sorted(calls))})\("
    for number, line in enumerate(program.llvm.splitlines()):
        if found := re.search(pattern, line):
            yield found[1], f"line {number}: {line.strip()}", with_line(program, number)


@st.composite
def random_programs(draw: st.DrawFn) -> str:
    """Draws copies and kernels on three buffers of the device, and what is copied back of them."""
    names = ("da", "db", "dc")
    lines = [*map(alloc, names), copy("da", "a"), copy("db", "b"), copy("dc", "a")]
    for _ in range(draw(st.integers(1, 6))):
        kernel, count = draw(st.sampled_from([("inc", 1), ("twice", 2), ("add", 3)]))
        lines.append(launch(kernel, *draw(st.permutations(names))[:count]))
    ends = draw(st.permutations(names))
    return host_function(*lines, copy("a", ends[0]), copy("b", ends[1]), *map(free, names))


@costly(3, 5)
@given(random_programs(), st.sampled_from(["streams", "tokens"]))
@pytest.mark.slow
def test_no_wait_of_a_random_program_can_be_left_out(text: str, form: Form) -> None:
    program = lowered(text, form)
    assert run(program, (), "lifo").is_clean
    waits = mutants(program, {"StreamWaitEvent", "EventRecord"})
    undetected = [what for _, what, mutant in waits if run(mutant, (), "lifo").is_clean]
    assert not undetected, text + "\n".join(undetected)


@pytest.mark.parametrize("form", ["streams", "tokens"])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.slow
def test_nothing_can_be_left_out(name: str, form: Form) -> None:
    program = lowered(PROGRAMS[name], form)
    right = list(runs(program, name))
    assert all(outcome.is_clean for outcome in right), right
    undetected = [
        f"{what}: {found}"
        for call, what, mutant in mutants(program, NEEDED[form])
        if not (found := found_in(mutant, name, right, SHOWN_BY[call])) & SHOWN_BY[call]
    ]
    assert not undetected, "\n".join(undetected)


@pytest.mark.parametrize("order", ORDERS)
def test_parts_that_are_wrongly_held_to_be_disjoint_are_a_race(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(lowered(OVERLAPPING_PARTS, "streams"), (), order).is_clean
    monkeypatch.setattr(buffer_regions.StridedRegion, "overlaps", lambda *_: False)
    (*reports,) = run(lowered(OVERLAPPING_PARTS, "streams"), (), order).reports
    assert any("race" in report for report in reports), reports
