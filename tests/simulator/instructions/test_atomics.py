from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulator.ptx.matmuls import DATA
from tests.simulator.ptx.snippets import run
from tuner.simulator.launch import simulate

Array = NDArray[Any]
SHARED = ".shared .align 16 .b8 tile[16];\n"
INTEGERS: dict[str, Callable[[int, int], int]] = {
    "add.u32": lambda old, x: old + x,
    "min.u32": min,
    "max.u32": max,
    "and.b32": lambda old, x: old & x,
    "or.b32": lambda old, x: old | x,
    "xor.b32": lambda old, x: old ^ x,
    "exch.b32": lambda _old, x: x,
    "inc.u32": lambda old, x: 0 if old >= x else old + 1,
    "dec.u32": lambda old, x: x if old == 0 or old > x else old - 1,
}


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("name", INTEGERS)
def test_lanes_update_one_after_the_other(name: str, space: str) -> None:
    place, seen = np.array([5], np.uint32), np.zeros(32, np.uint32)
    target = "[tile]" if space == "shared" else "[%p0]"
    back = "@%q1 st.global.u32 [%p0], %r4;" if space == "shared" else ""
    code = f"""ld.global.u32 %r3, [%p0]; setp.eq.u32 %q1, %t, 0; @%q1 st.shared.u32 [tile], %r3; bar.sync 0;
      xor.b32 %r1, %t, 21; atom.{space}.{name} %r2, {target}, %r1;
      add.s64 %rd1, %p1, %t4w; st.global.u32 [%rd1], %r2;
      bar.sync 0; ld.shared.u32 %r4, [tile]; {back}"""
    found = run(code, place, seen, variables=SHARED)
    old, expected = 5, []
    for lane in range(32):
        expected.append(old)
        old = INTEGERS[name](old, lane ^ 21)
    assert seen.tolist() == expected
    assert place[0] == old
    assert found.races == ()


@pytest.mark.parametrize(
    ("type_", "dtype"),
    [
        ("f32", "f4"),
        ("f64", "f8"),
        ("u64", "u8"),
        ("noftz.f16", "f2"),
        ("noftz.f16x2", "f2"),
        ("noftz.bf16x2", "bf16"),
    ],
)
@pytest.mark.parametrize("space", ["global", "shared"])
def test_sums_of_every_type(space: str, type_: str, dtype: str) -> None:
    number: Any = ml_dtypes.bfloat16 if dtype == "bf16" else np.dtype(dtype)
    count = 2 if "x2" in type_ else 1  # numbers in a register
    a, total = np.arange(1, 32 * count + 1).astype(number), np.zeros(count, number)
    bits = 8 * a.itemsize * count
    register = {16: "%rs1", 32: "%r1", 64: "%rd5"}[bits]
    target = "[tile]" if space == "shared" else "[%p1]"
    back = f"@%q1 st.global.b{bits} [%p1], {register};" if space == "shared" else ""
    code = f"""mul.wide.u32 %rd1, %t, {bits // 8}; add.s64 %rd1, %rd1, %p0;
      ld.global.b{bits} {register}, [%rd1];
      setp.eq.u32 %q1, %t, 0; mov.b64 %rd6, 0; @%q1 st.shared.b64 [tile], %rd6; bar.sync 0;
      red.relaxed.gpu.{space}.add.{type_} {target}, {register}; bar.sync 0;
      ld.shared.b{bits} {register}, [tile]; {back}"""
    found = run(code, a, total, variables=SHARED)
    assert found.races == ()
    expected = a.reshape(32, -1).astype(np.float64).sum(axis=0)
    np.testing.assert_allclose(
        total.astype(np.float64), expected, rtol=0.02 if bits < 64 and dtype != "f4" else 0
    )


def test_vectors_are_added_element_by_element() -> None:
    total = np.zeros(4, np.float32)
    run("cvt.rn.f32.u32 %r1, %t; red.global.add.v4.f32 [%p0], {%r1, %r1, %r1, %r1};", total)
    assert total.tolist() == [496] * 4


def test_compare_and_swap_in_a_loop_of_diverged_lanes() -> None:
    text = (DATA / "atomics.ptx").read_text()
    values = np.linspace(-3, 9, 256, dtype=np.float32)
    histogram, largest, unused = np.zeros(16, np.int32), np.zeros(1, np.float32), np.zeros(1, np.float16)
    found = simulate(text, "kernel", (4, 1, 1), (64, 1, 1), (values, histogram, largest, unused))
    assert histogram.tolist() == [16] * 16
    assert largest[0] >= values.max()
    assert found.races == ()


def test_a_plain_access_that_is_not_ordered_after_atomics_races() -> None:
    code = """setp.eq.u32 %q1, %t, 0; mov.b32 %r2, 0; @%q1 st.shared.b32 [tile], %r2; bar.sync 0;
      red.shared.add.u32 [tile], %t; ld.shared.u32 %r1, [tile];"""
    found = run(code, variables=SHARED, threads=64)
    assert [hazard.kind.value for hazard in found.races] == ["race in shared memory"]
