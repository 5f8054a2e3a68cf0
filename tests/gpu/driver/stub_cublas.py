"""Libraries with the functions of cuBLAS and cuBLASLt that are called: on host memory, sums in f64."""

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

from tests.runtime.c_libraries import build_library


@functools.cache
def stub_cublas() -> str:
    """Returns the path of cuBLAS, with cuBLASLt next to it. Skips without a C compiler."""
    folder = Path(tempfile.mkdtemp(prefix="stub-cublas-"))
    atexit.register(shutil.rmtree, folder)
    here = Path(__file__)
    build_library(folder / "libcublasLt.so", "-O1", here.with_name("stub_cublas_lt.c"))
    return str(build_library(folder / "libcublas.so", "-O1", here.with_suffix(".c")))
