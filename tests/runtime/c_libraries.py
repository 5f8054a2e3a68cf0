"""Libraries that tests build from C."""

import shutil
import subprocess
from pathlib import Path

import pytest


def build_library(library: Path, *sources_and_options: str | Path) -> Path:
    """Returns the library. Skips without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler: cc or gcc on PATH")
    subprocess.run((compiler, "-shared", "-fPIC", "-o", library, *sources_and_options), check=True)
    return library
