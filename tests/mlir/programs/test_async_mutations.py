"""Each wait, record, synchronization and copy of a host program is needed: the simulated GPU tells.

A synchronization's defect may show in numbers alone: the checker does not see what compiled host code loads.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mlir.kernels import parsed
from tests.mlir.programs.device_programs import (
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
from tuner.core.chips import chip_of
from tuner.core.device import DeviceError
from tuner.core.device_program import DeviceProgram
from tuner.mlir.programs.device_options import DeviceOptions, Form
from tuner.runtime.simulated.device import SimulatedDevice
from tuner.runtime.simulated.lazy_streams import Order

pytestmark = pytest.mark.mlir

buffer_regions = pytest.importorskip("tuner.mlir.effects.buffer_regions")
device_lowering = pytest.importorskip("tuner.mlir.programs.device_lowering")
device_function = pytest.importorskip("tuner.runtime.programs.device_function")

# With tokens a stream is synchronized before it is destroyed, whether that is needed or not.
NEEDED = {
    "streams": r" llvm\.call @mgpu(StreamWaitEvent|EventRecord|StreamSynchronize|EventSynchronize|Memcpy)\(",
    "tokens": r" llvm\.call @mgpu(StreamWaitEvent|EventRecord|Memcpy)\(",
}
ORDERS: tuple[Order, ...] = ("fifo", "lifo")
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


@dataclass(frozen=True)
class Outcome:
    """What a run showed."""

    arrays: tuple[tuple[float, ...], ...]
    reports: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        return not self.reports


def lowered(text: str, form: Form) -> DeviceProgram:
    with parsed(text) as module:
        options = DeviceOptions(form=form)
        program = device_lowering.lower_device_program(module, "main", chip_of("sm_90"), options)
    assert isinstance(program, DeviceProgram)
    return program


def run(program: DeviceProgram, others: tuple[Any, ...], order: Order) -> Outcome:
    device = SimulatedDevice("sm_90", order)
    arrays = [np.arange(16, dtype=np.float32) * (number + 1) for number in range(2)]
    loaded = device_function.DeviceFunction(program, device)
    try:
        loaded(*arrays, *others)
        refused: tuple[str, ...] = ()
    except DeviceError as error:
        refused = (str(error),)
    found = tuple(map(str, device.reports))
    return Outcome(tuple(tuple(array.tolist()) for array in arrays), (*refused, *found))


def runs(program: DeviceProgram, name: str) -> Iterator[Outcome]:
    for others in FLAGS.get(name, ((),)):
        for order in ORDERS:
            yield run(program, others, order)


def mutants(program: DeviceProgram, pattern: str) -> Iterator[tuple[str, DeviceProgram]]:
    """Yields (what is left out, the program without it) for each call that orders or copies."""
    lines = program.llvm.splitlines()
    for number, line in enumerate(lines):
        if re.search(pattern, line):
            rest = "\n".join([*lines[:number], *lines[number + 1 :]])
            yield f"line {number}: {line.strip()}", replace(program, llvm=rest)


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


@settings(max_examples=5, derandomize=True)
@given(random_programs(), st.sampled_from(["streams", "tokens"]))
def test_no_wait_of_a_random_program_can_be_left_out(text: str, form: Form) -> None:
    program = lowered(text, form)
    assert run(program, (), "lifo").is_clean
    waits = mutants(program, r" llvm\.call @mgpu(StreamWaitEvent|EventRecord)\(")
    undetected = [what for what, mutant in waits if run(mutant, (), "lifo").is_clean]
    assert not undetected, text + "\n".join(undetected)


@pytest.mark.parametrize("form", ["streams", "tokens"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_can_be_left_out(name: str, form: Form) -> None:
    program = lowered(PROGRAMS[name], form)
    right = list(runs(program, name))
    assert all(outcome.is_clean for outcome in right), right
    undetected = [
        what
        for what, mutant in mutants(program, NEEDED[form])
        if all(found == expected for found, expected in zip(runs(mutant, name), right, strict=True))
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
