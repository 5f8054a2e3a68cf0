"""Operations with tokens, and calls of the runtime: made, waited for, dropped."""

import pytest

from tests.mlir.kernels import parsed
from tests.programs.lowering.device_programs import (
    BUFFER,
    LOOP_WITH_HOST,
    alloc,
    copy,
    free,
    host_function,
    host_text,
    launch,
    main_function,
)
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage

pytestmark = pytest.mark.mlir

async_ops = pytest.importorskip("tuner.programs.streams.async_ops")
bindings = pytest.importorskip("tuner.mlir.bindings")
buffer_accesses = pytest.importorskip("tuner.mlir.effects.accesses")
mgpu = pytest.importorskip("tuner.programs.run.mgpu")


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


def test_the_host_waits_for_each_piece_of_work_in_loops_too() -> None:
    with main_function(LOOP_WITH_HOST) as (module, function):
        async_ops.wait_for_each(function)
        assert module.operation.verify()
        lines = [line.strip() for line in host_text(module).splitlines() if "gpu." in line][1:]
    assert len(lines) == 3 * 13
    for begin, work, end in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        token = begin.removesuffix(" = gpu.wait async")
        assert f" async [{token}] " in work
        assert end == f"gpu.wait [{work.split(' = ')[0].split(', ')[-1]}]"


def test_what_was_made_asynchronous_is_as_it_was() -> None:
    with main_function(LOOP_WITH_HOST) as (module, function):
        before = host_text(module)
        async_ops.wait_for_each(function)
        assert "gpu.wait" in host_text(module)
        async_ops.drop_tokens(function)
        assert module.operation.verify()
        assert host_text(module) == before


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
    assert "call @mgpuStreamWaitEvent(%arg4, " in text


@pytest.mark.parametrize("name", async_ops.SIGNATURES)
def test_the_runtime_has_the_functions_as_they_are_declared(name: str) -> None:
    result, *arguments = mgpu.SIGNATURES[name]
    assert (len(arguments), result is not None) == async_ops.SIGNATURES[name]
