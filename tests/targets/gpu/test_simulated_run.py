"""A program on the simulated GPU: what runs, what is a failure at which stage, and what is a note."""

import gc
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.simulator.ptx.test_launch import BLOCKS, SCALE, THREADS
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.core.gpu_code import KernelBuffer, KernelProgram, Launch
from tuner.simulator.device.memory import SimulatedMemory
from tuner.simulator.ptx.defects import SimulationError
from tuner.simulator.ptx.geometry import whole_clusters
from tuner.targets.gpu.simulator import notes_of, simulate_program, simulated_launches

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 c) {
  .reg .u64 %rd<4>; .reg .u32 %r<8>; .shared .align 4 .b8 tile[4096];
  ld.param.u64 %rd1, [c]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
"""
# Each thread of a block leaves its number in shared memory; another one fetches it.
EXCHANGE = """  mul.lo.u32 %r3, %r1, STRIDE; mov.u32 %r5, tile; add.u32 %r3, %r3, %r5;
  st.shared.u32 [%r3], %r1;
  BARRIER
  xor.b32 %r4, %r1, 63; mul.lo.u32 %r4, %r4, STRIDE; add.u32 %r4, %r4, %r5; ld.shared.u32 %r6, [%r4];
"""
STORE = """  mad.lo.u32 %r7, %r2, 64, %r1; mul.wide.u32 %rd2, %r7, 4; add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r6; ret; }
"""


def program(stride: int = 4, barrier: str = "bar.sync 0;", grid: int = 2) -> KernelProgram:
    body = EXCHANGE.replace("STRIDE", str(stride)).replace("BARRIER", barrier)
    launch = Launch("k", (grid, 1, 1), (64, 1, 1), 0, ("c",))
    return KernelProgram("sm_90", HEAD + body + STORE, b"", (launch,), (KernelBuffer("c", 512, "output"),))


def c_of(one: KernelProgram, blocks: tuple[tuple[int, int, int], ...] | None = None) -> list[int]:
    c = np.full(128, -1, np.int32)
    simulated_launches(one, {"c": c}, {} if blocks is None else {0: blocks})
    return list(c)


def test_a_program_changes_its_output() -> None:
    assert c_of(program()) == [*range(63, -1, -1)] * 2


def test_what_a_launch_wrote_is_known_whatever_it_is() -> None:
    c = np.full(128, -1, np.int32)
    (simulation,) = simulate_program(program(), {"c": c}, {0: ((1, 0, 0),)})
    assert simulation.written(c).tolist() == [False] * 64 + [True] * 64
    assert not simulation.written(c.copy()).any()


def test_blocks_come_with_their_clusters() -> None:
    assert whole_clusters(((5, 1, 2), (4, 0, 2), (0, 0, 0)), (2, 1, 1)) == (
        *((4, 1, 2), (5, 1, 2)),
        *((4, 0, 2), (5, 0, 2)),
        *((0, 0, 0), (1, 0, 0)),
    )
    assert whole_clusters(((5, 1, 2), (5, 0, 2)), (1, 2, 1)) == ((5, 0, 2), (5, 1, 2))


def test_only_the_blocks_that_are_named_run() -> None:
    assert c_of(program(), ((1, 0, 0),)) == [-1] * 64 + [*range(63, -1, -1)]


@pytest.mark.parametrize(
    ("broken", "stage", "reason"),
    [
        (program(barrier=""), Stage.VERIFY, r"^k: line \d+: .*race in shared memory"),
        (program(grid=3), Stage.VERIFY, r"^line \d+: st\.global.*out of bounds"),
        (program(barrier="brkpt;"), Stage.RUN, r"^line \d+: brkpt.*the simulator does not know"),
        (replace(program(), ptx="nonsense"), Stage.VERIFY, "nonsense"),
        (
            replace(program(), launches=(replace(program().launches[0], block=(2048, 1, 1)),)),
            Stage.RUN,
            "found a block of 2048 threads",
        ),
    ],
    ids=["race", "bounds", "unknown", "no PTX", "launch"],
)
def test_what_is_wrong_is_a_failure_of_its_stage(broken: KernelProgram, stage: Stage, reason: str) -> None:
    with pytest.raises(CandidateError, match=reason) as caught:
        c_of(broken)
    assert caught.value.stage is stage


def test_blocks_and_bank_conflicts_are_noted() -> None:
    for stride, conflicts in ((4, 0), (8, 1)):
        one = program(stride)
        simulations = simulated_launches(one, {"c": np.zeros(128, np.int32)}, {0: ((0, 0, 0),)})
        notes = notes_of(one, simulations)
        assert notes[0] == "k: 1 of 2 blocks simulated"
        assert len(notes) == 1 + conflicts
        assert all("2.00 times as long as without bank conflicts, most at line" in each for each in notes[1:])


def test_a_fault_names_the_parameter_of_the_kernel() -> None:
    with pytest.raises(SimulationError, match=r"found 4 bytes at byte 512 of c, which has 512$"):
        simulate_program(program(grid=3), {"c": np.zeros(128, np.int32)})


def twice(**changes: Any) -> KernelProgram:
    """Returns a program of two launches, each of which doubles a buffer into the next."""
    buffers = (
        KernelBuffer("a", 512, "input"),
        KernelBuffer("workspace", 512, "scratch"),
        KernelBuffer("c", 512, "output"),
    )
    launches = (
        Launch("snippet", BLOCKS, THREADS, 0, ("a", "workspace")),
        Launch("snippet", BLOCKS, THREADS, 0, ("workspace", "c")),
    )
    return KernelProgram("sm_90", SCALE, b"", launches, changes.get("buffers", buffers))


def test_a_program_runs_its_launches_in_order() -> None:
    a, c = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    simulations = simulate_program(twice(), {"a": a, "c": c})
    np.testing.assert_array_equal(c, 4 * a)
    assert [(s.kernel, s.blocks, s.races) for s in simulations] == [("snippet", 4, ())] * 2


def test_blocks_are_chosen_for_each_launch_by_its_number() -> None:
    a, c = np.ones(128, np.float32), np.zeros(128, np.float32)
    simulations = simulate_program(twice(), {"a": a, "c": c}, blocks={1: ((2, 0, 0), (2, 0, 0))})
    assert [simulation.blocks for simulation in simulations] == [4, 1]
    assert np.flatnonzero(c).tolist() == list(range(64, 96))


def test_scratch_is_nan_until_it_is_written() -> None:
    a, c = np.ones(128, np.float32), np.zeros(128, np.float32)
    simulate_program(twice(), {"a": a, "c": c}, blocks={0: ((0, 0, 0),)})
    assert np.isnan(c).tolist() == [False] * 32 + [True] * 96


def test_buffers_that_must_be_zero_are_zeroed() -> None:
    buffers = (
        KernelBuffer("a", 512, "input"),
        KernelBuffer("workspace", 512, "scratch", is_zeroed=True),
        KernelBuffer("c", 512, "output", is_zeroed=True),
    )
    c = np.ones(128, np.float32)
    simulate_program(
        twice(buffers=buffers), {"a": c.copy(), "c": c}, blocks={0: ((0, 0, 0),), 1: ((1, 0, 0),)}
    )
    assert not c.any()


@pytest.mark.parametrize(
    ("buffers", "message"),
    [
        ({"a": np.zeros(128, np.float32)}, "buffer c: found nothing, allowed an array of 512 bytes"),
        ({"a": np.zeros(2), "c": np.zeros(64)}, "buffer a: found 16 bytes, allowed 512"),
        (
            {"a": np.zeros(128, np.float32), "c": np.zeros(128)[::2]},
            "buffer c: the array is not C-contiguous",
        ),
    ],
)
def test_buffers_that_do_not_fit_are_refused(buffers: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        simulate_program(twice(), buffers)


def test_scratch_that_is_given_begins_as_it_is() -> None:
    a, c, scratch = np.ones(128, np.float32), np.zeros(128, np.float32), np.full(128, 3, np.float32)
    simulate_program(twice(), {"a": a, "c": c, "workspace": scratch}, blocks={0: ((0, 0, 0),)})
    assert c.tolist() == [4.0] * 32 + [6.0] * 96
    assert scratch.tolist() == [2.0] * 32 + [3.0] * 96


def test_memory_of_the_device_is_gone_when_a_program_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    memories = []

    def watched() -> SimulatedMemory:
        memory = SimulatedMemory()
        memories.append(weakref.ref(memory))
        return memory

    monkeypatch.setattr("tuner.simulator.device.simulated_device.SimulatedMemory", watched)
    gc.disable()
    try:
        simulate_program(twice(), {"a": np.ones(128, np.float32), "c": np.zeros(128, np.float32)})
        assert [memory() for memory in memories] == [None]
    finally:
        gc.enable()
