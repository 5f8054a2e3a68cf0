from dataclasses import replace

import pytest

from benchmarks.gpu_check.device_under_test import CUDA, SIMULATOR, STUB, Bed, bed_of
from tests.cuda_driver import has_driver
from tests.targets.gpu.simulated_cuda import FACTS, HERE
from tuner.core.gpu import DeviceError
from tuner.runtime.cuda import probe


def test_code_is_made_for_the_gpu_or_for_the_simulator() -> None:
    targets = [Bed(device, "sm_80").target.text for device in (CUDA, SIMULATOR, STUB)]
    assert targets == ["cuda:sm_80", "simulator:sm_80", "simulator:sm_80"]


def test_the_stand_in_is_described_as_a_gpu_is() -> None:
    here = Bed(STUB, "sm_90").here()
    assert here is not None
    assert here.facts.chip == Bed(STUB, "sm_90").open().chip == "sm_90"
    assert Bed(SIMULATOR, "sm_90").here() is None


@pytest.mark.parametrize("device", [SIMULATOR, STUB])
def test_what_has_no_clock_is_not_timed(device: str) -> None:
    with pytest.raises(DeviceError, match=f"device: found {device}, allowed cuda: no clock"):
        Bed(device, "sm_90").gpu()


@pytest.mark.skipif(has_driver(), reason="there is a CUDA driver here")
def test_without_a_driver_there_is_no_gpu() -> None:
    with pytest.raises(DeviceError, match="no CUDA driver"):
        bed_of(CUDA)


def test_the_chip_is_that_of_the_gpu_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "describe_gpu", lambda: replace(HERE, facts=replace(FACTS, chip="sm_80")))
    assert bed_of(CUDA) == Bed(CUDA, "sm_80")


def test_an_unknown_chip_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "describe_gpu", lambda: replace(HERE, facts=replace(FACTS, chip="sm_70")))
    with pytest.raises(DeviceError, match="GPU: found Simulated GPU, sm_70, allowed sm_80"):
        bed_of(CUDA)
