from collections.abc import Callable

import pytest

from tests.mlir.kernels import parsed
from tuner.core.errors import CandidateError

pytestmark = pytest.mark.mlir

merge_gpu_modules = pytest.importorskip("tuner.mlir.gpu.merge_gpu_modules")

TWO = """module attributes {gpu.container_module} {
  func.func @host(%a: memref<4xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @first::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<4xf32>)
    gpu.launch_func @second::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @third::@other blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
  gpu.module @first { gpu.func @k(%a: memref<4xf32>) kernel { gpu.return } }
  gpu.module @second { gpu.func @k() kernel { gpu.barrier gpu.return } }
  gpu.module @third { gpu.func @other() kernel { gpu.return } }
}
"""


def merge(text: str) -> str:
    with parsed(text) as module:
        merge_gpu_modules.merge_gpu_modules(module)
        assert module.operation.verify()
        return str(module)


def test_kernels_of_all_modules_move_into_the_first(golden: Callable[[str, str], None]) -> None:
    golden("merge_gpu_modules.mlir", merge(TWO))


def test_one_module_stays_as_it_is() -> None:
    text = merge(TWO)
    assert merge(text) == text


def test_a_helper_function_of_the_same_name_is_refused() -> None:
    text = TWO.replace("gpu.func @k() kernel { gpu.barrier", "func.func private @k2() gpu.func @k() kernel {")
    text = text.replace("@first {", "@first { func.func private @k2()")
    with pytest.raises(
        CandidateError, match=r"^@second: found a second func\.func @k2, allowed one in all modules$"
    ):
        merge(text)
