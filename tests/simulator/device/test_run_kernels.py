"""A program on the simulated GPU: what is a failure, at which stage, and what is a note."""

from dataclasses import replace

import numpy as np
import pytest

from tuner.core.errors import CandidateError, Stage
from tuner.core.kernel_program import KernelBuffer, KernelProgram, Launch
from tuner.simulator.device.run_kernels import notes_of, run, whole_clusters, written

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
    run(one, {"c": c}, {} if blocks is None else {0: blocks})
    return list(c)


def test_a_program_changes_its_output() -> None:
    assert c_of(program()) == [*range(63, -1, -1)] * 2


def test_what_a_launch_wrote_is_known_whatever_it_is() -> None:
    c = np.full(128, -1, np.int32)
    (simulation,) = run(program(), {"c": c}, {0: ((1, 0, 0),)})
    assert written(simulation, c).tolist() == [False] * 64 + [True] * 64
    assert not written(simulation, c.copy()).any()


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
        simulations = run(one, {"c": np.zeros(128, np.int32)}, {0: ((0, 0, 0),)})
        notes = notes_of(one, simulations)
        assert notes[0] == "k: 1 of 2 blocks simulated"
        assert len(notes) == 1 + conflicts
        assert all("2.00 times as long as without bank conflicts, most at line" in each for each in notes[1:])
