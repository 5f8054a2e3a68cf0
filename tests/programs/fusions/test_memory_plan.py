"""Views of memory as numpy's; the arena: live buffers never overlap, memory of the dead is used again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.fusions import (
    ARGUMENT,
    ELEMENTWISE,
    TEMPORARY,
    Buffer,
    FusedProgram,
    Fusion,
    TensorType,
    View,
)
from tuner.programs.fusions import views
from tuner.programs.fusions.memory_plan import SLACK_BYTES, extent_bytes, lifetimes, memory_plan
from tuner.programs.run.fused_code import ALIGNMENT_BYTES

X = TensorType((4,), "f32")


def view(buffer: int, size: int = 4, offset: int = 0) -> View:
    return View(buffer, offset, TensorType((size,), "f32"), (1,))


def fusion(inputs: tuple[View, ...], outputs: tuple[View, ...]) -> Fusion:
    return Fusion(ELEMENTWISE, "", inputs, outputs, ())


def temporary(number: int, size: int = 4, padding: float | None = None) -> Buffer:
    return Buffer(TEMPORARY, number, TensorType((size,), "f32"), padding)


def program(buffers: tuple[Buffer, ...], *fusions: Fusion) -> FusedProgram:
    return FusedProgram(fusions, buffers, (), ())


def chain(buffers: tuple[Buffer, ...]) -> FusedProgram:
    """Returns a program in which fusion i reads buffer i - 1 and writes buffer i, all of each."""
    views = [view(number, buffer.type.shape[0]) for number, buffer in enumerate(buffers)]
    return program(
        buffers, *(fusion(tuple(views[max(i - 1, 0) : i]), (views[i],)) for i in range(len(views)))
    )


def test_memory_of_a_buffer_that_nobody_reads_again_is_used_again() -> None:
    plan = memory_plan(chain(tuple(temporary(number, 1024) for number in range(4))))
    assert plan.offsets_bytes == (0, 4096, 0, 4096)
    assert plan.arena_bytes == 8192 + SLACK_BYTES


def test_a_program_without_temporaries_has_slack_alone() -> None:
    plan = memory_plan(program((Buffer(ARGUMENT, 0, X),), fusion((view(0),), ())))
    assert (plan.offsets_bytes, plan.arena_bytes, plan.fills) == ((None,), SLACK_BYTES, ())


@pytest.mark.parametrize(
    ("fused", "reason"),
    [
        (fusion((view(0),), ()), "buffer 0: fusion 0 reads what no fusion has written"),
        (fusion((), (view(0, 4, offset=1),)), "buffer 0: a fusion writes past the end of its 16 bytes"),
    ],
)
def test_a_temporary_that_is_read_first_or_written_outside_is_refused(fused: Fusion, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        memory_plan(program((temporary(0),), fused))


def test_reads_past_the_end_have_memory_of_their_own() -> None:
    made = program(
        (temporary(0, 16, padding=0.0), temporary(1, 16)),
        fusion((), (view(0, 8, offset=4),)),
        fusion((view(0, 32),), (view(1, 16),)),
    )
    plan = memory_plan(made)
    assert extent_bytes(made, 0) == 128
    assert plan.offsets_bytes == (0, 128)


def test_paddings_are_shared_by_equals_that_do_not_live_together() -> None:
    inside = view(0, 8, offset=4)
    padded = tuple(temporary(number, 16, 0.0) for number in range(3))
    other = temporary(3, 16, 1.0)
    views = [View(number, inside.offset, inside.type, inside.strides) for number in range(4)]
    made = program(
        (*padded, other),
        fusion((), (views[0],)),
        fusion((view(0, 16),), (views[1],)),
        fusion((view(1, 16),), (views[2],)),
        fusion((view(2, 16),), (views[3],)),
    )
    plan = memory_plan(made)
    assert plan.offsets_bytes == (0, 64, 0, 128)
    assert [(fill.offset_bytes, fill.value) for fill in plan.fills] == [(0, 0.0), (64, 0.0), (128, 1.0)]


def test_paddings_that_are_written_at_other_places_are_not_shared() -> None:
    made = program(
        (temporary(0, 16, 0.0), temporary(1, 4), temporary(2, 16, 0.0)),
        fusion((), (view(0, 8, offset=4),)),
        fusion((view(0, 16),), (view(1, 4),)),
        fusion((view(1, 4),), (view(2, 8, offset=2),)),
    )
    assert memory_plan(made).offsets_bytes == (0, 128, 64)


@st.composite
def programs(draw: st.DrawFn) -> FusedProgram:
    """Draws a program of up to 12 fusions, each of which writes a buffer and reads some of those before."""
    count = draw(st.integers(1, 12))
    sizes = draw(st.lists(st.integers(1, 300), min_size=count, max_size=count))
    paddings = draw(st.lists(st.sampled_from((None, None, 0.0, 1.0)), min_size=count, max_size=count))
    buffers = tuple(
        temporary(number, size if padding is None else 64, padding)
        for number, (size, padding) in enumerate(zip(sizes, paddings, strict=True))
    )
    fusions = []
    for number, buffer in enumerate(buffers):
        read = draw(st.sets(st.integers(0, max(number - 1, 0)), max_size=3)) if number else set()
        inputs = tuple(view(each, buffers[each].type.shape[0]) for each in sorted(read))
        written = view(number, buffer.type.shape[0]) if buffer.padding is None else view(number, 32, offset=8)
        fusions.append(fusion(inputs, (written,)))
    return program(buffers, *fusions)


@given(programs())
def test_no_two_live_buffers_overlap_and_padded_ones_lie_where_their_type_is_filled(
    made: FusedProgram,
) -> None:
    plan, lives = memory_plan(made), lifetimes(made)
    fills = {fill.offset_bytes: fill for fill in plan.fills}
    assert len(fills) == len(plan.fills)
    for offset, buffer in zip(plan.offsets_bytes, made.buffers, strict=True):
        if buffer.padding is not None:
            assert offset is not None
            assert (fills[offset].type, fills[offset].value) == (buffer.type, buffer.padding)
    padded = {number for number in lives if made.buffers[number].padding is not None}
    for one in lives:
        start = plan.offsets_bytes[one]
        assert start is not None
        assert start % ALIGNMENT_BYTES == 0
        assert start + extent_bytes(made, one) + SLACK_BYTES <= plan.arena_bytes
        for other in lives:
            if one < other and (lives[one].overlaps(lives[other]) or (one in padded) != (other in padded)):
                begin = plan.offsets_bytes[other]
                assert begin is not None
                assert start + extent_bytes(made, one) <= begin or begin + extent_bytes(made, other) <= start


WHOLE = views.whole(0, TensorType((2, 3, 4), "f32"))
NUMBERS = np.arange(24)


def elements(view: View) -> np.ndarray:
    strides = tuple(8 * each for each in view.strides)
    return np.lib.stride_tricks.as_strided(NUMBERS[view.offset :], view.type.shape, strides)


def test_a_whole_tensor_is_contiguous() -> None:
    assert WHOLE.strides == (12, 4, 1)
    assert views.is_contiguous(WHOLE)
    assert views.is_contiguous(views.whole(0, TensorType((), "f32")))


def test_a_slice_and_a_transposed_view_have_the_elements_of_numpys() -> None:
    cut, numbers = views.sliced(WHOLE, (1, 0, 1), (1, 2, 2), (1, 2, 2)), NUMBERS.reshape(2, 3, 4)
    np.testing.assert_array_equal(elements(cut), numbers[1:2, 0:3:2, 1:4:2])
    assert not views.is_contiguous(cut)
    np.testing.assert_array_equal(elements(views.without(cut, (0,))), elements(cut)[0])
    np.testing.assert_array_equal(elements(views.permuted(WHOLE, (1, 0, 2))), numbers.transpose(1, 0, 2))


def test_dimensions_are_split_and_merged() -> None:
    split = views.expanded(WHOLE, (2, 3, 2, 2), [[0], [1], [2, 3]])
    np.testing.assert_array_equal(elements(split), NUMBERS.reshape(2, 3, 2, 2))
    assert views.collapsed(split, [[0], [1], [2, 3]]) == WHOLE
    flat = views.collapsed(WHOLE, [[0, 1, 2]])
    assert flat == views.whole(0, TensorType((24,), "f32"))
    cut = views.sliced(WHOLE, (0, 0, 0), (2, 2, 3), (1, 1, 1))  # with gaps
    assert [views.collapsed(cut, each) for each in ([[0, 1], [2]], [[0], [1, 2]])] == [None, None]


def test_dimensions_of_one_element_never_hinder() -> None:
    one = View(0, 0, TensorType((1, 3, 1, 4), "f32"), (99, 4, 77, 1))
    assert views.is_contiguous(one)
    assert views.collapsed(one, [[0, 1, 2, 3]]) == views.whole(0, TensorType((12,), "f32"))
    scalar = views.expanded(views.whole(0, TensorType((), "f32")), (1, 1), [])
    assert scalar.type.shape == (1, 1)
