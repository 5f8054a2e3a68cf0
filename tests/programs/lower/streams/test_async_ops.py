import pytest

from tests.programs.lower.device_programs import (
    BUFFER,
    alloc,
    copy,
    free,
    host_function,
    host_text,
    launch,
    main_function,
)

pytestmark = pytest.mark.mlir

async_ops = pytest.importorskip("tuner.programs.lower.streams.async_ops")
bindings = pytest.importorskip("tuner.mlir.bindings")
buffer_accesses = pytest.importorskip("tuner.mlir.effects.buffer_accesses")


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
