"""A simulated GPU, and ptxas where it is installed."""

import pytest

from tests.gpu.target.simulated_cuda import device_with_a_clock
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.target.compiler import Ptxas, find_ptxas


@pytest.fixture
def device() -> SimulatedDevice:
    return device_with_a_clock()


@pytest.fixture(scope="session")
def ptxas() -> Ptxas:
    found = find_ptxas()
    if found is None:
        pytest.skip("no ptxas: neither the extra cuda nor one on PATH")
    return found
