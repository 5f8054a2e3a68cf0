import subprocess
import sys

import pytest

PROGRAM = """
import sys
from tuner.mlir.bindings import ir

ir.Context()
print(sorted({"cuda", "numba_cuda_mlir.numba_cuda"} & set(sys.modules)))

import numba_cuda_mlir
from numba_cuda_mlir import carray, cuda

print(carray.__module__, cuda.jit.__module__)
numba_cuda_mlir.nothing
"""


@pytest.mark.slow
def test_the_wheels_front_end_is_there_for_who_asks_and_not_before() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    before, after = done.stdout.splitlines()
    assert before == "[]"
    assert all(name.startswith("numba_cuda_mlir.") for name in after.split())
    assert "AttributeError: module 'numba_cuda_mlir' has no attribute 'nothing'" in done.stderr
