"""Every payload computes what it should, without races, in the PTX simulator."""

import numpy as np
import pytest

from tests.payloads.cases import CASES, Case
from tests.payloads.test_compile import IDS, program_of

pytestmark = pytest.mark.mlir

launch = pytest.importorskip("tuner.ptx.launch")


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_payload_computes_what_it_should(case: Case, seed: int | None) -> None:
    program = program_of(case)
    a = case.draw(np.random.default_rng(7))
    b = np.full(case.b_shape, -1, case.dtype)
    arrays = {"a": a.copy(), "b": b}
    given = {buffer.name: arrays[buffer.name] for buffer in case.buffers}
    (simulation,) = launch.run_program(program, given, schedule_seed=seed)
    assert simulation.races == ()
    np.testing.assert_array_equal(b, case.expected(a))
    np.testing.assert_array_equal(arrays["a"], a)
