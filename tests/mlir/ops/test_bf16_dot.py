"""``tuner.bf16_dot``: the code it makes of a contraction, that it is right, and what it refuses."""

import ctypes
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from tests.mlir.ops.conftest import Apply
from tuner.core.errors import CandidateError, Stage
from tuner.mlir import interpreter
from tuner.mlir.bindings import ir
from tuner.mlir.cpu import lowering
from tuner.mlir.jit import CompiledFunction, JittedModule, PackedArguments
from tuner.runtime.cpu.describe_host import describe_machine

pytestmark = pytest.mark.mlir

LINE = '"tuner.bf16_dot"(%func) : (!transform.any_op) -> ()'
MAPS = "affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>"
ITERATORS = '"parallel", "parallel", "reduction"'
NEEDS_BF16 = pytest.mark.skipif(not describe_machine().has_bf16, reason="this processor has no AVX512-BF16")


def payload(rows: int, columns: int, depth: int = 2, dtype: str = "bf16") -> str:
    """Returns f(A, B, C): C += A B^T for one register tile."""
    a, b, c = (f"{rows}x{depth}x{dtype}", f"{columns}x{depth}x{dtype}", f"{rows}x{columns}xf32")
    return f"""
module {{
  func.func @f(%a: memref<{a}>, %b: memref<{b}>, %c: memref<{c}>) {{
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : {dtype}
    %zero_c = arith.constant 0.0 : f32
    %va = vector.transfer_read %a[%c0, %c0], %zero {{in_bounds = [true, true]}} : memref<{a}>, vector<{a}>
    %vb = vector.transfer_read %b[%c0, %c0], %zero {{in_bounds = [true, true]}} : memref<{b}>, vector<{b}>
    %vc = vector.transfer_read %c[%c0, %c0], %zero_c {{in_bounds = [true, true]}} : memref<{c}>, vector<{c}>
    %sum = vector.contract {{indexing_maps = [{MAPS}], iterator_types = [{ITERATORS}]}}
      %va, %vb, %vc : vector<{a}>, vector<{b}> into vector<{c}>
    vector.transfer_write %sum, %c[%c0, %c0] {{in_bounds = [true, true]}} : vector<{c}>, memref<{c}>
    return
  }}
}}
"""


@pytest.mark.parametrize(("rows", "columns"), [(1, 16), (2, 32)])
def test_a_contraction_becomes_broadcasts_and_dot_products(
    rows: int, columns: int, apply: Apply, golden: Callable[[str, str], None]
) -> None:
    text = apply(LINE, payload(rows, columns))
    assert "vector.contract" not in text
    assert text.count("x86.avx512.dot") == rows * columns // 16
    golden(f"bf16_dot_{rows}x{columns}.mlir", text)


@NEEDS_BF16
@pytest.mark.parametrize(("rows", "columns"), [(1, 16), (3, 16), (2, 32), (4, 64), (7, 48)])
def test_the_dot_products_give_the_contraction(rows: int, columns: int, apply: Apply) -> None:
    lower_multi_reads = """transform.apply_patterns to %func {
      transform.apply_patterns.vector.flatten_vector_transfer_ops
    } : !transform.any_op"""
    with interpreter.new_context(), ir.Location.unknown():
        text = lowering.lower_to_llvm(
            interpreter.parse(apply(f"{LINE}\n    {lower_multi_reads}", payload(rows, columns)), "payload")
        )
    code = JittedModule(text, ("f",))
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((extent, 2)).astype(ml_dtypes.bfloat16) for extent in (rows, columns))
    c = rng.standard_normal((rows, columns)).astype(np.float32)
    expected = c + a.astype(np.float32) @ b.astype(np.float32).T
    arguments = PackedArguments(*(array.ctypes.data_as(ctypes.c_void_p).value or 0 for array in (a, b, c)))
    CompiledFunction(code.addresses["f"])(arguments)
    assert np.allclose(c, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "types"),
    [
        (payload(2, 24), r"vector<2x2xbf16> x vector<24x2xbf16>"),  # no whole register
        (payload(2, 16, depth=4), r"vector<2x4xbf16> x vector<16x4xbf16>"),
        (payload(2, 16, dtype="f32"), r"vector<2x2xf32> x vector<16x2xf32>"),
    ],
)
def test_another_contraction_is_refused_with_its_types(text: str, types: str, apply: Apply) -> None:
    reason = rf"^tuner\.bf16_dot at script:.*found a contraction of {types}, allowed rows x 2 and columns x 2"
    with pytest.raises(CandidateError, match=reason) as caught:
        apply(LINE, text)
    assert caught.value.stage == Stage.COMPILE


def test_a_function_without_contractions_is_left_alone(apply: Apply) -> None:
    before = apply('transform.annotate %func "seen" : !transform.any_op', EMPTY)
    assert apply(f'{LINE}\n    transform.annotate %func "seen" : !transform.any_op', EMPTY) == before


EMPTY = "module { func.func @f() { return } }"
