from hypothesis import given
from hypothesis import strategies as st

from tuner.mlir.gpu.shared_memory import AllocationRequest, align, first_fit_offsets, total_bytes

REQUEST = st.builds(AllocationRequest, st.integers(0, 5000), st.sampled_from((1, 16, 128, 1024)))
REQUESTS = st.lists(REQUEST, max_size=7).map(tuple)
PAIRS = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)))


@given(REQUESTS, PAIRS, st.integers(0, 3000))
def test_buffers_that_live_together_share_no_byte(
    requests: tuple[AllocationRequest, ...], pairs: set[tuple[int, int]], start: int
) -> None:
    def overlap(one: int, other: int) -> bool:
        return (one, other) in pairs or (other, one) in pairs

    offsets = first_fit_offsets(requests, overlap, start)
    for one, request in enumerate(requests):
        assert offsets[one] >= start
        assert offsets[one] % request.alignment_bytes == 0
        for other in range(one):
            apart = offsets[other] + requests[other].bytes <= offsets[one]
            apart = apart or offsets[one] + request.bytes <= offsets[other]
            assert apart or not overlap(one, other)


@given(REQUESTS)
def test_buffers_that_never_live_together_take_the_package_of_the_largest(
    requests: tuple[AllocationRequest, ...],
) -> None:
    offsets = first_fit_offsets(requests, lambda one, other: False)
    assert set(offsets) <= {0}
    assert total_bytes(requests, offsets) == max((request.bytes for request in requests), default=0)


@given(REQUESTS)
def test_buffers_that_all_live_together_take_no_more_than_all_of_them_padded(
    requests: tuple[AllocationRequest, ...],
) -> None:
    offsets = first_fit_offsets(requests, lambda one, other: True)
    padded = sum(request.bytes + request.alignment_bytes - 1 for request in requests)
    assert sum(request.bytes for request in requests) <= total_bytes(requests, offsets) <= padded


def test_a_buffer_fills_a_gap() -> None:
    # 0 and 1 conflict with 2, not with one another; 3 conflicts with 0 only and fits beside it
    pairs = {(0, 2), (1, 2), (0, 3)}
    requests = tuple(AllocationRequest(size, 128) for size in (1024, 512, 2048, 100))
    offsets = first_fit_offsets(requests, lambda one, other: (min(one, other), max(one, other)) in pairs)
    assert offsets == (2048, 2048, 0, 0)


def test_alignment_rounds_up() -> None:
    assert [align(offset, 128) for offset in (0, 1, 128, 129)] == [0, 128, 128, 256]
