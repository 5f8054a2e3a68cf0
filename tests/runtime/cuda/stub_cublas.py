"""A library with the functions of cuBLAS that are called: on host memory, column by column, sums in f64."""

import atexit
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


@functools.cache
def stub_cublas() -> str:
    """Returns the path of the library. Skips without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler for the stand-in of cuBLAS")
    folder = Path(tempfile.mkdtemp(prefix="stub-cublas-"))
    atexit.register(shutil.rmtree, folder)
    library, source = folder / "libcublas.so", Path(__file__).with_suffix(".c")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    return str(library)
