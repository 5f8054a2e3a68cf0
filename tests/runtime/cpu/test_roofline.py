"""The roofline of this processor, and the loops that measure it."""

import numpy as np
import pytest

from tuner.core.machine import Machine
from tuner.runtime.cpu import roofline as roofline_module
from tuner.runtime.cpu.describe_host import describe_machine
from tuner.runtime.cpu.panel_product import INNER, ROWS, VALUE, VECTORS, PanelProduct
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


@pytest.mark.parametrize("threads", [1, 2])
def test_each_thread_multiplies_panels_of_its_own(threads: int) -> None:
    machine = describe_machine()
    team = ThreadTeam(threads)
    product = PanelProduct(team, machine)
    product.repeat(1)
    team.close()
    assert len(product.arrays) == threads
    for _a, _b, c in product.arrays:
        assert c.shape == (ROWS * VECTORS * machine.vector_bytes // 4,)
        assert np.all(c == INNER * VALUE * VALUE)


def test_the_product_is_that_of_a_panel_of_a_and_one_of_b() -> None:
    machine: Machine = describe_machine()
    team = ThreadTeam(1)
    product = PanelProduct(team, machine)
    a, b, c = product.arrays[0]
    rng = np.random.default_rng(0)
    for array in (a, b):
        array[:] = rng.integers(-3, 4, array.shape)  # exact in f32
    product.repeat(1)
    team.close()
    columns = VECTORS * machine.vector_bytes // 4
    last_of_a = a.reshape(-1, INNER, ROWS)[-1]
    last_of_b = b.reshape(-1, INNER, columns)[-1]
    np.testing.assert_array_equal(c.reshape(ROWS, columns), last_of_a.T @ last_of_b)
