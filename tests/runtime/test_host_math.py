import numpy as np
import pytest

from tests.mlir.programs import host_function

pytestmark = pytest.mark.mlir

host_math = pytest.importorskip("tuner.runtime.host_math")

TEXT = """func.func @f(%a: tensor<16xf32>) -> tensor<16xf32> {{
  %e = tensor.empty() : tensor<16xf32>
  %s = linalg.{0} ins(%a : tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  return %s : tensor<16xf32>
}}"""


@pytest.mark.parametrize("name", ["exp", "tanh", "log", "sqrt", "abs", "floor"])
def test_functions_of_numbers_give_what_numpy_gives(name: str) -> None:
    a = np.linspace(0.1, 4, 16, dtype=np.float32)
    np.testing.assert_allclose(host_function(TEXT.format(name))(a), getattr(np, name)(a), rtol=1e-6)


def test_only_what_the_library_has_is_found() -> None:
    text = "llvm.func @math_expf(f32) -> f32\nllvm.func @math_none(f32) -> f32\nllvm.func @malloc(i64)"
    assert set(host_math.math_symbols(text)) == {"math_expf"}
