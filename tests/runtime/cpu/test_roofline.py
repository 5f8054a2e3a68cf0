import pytest

from tuner.runtime.cpu.describe_host import describe_machine
from tuner.runtime.cpu.roofline import ACCUMULATORS, loop_text, measure_roofline

pytestmark = pytest.mark.mlir


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
def test_limits_are_of_a_plausible_processor(dtype: str) -> None:
    roofline = measure_roofline(dtype, 1, describe_machine())
    # one lane at 0.1 GHz is too slow for any AVX2 processor, 2048 bf16 a cycle at 6 GHz too fast for any
    assert 0.2e9 < roofline.flop_per_s < 2048 * 2 * 6e9
    assert 0.1e9 < roofline.bytes_per_s < 2e12


@pytest.mark.parametrize(
    ("name", "instruction"), [("multiply_add", "llvm.intr.fma"), ("multiply_add_bf16", "dpbf16ps")]
)
def test_the_loops_hold_as_many_sums_as_are_counted(name: str, instruction: str) -> None:
    assert loop_text(name).count(instruction) == ACCUMULATORS
