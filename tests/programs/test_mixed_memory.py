"""Explicit device memory beside the host's: copies are inserted where the program's meaning is clear."""

import numpy as np
import pytest

from tests.programs.payload_runs import BUFFER, A, B, ended, payload, trace_of
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.programs.request import FORMS, DeviceOptions

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.explicit_memory")


@pytest.mark.drawn(2)
@pytest.mark.parametrize("form", FORMS)
def test_host_arguments_next_to_device_memory_are_copied(form: str) -> None:
    text = payload(text_beside(__file__, "host_arguments_next_to_device_memory_are_copied"))
    found = ended(text, A, B, options=DeviceOptions(form=form))  # type: ignore[arg-type] # one of its words
    np.testing.assert_array_equal(found[0], A + B)


def test_the_host_loads_and_stores_what_the_device_holds() -> None:
    text = payload(text_beside(__file__, "the_host_loads_and_stores_what_the_device_holds"))
    first, second = ended(text, A, B)
    assert second[0] == A[3] + 1
    np.testing.assert_array_equal(first[2:], A[2:] + 2)
    assert first[1] == 2


def test_what_the_device_holds_is_printed_and_returned() -> None:
    text = payload(text_beside(__file__, "what_the_device_holds_is_printed_and_returned"), results=BUFFER)
    np.testing.assert_array_equal(ended(text, A, B)[0], A + 1)


def test_shared_memory_stays_where_both_reach_it_next_to_copied_arguments() -> None:
    text = payload(text_beside(__file__, "shared_memory_stays_where_both_reach_it_next_to_copied_arguments"))
    assert ended(text, A, B)[0][0] == A[3] + B[3]
    assert [line for line in trace_of(text, A, B) if "copy" in line] == ["copy 64 to d0 from host on s0"]


def test_a_fill_of_host_memory_is_done() -> None:
    text = payload(text_beside(__file__, "a_fill_of_host_memory_is_done"))
    first, second = ended(text, A, B)
    np.testing.assert_array_equal(first, A + 1)
    np.testing.assert_array_equal(second, np.ones_like(B))


def test_memory_of_a_stream_that_the_host_reads_is_copied() -> None:
    text = payload(text_beside(__file__, "memory_of_a_stream_that_the_host_reads_is_copied"))
    assert ended(text, A, B)[1][0] == A[3]


def test_a_program_that_copies_for_itself_stays_as_it_is() -> None:
    text = payload(text_beside(__file__, "a_program_that_copies_for_itself_stays_as_it_is"))
    calls = [line.split()[0] for line in trace_of(text, A, B)]
    assert calls == ["allocate", "copy", "launch", "copy", "free", "synchronize"]


def test_a_loop_over_host_and_device_memory() -> None:
    text = payload(text_beside(__file__, "a_loop_over_host_and_device_memory"))
    ended(text, A, B)


def test_shared_memory_that_is_exchanged_for_other_memory_is_refused_by_name() -> None:
    text = payload(
        text_beside(__file__, "shared_memory_that_is_exchanged_for_other_memory_is_refused_by_name"),
        arguments="%flag: i1",
    )
    found = "gpu.alloc at .*: found shared memory that control flow exchanges for other memory, allowed one"
    with pytest.raises(CandidateError, match=found):
        ended(text, A, B, True)
