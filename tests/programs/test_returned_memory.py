"""Memory that programs return, free themselves, or leave to us: no leak, no double free, no wrong owner."""

import numpy as np
import pytest

from tests.programs.payload_runs import BUFFER, A, B, ended, launched, payload
from tuner.core.errors import CandidateError

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.deallocation")

ALLOC = f"memref.alloc() : {BUFFER}"
SHARED = f"gpu.alloc host_shared () : {BUFFER}"


def asynchronous(token: str, after: str, kernel: str, *names: str) -> str:
    return (
        launched(kernel, *names)
        .replace("launch_func", f"launch_func async [{after}]")
        .replace("gpu.launch", f"{token} = gpu.launch")
    )


def test_memory_that_a_kernel_fills_is_returned() -> None:
    text = payload(f"%r = {ALLOC}", launched("twice", "a", "r"), f"return %r : {BUFFER}", results=BUFFER)
    np.testing.assert_array_equal(ended(text, A, B)[0], 2 * A)


def test_memory_that_is_neither_freed_nor_returned_is_freed() -> None:
    text = payload(
        f"%t = {ALLOC}", launched("twice", "a", "t"), f"%r = {ALLOC}", launched("twice", "t", "r"),
        f"return %r : {BUFFER}", results=BUFFER,
    )  # fmt: skip
    np.testing.assert_array_equal(ended(text, A, B)[0], 4 * A)


def test_what_the_author_frees_is_freed_once_next_to_what_he_leaves() -> None:
    text = payload(
        f"%t = {ALLOC}", f"%u = {ALLOC}", launched("twice", "a", "t"), launched("twice", "t", "u"),
        launched("inc", "u"), f"memref.copy %u, %b : {BUFFER} to {BUFFER}", f"memref.dealloc %t : {BUFFER}",
    )  # fmt: skip
    np.testing.assert_array_equal(ended(text, A, B)[1], 4 * A + 1)


def test_shared_memory_is_returned_after_a_wait() -> None:
    text = payload(
        *(f"%s = {SHARED}", f"%r = {SHARED}", "%t0 = gpu.wait async"),
        f"memref.copy %a, %s : {BUFFER} to {BUFFER}",
        asynchronous("%t1", "%t0", "inc", "s"),
        asynchronous("%t2", "%t1", "twice", "s", "r"),
        *("gpu.wait [%t2]", f"return %r : {BUFFER}"),
        results=BUFFER,
    )
    np.testing.assert_array_equal(ended(text, A, B)[0], 2 * (A + 1))


def test_memory_of_asynchronous_work_is_freed_after_the_wait() -> None:
    text = payload(
        *("%t0 = gpu.wait async", f"%d, %t1 = gpu.alloc async [%t0] () : {BUFFER}"),
        f"%t2 = gpu.memcpy async [%t1] %d, %a : {BUFFER}, {BUFFER}",
        asynchronous("%t3", "%t2", "inc", "d"),
        f"%t4 = gpu.memcpy async [%t3] %b, %d : {BUFFER}, {BUFFER}",
        "gpu.wait [%t4]",
    )
    np.testing.assert_array_equal(ended(text, A, B)[1], A + 1)


@pytest.mark.parametrize("flag", [True, False])
def test_memory_of_either_branch_is_returned(flag: bool) -> None:
    text = payload(
        f"%r = scf.if %flag -> ({BUFFER}) {{",
        f"%x = {ALLOC}", launched("twice", "a", "x"), f"scf.yield %x : {BUFFER}", "} else {",
        f"%y = {ALLOC}", launched("twice", "b", "y"), f"scf.yield %y : {BUFFER}", "}",
        f"return %r : {BUFFER}", arguments="%flag: i1", results=BUFFER,
    )  # fmt: skip
    np.testing.assert_array_equal(ended(text, A, B, flag)[0], 2 * (A if flag else B))


@pytest.mark.parametrize("flag", [True, False])
def test_an_argument_or_own_memory_is_returned(flag: bool) -> None:
    text = payload(
        f"%x = {ALLOC}", launched("twice", "a", "x"), f"%r = arith.select %flag, %x, %b : {BUFFER}",
        f"return %r : {BUFFER}", arguments="%flag: i1", results=BUFFER,
    )  # fmt: skip
    np.testing.assert_array_equal(ended(text, A, B, flag)[0], 2 * A if flag else B)


def test_the_same_memory_and_a_view_of_it_are_returned_once_each() -> None:
    part = "memref<8xf32, strided<[1], offset: 8>>"
    text = payload(
        f"%x = {ALLOC}", launched("twice", "a", "x"),
        f"%v = memref.subview %x[8] [8] [1] : {BUFFER} to {part}",
        f"return %x, %v, %a : {BUFFER}, {part}, {BUFFER}", results=f"{BUFFER}, {part}, {BUFFER}",
    )  # fmt: skip
    whole, view, same = ended(text, A, B)[:3]
    np.testing.assert_array_equal(whole[8:], view)
    np.testing.assert_array_equal(same, A)


def test_memory_of_an_iteration_is_freed_in_it() -> None:
    text = payload(
        "scf.for %i = %c0 to %c3 step %c1 {",
        f"%x = {ALLOC}", launched("twice", "a", "x"), launched("add", "x", "b", "b"), "}",
    )  # fmt: skip
    np.testing.assert_array_equal(ended(text, A, B)[1], B + 6 * A)


def test_memory_that_leaves_an_iteration_is_refused_by_name() -> None:
    text = payload(
        f"%r = scf.for %i = %c0 to %c3 step %c1 iter_args(%p = %b) -> ({BUFFER}) {{",
        f"%x = {ALLOC}", launched("twice", "p", "x"), f"scf.yield %x : {BUFFER}", "}",
        f"memref.copy %r, %a : {BUFFER} to {BUFFER}",
    )  # fmt: skip
    found = "memref.alloc at .*: found memory that leaves scf.for and that nobody frees, allowed memory that"
    with pytest.raises(CandidateError, match=found):
        ended(text, A, B)
