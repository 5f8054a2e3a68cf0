import pytest

from tuner.runtime.cpu import roofline as roofline_module
from tuner.runtime.cpu.describe_host import describe_machine
from tuner.runtime.cpu.roofline import (
    ACCUMULATORS,
    flop_per_s,
    loop_text,
    measure_roofline,
)
from tuner.runtime.cpu.thread_team import ThreadTeam

pytestmark = pytest.mark.mlir


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "i8"])
def test_limits_are_of_a_plausible_processor(dtype: str) -> None:
    roofline = measure_roofline(dtype, 1, describe_machine())
    assert is_plausible(roofline.flop_per_s)
    assert 0.1e9 < roofline.bytes_per_s < 2e12


def is_plausible(flop_per_s: float) -> bool:
    """One lane at 0.1 GHz is too slow for any AVX2 processor, 2048 bf16 a cycle at 6 GHz too fast for any."""
    return 0.2e9 < flop_per_s < 2048 * 2 * 6e9


def test_bytes_are_multiplied_as_words_where_there_is_no_vnni(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the products made once, before the loop, 20 times as much as of f32 would be counted."""
    monkeypatch.setattr(roofline_module, "has_vnni", lambda: False)
    team, machine = ThreadTeam(1), describe_machine()
    assert is_plausible(flop_per_s(team, "i8", machine, 3))
    assert flop_per_s(team, "i8", machine, 40) < 8 * flop_per_s(team, "f32", machine, 40)


@pytest.mark.parametrize(
    ("name", "instruction"),
    [("multiply_add", "llvm.intr.fma"), ("multiply_add_bf16", "dpbf16ps"), ("multiply_add_i8", "@step(%s")],
)
def test_the_loops_hold_as_many_sums_as_are_counted(name: str, instruction: str) -> None:
    assert loop_text(name).count(instruction) == ACCUMULATORS
