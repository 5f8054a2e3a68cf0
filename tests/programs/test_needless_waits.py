"""Tokens and streams: the order that they say is kept, and waits that it does not need are not made."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.programs.file_check import filled
from tests.programs.payload_runs import BUFFER, KERNELS, ONE_BLOCK, A, B, ended, launched, payload, trace_of
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.programs.request import FORMS, DeviceOptions

pytestmark = pytest.mark.mlir


def in_an_iteration(text: str, *arguments: Any) -> dict[str, int]:
    """Returns how many calls of each kind one more iteration makes; their number is the last argument."""
    ended(text, *arguments, 3)
    few, many = (counted(trace_of(text, *arguments, count)) for count in (2, 3))
    return {kind: many[kind] - few[kind] for kind in ("launch", "record", "wait", "synchronize", "free")}


def counted(trace: list[str]) -> Counter[str]:
    return Counter(line.split()[0] for line in trace)


def looped(*lines: str) -> str:
    return payload("scf.for %i = %c0 to %n step %c1 {", *lines, "}", arguments="%n: index")


def test_chains_of_a_loop_have_two_streams() -> None:
    text = looped(*(launched("inc", name) for name in "abab"))
    assert in_an_iteration(text, A, B) == {"launch": 4, "record": 0, "wait": 0, "synchronize": 0, "free": 0}
    streams = {line.split()[-1] for line in trace_of(text, A, B, 3) if line.startswith("launch")}
    assert len(streams) == 2


@pytest.mark.slow
def test_two_matmuls_of_each_iteration_go_on_without_events() -> None:
    rng = np.random.default_rng(0)
    arrays = tuple(rng.integers(-3, 4, (16, 16)).astype(np.float32) for _ in range(4))
    calls = in_an_iteration(text_beside(__file__, "TWO_MATMULS"), *arrays)
    assert (calls["launch"], calls["record"]) == (2, 0)


# Each chain has a buffer of its own, which is new in every iteration.
CHAINS = [
    *(f"%da = memref.alloc() : {BUFFER}", launched("twice", "a", "da"), launched("add", "da", "a", "a")),
    *(f"memref.dealloc %da : {BUFFER}", f"%db = memref.alloc() : {BUFFER}", launched("twice", "b", "db")),
    *(launched("add", "db", "b", "b"), f"memref.dealloc %db : {BUFFER}"),
]
LOOPS = {  # calls of one more iteration
    "chains_that_the_author_carries_by_tokens_go_on_without_events": {"record": 0, "synchronize": 0},
    "a_dependence_between_chains_is_one_event": {"record": 2, "wait": 2},
    "the_host_waits_in_a_loop_for_what_it_reads_alone": {"synchronize": 1, "record": 0},
    "memory of an iteration joins no chains": {"free": 2, "record": 0},
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_waits_for_what_it_needs_alone(name: str) -> None:
    """Of the dependence: the sum needs both chains, and the second may write again only behind the sum."""
    if "_" not in name:
        text = looped(*CHAINS)
    elif "author" in name:
        text = payload(text_beside(__file__, name), arguments="%n: index")
    else:
        text = looped(text_beside(__file__, name))
    calls = in_an_iteration(text, A, B)
    assert {call: calls[call] for call in LOOPS[name]} == LOOPS[name]


STREAM = "!gpux.StreamType"
FREE = f"gpux.dealloc %s, %d : {BUFFER}"


@pytest.mark.parametrize("free", [FREE, ""], ids=["the author's", "ours"])
def test_the_authors_wait_before_a_free_is_kept_and_no_other_is_added(free: str) -> None:
    parts = {"stream": STREAM, "buffer": BUFFER, "one_block": ONE_BLOCK, "kernels": KERNELS}
    text = filled(__file__, "FREED_AFTER_A_WAIT", free=free, **parts)
    ended(text, A)
    *program, end_of_call = trace_of(text, A)
    calls = ["allocate", "copy", "launch", "copy", "synchronize", "free"]
    assert [line.split()[0] for line in program] == calls
    assert end_of_call == "synchronize s0"


@pytest.mark.parametrize("form", ["streams", "tokens"])
def test_a_wait_of_tokens_before_a_free_is_one_wait(form: Any) -> None:
    text = payload(text_beside(__file__, "a_wait_of_tokens_before_a_free_is_one_wait"))
    options = DeviceOptions(form=form)
    ended(text, A, B, options=options)
    calls = counted(trace_of(text, A, B, options=options))
    assert (calls["synchronize"], calls["record"], calls["free"]) == (1, 0, 1)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("form", FORMS)
def test_a_loop_carries_a_token(form: str) -> None:
    text = payload(text_beside(__file__, "a_loop_carries_a_token"))
    found = ended(text, A, B, options=DeviceOptions(form=form))  # type: ignore[arg-type] # one of its words
    np.testing.assert_array_equal(found[1], A + 6)


@pytest.mark.parametrize("flag", [True, False])
def test_a_branch_hands_on_a_token(flag: bool) -> None:
    text = payload(text_beside(__file__, "a_branch_hands_on_a_token"), arguments="%flag: i1")
    np.testing.assert_array_equal(ended(text, A, B, flag)[1], A + B + flag)


def test_regions_of_the_async_dialect_hand_on_memory_and_wait_for_one_another() -> None:
    text = payload(text_beside(__file__, "regions_of_the_async_dialect"))
    np.testing.assert_array_equal(ended(text, A, B)[1], A + 1 + B + 1)


def test_groups_of_the_async_dialect_are_refused_by_name() -> None:
    text = payload(text_beside(__file__, "groups_of_the_async_dialect_are_refused_by_name"))
    with pytest.raises(
        CandidateError, match=r"^async\.add_to_group at line .*allowed async\.execute, async\.await"
    ):
        ended(text, A, B)
