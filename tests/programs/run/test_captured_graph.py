"""A call as a graph: launched again it reads its arguments anew; what cannot be captured is refused."""

import numpy as np
import pytest

from benchmarks.gpu_check.stub_driver import StubDriver
from tests.programs.run.host_modules import BUFFER, TOKENS, TWO_CHAINS, N, compiled, two_chains
from tuner.core.errors import UsageError
from tuner.core.gpu import AbstractDevice, DeviceError
from tuner.core.gpu_code import DeviceProgram
from tuner.programs.run.device_function import DeviceFunction
from tuner.simulator.device.simulated_device import SimulatedDevice
from tuner.simulator.device.streams import ORDERS

pytestmark = pytest.mark.mlir

B = np.full(N, 0.25, np.float32)


@pytest.fixture(scope="module")
def chains() -> DeviceProgram:
    return two_chains()


def check(device: AbstractDevice, program: DeviceProgram) -> None:
    loaded, stream = DeviceFunction(program, device), device.create_stream()
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


@pytest.mark.parametrize("order", ORDERS)
def test_launches_refresh_the_same_arrays(chains: DeviceProgram, order: str) -> None:
    device = SimulatedDevice(order=order)  # type: ignore[arg-type]
    check(device, chains)
    assert device.reports == ()
    assert (device.counts.launches, device.counts.graph_launches) == (6, 3)  # captured, called; replayed


def test_launches_refresh_the_same_arrays_on_the_driver(chains: DeviceProgram) -> None:
    stub = StubDriver()
    check(stub.open(), chains)
    assert (stub.calls("cuGraphLaunch"), stub.calls("cuLaunchKernel"), stub.errors) == (3, 6, [])


def test_a_program_that_makes_its_own_streams_is_refused() -> None:
    loaded = DeviceFunction(compiled(TOKENS, (BUFFER,), (BUFFER,), streams=0), SimulatedDevice())
    with pytest.raises(UsageError, match="main: the program makes its own streams, which"):
        loaded.as_graph(B)


def test_a_program_that_waits_in_its_middle_is_refused_and_goes_on() -> None:
    wait = "func.call @mgpuStreamSynchronize(%s0) : (!llvm.ptr) -> ()\n    %t13 ="
    program = two_chains(TWO_CHAINS.replace("%t13 =", wait))
    for device in (SimulatedDevice(), StubDriver().open()):
        loaded = DeviceFunction(program, device)
        with pytest.raises(UsageError, match=r"main: waits in its middle, .*mgpuStreamSynchronize"):
            loaded.as_graph(B, B)
        np.testing.assert_array_equal(loaded(B, B), 4 * B)
        loaded.close()


def test_a_fork_that_is_not_joined_is_refused() -> None:
    lines = [line for line in TWO_CHAINS.splitlines() if "// join" not in line]
    loaded = DeviceFunction(two_chains("\n".join(lines)), SimulatedDevice())
    with pytest.raises(DeviceError, match="CUDA_ERROR_STREAM_CAPTURE_UNJOINED: a forked stream has work"):
        loaded.as_graph(B, B)


def test_a_graph_of_a_closed_program_is_not_launched_and_can_be_closed() -> None:
    loaded = DeviceFunction(two_chains(), SimulatedDevice())
    graph = loaded.as_graph(B, B)
    loaded.close()
    with pytest.raises(UsageError, match="main: the graph's program is closed"):
        graph.launch()
    graph.close()
