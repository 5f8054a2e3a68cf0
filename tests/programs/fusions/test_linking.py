"""Threads wait before a fusion that needs what another thread does, and before no other."""

from dataclasses import replace

import numpy as np
import pytest

from tests.programs.fusions.hand_written import (
    ADD,
    PLAIN,
    exp_of_weighted_sum,
    flat,
    function_of,
    fusion,
    loop_code,
)
from tuner.core.errors import CandidateError
from tuner.core.fusions import (
    ARGUMENT,
    RESULT,
    TEMPORARY,
    WEIGHT,
    Buffer,
    FusedProgram,
    Fusion,
    FusionCode,
    TensorType,
    View,
    WeightPacking,
)
from tuner.programs.fusions.linking import FusionPlaces, linked, waits
from tuner.programs.fusions.memory_plan import memory_plan
from tuner.programs.run.fused_code import weight_plan

ALL, FIRST = True, False  # who runs a fusion
SLOT = 7


def found(*steps: tuple[bool, list[tuple[int, int]], tuple[int, int]]) -> tuple[bool, ...]:
    """Returns before which steps threads wait; a step has who runs it, and ranges of f32 in and out."""
    fusions: list[Fusion] = []
    codes, places = [], []
    for is_divided, reads, write in steps:
        views = [flat(0, stop - start) for start, stop in (*reads, write)]
        fusions.append(fusion(tuple(views[:-1]), views[-1], "arith.addf"))
        codes.append(FusionCode("", (None,) * len(reads), is_divided))
        places.append([(SLOT, 4 * start) for start, _ in (*reads, write)])
    return waits(fusions, codes, places)


A, B, C = (0, 16), (16, 32), (32, 48)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([(ALL, [A], B), (ALL, [B], C)], (False, True)),  # a reader waits for the writer
        ([(ALL, [A], B), (FIRST, [B], C)], (False, True)),
        ([(FIRST, [A], B), (ALL, [B], C)], (False, True)),
        ([(FIRST, [A], B), (FIRST, [B], C), (FIRST, [C], A)], (False, False, False)),  # one thread
        ([(ALL, [A], B), (ALL, [A], C)], (False, False)),  # both only read the same
        # memory that is used again: the memory plan gives memory of dead buffers away
        ([(ALL, [A], B), (ALL, [C], A)], (False, True)),
        ([(ALL, [A], B), (ALL, [C], (24, 40))], (False, True)),
        ([(FIRST, [A], B), (ALL, [C], B)], (False, True)),
        # one barrier is enough for all fusions before it
        ([(ALL, [A], B), (ALL, [A], C), (ALL, [B], A), (ALL, [C], B)], (False, False, True, True)),
        ([(ALL, [A], B), (ALL, [B], C), (ALL, [B], A)], (False, True, False)),
    ],
)
def test_threads_wait_for_what_another_thread_does(
    steps: list[tuple[bool, list[tuple[int, int]], tuple[int, int]]], expected: tuple[bool, ...]
) -> None:
    assert found(*steps) == expected


@pytest.mark.parametrize("is_near", [True, False])
def test_strided_views_are_taken_as_all_bytes_from_the_first_to_the_last(is_near: bool) -> None:
    column = View(0, 0, TensorType((4, 1), "f32"), (8, 1))  # 25 elements from the first to the last
    fusions = [fusion((flat(0, 4),), column, "arith.addf"), fusion((flat(0, 4),), flat(0, 4), "arith.addf")]
    codes = [FusionCode("", (None,), ALL)] * 2
    start = 4 * (24 if is_near else 25)
    assert waits(fusions, codes, [[(1, 0), (2, 0)], [(2, start), (3, 0)]]) == (False, is_near)


# Fusions in one module: renamed, shared where equal, called with addresses of a frame.


def text_of(program: FusedProgram, codes: tuple[FusionCode, ...]) -> str:
    return linked(FusionPlaces(program, memory_plan(program), weight_plan(program, codes)), codes, PLAIN)


@pytest.mark.mlir
def test_equal_fusions_are_one_function_and_names_never_meet() -> None:
    text = text_of(*exp_of_weighted_sum())
    assert [f"@g{number}_group(" in text for number in range(5)] == [True, True, True, True, False]
    assert text.count("llvm.call @g2_group(") == 2
    assert text.count("@expf(f32)") == 1
    assert "llvm.mlir.addressof @g3_factors" in text
    assert "emit_c_interface" not in text
    assert text.count('["target-cpu", "x86-64"]') == text.count("llvm.func") - 1  # all but the declaration


@pytest.mark.mlir
def test_code_without_the_fusion_or_that_does_not_parse_is_refused() -> None:
    program, codes = exp_of_weighted_sum()
    wrong = replace(codes[0], llvm_text=codes[0].llvm_text.replace("@group", "@other"))
    with pytest.raises(CandidateError, match="a fusion's code has no function 'group'"):
        text_of(program, (wrong, *codes[1:]))
    with pytest.raises(CandidateError, match=r"^fusion: "):
        text_of(program, (FusionCode("module {", (None, None)), *codes[1:]))


@pytest.mark.mlir
def test_views_are_addresses_in_buffers_of_each_owner() -> None:
    size = TensorType((8,), "f32")
    buffers = (
        Buffer(ARGUMENT, 0, size),
        Buffer(WEIGHT, 0, size),
        Buffer(TEMPORARY, 0, size, padding=2.0),
        Buffer(RESULT, 0, size),
    )
    fusions = (
        fusion((flat(0, 4, 4), flat(1, 4, 2)), flat(2, 4, 2), "arith.addf"),
        fusion((flat(2, 4, 0), flat(2, 4, 4)), flat(3, 4, 1), "arith.addf"),
    )
    function = function_of(
        FusedProgram(fusions, buffers, (size,), (size,)),
        (loop_code(2, 4, ADD), loop_code(2, 4, ADD)),
        [np.arange(8, dtype=np.float32) * 10],
    )
    found = function(np.arange(8, dtype=np.float32))
    inside = np.arange(4, 8) + np.arange(2, 6) * 10
    padded = np.array([2, 2, *inside, 2, 2])
    np.testing.assert_array_equal(found[1:5], padded[:4] + padded[4:])


@pytest.mark.mlir
def test_a_packed_weight_is_read_as_panels() -> None:
    kind = TensorType((4, 2), "f32")
    weight = View(1, 0, kind, (2, 1))
    buffers = (Buffer(ARGUMENT, 0, TensorType((8,), "f32")), Buffer(WEIGHT, 0, kind), Buffer(RESULT, 0, kind))
    fusions = (fusion((flat(0, 8), weight), View(2, 0, kind, (2, 1)), "arith.addf"),)
    codes = (loop_code(2, 8, ADD, (None, WeightPacking(1))),)
    program = FusedProgram(fusions, buffers, (buffers[0].type,), (kind,))
    values = np.arange(8, dtype=np.float32).reshape(4, 2)
    found = function_of(program, codes, [values])(np.zeros(8, np.float32))
    np.testing.assert_array_equal(found.reshape(-1), [0, 2, 4, 6, 1, 3, 5, 7])


@pytest.mark.mlir
def test_a_program_without_fusions_does_nothing() -> None:
    program = FusedProgram(
        (), (Buffer(ARGUMENT, 0, TensorType((4,), "f32")),), (TensorType((4,), "f32"),), ()
    )
    assert function_of(program, ())(np.zeros(4, np.float32)) is None
