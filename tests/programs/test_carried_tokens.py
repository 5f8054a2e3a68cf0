"""Tokens that loops and branches carry, and regions of the async dialect, mean what their order says."""

import numpy as np
import pytest

from tests.programs.payload_runs import BUFFER, A, B, ended, launched, payload
from tuner.core.errors import CandidateError
from tuner.programs.request import FORMS, DeviceOptions

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.streams.async_ops")

TOKEN = "!gpu.async.token"
VALUE = f"!async.value<{BUFFER}>"


def behind(name: str, token: str, kernel: str, *names: str) -> str:
    made = launched(kernel, *names).replace("gpu.launch_func", f"gpu.launch_func async [%{token}]")
    return f"%{name} = {made}"


@pytest.mark.drawn(2)
@pytest.mark.parametrize("form", FORMS)
def test_a_loop_carries_a_token(form: str) -> None:
    text = payload(
        f"%d = gpu.alloc () : {BUFFER}", f"gpu.memcpy %d, %a : {BUFFER}, {BUFFER}", "%t0 = gpu.wait async",
        f"%t = scf.for %i = %c0 to %c3 step %c1 iter_args(%p = %t0) -> ({TOKEN}) {{",
        behind("u", "p", "inc", "d"), behind("v", "u", "inc", "d"), f"scf.yield %v : {TOKEN}", "}",
        f"%w = gpu.memcpy async [%t] %b, %d : {BUFFER}, {BUFFER}", "gpu.wait [%w]",
    )  # fmt: skip
    found = ended(text, A, B, options=DeviceOptions(form=form))  # type: ignore[arg-type] # one of its words
    np.testing.assert_array_equal(found[1], A + 6)


@pytest.mark.parametrize("flag", [True, False])
def test_a_branch_hands_on_a_token(flag: bool) -> None:
    text = payload(
        "%t0 = gpu.wait async", f"%t = scf.if %flag -> ({TOKEN}) {{", behind("u", "t0", "inc", "a"),
        f"scf.yield %u : {TOKEN}", "} else {", f"scf.yield %t0 : {TOKEN}", "}",
        behind("v", "t", "add", "a", "b", "b"), "gpu.wait [%v]", arguments="%flag: i1",
    )  # fmt: skip
    np.testing.assert_array_equal(ended(text, A, B, flag)[1], A + B + flag)


def test_regions_of_the_async_dialect_hand_on_memory_and_wait_for_one_another() -> None:
    text = payload(
        f"%t0, %f0 = async.execute -> {VALUE} {{", f"%d = gpu.alloc () : {BUFFER}",
        f"gpu.memcpy %d, %a : {BUFFER}, {BUFFER}", f"async.yield %d : {BUFFER}", "}",
        f"%t1, %f1 = async.execute [%t0] (%f0 as %x : {VALUE}) -> {VALUE} {{",
        launched("inc", "x"), f"async.yield %x : {BUFFER}", "}",
        "%t2 = async.execute [%t1] {", launched("inc", "b"), "async.yield", "}",
        "async.await %t2 : !async.token", f"%y = async.await %f1 : {VALUE}",
        launched("add", "y", "b", "b"), f"gpu.dealloc %y : {BUFFER}",
    )  # fmt: skip
    np.testing.assert_array_equal(ended(text, A, B)[1], A + 1 + B + 1)


def test_groups_of_the_async_dialect_are_refused_by_name() -> None:
    text = payload(
        "%g = async.create_group %c1 : !async.group", "%t = async.execute {", "async.yield", "}",
        "%n = async.add_to_group %t, %g : !async.token", "async.await_all %g",
    )  # fmt: skip
    with pytest.raises(
        CandidateError, match=r"^async\.add_to_group at line .*allowed async\.execute, async\.await"
    ):
        ended(text, A, B)
