"""Explicit device memory beside the host's: copies are inserted where the program's meaning is clear."""

import numpy as np
import pytest

from tests.programs.payload_runs import BUFFER, A, B, ended, launched, payload, trace_of
from tuner.core.errors import CandidateError
from tuner.programs.request import FORMS, DeviceOptions

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.explicit_memory")

ON_DEVICE = f"gpu.alloc () : {BUFFER}"
SHARED = f"gpu.alloc host_shared () : {BUFFER}"
S = "!gpux.StreamType"


def copied(target: str, source: str) -> str:
    return f"gpu.memcpy %{target}, %{source} : {BUFFER}, {BUFFER}"


@pytest.mark.drawn(2)
@pytest.mark.parametrize("form", FORMS)
def test_host_arguments_next_to_device_memory_are_copied(form: str) -> None:
    text = payload(
        f"%d = {ON_DEVICE}", copied("d", "a"), launched("add", "d", "b", "d"), copied("a", "d"),
        f"gpu.dealloc %d : {BUFFER}",
    )  # fmt: skip
    found = ended(text, A, B, options=DeviceOptions(form=form))  # type: ignore[arg-type] # one of its words
    np.testing.assert_array_equal(found[0], A + B)


def test_the_host_loads_and_stores_what_the_device_holds() -> None:
    text = payload(
        f"%d = {ON_DEVICE}", copied("d", "a"), launched("inc", "d"),
        f"%x = memref.load %d[%c3] : {BUFFER}", f"memref.store %x, %b[%c0] : {BUFFER}",
        f"memref.store %one, %d[%c1] : {BUFFER}", launched("inc", "d"),
        f"memref.copy %d, %a : {BUFFER} to {BUFFER}", f"gpu.dealloc %d : {BUFFER}",
    )  # fmt: skip
    first, second = ended(text, A, B)
    assert second[0] == A[3] + 1
    np.testing.assert_array_equal(first[2:], A[2:] + 2)
    assert first[1] == 2


def test_what_the_device_holds_is_printed_and_returned() -> None:
    text = payload(
        f"%d = {ON_DEVICE}", f"memref.copy %a, %d : {BUFFER} to {BUFFER}", launched("inc", "d"),
        f"%u = memref.cast %d : {BUFFER} to memref<*xf32>",
        "call @printMemrefF32(%u) : (memref<*xf32>) -> ()",
        f"return %d : {BUFFER}", results=BUFFER,
    )  # fmt: skip
    np.testing.assert_array_equal(ended(text, A, B)[0], A + 1)


def test_shared_memory_stays_where_both_reach_it_next_to_copied_arguments() -> None:
    text = payload(
        f"%s = {SHARED}", f"memref.copy %a, %s : {BUFFER} to {BUFFER}", launched("add", "s", "b", "s"),
        f"%x = memref.load %s[%c3] : {BUFFER}", f"memref.store %x, %a[%c0] : {BUFFER}",
        f"gpu.dealloc %s : {BUFFER}",
    )  # fmt: skip
    assert ended(text, A, B)[0][0] == A[3] + B[3]
    assert [line for line in trace_of(text, A, B) if "copy" in line] == ["copy 64 to d0 from host on s0"]


def test_a_fill_of_host_memory_is_done() -> None:
    text = payload(
        f"%d = {ON_DEVICE}", copied("d", "a"), f"gpu.memset %b, %one : {BUFFER}, f32",
        launched("add", "d", "b", "d"), copied("a", "d"), f"gpu.dealloc %d : {BUFFER}",
    )  # fmt: skip
    first, second = ended(text, A, B)
    np.testing.assert_array_equal(first, A + 1)
    np.testing.assert_array_equal(second, np.ones_like(B))


def test_memory_of_a_stream_that_the_host_reads_is_copied() -> None:
    text = payload(
        f'%s = "gpux.create_stream"() : () -> {S}', f'%d = "gpux.alloc"(%s) : ({S}) -> {BUFFER}',
        f'"gpux.memcpy"(%s, %d, %a) : ({S}, {BUFFER}, {BUFFER}) -> ()',
        f'%x = memref.load %d[%c3] : {BUFFER}', f"memref.store %x, %b[%c0] : {BUFFER}",
        f'"gpux.dealloc"(%s, %d) : ({S}, {BUFFER}) -> ()', f'"gpux.destroy_stream"(%s) : ({S}) -> ()',
    )  # fmt: skip
    assert ended(text, A, B)[1][0] == A[3]


def test_a_program_that_copies_for_itself_stays_as_it_is() -> None:
    text = payload(
        f"%d = {ON_DEVICE}", copied("d", "a"), launched("inc", "d"), copied("b", "d"),
        f"gpu.dealloc %d : {BUFFER}",
    )  # fmt: skip
    calls = [line.split()[0] for line in trace_of(text, A, B)]
    assert calls == ["allocate", "copy", "launch", "copy", "free", "synchronize"]


def test_a_loop_over_host_and_device_memory() -> None:
    text = payload(
        f"%d = {ON_DEVICE}", copied("d", "a"), "scf.for %i = %c0 to %c3 step %c1 {",
        launched("add", "d", "b", "d"), f"%x = memref.load %d[%i] : {BUFFER}",
        f"memref.store %x, %b[%i] : {BUFFER}", "}", copied("a", "d"), f"gpu.dealloc %d : {BUFFER}",
    )  # fmt: skip
    ended(text, A, B)


def test_shared_memory_that_is_exchanged_for_other_memory_is_refused_by_name() -> None:
    text = payload(
        f"%s = {SHARED}", f"%r = arith.select %flag, %s, %a : {BUFFER}", launched("inc", "r"),
        f"gpu.dealloc %s : {BUFFER}", arguments="%flag: i1",
    )  # fmt: skip
    found = "gpu.alloc at .*: found shared memory that control flow exchanges for other memory, allowed one"
    with pytest.raises(CandidateError, match=found):
        ended(text, A, B, True)
