"""The folder of code of a small visit, compiled once; a stand-in for the driver for all child processes."""

from pathlib import Path

import pytest

from benchmarks.gpu_visit.code_folder import CodeFolder
from benchmarks.gpu_visit.prepare import prepare
from tests.support.stub_driver import stub_library
from tuner.gpu.target.compiler import Ptxas, find_ptxas


@pytest.fixture(scope="session")
def ptxas() -> Ptxas:
    found = find_ptxas()
    if found is None:
        pytest.skip("no ptxas: neither the extra cuda nor one on PATH")
    return found


@pytest.fixture(scope="session")
def quick_code(ptxas: Ptxas, tmp_path_factory: pytest.TempPathFactory) -> CodeFolder:
    return prepare(tmp_path_factory.mktemp("code"), "sm_90a", is_quick=True, report=lambda _: None)


@pytest.fixture
def built_stub(monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STUB_DRIVER", str(stub_library()))
    return stub_library()
