"""Why scripts have what they have: without it a kernel races, is wrong, or is not made."""

from collections.abc import Callable
from functools import partial

import pytest

from benchmarks.gpu_check.gpu_point import GpuPoint
from tests.simulator.ptx.mutations import Edit
from tests.targets.gpu.strategies.points import mma_sync, simt
from tuner.core.errors import CandidateError, Stage
from tuner.core.problem import Matmul

pytestmark = pytest.mark.mlir

PLAIN = partial(simt, Matmul(64, 64, 64), depth=0)
PIPELINED = partial(simt, Matmul(64, 64, 64), depth=2)
TENSOR_CORES = partial(mma_sync, Matmul(64, 64, 256, "f16"))


def without(op: str) -> Edit:
    """Returns the edit that drops the lines with an operation."""
    return lambda script: "\n".join(line for line in script.splitlines() if op not in line)


def instead(old: str, new: str) -> Edit:
    return lambda script: script.replace(old, new)


def changed(one: GpuPoint, edit: Edit) -> str:
    """Returns the script of a point, which the edit must change."""
    script = one.script()
    assert edit(script) != script
    return edit(script)


FEWER_BUFFERS = instead("factor = 3 : i64", "factor = 2 : i64")  # a tile is overwritten while it is read


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("build", "edit"),
    [
        pytest.param(PLAIN, without("tuner.insert_barriers"), id="no barriers, plain copies"),
        pytest.param(PIPELINED, without("tuner.insert_barriers"), id="no barriers, pipelined"),
        pytest.param(TENSOR_CORES, without("tuner.insert_barriers"), id="no barriers, tensor cores"),
        pytest.param(PLAIN, instead("loop_top = 1", "loop_top = 0"), id="plain copies, none at the top"),
        pytest.param(PIPELINED, FEWER_BUFFERS, id="fewer buffers than depth + 1"),
        pytest.param(TENSOR_CORES, FEWER_BUFFERS, id="fewer buffers, tensor cores"),
    ],
)
def test_a_kernel_without_what_orders_it_races(build: Callable[[], GpuPoint], edit: Edit) -> None:
    one = build()
    _, _, simulations = one.run(one.program(changed(one, edit)))
    assert any(simulation.races for simulation in simulations)


def test_loops_that_are_left_cannot_be_pipelined() -> None:
    one = PIPELINED()
    with pytest.raises(CandidateError) as caught:
        one.program(changed(one, without("tuner.unroll_inner_loops")))
    assert caught.value.stage == Stage.COMPILE


def test_upstream_addresses_of_a_transposed_a_are_wrong() -> None:
    """Why the script has tuner.fix_transposed_a; once this fails, upstream is right and the op can go."""
    one = mma_sync(Matmul(64, 64, 64, "f16", "tn"))
    verdict, _, _ = one.run(one.program(changed(one, without("tuner.fix_transposed_a"))))
    assert not verdict.max_error <= 1.0
