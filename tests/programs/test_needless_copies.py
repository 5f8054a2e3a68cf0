"""Copies that a program's meaning does not need are not made."""

import pytest

from tests.programs.payload_runs import BUFFER, A, B, ended, launched, payload, trace_of

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.effects.overwritten")


def uploads(text: str) -> int:
    ended(text, A, B)
    return sum(line.startswith("copy") and "from host" in line for line in trace_of(text, A, B))


def test_an_output_that_a_kernel_overwrites_is_not_uploaded() -> None:
    assert uploads(payload(launched("twice", "a", "b"))) == 1


def test_an_output_that_a_fill_or_a_map_overwrites_is_not_uploaded() -> None:
    assert uploads(payload(f"linalg.fill ins(%one : f32) outs(%b : {BUFFER})", launched("inc", "b"))) == 0
    assert uploads(payload(f"linalg.abs ins(%a : {BUFFER}) outs(%b : {BUFFER})")) == 1


def test_an_output_of_which_something_is_left_is_uploaded() -> None:
    assert uploads(payload(launched("twice", "a", "b").replace("threads in (%c16", "threads in (%c3"))) == 2
    assert uploads(payload(launched("inc", "b"))) == 1
