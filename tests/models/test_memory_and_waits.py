"""Memory of programs is copied where it must be and freed once; the order of tokens and streams is kept."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.models.file_check import cases, filled
from tests.models.lowering.device_programs import BUFFER, KERNELS
from tests.models.payload_runs import SIMULATOR, A, B, ended, launched, payload, trace_of
from tests.support.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.device import STREAM_ORDERS
from tuner.core.device_programs import FORMS, DeviceOptions
from tuner.core.errors import CandidateError, DeviceError
from tuner.gpu.lowering import device as device_lowering
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.run.device_function import DeviceFunction

pytestmark = pytest.mark.mlir


def named(name: str, **options: str) -> str:
    text = text_beside(__file__, name)
    return payload(text, **{"results": BUFFER if "return" in text else ""} | options)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "place", "expected"),
    [("host_arguments_next_to_device_memory_are_copied", 0, A + B), ("a_loop_carries_a_token", 1, A + 6)],
)
def test_each_form_gives_the_same(form: Any, name: str, place: int, expected: Any) -> None:
    found = ended(named(name), A, B, options=DeviceOptions(form=form))
    np.testing.assert_array_equal(found[place], expected)


def test_shared_memory_and_a_program_that_copies_for_itself_stay_as_they_are() -> None:
    text = named("shared_memory_stays_where_both_reach_it_next_to_copied_arguments")
    assert ended(text, A, B)[0][0] == A[3] + B[3]
    assert [line for line in trace_of(text, A, B) if "copy" in line] == ["copy 64 to d0 from host on s0"]
    text = named("shared_and_registered_memory_are_in_reach_of_both")
    np.testing.assert_array_equal(ended(text, A, B)[1], A + B)
    text = named("a_program_that_copies_for_itself_stays_as_it_is")
    calls = [line.split()[0] for line in trace_of(text, A, B)]
    assert calls == ["allocate", "copy", "launch", "copy", "free", "synchronize"]


@pytest.mark.parametrize(
    ("name", "place", "expected"),
    [
        ("the_host_loads_and_stores_what_the_device_holds", 0, [A[0] + 2, 2, *(A[2:] + 2)]),
        ("the_host_loads_and_stores_what_the_device_holds", 1, [A[3] + 1, *B[1:]]),
        ("what_the_device_holds_is_printed_and_returned", 0, A + 1),
        ("a_fill_of_host_memory_is_done", 0, A + 1),
        ("a_fill_of_host_memory_is_done", 1, np.ones_like(B)),
        ("memory_of_a_stream_that_the_host_reads_is_copied", 1, [A[3], *B[1:]]),
        ("a_loop_over_host_and_device_memory", 0, None),
        ("memory_that_a_kernel_fills_is_returned", 0, 2 * A),
        ("memory_that_is_neither_freed_nor_returned_is_freed", 0, 4 * A),
        ("what_the_author_frees_is_freed_once_next_to_what_he_leaves", 1, 4 * A + 1),
        ("shared_memory_is_returned_after_a_wait", 0, 2 * (A + 1)),
        ("memory_of_asynchronous_work_is_freed_after_the_wait", 1, A + 1),
        ("memory_of_an_iteration_is_freed_in_it", 1, B + 6 * A),
    ],
)
def test_numbers_are_right_and_nothing_is_left(name: str, place: int, expected: Any) -> None:
    found = ended(named(name), A, B)
    assert expected is None or np.array_equal(found[place], expected)


@pytest.mark.parametrize(
    ("name", "flag", "place", "expected"),
    [
        ("memory_of_either_branch_is_returned", True, 0, 2 * A),
        ("memory_of_either_branch_is_returned", False, 0, 2 * B),
        ("an_argument_or_own_memory_is_returned", True, 0, 2 * A),
        ("an_argument_or_own_memory_is_returned", False, 0, B),
        ("a_branch_hands_on_a_token", True, 1, A + B + 1),
        ("a_branch_hands_on_a_token", False, 1, A + B),
    ],
)
def test_control_flow_decides_what_is_returned_or_done(
    name: str, flag: bool, place: int, expected: Any
) -> None:
    found = ended(named(name, arguments="%flag: i1"), A, B, flag)
    np.testing.assert_array_equal(found[place], expected)


def test_the_same_memory_and_a_view_of_it_are_returned_once_each() -> None:
    part = "memref<8xf32, strided<[1], offset: 8>>"
    results = f"{BUFFER}, {part}, {BUFFER}"
    text = named("the_same_memory_and_a_view_of_it_are_returned_once_each", results=results)
    whole, view, same = ended(text, A, B)[:3]
    np.testing.assert_array_equal(whole[8:], view)
    np.testing.assert_array_equal(same, A)


@pytest.mark.parametrize(("options", "text"), cases(text_beside(__file__, "WITHOUT_ONE_OWNER")))
def test_memory_without_one_owner_is_refused_by_name(options: dict[str, str], text: str) -> None:
    with pytest.raises(CandidateError, match=options["refused"]):
        ended(payload(text, arguments="%flag: i1"), A, B, True)


def uploads(text: str) -> int:
    ended(text, A, B)
    return sum(line.startswith("copy") and "from host" in line for line in trace_of(text, A, B))


def test_an_output_is_uploaded_where_a_kernel_leaves_something_of_it_equal_views_once() -> None:
    assert uploads(payload(launched("twice", "a", "b"))) == 1
    assert uploads(payload(launched("twice", "a", "b").replace("threads in (%c16", "threads in (%c3"))) == 2
    assert uploads(payload(launched("inc", "b"))) == 1
    first, second = (filled(__file__, "READ_OF_A_VIEW", view=name) for name in "vw")
    store = f"memref.store %one, %a[%c0] : {BUFFER}"
    of_b = 1  # of which kernels write a part
    assert uploads(payload(first, second)) == of_b + 1
    assert uploads(payload(first, store, second)) == of_b + 2


@pytest.mark.slow
def test_an_output_that_a_fill_or_a_map_overwrites_is_not_uploaded() -> None:
    assert uploads(payload(f"linalg.fill ins(%one : f32) outs(%b : {BUFFER})", launched("inc", "b"))) == 0
    assert uploads(payload(f"linalg.abs ins(%a : {BUFFER}) outs(%b : {BUFFER})")) == 1


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("options", "access"), cases(text_beside(__file__, "FAULTS")))
def test_memory_out_of_reach_is_a_fault(
    options: dict[str, str], access: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_lowering, "mixes_memory", lambda *_, **__: False)
    text = payload(filled(__file__, "OUT_OF_REACH", access=access))
    code, written = compiler_of(SIMULATOR).compile(text, "main", None).code, list[str]()
    for order in STREAM_ORDERS:
        program = DeviceFunction(code, SimulatedDevice("sm_90", order), written.append)
        with pytest.raises(DeviceError, match=options["fault"]):
            program(A.copy(), B.copy())
    assert not written


def in_an_iteration(text: str, *arguments: Any) -> dict[str, int]:
    """Returns how many calls of each kind one more iteration makes; their number is the last argument."""
    ended(text, *arguments, 3)
    few, many = (counted(trace_of(text, *arguments, count)) for count in (2, 3))
    return {kind: many[kind] - few[kind] for kind in ("launch", "record", "wait", "synchronize", "free")}


def counted(trace: list[str]) -> Counter[str]:
    return Counter(line.split()[0] for line in trace)


def test_chains_of_a_loop_have_two_streams() -> None:
    launches = (launched("inc", name) for name in "abab")
    text = payload("scf.for %i = %c0 to %n step %c1 {", *launches, "}", arguments="%n: index")
    assert in_an_iteration(text, A, B) == {"launch": 4, "record": 0, "wait": 0, "synchronize": 0, "free": 0}
    streams = {line.split()[-1] for line in trace_of(text, A, B, 3) if line.startswith("launch")}
    assert len(streams) == 2


@pytest.mark.slow
def test_two_matmuls_of_each_iteration_go_on_without_events() -> None:
    rng = np.random.default_rng(0)
    arrays = tuple(rng.integers(-3, 4, (16, 16)).astype(np.float32) for _ in range(4))
    calls = in_an_iteration(text_beside(__file__, "TWO_MATMULS"), *arrays)
    assert (calls["launch"], calls["record"]) == (2, 0)


LOOPS = {  # calls of one more iteration
    "chains_that_the_author_carries_by_tokens_go_on_without_events": {"record": 0, "synchronize": 0},
    "a_dependence_between_chains_is_one_event": {"record": 2, "wait": 2},
    "the_host_waits_in_a_loop_for_what_it_reads_alone": {"synchronize": 1, "record": 0},
    "memory_of_an_iteration_joins_no_chains": {"free": 2, "record": 0},
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_waits_for_what_it_needs_alone(name: str) -> None:
    """Of the dependence: the sum needs both chains, and the second may write again only behind the sum."""
    calls = in_an_iteration(named(name, arguments="%n: index"), A, B)
    assert {call: calls[call] for call in LOOPS[name]} == LOOPS[name]


@pytest.mark.parametrize("free", ["gpux.dealloc %s, %d : memref<16xf32>", ""], ids=["the author's", "ours"])
def test_the_authors_wait_before_a_free_is_kept_and_no_other_is_added(free: str) -> None:
    text = filled(__file__, "FREED_AFTER_A_WAIT", free=free, kernels=KERNELS)
    ended(text, A)
    *program, end_of_call = trace_of(text, A)
    calls = ["allocate", "copy", "launch", "copy", "synchronize", "free"]
    assert [line.split()[0] for line in program] == calls
    assert end_of_call == "synchronize s0"


@pytest.mark.parametrize("form", ["streams", "tokens"])
def test_a_wait_of_tokens_before_a_free_is_one_wait(form: Any) -> None:
    text = named("a_wait_of_tokens_before_a_free_is_one_wait")
    options = DeviceOptions(form=form)
    ended(text, A, B, options=options)
    calls = counted(trace_of(text, A, B, options=options))
    assert (calls["synchronize"], calls["record"], calls["free"]) == (1, 0, 1)


def test_regions_of_the_async_dialect_wait_for_one_another_and_groups_are_refused() -> None:
    text = named("regions_of_the_async_dialect")
    np.testing.assert_array_equal(ended(text, A, B)[1], A + 1 + B + 1)
    refused = r"^async\.add_to_group at line .*allowed async\.execute, async\.await"
    with pytest.raises(CandidateError, match=refused):
        ended(named("groups_of_the_async_dialect_are_refused_by_name"), A, B)
