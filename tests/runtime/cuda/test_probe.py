"""Which GPU is here, asked of the stand-in for libcuda."""

import re

import pytest

from benchmarks.gpu_check.stub_driver import StubDriver
from tests.targets.gpu.simulated_cuda import FACTS
from tuner.core.chips import chip_of
from tuner.core.device import DeviceError
from tuner.runtime.cuda.probe import describe_gpu, machine_of, require_chip

NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE


@pytest.fixture
def stub() -> StubDriver:
    return StubDriver()


def test_a_gpu_is_described_without_a_context(stub: StubDriver) -> None:
    here = describe_gpu(stub.path)
    assert here.facts.chip == "sm_90"
    assert here.facts.multiprocessors == 132
    assert re.fullmatch(r"[0-9a-f]{8}:[0-9a-f]{2}:[0-9a-f]{2}\.0", here.bus)
    assert stub.calls("cuDevicePrimaryCtxRetain") == 0


def test_a_driver_without_a_gpu_is_told(stub: StubDriver) -> None:
    stub.machine(gpus=0)
    with pytest.raises(DeviceError, match="the CUDA driver finds no GPU"):
        describe_gpu(stub.path)


def test_a_driver_that_does_not_start_is_told(stub: StubDriver) -> None:
    stub.fail("cuInit", NO_DEVICE)
    with pytest.raises(DeviceError, match="cuInit"):
        describe_gpu(stub.path)


def test_a_machine_without_a_driver_is_told() -> None:
    with pytest.raises(DeviceError, match=r"no CUDA driver: libcuda-of-nobody\.so"):
        describe_gpu("libcuda-of-nobody.so")


@pytest.mark.parametrize("name", ["sm_90", "sm_90a"])
def test_code_for_the_chip_runs_here(name: str) -> None:
    require_chip(chip_of(name), FACTS)
    assert machine_of(chip_of(name), FACTS).chip == name


def test_code_for_another_chip_does_not() -> None:
    with pytest.raises(DeviceError, match="code is for sm_80, the GPU here is Simulated GPU, sm_90"):
        require_chip(chip_of("sm_80"), FACTS)


def test_equal_gpus_with_other_drivers_are_one_class_of_machine() -> None:
    machine = machine_of(chip_of("sm_90"), FACTS)
    assert (machine.name, machine.processor) == ("Simulated GPU", "Simulated GPU, CUDA driver 13.0")
    assert machine_of(chip_of("sm_90"), None).name == "cuda sm_90"
