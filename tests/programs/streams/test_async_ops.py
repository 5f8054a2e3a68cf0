"""Programs on device memory become asynchronous, on streams of the caller or by tokens."""

from collections.abc import Callable

import pytest

from tests.mlir.kernels import parsed
from tests.programs.lowering.device_programs import (
    BRANCH,
    BUFFER,
    LOOP_WITH_HOST,
    TWO_CHAINS,
    alloc,
    copy,
    free,
    host_function,
    host_text,
    launch,
    main_function,
    store,
)
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.mlir import bindings
from tuner.mlir.effects import accesses as buffer_accesses
from tuner.mlir.effects import memory_effects as kernel_effects
from tuner.programs.run import mgpu
from tuner.programs.streams import async_ops, async_streams

pytestmark = pytest.mark.mlir


def test_every_kind_of_work_gets_tokens_and_keeps_the_rest() -> None:
    shared = launch("inc", "d").replace(" args", " dynamic_shared_memory_size %s args")
    fill = f"gpu.memset %d, %x : {BUFFER}, f32"
    constants = ("%x = arith.constant 0.0 : f32", "%s = arith.constant 64 : i32")
    text = host_function(*constants, alloc("d"), fill, copy("d", "a"), shared, free("d"))
    with main_function(text) as (module, function):
        works = [op for op in buffer_accesses.inside(function) if buffer_accesses.is_device_work(op)]
        kinds = [op.name for op in works]
        with works[0].location, bindings.ir.InsertionPoint(works[0]):
            token = async_ops.wait_async([])
        for op in works:
            op.attributes["note"] = bindings.ir.UnitAttr.get()
            token = async_ops.make_async(op, token)
            end = op
        with end.location, bindings.ir.InsertionPoint(end):
            async_ops.wait_on_host([token])
        for op in reversed(works):
            op.erase()
        assert module.operation.verify()
        lines = [line.strip() for line in host_text(module).splitlines() if "gpu." in line][1:]
    assert [line.split(" async")[0].split(" = ")[-1] for line in lines[1:-1]] == kinds
    tokens = [line.split(" = ")[0].split(", ")[-1] for line in lines[:-1]]
    assert lines[0].endswith("gpu.wait async")
    assert all(f" async [{token}] " in line for token, line in zip(tokens[:-1], lines[1:-1], strict=True))
    assert all("{note}" in line for line in lines[1:-1])
    assert "dynamic_shared_memory_size %c64_i32 args(%memref" in lines[4]
    assert lines[-1] == f"gpu.wait [{tokens[-1]}]"


def test_the_host_waits_for_each_piece_of_work_in_loops_too_until_tokens_are_dropped() -> None:
    with main_function(LOOP_WITH_HOST) as (module, function):
        before = host_text(module)
        async_ops.wait_for_each(function)
        assert module.operation.verify()
        lines = [line.strip() for line in host_text(module).splitlines() if "gpu." in line][1:]
        async_ops.drop_tokens(function)
        assert module.operation.verify()
        assert host_text(module) == before
    assert len(lines) == 3 * 13
    for begin, work, end in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        token = begin.removesuffix(" = gpu.wait async")
        assert f" async [{token}] " in work
        assert end == f"gpu.wait [{work.split(' = ')[0].split(', ')[-1]}]"


def test_a_token_that_control_flow_hands_on_is_refused() -> None:
    message = (
        r"^arith\.select at .*: found a token of gpu\.wait, allowed for gpu operations in the same block$"
    )
    with (
        parsed(text_beside(__file__, "CHOSEN")) as module,
        pytest.raises(CandidateError, match=message) as failure,
    ):
        async_ops.drop_tokens(module.body.operations[0].operation)
    assert failure.value.stage is Stage.COMPILE


