"""What a kernel touches of its buffers, told as ranges of bytes; pointers into the middle of arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.simulator.ptx.snippets import kernel
from tuner.simulator.launch import prepare
from tuner.simulator.memory.global_memory import Pointer, runs
from tuner.simulator.ptx.defects import SimulationError
from tuner.simulator.ptx.parser import parse

# Thread t moves 4 bytes from x + 8 t to y + 4 t.
GATHER = kernel(
    """ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; mul.wide.u32 %rd3, %t, 8; add.s64 %rd1, %rd1, %rd3;
    mul.wide.u32 %rd3, %t, 4; add.s64 %rd2, %rd2, %rd3; ld.LOAD.f32 %r2, [%rd1];
    st.global.f32 [%rd2], %r2;""",
    [".param .u64 x", ".param .u64 y"],
    ".reg .b32 %t, %r<3>; .reg .b64 %rd<4>;",
    "mov.u32 %t, %tid.x;",
)


def gather(
    x: Pointer, y: Pointer, load: str = "global"
) -> dict[int, tuple[list[list[int]], list[list[int]]]]:
    module = parse(GATHER.replace("LOAD", load))
    simulation = prepare(module, module.kernels[0]).run((1, 1, 1), (4, 1, 1), (x, y))
    return {one.address: (one.reads.tolist(), one.writes.tolist()) for one in simulation.touched}


@pytest.mark.parametrize("load", ["global", "volatile.global"])
def test_ranges_are_what_the_threads_touched(load: str) -> None:
    x, y = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    found = gather(Pointer("x", x, 16), Pointer("y", y, 32), load)
    assert y.tolist() == [0] * 8 + [4, 6, 8, 10] + [0] * 4
    assert found[x.ctypes.data] == ([[16, 20], [24, 28], [32, 36], [40, 44]], [])
    assert found[y.ctypes.data] == ([], [[32, 48]])


def test_pointers_into_one_array_are_one_buffer() -> None:
    array = np.arange(16, dtype=np.float32)
    found = gather(Pointer("x", array, 32), Pointer("x", array, 0))
    assert array[:4].tolist() == [8, 10, 12, 14]
    assert found == {array.ctypes.data: ([[32, 36], [40, 44], [48, 52], [56, 60]], [[0, 16]])}


def test_what_is_read_and_then_written_counts_as_both() -> None:
    array = np.arange(16, dtype=np.float32)
    found = gather(Pointer("x", array, 0), Pointer("x", array, 0))
    assert found[array.ctypes.data] == ([[0, 4], [8, 12], [16, 20], [24, 28]], [[0, 16]])


def test_a_pointer_does_not_lead_out_of_its_array() -> None:
    x, y = np.arange(16, dtype=np.float32), np.zeros(3, np.float32)
    with pytest.raises(SimulationError, match="4 bytes at byte 12 of y, which has 12"):
        gather(Pointer("x", x, 0), Pointer("y", y, 0))


@given(hnp.arrays(bool, st.integers(0, 40)))
def test_runs_cover_what_is_set_and_nothing_else(flags: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> None:
    covered = np.zeros_like(flags)
    found = runs(flags)
    for first, end in found:
        assert not covered[max(first - 1, 0) : end].any()  # apart: the one before is not set
        covered[first:end] = True
    assert (covered == flags).all()
