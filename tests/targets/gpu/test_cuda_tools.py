from pathlib import Path

import pytest

from tuner.targets.gpu.cuda_tools import locate


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder first on the import path, where wheels can be laid out; PATH is its folder bin."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def install(site: Path, distribution: str, version: str, *files: str) -> None:
    """Lays out a wheel as pip does: files, and a record of them."""
    folder = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    (folder / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    for file in files:
        executable(site / file)


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_tool_of_the_wheel_is_preferred_to_path(site: Path) -> None:
    install(site, "nvidia-cuda-nvcc", "99.1", "nvidia/cu13/bin/ptxas", "nvidia/cu13/bin/nvcc")
    executable(site / "bin/ptxas")
    found = locate("ptxas")
    assert found is not None
    assert found.path == site / "nvidia/cu13/bin/ptxas"
    assert found.origin == "nvidia-cuda-nvcc 99.1"


def test_the_layout_of_cuda_12_wheels_is_known(site: Path) -> None:
    install(site, "nvidia-cuda-nvcc-cu12", "12.9", "nvidia/cuda_nvcc/bin/ptxas")
    install(site, "nvidia-cuda-nvcc", "99.0", "nvidia/cu13/bin/nvcc")  # a wheel without the tool
    found = locate("ptxas")
    assert found is not None
    assert found.path == site / "nvidia/cuda_nvcc/bin/ptxas"


def test_a_file_that_cannot_be_run_is_passed_over(site: Path) -> None:
    install(site, "nvidia-cuda-nvcc", "99.0", "nvidia/cu13/bin/ptxas")
    install(site, "nvidia-cuda-nvcc-cu12", "0.0")  # hides one that is really there
    (site / "nvidia/cu13/bin/ptxas").chmod(0o644)
    on_path = executable(site / "bin/ptxas")
    found = locate("ptxas")
    assert found is not None
    assert (found.path, found.origin) == (on_path, "PATH")


def test_no_tool_anywhere_is_none(site: Path) -> None:
    install(site, "nvidia-cuda-nvcc", "99.0")
    install(site, "nvidia-cuda-nvcc-cu12", "0.0")
    assert locate("ptxas") is None
