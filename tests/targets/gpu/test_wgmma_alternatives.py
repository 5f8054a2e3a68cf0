"""Hopper's strategy where rows are no whole 16 bytes: mma.sync, by the other region of the script."""

import pytest

from benchmarks.gpu_check.gpu_point import GpuPoint, feasible_set
from benchmarks.gpu_check.points import gpu_strategies, is_allowed
from tests.targets.gpu.wgmma_points import CHIP, STRATEGY, by_name, outcome, point
from tuner.core.chips import chip_of
from tuner.core.machine import gpu_machine
from tuner.core.problem import Matmul
from tuner.scripts.default import default_script

pytestmark = pytest.mark.mlir

POINTS = (
    (point(Matmul(40, 72, 60, "f16", "nn", "bias_relu", "f16")), 1),  # rows of A: 120 bytes
    (point(Matmul(40, 70, 61, "bf16", "tn", output="bf16")), None),  # of neither are whole words
    (point(Matmul(40, 40, 30, "tf32", "nt"), block_k=32), 2),
    (point(Matmul(40, 70, 90, "i8", "nt"), block_k=128), None),
)


@pytest.mark.parametrize(("one", "seed"), POINTS, ids=by_name)
def test_other_rows_are_multiplied_by_mma_sync(one: GpuPoint, seed: int | None) -> None:
    assert feasible_set(one.problem, STRATEGY, CHIP).row_of(one.candidate) is not None
    program = one.program()
    assert "mma.sync" in program.ptx
    assert "wgmma" not in program.ptx
    is_right, why = outcome(one, program, seed)
    assert is_right, why


def test_the_script_takes_the_first_region_for_rows_that_tensor_maps_take() -> None:
    script = POINTS[0][0].script()
    assert script.count("transform.alternatives") == 1
    whole = point(Matmul(40, 72, 96, "f16", "nn", "bias_relu", "f16"))
    program = whole.program(script)
    assert "wgmma" in program.ptx
    is_right, why = outcome(whole, program)
    assert is_right, why


def test_whole_rows_need_no_other_region() -> None:
    assert "transform.alternatives" not in point(Matmul(67, 72, 64, "f16")).script()


def test_such_points_come_last() -> None:
    one, _ = POINTS[0]
    allowed = feasible_set(one.problem, STRATEGY, CHIP)
    assert allowed.rows > 0
    assert not allowed.is_preferred.any()
    (entry,) = [each for each in gpu_strategies() if each.name == STRATEGY]
    assert not is_allowed(entry, one.problem, CHIP)
    script = default_script(one.problem, gpu_machine("simulator", chip_of(CHIP), "PTX simulator"))
    assert script is not None
    assert "wgmma" not in script.text
