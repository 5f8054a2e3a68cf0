"""Times of kernels: what overlaps, what is busy, and which round is typical."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.programs import KernelTime, ProgramTimes, busy
from tuner.programs.execution import typical

SPANS = st.tuples(st.integers(0, 50), st.integers(0, 20)).map(
    lambda pair: KernelTime("k", float(pair[0]), float(pair[0] + pair[1]))
)


def times(*spans: tuple[float, float], streams: int = 2) -> ProgramTimes:
    kernels = tuple(KernelTime(f"k{number}", *span) for number, span in enumerate(spans))
    return ProgramTimes(1.0, kernels, streams)


def test_kernels_one_after_another_do_not_overlap() -> None:
    assert times((0, 1), (1, 3)).overlap == 1.0
    assert times((0, 1), (2, 4)).overlap == 1.0  # a gap is no overlap


def test_kernels_at_once_overlap_by_what_they_share() -> None:
    assert times((0, 2), (0, 2)).overlap == 2.0
    assert times((0, 2), (1, 3)).overlap == pytest.approx(4 / 3)


def test_two_streams_without_overlap_are_serialized() -> None:
    assert times((0, 1), (1, 2)).is_serialized
    assert not times((0, 2), (1, 3)).is_serialized


def test_one_stream_or_one_kernel_is_not_called_serialized() -> None:
    assert not times((0, 1), (1, 2), streams=1).is_serialized
    assert not times((0, 1)).is_serialized


def test_nothing_that_ran_has_no_overlap() -> None:
    assert times().overlap is None
    assert ProgramTimes(1.0).kernel_s == 0.0


def test_a_kernel_that_stops_before_it_starts_is_refused() -> None:
    with pytest.raises(ValueError, match="k: found stop 1 s before start 2 s"):
        KernelTime("k", 2, 1)


@given(st.lists(SPANS, max_size=8))
def test_busy_time_is_the_measure_of_the_union(spans: list[KernelTime]) -> None:
    covered = {
        second for span in spans for second in range(int(span.start_s), int(span.stop_s))
    }  # whole seconds, so that counting them is exact
    assert busy(tuple(spans)) == len(covered)


def kernels(*seconds: float) -> tuple[KernelTime, ...]:
    return tuple(KernelTime("k", 0.0, each) for each in seconds)


def test_the_round_of_the_median_sum_is_typical() -> None:
    rounds = [kernels(1.0, 2.0), kernels(9.0), kernels(0.5), kernels(2.0, 2.0), kernels(0.1)]
    assert typical(rounds) == kernels(1.0, 2.0)


def test_of_two_in_the_middle_the_first_is_taken() -> None:
    assert typical([kernels(1.0), kernels(2.0)]) == kernels(1.0)
