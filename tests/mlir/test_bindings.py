import subprocess
import sys

import pytest

from tuner.core.errors import UsageError, install_extra
from tuner.mlir import fingerprint
from tuner.mlir.bindings import ptx_bindings
from tuner.targets.registry import TARGETS

PROGRAM = """
import sys
from tuner.mlir.bindings import ir, ptx_bindings

ir.Context()
print("numba_cuda_mlir" in sys.modules)
ptx_bindings().ir.Context()
print(sorted({"cuda", "numba_cuda_mlir.numba_cuda"} & set(sys.modules)))

import numba_cuda_mlir
from numba_cuda_mlir import carray, cuda

print(carray.__module__, cuda.jit.__module__)
numba_cuda_mlir.nothing
"""


@pytest.mark.slow
def test_the_wheel_for_gpus_is_loaded_for_ptx_and_its_front_end_for_who_asks() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    at_first, before, after = done.stdout.splitlines()
    assert (at_first, before) == ("False", "[]")
    assert all(name.startswith("numba_cuda_mlir.") for name in after.split())
    assert "AttributeError: module 'numba_cuda_mlir' has no attribute 'nothing'" in done.stderr


def test_without_the_wheel_for_gpus_their_targets_are_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, fingerprint.PTX_WHEEL, None)  # as if it were not installed
    with pytest.raises(UsageError, match="no code generator for GPUs: numba-cuda-mlir is not installed"):
        ptx_bindings()
    assert [name for name, _ in fingerprint.packages()] == ["torch-mlir"]
    for name in ("cuda", "simulator"):
        status = TARGETS[name].status()
        assert (status.is_available, status.can_compile) == (False, False)
        assert status.reason == f"no code generator for GPUs: {install_extra('cuda')}"
