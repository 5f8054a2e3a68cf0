"""Tokens of GPUX: what order they become, and which are refused."""

import pytest

from tests.programs.lowering.device_programs import KERNELS, host_text
from tuner.core.errors import CandidateError

pytestmark = pytest.mark.mlir

gpux_ops = pytest.importorskip("tuner.programs.streams.gpux_ops")
gpux_tokens = pytest.importorskip("tuner.programs.streams.gpux")
bindings = pytest.importorskip("tuner.mlir.bindings")
interpreter = pytest.importorskip("tuner.mlir.transform")

M = "memref<16xf32>"
COPY = "%t0 = gpux.memcpy async %s, %d, %a : " + f"{M}, {M}"


def lowered(*lines: str, arguments: str = "") -> list[str]:
    """Returns the lines of a function between its constants and its return."""
    text = "\n".join(lines)
    streams = f"%s: !gpux.StreamType, %r: !gpux.StreamType, %a: {M}, %d: {M}, %x: i1{arguments}"
    with interpreter.new_context(), bindings.ir.Location.unknown():
        module = gpux_ops.parse_with_gpux(
            f"""module attributes {{gpu.container_module}} {{
              func.func @main({streams}) {{
                %c0 = arith.constant 0 : index
                %c1 = arith.constant 1 : index
                {text}
                return
              }}
            {KERNELS}}}""",
            "test",
        )
        function = next(op.operation for op in module.body.operations if op.operation.name == "func.func")
        gpux_tokens.lower_tokens(function)
        assert module.operation.verify()
        found = [line.strip() for line in host_text(module).splitlines()]
    return [line.partition(" : ")[0] for line in found if '"gpux.' in line]


def named(lines: list[str]) -> list[str]:
    """Returns the operations alone."""
    return [line.split('"')[1].removeprefix("gpux.") for line in lines]


def test_a_token_of_another_stream_is_an_event_after_its_work() -> None:
    lines = lowered(COPY, f"gpux.memcpy %s, %a, %d : {M}, {M}", f"gpux.dealloc [%t0] %r, %d : {M}")
    assert named(lines) == ["memcpy", "record_event", "memcpy", "wait_event", "dealloc", "destroy_event"]
    assert "(%arg1, %0)" in lines[3]  # before what follows on the first stream is done


def test_a_token_of_the_same_stream_orders_nothing_more() -> None:
    assert named(lowered(COPY, f"%t1 = gpux.dealloc async [%t0] %s, %d : {M}")) == ["memcpy", "dealloc"]


def test_an_event_serves_all_who_take_its_token() -> None:
    lines = lowered(COPY, *[f"gpux.memcpy [%t0] %r, %a, %d : {M}, {M}"] * 2)
    waits = ["wait_event", "memcpy"]
    assert named(lines) == ["memcpy", "record_event", *waits, *waits, "destroy_event"]


def test_a_wait_for_tokens_joins_them_or_holds_the_host() -> None:
    other = f"%t1 = gpux.memcpy async %r, %a, %d : {M}, {M}"
    joined = lowered(COPY, other, "%t2 = gpu.wait async [%t0, %t1]", f"gpux.dealloc [%t2] %s, %d : {M}")
    assert named(joined) == ["memcpy", "memcpy", "record_event", "wait_event", "dealloc", "destroy_event"]
    held = lowered(COPY, other, "gpu.wait [%t0, %t1]")
    assert held[2:] == ['"gpux.wait"(%arg0)', '"gpux.wait"(%arg1)']


def test_a_wait_of_a_stream_with_a_token_is_no_wait_of_the_host() -> None:
    lines = lowered(COPY, "%t1 = gpux.wait async [%t0] %r", f"gpux.dealloc [%t1] %s, %d : {M}")
    event = ["record_event", "wait_event"]
    assert named(lines) == ["memcpy", *event, "destroy_event", *event, "dealloc", "destroy_event"]


def test_a_loop_that_hands_a_token_on_along_one_stream_needs_no_event() -> None:
    loop = (
        "%t1 = scf.for %i = %c0 to %c1 step %c1 iter_args(%t = %t0) -> (!gpu.async.token) {",
        f"%u = gpux.memcpy async [%t] %s, %d, %a : {M}, {M}",
        "scf.yield %u : !gpu.async.token }",
    )
    assert named(lowered(COPY, *loop, f"gpux.dealloc [%t1] %s, %d : {M}")) == ["memcpy", "memcpy", "dealloc"]


def test_a_token_that_control_flow_chooses_is_a_stream_to_wait_for() -> None:
    branch = (
        "%t1 = scf.if %x -> (!gpu.async.token) { scf.yield %t0 : !gpu.async.token } else {",
        f"%u = gpux.memcpy async %r, %d, %a : {M}, {M}",
        "scf.yield %u : !gpu.async.token }",
    )
    lines = lowered(COPY, *branch, f"gpux.dealloc [%t1] %s, %d : {M}")
    assert named(lines) == ["memcpy", "memcpy", "wait_stream", "dealloc"]
    assert lines[2] == '"gpux.wait_stream"(%arg0, %0)'


def test_the_token_of_no_work_is_the_callers_stream() -> None:
    first = (
        "%n = gpu.wait async",
        "%t1 = arith.select %x, %n, %t0 : !gpu.async.token",
    )
    lines = lowered(COPY, *first, f"gpux.dealloc [%t1] %s, %d : {M}")
    assert named(lines) == ["create_stream", "memcpy", "wait_stream", "dealloc"]


@pytest.mark.parametrize(
    ("lines", "arguments", "reason"),
    [
        (
            (f"%t = gpu.memcpy async %d, %a : {M}, {M}", f"gpux.dealloc [%t] %s, %d : {M}"),
            "",
            r"gpu\.memcpy at .*: found a token next to GPUX, allowed those of gpux",
        ),
        (
            (f"gpux.dealloc [%t] %s, %d : {M}",),
            ", %t: !gpu.async.token",
            r"func\.func at .*: found a token as argument, allowed those of gpux operations",
        ),
    ],
)
def test_other_tokens_are_refused(lines: tuple[str, ...], arguments: str, reason: str) -> None:
    with pytest.raises(CandidateError, match=reason):
        lowered(*lines, arguments=arguments)
