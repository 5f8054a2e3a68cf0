import sys
from pathlib import Path

import pytest

from tuner.core.errors import TunerError
from tuner.gpu.driver import cublas_files
from tuner.gpu.driver.cublas_files import cublas_file


def put(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives a folder of packages that is the only one."""
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    return tmp_path / "site"


@pytest.mark.parametrize("name", ["nvidia/cublas/lib/libcublas.so.12", "nvidia/cu13/lib/libcublas.so.13"])
def test_the_library_of_a_wheel_is_found_before_the_systems(site: Path, tmp_path: Path, name: str) -> None:
    put(site, name)
    system = put(tmp_path / "system", "libcublas.so.13")
    assert cublas_file(()) == cublas_file((system,)) == site / name


def test_the_newest_of_the_system_is_taken(site: Path, tmp_path: Path) -> None:
    assert cublas_file((tmp_path,)) is None
    names = ("libcublas.so.9", "libcublas.so.12", "libcublas.so.12.8.4.1", "libcublasLt.so.13")
    system = put(tmp_path / "system", *names)
    assert cublas_file((tmp_path / "none", system)) == system / "libcublas.so.12"


def test_without_cuda_pathfinder_files_are_looked_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    monkeypatch.setattr(cublas_files, "cublas_file", lambda: tmp_path / "libcublas.so.12")
    assert cublas_files.find_cublas() == str(tmp_path / "libcublas.so.12")
    monkeypatch.setattr(cublas_files, "cublas_file", lambda: None)
    with pytest.raises(TunerError, match=r"^no cuBLAS found \(pip install nvidia-cublas\)$"):
        cublas_files.find_cublas()
