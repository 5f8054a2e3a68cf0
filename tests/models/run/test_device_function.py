"""Compiled programs on the simulated device and on the host: results, streams, graphs, errors, defects."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.models.lowering.compiled import host_function, on_simulator
from tests.models.run import host_modules
from tests.models.run.host_modules import BUFFER, TOKENS, TWO_CHAINS, N, compiled, host_only, two_chains
from tests.models.run.test_marshalling import Tensor
from tests.support.stub_driver import StubDriver
from tests.texts import text_beside
from tuner.core.device import STREAM_ORDERS, AbstractDevice, StreamOrder
from tuner.core.device_programs import BufferType, DeviceProgram, ScalarType
from tuner.core.errors import CandidateError, DeviceError, Stage, UsageError
from tuner.gpu.ptxsim.device.happens_before import HostDefect
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.run.device_function import DeviceFunction
from tuner.runtime.arrays import ArrayView

pytestmark = pytest.mark.mlir
A, B = np.arange(N, dtype=np.float32), np.full(N, 0.25, np.float32)
SHARED = text_beside(__file__, "SHARED")
FREED = f"%t0 = gpu.dealloc async [%t_s0] %h : {host_modules.M}"
RETURNED = {FREED: f"memref.dealloc %c : {host_modules.M}", "return %c": "return %h"}
LEAKS = tuple(f"leak: p{number} ({4 * N} bytes) is never freed" for number in range(2))
OWNERS = {"freed": ({}, ()), "left": ({FREED: ""}, LEAKS), "returned": (RETURNED, ())}
SWAP = text_beside(__file__, "SWAP")


def without(text: str, mark: str) -> str:
    """Returns a text without the first line that has the mark."""
    lines = text.splitlines()
    lines.remove(next(line for line in lines if mark in line))
    return "\n".join(lines)


@pytest.mark.parametrize("order", STREAM_ORDERS)
def test_a_program_is_right_in_any_order_and_nan_without_its_copy(order: StreamOrder) -> None:
    with on_simulator(two_chains(), order=order, seed=3) as (loaded, _):
        for scale in (1, 3):
            np.testing.assert_array_equal(loaded(scale * A, B), 2 * scale * A + 2 * B)
    unfinished = two_chains(without(TWO_CHAINS, "// copy out"))
    assert np.isnan(DeviceFunction(unfinished, SimulatedDevice(order=order))(A, B)).all()


@pytest.mark.parametrize("order", STREAM_ORDERS)
@pytest.mark.parametrize(("change", "reports"), OWNERS.values(), ids=OWNERS)
def test_memory_without_an_owner_is_a_leak(change: dict[str, str], reports: Any, order: StreamOrder) -> None:
    text = SHARED
    for old, new in change.items():
        text = text.replace(old, new)
    device = SimulatedDevice(order=order)
    loaded = DeviceFunction(compiled(text, (), (BUFFER,), streams=1), device)
    assert [loaded()[1] for _ in LEAKS] == [0.5, 0.5]
    loaded.close()
    assert tuple(map(str, device.reports)) == reports


def test_streams_are_made_once_modules_loaded_once_and_slot_0_is_the_callers_stream() -> None:
    device = SimulatedDevice()
    loaded, again = (DeviceFunction(two_chains(), device) for _ in range(2))
    for _ in range(3):
        loaded(A, B)
        again(A, B)
    assert (device.counts.streams_created, device.counts.modules_loaded) == (4, 1)
    loaded.close()
    assert (device.counts.streams_destroyed, device.counts.modules_unloaded) == (2, 0)
    again.close()
    again.close()
    assert (device.counts.streams_destroyed, device.counts.modules_unloaded) == (4, 1)
    device = SimulatedDevice(order="lifo")
    loaded, stream = DeviceFunction(two_chains(), device), device.create_stream()
    source, target = np.full(N, 3, np.float32), np.zeros(N, np.float32)
    scratch = device.allocate(4 * N, stream)
    device.copy(scratch, source.ctypes.data, 4 * N, stream)
    device.copy(target.ctypes.data, scratch, 4 * N, stream)
    loaded(A, B, stream=stream)
    assert target[0] == 3  # the call has waited for its stream, and so for what was there before
    assert device.reports == ()


def test_token_form_runs_and_takes_no_stream_and_has_no_graph() -> None:
    program = compiled(TOKENS, (BUFFER,), (BUFFER,), streams=0)
    with on_simulator(program, order="lifo") as (loaded, device):
        np.testing.assert_array_equal(loaded(A), 2 * A)
        assert device.counts.streams_created > 0
        with pytest.raises(UsageError, match="main: takes no stream: each call makes its own"):
            loaded(A, stream=1)
        with pytest.raises(UsageError, match="main: the program makes its own streams, which"):
            loaded.as_graph(A)
    unfinished, device = without(TOKENS, "// finish"), SimulatedDevice()
    with closing(DeviceFunction(compiled(unfinished, (BUFFER,), (BUFFER,), streams=0), device)) as loaded:
        assert np.isnan(loaded(A)).all()
    assert HostDefect.UNFINISHED in {report.kind for report in device.reports}


def test_device_arguments_are_used_where_they_are_and_pinned_results_copied_and_given_back() -> None:
    program = compiled(host_modules.IN_PLACE, (BUFFER, BUFFER), (), 1, (False, True), device_arguments=True)
    device = SimulatedDevice()
    loaded, stream = DeviceFunction(program, device), device.create_stream()
    a, b = (device.allocate(4 * N, stream) for _ in range(2))
    device.copy(a, A.ctypes.data, 4 * N, stream)
    arrays = [ArrayView(address, (N,), None, np.dtype(np.float32), None) for address in (a, b)]
    assert loaded(*arrays, stream=stream) is None
    found = np.zeros(N, np.float32)
    device.copy(found.ctypes.data, b, 4 * N, stream)
    assert found[1] == 0  # only enqueued so far
    device.synchronize_stream(stream)
    np.testing.assert_array_equal(found, 2 * A)
    assert device.counts.copies == 2
    assert device.reports == ()
    body = TWO_CHAINS.replace("%c = memref.alloc() :", "%c = gpu.alloc host_shared () :")
    with on_simulator(two_chains(body)) as (loaded, _):
        for _ in range(2):
            np.testing.assert_array_equal(loaded(A, B), 2 * A + 2 * B)


def test_written_arguments_and_numbers_and_buffers_of_all_types_go_in_and_come_out() -> None:
    program = compiled(text_beside(__file__, "WRITTEN"), (BUFFER,), (), 1, written=(True,))
    loaded = DeviceFunction(program, SimulatedDevice(order="random"))
    array = A.copy()
    loaded(array)
    np.testing.assert_array_equal(array, 2 * A)
    array.flags.writeable = False
    with pytest.raises(UsageError, match="main: argument 0: is read-only, but is written to"):
        loaded(array)
    types = ("f64", "i8", "f32", "i64", "i1", "index", "bf16", "f16", "i16", "i32")
    scalars = tuple(ScalarType(name) for name in types)
    buffers = (BufferType("bf16", (None, 3)), BufferType("i1", (2,)), BufferType("f64", ()))
    values = (-2.5, -7, 0.5, -(2**40), True, 2**33, 1.5, -0.25, -300, 70000)
    arrays = (np.arange(12).reshape(4, 3).astype(ml_dtypes.bfloat16), np.array([True, False]), np.array(4.25))
    program = host_only((*scalars, *buffers))
    found = DeviceFunction(program, SimulatedDevice())(*values, *arrays)
    assert tuple(found[: len(values)]) == values
    for array, result in zip(arrays, found[len(values) :], strict=True):
        assert (result.dtype, result.shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(result, array)
        assert result.flags.owndata
        assert not np.may_share_memory(result, array)
    for element in ("f32", "i1", "bf16", "i64"):
        assert DeviceFunction(host_only((ScalarType(element),)), SimulatedDevice())(1) == 1
    loaded = DeviceFunction(host_only((BufferType("i16", (2,)),)), SimulatedDevice())
    assert loaded(np.array([1, 2**16 - 1], np.uint16)).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((A,), "main: found 1 arguments, allowed 2"),
        ((A, list(B)), "main: argument 1: found list, allowed a numpy array"),
        ((A.reshape(8, 8), B), r"argument 0: found float32 of shape \(8, 8\), allowed float32 of shape \(64"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        DeviceFunction(two_chains(), SimulatedDevice())(*arguments)


def test_errors_of_the_device_and_of_code_that_does_not_load_are_told_apart() -> None:
    loaded = DeviceFunction(two_chains(), SimulatedDevice())
    with pytest.raises(DeviceError, match=r"mgpu\w+: CUDA_ERROR_INVALID_HANDLE: found stream 0x7,") as caught:
        loaded(A, B, stream=7)
    assert caught.value.error_name == "CUDA_ERROR_INVALID_HANDLE"
    np.testing.assert_array_equal(loaded(A, B), 2 * A + 2 * B)  # the program goes on

    def load(llvm: str, entry: str) -> None:
        DeviceFunction(DeviceProgram(llvm, entry, (), (), ()), SimulatedDevice())

    with pytest.raises(CandidateError, match=r"custom op|expected") as refused:
        load("nonsense", "main")
    assert refused.value.stage is Stage.LOAD
    with pytest.raises(CandidateError, match="function 'other' is not there with a C interface"):
        load(two_chains().llvm, "other")
    with pytest.raises(DeviceError, match="mgpuModuleLoadJIT: CUDA_ERROR_INVALID_PTX"):
        load(two_chains().llvm.replace(".visible", ".visibel"), "main")


def test_threads_are_interleaved() -> None:
    with on_simulator(two_chains(), order="random") as (loaded, _), ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda scale: loaded(scale * A, B), range(4)))
    assert all((result == 2 * scale * A + 2 * B).all() for scale, result in enumerate(found))


def require_graph(device: AbstractDevice) -> None:
    """Requires that a graph of a program gives what its arrays hold at each launch, until it is closed."""
    loaded, stream = DeviceFunction(two_chains(), device), device.create_stream()
    a = np.arange(N, dtype=np.float32)
    graph = loaded.as_graph(a, B)
    (result,) = graph.results
    for scale, where in ((1, None), (3, stream), (5, None)):
        a[:] = scale * np.arange(N)
        (found,) = graph.launch(where)
        assert found is result
        np.testing.assert_array_equal(found, 2 * a + 2 * B)
    np.testing.assert_array_equal(loaded(B, B), 4 * B)  # the program can still be called
    graph.close()
    graph.close()
    np.testing.assert_array_equal(graph.results[0], 2 * a + 2 * B)
    with pytest.raises(UsageError, match="main: the graph is closed"):
        graph.launch()
    loaded.close()


@pytest.mark.parametrize("order", STREAM_ORDERS)
def test_launches_refresh_the_same_arrays_also_on_the_driver(order: StreamOrder) -> None:
    device = SimulatedDevice(order=order)
    require_graph(device)
    assert device.reports == ()
    assert (device.counts.launches, device.counts.graph_launches) == (6, 3)  # captured, called; replayed
    stub = StubDriver()
    require_graph(stub.open())
    assert (stub.calls("cuGraphLaunch"), stub.calls("cuLaunchKernel"), stub.errors) == (3, 6, [])


def test_a_graph_of_a_wait_a_fork_that_is_not_joined_or_a_closed_program_is_refused() -> None:
    wait = "func.call @mgpuStreamSynchronize(%s0) : (!llvm.ptr) -> ()\n    %t13 ="
    program = two_chains(TWO_CHAINS.replace("%t13 =", wait))
    for device in (SimulatedDevice(), StubDriver().open()):
        loaded = DeviceFunction(program, device)
        with pytest.raises(UsageError, match=r"main: waits in its middle, .*mgpuStreamSynchronize"):
            loaded.as_graph(B, B)
        np.testing.assert_array_equal(loaded(B, B), 4 * B)
        loaded.close()
    loaded = DeviceFunction(two_chains(without(TWO_CHAINS, "// join")), SimulatedDevice())
    with pytest.raises(DeviceError, match="CUDA_ERROR_STREAM_CAPTURE_UNJOINED: a forked stream has work"):
        loaded.as_graph(B, B)
    loaded = DeviceFunction(two_chains(), SimulatedDevice())
    graph = loaded.as_graph(B, B)
    loaded.close()
    with pytest.raises(UsageError, match="main: the program is closed"):
        loaded(A, B)
    with pytest.raises(UsageError, match="main: the graph's program is closed"):
        graph.launch()
    graph.close()


def test_buffers_and_results_of_host_calls_leave_nothing_behind_and_are_no_graphs() -> None:
    function = host_function(SWAP)
    a = np.arange(5, dtype=np.float32)
    new, old, size = function(a, 9.0, 3)
    np.testing.assert_array_equal(new, [0, 1, 2, 9, 4])
    np.testing.assert_array_equal(a, np.arange(5))
    assert (old, size) == (3.0, 5)
    assert function.allocations == 0
    function.repeat(function.prepare(np.zeros(1000, np.float32), 1.0, 0), 50)
    assert function.allocations == 0
    assert host_function(text_beside(__file__, "STORE"))(*np.zeros((2, 3), np.float32), 1.0) is None
    function = host_function("func.func @f(%x: f32) -> f32 { return %x : f32 }")
    assert function(2.5) == 2.5
    with pytest.raises(TypeError, match=r"other process: tuner\.compile_program\(payload\)$"):
        pickle.dumps(function)
    function = host_function(text_beside(__file__, "TWICE"))
    assert np.all(function(1.0))
    assert function.allocations == 0


def test_streams_and_graphs_are_of_gpus() -> None:
    function = host_function("func.func @f() { return }")
    assert function(stream=None) is None
    with pytest.raises(UsageError, match="f: takes no stream: the program runs on the host"):
        function(stream=7)
    no_graph = "f: the program runs on the host: only a program on a GPU has a graph"
    with pytest.raises(UsageError, match=no_graph):
        function.as_graph()
    function.close()
    assert function() is None


def test_a_tensor_of_another_package_is_written_in_place() -> None:
    a, b = np.zeros(3, np.float32), np.zeros(3, np.float32)
    host_function(text_beside(__file__, "STORE"))(Tensor(a), Tensor(b), 5.0)
    assert a.tolist() == [5, 0, 0]
