"""A library with the functions of cuBLAS that are called: on host memory, column by column, sums in f64."""

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

from tests.runtime.c_libraries import build_library


@functools.cache
def stub_cublas() -> str:
    """Returns the path of the library. Skips without a C compiler."""
    folder = Path(tempfile.mkdtemp(prefix="stub-cublas-"))
    atexit.register(shutil.rmtree, folder)
    return str(build_library(folder / "libcublas.so", "-O1", Path(__file__).with_suffix(".c")))
