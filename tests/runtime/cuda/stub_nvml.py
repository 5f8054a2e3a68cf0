"""A library with the functions of NVML that are called, built where there is a C compiler."""

import ctypes
import shutil
import subprocess
from pathlib import Path


def build(folder: Path) -> ctypes.CDLL | None:
    """Returns the library; None without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    library, source = folder / "libnvml_stub.so", Path(__file__).with_suffix(".c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return ctypes.CDLL(str(library))
