import pytest

from benchmarks.gpu_check.device_under_test import SIMULATOR, STUB, Bed
from benchmarks.gpu_check.graphs import as_device_graph, as_graph

pytestmark = pytest.mark.mlir


@pytest.mark.parametrize("device", [SIMULATOR, STUB])
@pytest.mark.slow
def test_a_graph_on_device_memory_reads_it_anew(device: str) -> None:
    outcome = as_device_graph(Bed(device, "sm_90"))
    assert (outcome.status, outcome.words) == ("passed", "3 launches of one graph")


@pytest.mark.slow
def test_a_graph_on_host_memory_reads_it_anew() -> None:
    assert as_graph(Bed(STUB, "sm_90")).status == "passed"
