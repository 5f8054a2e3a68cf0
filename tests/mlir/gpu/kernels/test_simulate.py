"""Every payload computes what it should, without races, in the PTX simulator."""

from dataclasses import replace

import numpy as np
import pytest

from tests.mlir.gpu.kernels.cases import CASES, Case
from tests.mlir.gpu.kernels.test_compile import IDS, program_of
from tuner.targets.gpu import simulator

pytestmark = pytest.mark.mlir


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_payload_computes_what_it_should(case: Case, seed: int | None) -> None:
    program = program_of(case)
    a = case.draw(np.random.default_rng(7))
    b = np.full(case.b_shape, -1, case.dtype)
    arrays = {"a": a.copy(), "b": b}
    given = {buffer.name: arrays[buffer.name] for buffer in case.buffers}
    (simulation,) = simulator.simulate_program(program, given, schedule_seed=seed)
    assert simulation.races == ()
    np.testing.assert_array_equal(b, case.expected(a))
    np.testing.assert_array_equal(arrays["a"], a)


def test_the_barrier_that_allows_buffers_to_share_bytes_is_needed() -> None:
    (case,) = (case for case in CASES if case.name == "reuse")
    program = program_of(case)
    head, middle, tail, rest = program.ptx.split("bar.sync")
    without = replace(program, ptx=f"{head}bar.sync{middle}// {tail}bar.sync{rest}")
    a = case.draw(np.random.default_rng(7))
    (simulation,) = simulator.simulate_program(without, {"a": a, "b": np.empty(case.b_shape, case.dtype)})
    assert any("shared" in race.kind.value for race in simulation.races)
