"""Fusions in one module, what threads wait for; views as numpy's, and the arena of live buffers."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.fusions.hand_written import (
    ADD,
    PLAIN,
    exp_of_weighted_sum,
    flat,
    function_of,
    fusion,
    loop_code,
    places_of,
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
    TensorType,
    View,
)
from tuner.core.packings import FusionCode, WeightPacking
from tuner.models.fusions import views
from tuner.models.fusions.linking import function_names, fusion_module, linked, waits
from tuner.models.fusions.memory_plan import SLACK_BYTES, extent_bytes, lifetimes, memory_plan
from tuner.models.run.program_weights import ALIGNMENT_BYTES

ALL, FIRST = True, False  # who runs a fusion
SLOT = 7
Step = tuple[bool, list[tuple[int, int]], tuple[int, int]]
A, B, C = (0, 16), (16, 32), (32, 48)
X = TensorType((4,), "f32")
WHOLE = views.whole(0, TensorType((2, 3, 4), "f32"))
NUMBERS = np.arange(24)


def found(*steps: Step) -> tuple[bool, ...]:
    """Returns before which steps threads wait; a step has who runs it, and ranges of f32 in and out."""
    fusions: list[Fusion] = []
    codes, places = [], []
    for is_divided, reads, write in steps:
        views = [flat(0, stop - start) for start, stop in (*reads, write)]
        fusions.append(fusion(tuple(views[:-1]), views[-1]))
        codes.append(FusionCode("", (None,) * len(reads), is_divided))
        places.append([(SLOT, 4 * start) for start, _ in (*reads, write)])
    return waits(fusions, codes, places)


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
def test_threads_wait_for_what_another_thread_does(steps: list[Step], expected: tuple[bool, ...]) -> None:
    assert found(*steps) == expected


@pytest.mark.parametrize("is_near", [True, False])
def test_strided_views_are_taken_as_all_bytes_from_the_first_to_the_last(is_near: bool) -> None:
    column = View(0, 0, TensorType((4, 1), "f32"), (8, 1))  # 25 elements from the first to the last
    fusions = [fusion((flat(0, 4),), column), fusion((flat(0, 4),), flat(0, 4))]
    codes = [FusionCode("", (None,), ALL)] * 2
    start = 4 * (24 if is_near else 25)
    assert waits(fusions, codes, [[(1, 0), (2, 0)], [(2, start), (3, 0)]]) == (False, is_near)


# Fusions in one module: renamed, shared where equal, called with addresses of a frame.


def text_of(program: FusedProgram, codes: tuple[FusionCode, ...]) -> str:
    return linked(places_of(program, codes), codes, PLAIN)


@pytest.mark.mlir
def test_equal_fusions_are_one_function_and_other_code_or_none_is_refused() -> None:
    program, codes = exp_of_weighted_sum()
    text = text_of(program, codes)
    assert list(function_names(codes).values()) == [f"g{number}_fusion" for number in range(4)]
    assert [f"@g{number}_fusion(" in text for number in range(5)] == [True, True, True, True, False]
    assert text.count("llvm.call @g2_fusion(") == 2
    assert text.count('["target-cpu", "x86-64"]') == text.count("llvm.func") - 4  # all but the fusions
    fusion_text = fusion_module(codes[4], PLAIN)
    assert "llvm.mlir.global internal constant @factors" in fusion_text
    assert fusion_text.count('["target-cpu", "x86-64"]') == fusion_text.count("llvm.func") - 1 == 1  # expf
    assert "emit_c_interface" not in fusion_text
    assert "llvm.func @expf(f32)" in fusion_module(codes[2], PLAIN)
    wrong = replace(codes[0], llvm_text=codes[0].llvm_text.replace("@fusion", "@other"))
    with pytest.raises(CandidateError, match="a fusion's code has no function 'fusion'"):
        fusion_module(wrong, PLAIN)
    with pytest.raises(CandidateError, match=r"^fusion:1:"):
        fusion_module(FusionCode("module {", (None, None)), PLAIN)


@pytest.mark.mlir
def test_views_are_addresses_a_packed_weight_is_panels_and_no_fusions_do_nothing() -> None:
    size = TensorType((8,), "f32")
    argument, weight, result = (Buffer(owner, 0, size) for owner in (ARGUMENT, WEIGHT, RESULT))
    buffers = (argument, weight, Buffer(TEMPORARY, 0, size, padding=2.0), result)
    views = ((flat(0, 4, 4), flat(1, 4, 2), flat(2, 4, 2)), (flat(2, 4, 0), flat(2, 4, 4), flat(3, 4, 1)))
    fusions = tuple(fusion((one, other), result) for one, other, result in views)
    program, numbers = FusedProgram(fusions, buffers, (size,), (size,)), np.arange(8, dtype=np.float32)
    found = function_of(program, [loop_code(2, 4, ADD)] * 2, [numbers * 10])(numbers)
    inside = np.arange(4, 8) + np.arange(2, 6) * 10
    padded = np.array([2, 2, *inside, 2, 2])
    np.testing.assert_array_equal(found[1:5], padded[:4] + padded[4:])
    kind = TensorType((4, 2), "f32")
    of_packed = (argument, Buffer(WEIGHT, 0, kind), Buffer(RESULT, 0, kind))
    fusions = (fusion((flat(0, 8), View(1, 0, kind, (2, 1))), View(2, 0, kind, (2, 1))),)
    codes = (loop_code(2, 8, ADD, (None, WeightPacking(1))),)
    program = FusedProgram(fusions, of_packed, (size,), (kind,))
    values = np.arange(8, dtype=np.float32).reshape(4, 2)
    found = function_of(program, codes, [values])(np.zeros(8, np.float32))
    np.testing.assert_array_equal(found.reshape(-1), [0, 2, 4, 6, 1, 3, 5, 7])
    program = FusedProgram((), (Buffer(ARGUMENT, 0, X),), (X,), ())
    assert function_of(program, ())(np.zeros(4, np.float32)) is None


def program(temporaries: Sequence[tuple[int, float | None]], *fusions: Fusion) -> FusedProgram:
    buffers = (
        Buffer(TEMPORARY, number, TensorType((size,), "f32"), padding)
        for number, (size, padding) in enumerate(temporaries)
    )
    return FusedProgram(fusions, tuple(buffers), (), ())


def test_memory_that_nobody_reads_again_is_used_again_and_without_any_there_is_slack() -> None:
    # Each fusion reads the buffer before, and writes its own.
    whole = [flat(number, 1024) for number in range(4)]
    fusions = (fusion(tuple(whole[max(at - 1, 0) : at]), whole[at]) for at in range(4))
    plan = memory_plan(program([(1024, None)] * 4, *fusions))
    assert (plan.offsets_bytes, plan.arena_bytes) == ((0, 4096, 0, 4096), 8192 + SLACK_BYTES)
    reader = fusion((flat(0, 4),))
    plan = memory_plan(FusedProgram((reader,), (Buffer(ARGUMENT, 0, X),), (), ()))
    assert (plan.offsets_bytes, plan.arena_bytes, plan.fills) == ((None,), SLACK_BYTES, ())
    made = program([(16, 0.0), (16, None)], fusion((), flat(0, 8, 4)), fusion((flat(0, 32),), flat(1, 16)))
    assert (extent_bytes(made, 0), memory_plan(made).offsets_bytes) == (128, (0, 128))


def test_a_temporary_that_is_read_first_or_written_outside_is_refused() -> None:
    with pytest.raises(ValueError, match="buffer 0: fusion 0 reads what no fusion has written"):
        memory_plan(program([(4, None)], fusion((flat(0, 4),))))
    with pytest.raises(ValueError, match="buffer 0: a fusion writes past the end of its 16 bytes"):
        memory_plan(program([(4, None)], fusion((), flat(0, 4, offset=1))))


def test_paddings_are_shared_by_equals_that_are_written_alike_and_do_not_live_together() -> None:
    reads = [(), *((flat(number, 16),) for number in range(3))]
    fusions = (fusion(read, flat(at, 8, offset=4)) for at, read in enumerate(reads))
    plan = memory_plan(program([(16, padding) for padding in (0.0, 0.0, 0.0, 1.0)], *fusions))
    assert plan.offsets_bytes == (0, 64, 0, 128)
    assert [(fill.offset_bytes, fill.value) for fill in plan.fills] == [(0, 0.0), (64, 0.0), (128, 1.0)]
    made = program(
        [(16, 0.0), (4, None), (16, 0.0)],
        fusion((), flat(0, 8, offset=4)),
        fusion((flat(0, 16),), flat(1, 4)),
        fusion((flat(1, 4),), flat(2, 8, offset=2)),
    )
    assert memory_plan(made).offsets_bytes == (0, 128, 64)


@st.composite
def programs(draw: st.DrawFn) -> FusedProgram:
    """Draws a program of up to 12 fusions, each of which writes a buffer and reads some of those before."""
    count = draw(st.integers(1, 12))
    sizes = draw(st.lists(st.integers(1, 300), min_size=count, max_size=count))
    paddings = draw(st.lists(st.sampled_from((None, None, 0.0, 1.0)), min_size=count, max_size=count))
    sizes = [size if padding is None else 64 for size, padding in zip(sizes, paddings, strict=True)]
    fusions = []
    for number, padding in enumerate(paddings):
        read = draw(st.sets(st.integers(0, max(number - 1, 0)), max_size=3)) if number else set()
        inputs = tuple(flat(each, sizes[each]) for each in sorted(read))
        written = flat(number, sizes[number]) if padding is None else flat(number, 32, offset=8)
        fusions.append(fusion(inputs, written))
    return program([*zip(sizes, paddings, strict=True)], *fusions)


@given(programs())
def test_no_two_live_buffers_overlap_and_padded_ones_are_filled(made: FusedProgram) -> None:
    plan, lives = memory_plan(made), lifetimes(made)
    fills = {fill.offset_bytes: fill for fill in plan.fills}
    assert len(fills) == len(plan.fills)
    offsets: Any = plan.offsets_bytes
    for offset, buffer in zip(offsets, made.buffers, strict=True):
        if buffer.padding is not None:
            assert (fills[offset].type, fills[offset].value) == (buffer.type, buffer.padding)
    padded = {number for number in lives if made.buffers[number].padding is not None}
    ends = {number: offsets[number] + extent_bytes(made, number) for number in lives}
    assert all(offsets[number] % ALIGNMENT_BYTES == 0 for number in lives)
    assert all(end + SLACK_BYTES <= plan.arena_bytes for end in ends.values())
    for one, other in combinations(sorted(lives), 2):
        if lives[one].overlaps(lives[other]) or (one in padded) != (other in padded):
            assert ends[one] <= offsets[other] or ends[other] <= offsets[one]


def elements(view: View) -> np.ndarray:
    strides = tuple(8 * each for each in view.strides)
    return np.lib.stride_tricks.as_strided(NUMBERS[view.offset :], view.type.shape, strides)


def test_slices_transposed_split_and_merged_views_have_the_elements_of_numpys() -> None:
    assert WHOLE.strides == (12, 4, 1)
    assert WHOLE.is_contiguous
    assert views.whole(0, TensorType((), "f32")).is_contiguous
    cut, numbers = views.sliced(WHOLE, (1, 0, 1), (1, 2, 2), (1, 2, 2)), NUMBERS.reshape(2, 3, 4)
    np.testing.assert_array_equal(elements(cut), numbers[1:2, 0:3:2, 1:4:2])
    assert not cut.is_contiguous
    np.testing.assert_array_equal(elements(views.without(cut, (0,))), elements(cut)[0])
    np.testing.assert_array_equal(elements(views.permuted(WHOLE, (1, 0, 2))), numbers.transpose(1, 0, 2))
    split = views.expanded(WHOLE, (2, 3, 2, 2), [[0], [1], [2, 3]])
    np.testing.assert_array_equal(elements(split), NUMBERS.reshape(2, 3, 2, 2))
    assert views.collapsed(split, [[0], [1], [2, 3]]) == WHOLE
    flat = views.collapsed(WHOLE, [[0, 1, 2]])
    assert flat == views.whole(0, TensorType((24,), "f32"))
    cut = views.sliced(WHOLE, (0, 0, 0), (2, 2, 3), (1, 1, 1))  # with gaps
    assert [views.collapsed(cut, each) for each in ([[0, 1], [2]], [[0], [1, 2]])] == [None, None]
    one = View(0, 0, TensorType((1, 3, 1, 4), "f32"), (99, 4, 77, 1))
    assert one.is_contiguous
    assert views.collapsed(one, [[0, 1, 2, 3]]) == views.whole(0, TensorType((12,), "f32"))
    scalar = views.expanded(views.whole(0, TensorType((), "f32")), (1, 1), [])
    assert scalar.type.shape == (1, 1)
