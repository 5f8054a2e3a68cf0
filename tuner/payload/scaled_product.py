"""The product of a matmul with scales of blocks, as ops of a payload."""

from tuner.core.dtypes import number_type
from tuner.core.problem import SCALED_COLUMNS, SCALED_DEPTH, Problem
from tuner.payload.cpu import tensor_type

# of A, B, their scales, and C; scripts match the operation by this text
SCALED_MAPS = (
    "indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, "
    f"affine_map<(m, n, k) -> (m, k floordiv {SCALED_DEPTH})>, "
    f"affine_map<(m, n, k) -> (n floordiv {SCALED_COLUMNS}, k floordiv {SCALED_DEPTH})>, "
    "affine_map<(m, n, k) -> (m, n)>]"
)


def factor_types(problem: Problem) -> tuple[str, ...]:
    """Returns the MLIR tensor types, as text, of A, B, the scales of A and the scales of B."""
    a, b, of_a, of_b, *_ = problem.arguments
    return tuple(tensor_type(factor.shape, number_type(factor.dtype).mlir) for factor in (a, b, of_a, of_b))


def scaled_product(problem: Problem, start: str, kind: str) -> str:
    """Returns the MLIR text of ops that make %product, of type ``kind``, of %A, %B, %SCALE_A and %SCALE_B.

    ``start``: the tensor that the sums are written to.
    """
    element = problem.stored_dtype
    return f"""    %cleared = linalg.fill ins(%zero : f32) outs({start} : {kind}) -> {kind}
    %product = linalg.generic {{{SCALED_MAPS},
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%A, %B, %SCALE_A, %SCALE_B : {", ".join(factor_types(problem))}) outs(%cleared : {kind}) {{
    ^bb0(%x: {element}, %y: {element}, %of_x: f32, %of_y: f32, %sum: f32):
      %wide_x = arith.extf %x : {element} to f32
      %wide_y = arith.extf %y : {element} to f32
      %xy = arith.mulf %wide_x, %wide_y : f32
      %scale = arith.mulf %of_x, %of_y : f32
      %scaled = arith.mulf %xy, %scale : f32
      %more = arith.addf %sum, %scaled : f32
      linalg.yield %more : f32
    }} -> {kind}
"""
