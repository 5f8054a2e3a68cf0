"""The roofline of this processor, and the loops that measure it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tuner.core.machine import Machine
from tuner.core.roofline import peak_source
from tuner.runtime.cpu import roofline as roofline_module
from tuner.runtime.cpu.host import describe_machine
from tuner.runtime.cpu.roofline import flop_per_s
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.runtime.cpu.timing_conditions import INNER, ROWS, VALUE, VECTORS, PanelProduct

pytestmark = pytest.mark.mlir
AVX512 = Machine("any", "any", "avx512", True, 1, 1, 1, 1, 1, 1, has_vnni=True)
NEON: dict[str, Any] = {"has_bf16": False, "has_vnni": False, "isa": "neon"}
FEW_BYTES = 64 * 2**20  # to read: a gigabyte, as outside of the tests, is touched in three seconds


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "i8"])
def test_limits_are_of_a_plausible_processor(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofline_module, "STREAM_BYTES", (FEW_BYTES, FEW_BYTES))
    roofline = roofline_module.measure_roofline(dtype, 1, describe_machine())
    assert is_plausible(roofline.flop_per_s)
    assert 0.1e9 < roofline.bytes_per_s < 2e12
    assert roofline.flop_source == f"measured by {peak_source(dtype, describe_machine())}"


def is_plausible(flop_per_s: float) -> bool:
    """One lane at 0.1 GHz is too slow for AVX2, 4096 bytes a cycle at 6 GHz too fast for any processor."""
    return 0.2e9 < flop_per_s < 4096 * 2 * 6e9


def test_without_vnni_bytes_are_words_and_refused_tiles_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the products made once, before the loop, 20 times as much as of f32 would be counted."""
    team, machine = ThreadTeam(1), replace(describe_machine(), has_vnni=False, has_amx_int8=False)
    assert is_plausible(flop_per_s(team, "i8", machine, 3))
    assert flop_per_s(team, "i8", machine, 40) < 8 * flop_per_s(team, "f32", machine, 40)
    monkeypatch.setattr(roofline_module, "may_use_tiles", lambda: False)
    text, _ = roofline_module.multiply_add_loops("bf16", replace(AVX512, has_amx_bf16=True), (10,))
    assert "tdpbf16ps" not in text


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8"])
def test_each_loop_holds_as_many_sums_as_are_counted(dtype: str) -> None:
    for isa, sums in (("avx512", roofline_module.SUMS[32]), ("avx2", roofline_module.SUMS[16])):
        machine = replace(AVX512, isa=isa, has_bf16=isa == "avx512")
        text, loops = roofline_module.multiply_add_loops(dtype, machine, sums)
        functions = text.split("llvm.func @multiply_add_")[1:]
        assert [each.count("llvm.call @step(%s") for each in functions] == list(sums)
        one = loops[0].flop // sums[0]
        assert [loop.flop for loop in loops] == [one * each for each in sums]


@pytest.mark.parametrize(
    ("changes", "dtype", "flop", "instruction"),
    [
        ({"has_amx_bf16": True}, "bf16", 4 * 2 * 16 * 16 * 32, "tdpbf16ps"),
        ({"has_amx_int8": True}, "i8", 4 * 2 * 16 * 16 * 64, "tdpbssd"),
        ({"has_amx_bf16": True}, "i8", 10 * 2 * 64, "vpdpbusd.512"),
        ({"has_amx_int8": True}, "bf16", 10 * 2 * 32, "dpbf16ps.512"),
        ({"has_amx_bf16": True, "has_amx_int8": True}, "f32", 10 * 2 * 16, "llvm.intr.fma"),
        ({"has_vnni": False}, "i8", 10 * 2 * 32, "pmaddw.d.512"),
        ({"has_bf16": False}, "bf16", 10 * 2 * 16, "llvm.intr.fma"),
        ({"has_vnni": True, "isa": "avx2"}, "i8", 10 * 2 * 32, "vpdpbusd.256"),
        ({"has_bf16": False, "isa": "neon"}, "f32", 10 * 2 * 4, "llvm.intr.fma"),
        ({"has_bf16": False, "isa": "neon", "has_vnni": False}, "i8", 10 * 2 * 4, "llvm.mul %wide_others"),
        (NEON | {"has_dotprod": True}, "i8", 10 * 2 * 16, "sdot.v4i32.v16i8"),
        (NEON | {"has_dotprod": True, "has_i8mm": True}, "i8", 10 * 2 * 32, "smmla.v4i32.v16i8"),
        (NEON | {"has_arm_bf16": True}, "bf16", 10 * 2 * 16, "llvm.aarch64.neon.bfmmla"),
        (NEON, "bf16", 10 * 2 * 4, "llvm.intr.fma"),
    ],
)
def test_the_loop_has_the_fastest_instruction_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], dtype: str, flop: int, instruction: str
) -> None:
    monkeypatch.setattr(roofline_module, "may_use_tiles", lambda: True)
    text, (loop,) = roofline_module.multiply_add_loops(dtype, replace(AVX512, **changes), (10,))
    assert loop.flop == flop
    assert instruction in text


@pytest.mark.skipif(not describe_machine().has_amx_int8, reason="this processor has no AMX, or no permission")
def test_the_loop_of_tiles_adds_all_products() -> None:
    team = ThreadTeam(2)
    (loops,) = roofline_module.multiply_adds(team, "i8", describe_machine())
    for sink in loops.sinks:
        sink[:1024] = 3  # a tile of A and of B
    loops.repeat(1)
    team.close()
    for sink in loops.sinks:
        assert set(sink[1024:].view(np.int32)) == {roofline_module.TILE_ITERATIONS * 64 * 3 * 3}


@pytest.mark.parametrize("threads", [1, 2])
def test_each_thread_multiplies_panels_of_its_own(threads: int) -> None:
    machine = describe_machine()
    team = ThreadTeam(threads)
    product = PanelProduct(team, machine)
    product.repeat(1)
    columns = VECTORS * machine.vector_bytes // 4
    assert len(product.arrays) == threads
    for _a, _b, c in product.arrays:
        assert c.shape == (ROWS * columns,)
        assert np.all(c == INNER * VALUE * VALUE)
    a, b, c = product.arrays[0]
    rng = np.random.default_rng(0)
    for array in (a, b):
        array[:] = rng.integers(-3, 4, array.shape)  # exact in f32
    product.repeat(1)
    team.close()
    last_of_a, last_of_b = a.reshape(-1, INNER, ROWS)[-1], b.reshape(-1, INNER, columns)[-1]
    np.testing.assert_array_equal(c.reshape(ROWS, columns), last_of_a.T @ last_of_b)
