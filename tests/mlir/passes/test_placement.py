from hypothesis import given
from hypothesis import strategies as st

from tuner.mlir.passes.placement import Extent, align, place, total_bytes

EXTENT = st.builds(Extent, st.integers(0, 5000), st.sampled_from((1, 16, 128, 1024)))
EXTENTS = st.lists(EXTENT, max_size=7).map(tuple)
PAIRS = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)))


@given(EXTENTS, PAIRS, st.integers(0, 3000))
def test_buffers_that_live_together_share_no_byte(
    extents: tuple[Extent, ...], pairs: set[tuple[int, int]], start: int
) -> None:
    def overlap(one: int, other: int) -> bool:
        return (one, other) in pairs or (other, one) in pairs

    offsets = place(extents, overlap, start)
    for one, extent in enumerate(extents):
        assert offsets[one] >= start
        assert offsets[one] % extent.alignment_bytes == 0
        for other in range(one):
            apart = offsets[other] + extents[other].bytes <= offsets[one]
            apart = apart or offsets[one] + extent.bytes <= offsets[other]
            assert apart or not overlap(one, other)


@given(EXTENTS)
def test_buffers_that_never_live_together_take_the_room_of_the_largest(extents: tuple[Extent, ...]) -> None:
    offsets = place(extents, lambda one, other: False)
    assert set(offsets) <= {0}
    assert total_bytes(extents, offsets) == max((extent.bytes for extent in extents), default=0)


@given(EXTENTS)
def test_buffers_that_all_live_together_take_no_more_than_all_of_them_padded(
    extents: tuple[Extent, ...],
) -> None:
    offsets = place(extents, lambda one, other: True)
    padded = sum(extent.bytes + extent.alignment_bytes - 1 for extent in extents)
    assert sum(extent.bytes for extent in extents) <= total_bytes(extents, offsets) <= padded


def test_a_buffer_fills_a_gap() -> None:
    # 0 and 1 conflict with 2, not with one another; 3 conflicts with 0 only and fits beside it
    pairs = {(0, 2), (1, 2), (0, 3)}
    extents = (Extent(1024, 128), Extent(512, 128), Extent(2048, 128), Extent(100, 128))
    offsets = place(extents, lambda one, other: (min(one, other), max(one, other)) in pairs)
    assert offsets == (2048, 2048, 0, 0)


def test_alignment_rounds_up() -> None:
    assert [align(offset, 128) for offset in (0, 1, 128, 129)] == [0, 128, 128, 256]
