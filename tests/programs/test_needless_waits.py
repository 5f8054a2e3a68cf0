"""Waits that a program's meaning does not need are not made."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.programs.payload_runs import BUFFER, KERNELS, ONE_BLOCK, A, B, ended, launched, payload, trace_of
from tests.texts import text_beside

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.streams.dependency_graph")


def in_an_iteration(text: str, *arguments: Any) -> dict[str, int]:
    """Returns how many calls of each kind one more iteration makes; their number is the last argument."""
    ended(text, *arguments, 3)
    few, many = (counted(trace_of(text, *arguments, count)) for count in (2, 3))
    return {kind: many[kind] - few[kind] for kind in ("launch", "record", "wait", "synchronize", "free")}


def counted(trace: list[str]) -> Counter[str]:
    return Counter(line.split()[0] for line in trace)


def looped(*lines: str) -> str:
    return payload("scf.for %i = %c0 to %n step %c1 {", *lines, "}", arguments="%n: index")


def test_chains_of_a_loop_go_on_without_events() -> None:
    text = looped(*(launched("inc", name) for name in "abab"))
    calls = in_an_iteration(text, A, B)
    assert (calls["launch"], calls["record"], calls["wait"]) == (4, 0, 0)
    streams = {line.split()[-1] for line in trace_of(text, A, B, 3) if line.startswith("launch")}
    assert len(streams) == 2


@pytest.mark.slow
def test_two_matmuls_of_each_iteration_go_on_without_events() -> None:
    rng = np.random.default_rng(0)
    arrays = tuple(rng.integers(-3, 4, (16, 16)).astype(np.float32) for _ in range(4))
    calls = in_an_iteration(text_beside(__file__, "TWO_MATMULS"), *arrays)
    assert (calls["launch"], calls["record"]) == (2, 0)


def test_chains_that_the_author_carries_by_tokens_go_on_without_events() -> None:
    text = payload(
        text_beside(__file__, "chains_that_the_author_carries_by_tokens_go_on_without_events"),
        arguments="%n: index",
    )
    calls = in_an_iteration(text, A, B)
    assert (calls["record"], calls["synchronize"]) == (0, 0)


@pytest.mark.slow
def test_memory_of_an_iteration_joins_no_chains() -> None:
    """Each chain has a buffer of its own, which is new in every iteration."""
    chains = [
        (f"%d{name} = memref.alloc() : {BUFFER}", launched("twice", name, f"d{name}"),
         launched("add", f"d{name}", name, name), f"memref.dealloc %d{name} : {BUFFER}")
        for name in "ab"
    ]  # fmt: skip
    text = looped(*(line for chain in zip(*chains, strict=True) for line in chain))
    calls = in_an_iteration(text, A, B)
    assert (calls["free"], calls["record"]) == (2, 0)


def test_a_dependence_between_chains_is_one_event() -> None:
    """The sum needs both chains, and the second chain may write again only behind the sum."""
    text = looped(text_beside(__file__, "a_dependence_between_chains_is_one_event"))
    calls = in_an_iteration(text, A, B)
    assert (calls["record"], calls["wait"]) == (2, 2)


def test_the_host_waits_in_a_loop_for_what_it_reads_alone() -> None:
    text = looped(text_beside(__file__, "the_host_waits_in_a_loop_for_what_it_reads_alone"))
    calls = in_an_iteration(text, A, B)
    assert (calls["synchronize"], calls["record"]) == (1, 0)


STREAM = "!gpux.StreamType"
FREE = f"gpux.dealloc %s, %d : {BUFFER}"


@pytest.mark.parametrize("free", [FREE, ""], ids=["the author's", "ours"])
def test_the_authors_wait_before_a_free_is_kept_and_no_other_is_added(free: str) -> None:
    text = f"""module attributes {{gpu.container_module}} {{
      func.func @main(%s: {STREAM}, %a: {BUFFER}) {{
        %c1 = arith.constant 1 : index
        %c16 = arith.constant 16 : index
        %d = gpux.alloc (%s) : {BUFFER}
        gpux.memcpy %s, %d, %a : {BUFFER}, {BUFFER}
        gpux.launch_func %s, @m::@inc {ONE_BLOCK} args(%d : {BUFFER})
        gpux.memcpy %s, %a, %d : {BUFFER}, {BUFFER}
        gpux.wait %s
        {free}
        return
      }}
    {KERNELS}}}"""
    ended(text, A)
    *program, end_of_call = trace_of(text, A)
    assert [line.split()[0] for line in program] == [
        "allocate",
        "copy",
        "launch",
        "copy",
        "synchronize",
        "free",
    ]
    assert end_of_call == "synchronize s0"


@pytest.mark.parametrize("form", ["streams", "tokens"])
def test_a_wait_of_tokens_before_a_free_is_one_wait(form: Any) -> None:
    from tuner.programs.request import DeviceOptions

    text = payload(text_beside(__file__, "a_wait_of_tokens_before_a_free_is_one_wait"))
    options = DeviceOptions(form=form)
    ended(text, A, B, options=options)
    calls = counted(trace_of(text, A, B, options=options))
    assert (calls["synchronize"], calls["record"], calls["free"]) == (1, 0, 1)
