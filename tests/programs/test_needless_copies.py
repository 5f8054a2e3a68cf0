"""Copies that a program's meaning does not need are not made."""

import pytest

from tests.programs.payload_runs import BUFFER, A, B, ended, launched, payload, trace_of

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.effects.memory_effects")


def uploads(text: str) -> int:
    ended(text, A, B)
    return sum(line.startswith("copy") and "from host" in line for line in trace_of(text, A, B))


def test_an_output_that_a_kernel_overwrites_is_not_uploaded() -> None:
    assert uploads(payload(launched("twice", "a", "b"))) == 1


@pytest.mark.slow
def test_an_output_that_a_fill_or_a_map_overwrites_is_not_uploaded() -> None:
    assert uploads(payload(f"linalg.fill ins(%one : f32) outs(%b : {BUFFER})", launched("inc", "b"))) == 0
    assert uploads(payload(f"linalg.abs ins(%a : {BUFFER}) outs(%b : {BUFFER})")) == 1


def test_an_output_of_which_something_is_left_is_uploaded() -> None:
    assert uploads(payload(launched("twice", "a", "b").replace("threads in (%c16", "threads in (%c3"))) == 2
    assert uploads(payload(launched("inc", "b"))) == 1


EVERY_SECOND = "memref<8xf32, strided<[2]>>"


def of_view(name: str) -> tuple[str, ...]:
    """Returns a kernel that reads every second element of %a through a view of its own."""
    return (
        f"%{name} = memref.subview %a[0] [8] [2] : {BUFFER} to {EVERY_SECOND}",
        "gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)",
        "threads(%tx, %ty, %tz) in (%sx = %c3, %sy = %c1, %sz = %c1) {",
        f"%x = memref.load %{name}[%tx] : {EVERY_SECOND}",
        f"memref.store %x, %b[%tx] : {BUFFER}",
        *("gpu.terminator", "}"),
    )


def test_equal_views_of_two_launches_are_uploaded_once_as_long_as_nobody_writes() -> None:
    first, second = of_view("v"), of_view("w")
    store = f"memref.store %one, %a[%c0] : {BUFFER}"
    of_b = 1  # of which kernels write a part
    assert uploads(payload(*first, *second)) == of_b + 1
    assert uploads(payload(*first, store, *second)) == of_b + 2
