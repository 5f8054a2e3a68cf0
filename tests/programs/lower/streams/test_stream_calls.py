import pytest

from tests.programs.lower.device_programs import host_function, main_function

pytestmark = pytest.mark.mlir

bindings = pytest.importorskip("tuner.mlir.bindings")
stream_calls = pytest.importorskip("tuner.programs.lower.streams.stream_calls")
mgpu = pytest.importorskip("tuner.programs.run.mgpu")


def test_functions_of_the_runtime_are_declared_once_and_called() -> None:
    with main_function(host_function(others="%n2: index {tuner.note}")) as (module, function):
        calls = stream_calls.StreamCalls(function, 2)
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
    for name in stream_calls.SIGNATURES:
        assert text.count(f"func.func private @{name}(") == 1
        assert text.count(f"call @{name}(") == 2
    assert "call @mgpuStreamWaitEvent(%arg4, " in text


@pytest.mark.parametrize("name", stream_calls.SIGNATURES)
def test_the_runtime_has_the_functions_as_they_are_declared(name: str) -> None:
    result, *arguments = mgpu.SIGNATURES[name]
    assert (len(arguments), result is not None) == stream_calls.SIGNATURES[name]
