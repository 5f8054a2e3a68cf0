"""Weights and padded buffers on a device: copied once, own padding for graphs, freed at the end."""

from contextlib import closing

import numpy as np
import pytest

from tests.programs.gpu_fusions.group_texts import CONVOLUTION
from tests.programs.gpu_fusions.simulated import compiled
from tuner.core.gpu_code import BufferType, ResidentBuffer
from tuner.programs.run.device_function import DeviceFunction, ResidentMemory
from tuner.simulator.device.simulated_device import SimulatedDevice

BUFFERS = tuple(
    ResidentBuffer(BufferType("f32", (4,)), np.arange(4, dtype=np.float32).tobytes(), is_written=is_written)
    for is_written in (False, True)
)


def test_a_graph_shares_weights_and_has_its_own_padding() -> None:
    device = SimulatedDevice("sm_90")
    memory = ResidentMemory(device, BUFFERS)
    memory.load()
    own = memory.for_graph()
    assert own.arguments[0] is memory.arguments[0]
    assert own.arguments[1].content != memory.arguments[1].content
    own.close()
    memory.close()
    assert device.counts.allocations == device.counts.frees == 3
    assert device.reports == ()


def test_without_padding_a_graph_allocates_nothing() -> None:
    device = SimulatedDevice("sm_90")
    memory = ResidentMemory(device, BUFFERS[:1])
    memory.load()
    assert memory.for_graph().arguments == memory.arguments
    memory.close()
    assert device.counts.allocations == device.counts.frees == 1


@pytest.mark.mlir
def test_graphs_of_a_program_with_padding_give_what_calls_give() -> None:
    rng = np.random.default_rng(3)
    shapes = ((1, 3, 7, 6), (4, 3, 3, 3), (4,), (4,))
    x, *others = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    device = SimulatedDevice("sm_90")
    with closing(DeviceFunction(compiled(CONVOLUTION).code, device)) as program:
        wanted = program(x, *others)
        graphs = [program.as_graph(x, *others) for _ in range(2)]
        for graph in graphs:
            np.testing.assert_array_equal(graph.launch()[0], wanted)
            graph.close()
    assert device.reports == ()
    assert device.counts.allocations == device.counts.frees
