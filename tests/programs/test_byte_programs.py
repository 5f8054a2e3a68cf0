"""Programs of quantized layers: i8 matmuls with scales in the same fusion; on threads; saved and loaded."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tuner
from tuner.core.fusions import CONTRACTION
from tuner.core.problem import WARM
from tuner.programs import fusion_compiler
from tuner.programs.fusion_compiler import compile_fusions
from tuner.programs.fusion_schedules import tunable_fusions
from tuner.programs.fusions.payload import NotFused
from tuner.programs.run.fused_code import FusedImage
from tuner.programs.run.fused_program import FusedFunction
from tuner.runtime.cpu.host import describe_machine

pytestmark = pytest.mark.mlir

M, K, HIDDEN, N = 29, 43, 230, 150
SCALE = 2.0**-7
STRATEGIES = {"contraction_cpu_vnni", "contraction_cpu_amx"}


def bytes_of(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def floats_of(seed: int, size: int) -> np.ndarray:
    return np.random.default_rng(seed).random(size).astype(np.float32)


W1, W2 = bytes_of(1, K, HIDDEN), bytes_of(2, HIDDEN, N)
COLUMNS, BIAS = floats_of(3, N) / 64, floats_of(4, N)


def constant(name: str, array: np.ndarray) -> str:
    element = {"int8": "i8", "float32": "f32"}[array.dtype.name]
    kind = f"tensor<{'x'.join(map(str, array.shape))}x{element}>"
    return f'  %{name} = arith.constant dense<"0x{array.tobytes().hex().upper()}"> : {kind}\n'


def matmul(name: str, a: str, b: str, m: int, n: int, k: int) -> str:
    sums, factors = f"tensor<{m}x{n}xi32>", f"tensor<{m}x{k}xi8>, tensor<{k}x{n}xi8>"
    return f"""  %{name}_e = tensor.empty() : {sums}
  %{name}_z = linalg.fill ins(%zero : i32) outs(%{name}_e : {sums}) -> {sums}
  %{name} = linalg.matmul ins({a}, {b} : {factors}) outs(%{name}_z : {sums}) -> {sums}
"""


# The first layer is requantized, the second one scaled by columns, with bias and relu.
TEXT = f"""#whole = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @main(%x: tensor<{M}x{K}xi8>) -> tensor<{M}x{N}xf32> {{
  %zero = arith.constant 0 : i32
{constant("w1", W1)}{constant("w2", W2)}{constant("s", COLUMNS)}{constant("b", BIAS)}
{matmul("p", "%x", "%w1", M, HIDDEN, K)}
  %h_e = tensor.empty() : tensor<{M}x{HIDDEN}xi8>
  %h = linalg.generic {{indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}}
    ins(%p : tensor<{M}x{HIDDEN}xi32>) outs(%h_e : tensor<{M}x{HIDDEN}xi8>) {{
  ^bb0(%v: i32, %o: i8):
    %scale = arith.constant {SCALE} : f32
    %least = arith.constant -128.0 : f32
    %greatest = arith.constant 127.0 : f32
    %f = arith.sitofp %v : i32 to f32
    %g = arith.mulf %f, %scale : f32
    %r = math.roundeven %g : f32
    %u = arith.maximumf %r, %least : f32
    %t = arith.minimumf %u, %greatest : f32
    %q = arith.fptosi %t : f32 to i8
    linalg.yield %q : i8
  }} -> tensor<{M}x{HIDDEN}xi8>
{matmul("q", "%h", "%w2", M, N, HIDDEN)}
  %y_e = tensor.empty() : tensor<{M}x{N}xf32>
  %y = linalg.generic {{indexing_maps = [#whole, #column, #column, #whole],
                       iterator_types = ["parallel", "parallel"]}}
    ins(%q, %s, %b : tensor<{M}x{N}xi32>, tensor<{N}xf32>, tensor<{N}xf32>)
    outs(%y_e : tensor<{M}x{N}xf32>) {{
  ^bb0(%v: i32, %by: f32, %more: f32, %o: f32):
    %c0 = arith.constant 0.0 : f32
    %f = arith.sitofp %v : i32 to f32
    %g = arith.mulf %f, %by : f32
    %t = arith.addf %g, %more : f32
    %r = arith.maximumf %t, %c0 : f32
    linalg.yield %r : f32
  }} -> tensor<{M}x{N}xf32>
  return %y : tensor<{M}x{N}xf32>
}}
"""


def expected(x: np.ndarray) -> np.ndarray:
    hidden = np.rint((x.astype(np.int32) @ W1.astype(np.int32)) * SCALE).clip(-128, 127).astype(np.int32)
    sums = hidden @ W2.astype(np.int32)
    result: np.ndarray = np.maximum(sums.astype(np.float32) * COLUMNS + BIAS, 0)
    return result


def compiled(threads: int = 1) -> FusedImage:
    found = compile_fusions(TEXT, None, describe_machine(), threads=threads)
    assert not isinstance(found, NotFused), found
    return found


@pytest.mark.slow
def test_each_layer_is_one_fusion_with_a_schedule() -> None:
    fusions = compiled().code.fusions
    assert [each.kind for each in fusions] == [CONTRACTION, CONTRACTION]
    if describe_machine().has_vnni:
        assert {each.strategy for each in fusions} <= STRATEGIES


@pytest.mark.slow
def test_a_quantized_program_gives_what_numpy_gives() -> None:
    x = bytes_of(5, M, K)
    program = tuner.compile_program(TEXT, target="cpu")
    for _ in range(3):
        np.testing.assert_allclose(program(x), expected(x), rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_without_dot_products_of_bytes_layers_are_loops_and_say_so() -> None:
    plain = replace(describe_machine(), has_vnni=False, has_amx_int8=False, processor="Plain processor")
    found = compile_fusions(TEXT, None, plain)
    assert not isinstance(found, NotFused), found
    why = "no strategy is for contraction of i8 of these sizes on Plain processor"
    assert [(each.strategy, each.reason) for each in found.code.fusions] == [("", why)] * 2
    x = bytes_of(8, M, K)
    result = FusedFunction(found.code, found.weights)(x)
    np.testing.assert_allclose(result, expected(x), rtol=1e-6, atol=1e-6)
    tunable = tunable_fusions(TEXT, None, WARM, plain)
    assert tunable.problems == ()
    assert all(each.endswith(why) for each in tunable.left_out)


def test_a_layer_counts_by_the_peak_of_what_it_multiplies() -> None:
    if not describe_machine().has_vnni:
        pytest.skip("this processor has no VNNI")
    assert [each.element for each in compiled().code.fusions] == ["i8", "i8"]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [2, 3])
def test_several_threads_give_the_bits_of_one(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion_compiler, "LEAST_S", 0.0)
    alone, together = (compiled(each) for each in (1, threads))
    assert [each.is_divided for each in together.code.fusions] == [True, True]
    x = bytes_of(6, M, K)
    one, several = (FusedFunction(each.code, each.weights) for each in (alone, together))
    bits = np.asarray(one(x)).tobytes()
    for _ in range(10):
        assert np.asarray(several(x)).tobytes() == bits


def test_a_saved_program_has_packed_weights_and_needs_no_compiler(tmp_path: Path) -> None:
    x = bytes_of(7, M, K)
    program = tuner.compile_program(TEXT, target="cpu")
    assert isinstance(program, FusedFunction)
    program.export(tmp_path / "program")
    np.testing.assert_array_equal(tuner.load(tmp_path / "program")(x), program(x))
