"""Bulk stores: what a wait with ``.read`` frees, and what it does not tell."""

import numpy as np
import pytest

from tests.simulator.ptx.snippets import run
from tuner.simulator.ptx.defects import Defect, SimulationError

BOX = ".shared .align 128 .b8 box[16];\n"
# Thread 0 stores four words of 1 by the TMA; it writes box and reads its target when it has waited.
STORE = """mov.u32 %r8, box; mov.u32 %r1, 1; setp.ne.u32 %q1, %t, 0; @%q1 ret;
  st.shared.v4.b32 [%r8], {{%r1, %r1, %r1, %r1}}; fence.proxy.async.shared::cta;
  cp.async.bulk.global.shared::cta.bulk_group [%p0], [%r8], 16; cp.async.bulk.commit_group;
  {wait} {then}"""
OVERWRITE = "mov.u32 %r2, 2; st.shared.b32 [%r8], %r2;"
READ = "ld.global.b32 %r3, [%p0]; st.global.b32 [%p1], %r3;"
WAITS = {"none": "", "read": "cp.async.bulk.wait_group.read 0;", "full": "cp.async.bulk.wait_group 0;"}


def stored(wait: str, then: str = "") -> tuple[list[int], int, set[Defect]]:
    """Returns what was stored, what was read from there, and what the simulator found."""
    target, seen = np.zeros(4, np.uint32), np.full(1, 9, np.uint32)
    found = run(STORE.format(wait=WAITS[wait], then=then), target, seen, variables=BOX)
    return target.tolist(), int(seen[0]), {hazard.kind for hazard in found.hazards}


@pytest.mark.parametrize("wait", ["read", "full"])
def test_a_source_that_was_read_may_be_written(wait: str) -> None:
    assert stored(wait, OVERWRITE) == ([1, 1, 1, 1], 9, set())


@pytest.mark.parametrize(("wait", "seen"), [("read", 0), ("full", 1)])
def test_only_a_whole_wait_reports_that_the_target_is_written(wait: str, seen: int) -> None:
    target, found, _ = stored(wait, READ)
    assert (target, found) == ([1, 1, 1, 1], seen)


def test_a_block_that_ends_before_its_source_is_read_is_reported() -> None:
    assert stored("none")[2] == {Defect.UNFINISHED}


def test_a_source_that_is_written_too_early_is_reported() -> None:
    _, _, found = stored("none", OVERWRITE + WAITS["full"])
    assert Defect.IN_FLIGHT in found


def test_a_store_out_of_bounds_of_which_only_the_read_was_waited_for_is_reported_at_the_end() -> None:
    code = STORE.format(wait=WAITS["read"], then="").replace("[%p0], [%r8], 16", "[%rd8], [%r8], 16")
    code = f"add.s64 %rd8, %p0, 1048576; {code}"
    with pytest.raises(SimulationError) as error:
        run(code, np.zeros(4, np.uint32), np.zeros(1, np.uint32), variables=BOX)
    assert error.value.kind is Defect.OUT_OF_BOUNDS
