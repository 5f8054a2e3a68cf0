"""Every payload of this folder goes through the lowering to PTX and cubin, and computes what numpy does."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.mlir.kernels import parsed
from tuner.core.compiled_code import KernelBuffer, KernelCode
from tuner.core.gpu import CHIPS, chip_of
from tuner.gpu.cost_model.occupancy import require_launchable
from tuner.gpu.mlir import lowering
from tuner.gpu.ptxsim.target import evaluator as simulator
from tuner.gpu.target.compiler import find_ptxas

Array = NDArray[Any]
FOLDER = Path(__file__).parent
WARP = 32


@dataclass(frozen=True)
class Case:
    """A payload with at most one input, ``a``, and one output, ``b``."""

    name: str  # of the file
    dtype: str
    a_shape: tuple[int, ...]  # () without an input
    b_shape: tuple[int, ...]
    expected: Callable[[Array], Array]  # b of a
    shared_bytes: int  # dynamic, of the launch
    source: str = ""  # instead of the file's

    @property
    def text(self) -> str:
        return self.source or (FOLDER / f"{self.name}.mlir").read_text()

    @property
    def buffers(self) -> tuple[KernelBuffer, ...]:
        item = np.dtype(self.dtype).itemsize
        a = KernelBuffer("a", int(np.prod(self.a_shape)) * item, "input")
        b = KernelBuffer("b", int(np.prod(self.b_shape)) * item, "output")
        return (a, b) if self.a_shape else (b,)

    def draw(self) -> Array:
        """Returns an input of small whole numbers: sums are exact in any order."""
        return np.random.default_rng(7).integers(-50, 50, self.a_shape).astype(self.dtype)


def _ids(_: Array) -> Array:
    grid, block = (3, 2, 1), (6, 4, 2)  # x, y, z
    rows = []
    for by, bx in np.ndindex(grid[1], grid[0]):
        for tz, ty, tx in np.ndindex(block[::-1]):
            thread = (tz * block[1] + ty) * block[0] + tx
            rows.append((bx, by, 0, tx, ty, tz, *grid, *block, thread % WARP, thread // WARP))
    return np.array(rows, np.int32)


def _rotate(a: Array) -> Array:
    i, j = np.ogrid[:64, :4]
    return np.asarray(((j + 1) * a[i, (i + j) % 4]).sum(axis=1), a.dtype)


CASES = (
    Case("barrier", "float32", (3, 64), (3, 64), lambda a: a[:, ::-1], 256),
    Case("reuse", "float32", (3, 64), (3, 64), lambda a: np.roll(a[:, ::-1], -1, axis=1), 256),
    Case("all_reduce_add", "float32", (4, 96), (4,), lambda a: a.sum(axis=1), 132),
    Case("all_reduce_region", "int32", (2, 8, 20), (2,), lambda a: a.max(axis=(1, 2)), 132),
    Case("ids", "int32", (), (288, 14), _ids, 0),
    Case("private", "float32", (64, 4), (64,), _rotate, 0),
)
# Every payload goes through the lowering to PTX and cubin, on every chip.
IDS = [case.name for case in CASES]


@functools.cache
def program_of(case: Case, chip: str = "sm_90") -> KernelCode:
    with parsed(case.text) as module:
        program = lowering.lower_to_program(module, chip_of(chip), case.buffers)
    assert isinstance(program, KernelCode)
    return program


@pytest.mark.drawn(2)
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_payload_assembles_and_can_be_launched(case: Case, chip: str) -> None:
    ptxas = find_ptxas()
    if ptxas is None or chip not in ptxas.chips:
        pytest.skip("no ptxas for this chip: extra cuda, or one on PATH")
    program = ptxas.assemble(program_of(case, chip))
    require_launchable(program)
    assert program.binary.startswith(b"\x7fELF")


def test_the_barrier_that_allows_buffers_to_share_bytes_is_needed() -> None:
    (case,) = (case for case in CASES if case.name == "reuse")
    head, middle, tail, rest = case.text.split("    gpu.barrier\n")
    together = program_of(replace(case, source="    gpu.barrier\n".join((head, middle + tail, rest))))
    assert together.launches[0].dynamic_shared_bytes == 2 * case.shared_bytes  # buffers are apart
    program = program_of(case)
    head, middle, tail, rest = program.text.split("bar.sync")
    without = replace(program, text=f"{head}bar.sync{middle}// {tail}bar.sync{rest}")
    a = case.draw()
    (simulation,) = simulator.simulate_program(without, {"a": a, "b": np.empty(case.b_shape, case.dtype)})
    assert any("shared" in race.kind.value for race in simulation.races)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_payload_lowers_with_its_shared_memory_dynamic(case: Case) -> None:
    program = program_of(case)
    (launch,) = program.launches
    assert launch.dynamic_shared_bytes == case.shared_bytes
    assert launch.arguments == tuple(buffer.name for buffer in case.buffers)
    assert program.text.count(".shared .align") == program.text.count(".extern .shared .align")
    assert program.text.count(".extern .shared") == (1 if case.shared_bytes else 0)
    if case.name == "private":  # every thread's own
        assert ".local .align 4 .b8" in program.text
        assert "st.local" in program.text


# Every payload computes what it should, without races, in the PTX simulator.
@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_payload_computes_what_it_should(case: Case, seed: int | None) -> None:
    program = program_of(case)
    a = case.draw()
    b = np.full(case.b_shape, -1, case.dtype)
    arrays = {"a": a.copy(), "b": b}
    given = {buffer.name: arrays[buffer.name] for buffer in case.buffers}
    (simulation,) = simulator.simulate_program(program, given, schedule_seed=seed)
    assert simulation.races == ()
    np.testing.assert_array_equal(b, case.expected(a))
    np.testing.assert_array_equal(arrays["a"], a)
