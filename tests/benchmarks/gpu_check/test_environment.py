"""What a machine has: told, or told to be missing."""

from pathlib import Path

import pytest

from benchmarks.gpu_check import environment
from benchmarks.gpu_check.device_under_test import SIMULATOR, STUB, Bed
from tuner.core.errors import UsageError
from tuner.targets.gpu.compiler import find_ptxas


def test_the_gpu_is_reported_with_its_facts() -> None:
    outcome = environment.ask_gpu(Bed(STUB, "sm_90"))
    assert outcome.status == "passed"
    assert outcome.facts["gpu"]["chip"] == "sm_90"
    assert environment.ask_gpu(Bed(SIMULATOR, "sm_80")).words == "PTX simulator, sm_80"


@pytest.mark.mlir
def test_packages_are_reported_by_their_versions() -> None:
    outcome = environment.ask_packages()
    assert {"numpy", "numba-cuda-mlir", "torch-mlir"} <= set(outcome.facts["packages"])
    assert outcome.facts["llvm"] in outcome.words


@pytest.mark.skipif(find_ptxas() is None, reason="there is no ptxas here")
def test_a_chip_that_is_not_known_is_a_failure() -> None:
    assert environment.ask_ptxas(Bed(SIMULATOR, "sm_90")).status == "passed"
    with pytest.raises(UsageError, match="chip: found 'sm_33', allowed"):
        environment.ask_ptxas(Bed(SIMULATOR, "sm_33"))


@pytest.mark.parametrize("device", [SIMULATOR, STUB])
def test_stand_ins_have_neither_sensors_nor_a_baseline(device: str) -> None:
    bed = Bed(device, "sm_90")
    assert environment.ask_sensors(bed).words == f"no sensors on the {device}"
    assert environment.ask_cublas(bed).words == f"no cuBLAS on the {device}"


def test_the_sanitizer_is_found_where_cuda_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "locate", lambda name: None)
    monkeypatch.setattr(environment, "SANITIZER_PLACES", (tmp_path / "none", tmp_path))
    assert environment.ask_sanitizer().status == "skipped"
    tool = tmp_path / "compute-sanitizer"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert environment.find_sanitizer() == tool