def test_functions_of_the_runtime_are_declared_once_and_called() -> None:
    with main_function(host_function(others="%n2: index {tuner.note}")) as (module, function):
        calls = async_ops.StreamCalls(function, 2)
        block = function.regions[0].blocks[0]
        with function.location, bindings.ir.InsertionPoint(block.operations[len(block.operations) - 1]):
            for stream in (0, 1):
                event = calls.record(stream)
                calls.wait(1 - stream, event)
                calls.synchronize_event(event)
                calls.destroy(event)
                calls.synchronize_stream(stream)
        assert module.operation.verify()
        text = str(module)
    assert len(calls.tokens) == 2
    assert "%arg2: index {tuner.note}, %arg3: !llvm.ptr, %arg4: !llvm.ptr) {" in text
    for name in async_ops.SIGNATURES:
        assert text.count(f"func.func private @{name}(") == 1
        assert text.count(f"call @{name}(") == 2
        result, *arguments = mgpu.SIGNATURES[name]  # the runtime has them as they are declared
        assert (len(arguments), result is not None) == async_ops.SIGNATURES[name]
    assert "call @mgpuStreamWaitEvent(%arg4, " in text


def streams_of(text: str, limit: int = 8) -> tuple[str, int]:
    with main_function(text) as (module, function):
        count = async_streams.use_streams(function, kernel_effects.KernelEffects(module), limit)
        assert module.operation.verify()
        return host_text(module), count


PROGRAMS = {"two_chains": TWO_CHAINS, "loop_with_host": LOOP_WITH_HOST, "branch": BRANCH}
COUNTS = {"two_chains": 2, "loop_with_host": 3, "branch": 4}  # of streams


@pytest.mark.parametrize("name", PROGRAMS)
def test_ir_of_streams_and_of_tokens(name: str, golden: Callable[[str, str], None]) -> None:
    changed, count = streams_of(PROGRAMS[name])
    golden(f"async_streams_{name}.mlir", changed)
    assert count == COUNTS[name]
    golden(f"async_tokens_{name}.mlir", tokens_of(PROGRAMS[name]))


def test_streams_are_the_last_arguments() -> None:
    text = host_function(launch("inc", "a"), launch("inc", "b"), others="%x: f32 {tuner.note = 1}")
    changed, count = streams_of(text)
    assert count == 2
    assert "%arg2: f32 {tuner.note = 1 : i64}, %arg3: !llvm.ptr, %arg4: !llvm.ptr) {" in changed


def test_a_limit_holds_for_bodies_too_and_one_stream_or_no_work_needs_no_events() -> None:
    for text in (TWO_CHAINS, host_function(*store("a"))):
        changed, count = streams_of(text, limit=1)
        assert count == 1
        assert "mgpu" not in changed
    assert streams_of(host_function(*store("a")))[1] == 1  # the caller's alone
    assert streams_of(BRANCH, limit=2)[1] == 2
    assert streams_of(LOOP_WITH_HOST, limit=1)[1] == 1
    assert tokens_of(TWO_CHAINS, limit=1).count("gpu.wait") == 2  # its begin and its end
    with main_function(host_function(*store("a"))) as (module, _):
        assert tokens_of(host_function(*store("a"))) == host_text(module)


WAITS = host_function(launch("twice", "a", "b"), copy("c", "b"), *store("a"), buffers="abc")


def test_the_host_waits_for_all_of_a_stream_only_when_nothing_came_behind() -> None:
    last, behind = streams_of(host_function(launch("inc", "a"), *store("a")))[0], streams_of(WAITS)[0]
    assert "@mgpuStreamSynchronize" in last
    assert "mgpuEvent" not in last
    assert "@mgpuEventSynchronize" in behind
    assert "mgpuStreamSynchronize" not in behind


def tokens_of(text: str, limit: int = 8) -> str:
    with main_function(text) as (module, function):
        async_streams.use_tokens(function, kernel_effects.KernelEffects(module), limit)
        assert module.operation.verify()
        return host_text(module)


def test_the_host_waits_in_passing_for_work_with_more_after_it() -> None:
    text = tokens_of(WAITS)
    waits = [line.strip() for line in text.splitlines() if "gpu.wait" in line]
    launched, copied = (
        line.split(" = ")[0].strip()
        for line in text.splitlines()
        if " async [" in line and "wait" not in line
    )
    assert waits[1].endswith(f"= gpu.wait async [{launched}]")
    assert waits[2] == f"gpu.wait [{waits[1].split(' = ')[0]}]"
    assert waits[-1] == f"gpu.wait [{copied}]"
