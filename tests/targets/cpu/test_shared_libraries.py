"""Libraries are found in the folders of wheels, else by the loader, and load what lies next to them."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from tuner.targets.cpu.baseline_libraries import find_extension, find_shared_library, load_library


def test_the_first_name_that_is_there_is_found(tmp_path: Path) -> None:
    (tmp_path / "libfound.so").touch()
    (tmp_path / "libfound.so.2").touch()
    names = ("libfound.so.3", "libfound.so.2", "libfound.so")
    assert find_shared_library(names, (tmp_path / "missing", tmp_path)) == str(tmp_path / "libfound.so.2")


def test_the_loader_finds_libraries_of_the_system(tmp_path: Path) -> None:
    found = find_shared_library(("libc.so.99",), (tmp_path,))
    assert found is not None
    assert found.startswith("libc.so")


def test_a_missing_library_is_none(tmp_path: Path) -> None:
    assert find_shared_library(("libnoneofthese.so",), (tmp_path,)) is None


def test_an_extension_is_found_without_importing_its_package() -> None:
    found = find_extension("ctypes", "__in*.py")
    assert found == ctypes.__file__
    assert find_extension("ctypes", "*.f90") is None
    assert find_extension("no_such_package", "*") is None


@pytest.fixture
def two_libraries(tmp_path: Path) -> Path:
    """Compiles libouter.so, which needs libinner.so of the same folder and says so to nobody."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler for libraries to load")
    (tmp_path / "inner.c").write_text("int inner(void) { return 41; }")
    (tmp_path / "outer.c").write_text("int inner(void); int outer(void) { return inner() + 1; }")
    # names of this test alone: the loader knows those that it has loaded
    inner, outer = tmp_path / f"libinner_{tmp_path.name}.so", tmp_path / f"libouter_{tmp_path.name}.so"
    shared = (compiler, "-shared", "-fPIC", "-o")
    subprocess.run((*shared, inner, tmp_path / "inner.c", f"-Wl,-soname,{inner.name}"), check=True)
    subprocess.run((*shared, outer, tmp_path / "outer.c", inner), check=True)
    return outer


def test_a_library_is_loaded_with_what_it_needs_from_its_folder(two_libraries: Path) -> None:
    assert load_library(str(two_libraries)).outer() == 42


def test_a_library_without_what_it_needs_is_reported(two_libraries: Path) -> None:
    two_libraries.with_name(two_libraries.name.replace("outer", "inner")).unlink()
    with pytest.raises(OSError, match=r"^libinner_\w+\.so: cannot open shared object file"):
        load_library(str(two_libraries))
