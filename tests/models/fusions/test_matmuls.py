"""Programs of one matmul: they have its strategies and its scripts, and are right in each layout."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.program_matmuls import program_text
from tests.fusion_problems import fusion_problems
from tuner.core.fusions import CONTRACTION, ELEMENTWISE, FusedProgram
from tuner.core.matmul import Matmul
from tuner.core.numpy_types import DTYPES
from tuner.core.problem import Problem
from tuner.mlir.reference.fusion_reference import evaluate, worst_error
from tuner.models.fusions.payload import NotFused
from tuner.models.fusions.pipeline import fuse_program
from tuner.models.linked_programs import compile_fusions
from tuner.models.run.fused_code import FusedImage
from tuner.models.run.fused_program import FusedFunction
from tuner.runtime.cpu.host import describe_machine

pytestmark = pytest.mark.mlir
MACHINE = describe_machine()
EPILOGUES = ("none", "bias_relu", "residual")
GRAM = """func.func @main(%a: tensor<256x24xf32>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x256xf32>) -> tensor<256x256xf32>
  %product = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %a : tensor<256x24xf32>, tensor<256x24xf32>) outs(%zeros : tensor<256x256xf32>)
    -> tensor<256x256xf32>
  return %product : tensor<256x256xf32>
}
"""


def fused(text: str) -> FusedProgram:
    formed = fuse_program(text)
    assert not isinstance(formed, NotFused), formed.reason
    return formed.program


def compiled(text: str, threads: int = 1) -> FusedImage:
    image = compile_fusions(text, None, MACHINE, threads=threads)
    assert isinstance(image, FusedImage)
    return image


def drawn(problem: Problem, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    arrays = []
    for argument in problem.arguments[:-1]:
        is_integer = argument.dtype.startswith("i")
        numbers = rng.integers(-99, 99, argument.shape) if is_integer else rng.standard_normal(argument.shape)
        arrays.append(np.asarray(numbers).astype(DTYPES[argument.dtype]))
    return arrays


def require_right(problem: Problem, seed: int, threads: int = 1) -> None:
    text = program_text(problem)
    (fusion,) = fused(text).fusions
    image = compiled(text, threads)
    (summary,) = image.code.fusions
    assert summary.strategy.startswith("matmul_cpu_"), summary.reason
    arrays = drawn(problem, seed)
    result = FusedFunction(image.code, tuple(image.weights))(*arrays)
    (expected,) = evaluate(fusion.text, tuple(arrays))
    assert worst_error(expected, result) <= 1


@pytest.mark.parametrize(("layout", "epilogue"), list(itertools.product(("nn", "nt", "tn"), EPILOGUES)))
def test_a_matmul_of_two_activations_is_one_fusion_that_the_matmul_s_strategies_are_for(
    layout: str, epilogue: str
) -> None:
    problem = Matmul(20, 256, 33, layout=layout, epilogue=epilogue)
    (fusion,) = fusion_problems(program_text(problem))
    assert (fusion.operation, fusion.facts.layout) == (CONTRACTION, layout)
    assert fusion.scheduled_as == problem
    assert dict(fusion.variables())["layout"] == layout
    require_right(problem, seed=0)


@settings(max_examples=8)
@given(
    st.tuples(st.integers(2, 40), st.integers(256, 300), st.integers(1, 50)),
    st.sampled_from(["f32", "f64", "bf16", "f16", "i8"]),
    st.sampled_from(["nn", "nt", "tn"]),
    st.sampled_from(["none", "bias_relu", "residual"]),
    st.integers(1, 2),
)
@example((33, 260, 65), "f32", "nt", "gelu", 2)
@example((17, 300, 33), "bf16", "tn", "residual", 1)
@example((1, 300, 33), "f32", "nt", "none", 1)
def test_the_program_of_a_drawn_matmul_is_right(
    sizes: tuple[int, int, int], dtype: str, layout: str, epilogue: str, threads: int
) -> None:
    output = dtype if dtype in ("bf16", "f16") else ""
    require_right(Matmul(*sizes, dtype, layout, epilogue, output), sum(sizes), threads)


OTHER_EPILOGUE = program_text(Matmul(20, 256, 33, layout="nt", epilogue="relu")).replace(
    "arith.maximumf %sum, %zero", "math.tanh %sum"
)
FEW_COLUMNS = program_text(Matmul(20, 64, 33, layout="nt", epilogue="relu"))


@pytest.mark.parametrize(
    ("text", "layout", "strategy"),
    [
        (OTHER_EPILOGUE, "", "contraction_cpu_direct"),
        (FEW_COLUMNS, "nn", "matmul_cpu_"),
        (GRAM, "nn", "matmul_cpu_"),
    ],
    ids=["epilogue of no row", "few columns", "a matrix times itself"],
)
def test_what_no_schedule_reads_transposed_is_transposed_before(
    text: str, layout: str, strategy: str
) -> None:
    transpose, product = fused(text).fusions
    assert (transpose.kind, product.kind) == (ELEMENTWISE, CONTRACTION)
    assert fusion_problems(text)[1].facts.layout == layout
    image = compiled(text)
    assert image.code.fusions[1].strategy.startswith(strategy)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(type_.shape).astype(np.float32) for type_ in image.code.arguments]
    result = FusedFunction(image.code, tuple(image.weights))(*arrays)
    (expected,) = evaluate(product.text, (arrays[0], np.ascontiguousarray(arrays[-1].T)))
    assert worst_error(expected, result) <= 1


def test_ragged_blocks_that_cannot_be_divided_have_a_contraction_s_schedule_on_several_threads() -> None:
    text = program_text(Matmul(170, 440, 450, epilogue="residual"))
    (alone,) = compiled(text).code.fusions
    (divided,) = compiled(text, threads=2).code.fusions
    assert alone.strategy.startswith("matmul_cpu_")
    assert divided.is_divided
