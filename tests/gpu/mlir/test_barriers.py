"""Barriers of all forms, as MLIR's own lowering writes them in PTX: they go to another wheel as text."""

import re

from tuner.core.gpu import chip_of
from tuner.gpu.mlir.lowering import kernels_to_ptx
from tuner.mlir import transform
from tuner.mlir.bindings import ir

KERNEL = """module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @waits(%id: i32, %threads: i32) kernel {
      nvvm.barrier
      nvvm.barrier id = %id
      nvvm.barrier id = %id number_of_threads = %threads
      gpu.return
    }
  }
}"""


def test_barriers_with_and_without_an_id_and_a_number_of_threads() -> None:
    with transform.new_context(), ir.Location.unknown():
        ptx = kernels_to_ptx(transform.parse(KERNEL, "payload"), chip_of("sm_80"), 1)
    assert re.findall(r"bar\.sync \t(.*);", ptx) == ["0", "%r1", "%r1, %r2"]
