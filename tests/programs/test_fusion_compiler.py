"""Programs of quantized layers: i8 matmuls with scales in the same fusion; on threads; saved and loaded."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tests.cli.conftest import Tuner
from tests.db.test_groups import SUMMARY
from tests.texts import text_beside
from tuner.core.fusions import CONTRACTION
from tuner.core.problem import WARM
from tuner.core.programs import ExplainedFusion
from tuner.core.reliability import RELIABLE, unreliable
from tuner.programs import fusion_compiler
from tuner.programs.fusion_compiler import compile_fusions, with_shares
from tuner.programs.fusion_schedules import tunable_fusions
from tuner.programs.fusions.payload import NotFused
from tuner.programs.run.fused_code import FusedImage
from tuner.programs.run.fused_program import FusedFunction
from tuner.programs.run.host_function import HostFunction
from tuner.results.output.program_tables import explained_document, fusion_table
from tuner.runtime.cpu.host import describe_machine
from tuner.targets.registry import real_backends

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


@pytest.mark.mlir
@pytest.mark.slow
def test_each_layer_is_one_fusion_with_a_schedule() -> None:
    fusions = compiled().code.fusions
    assert [each.kind for each in fusions] == [CONTRACTION, CONTRACTION]
    if describe_machine().has_vnni:
        assert {each.strategy for each in fusions} <= STRATEGIES


@pytest.mark.mlir
@pytest.mark.slow
def test_a_quantized_program_gives_what_numpy_gives() -> None:
    x = bytes_of(5, M, K)
    program = tuner.compile_program(TEXT, target="cpu")
    for _ in range(3):
        np.testing.assert_allclose(program(x), expected(x), rtol=1e-6, atol=1e-6)


@pytest.mark.mlir
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


@pytest.mark.mlir
def test_a_layer_counts_by_the_peak_of_what_it_multiplies() -> None:
    if not describe_machine().has_vnni:
        pytest.skip("this processor has no VNNI")
    assert [each.element for each in compiled().code.fusions] == ["i8", "i8"]


@pytest.mark.mlir
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


@pytest.mark.mlir
def test_a_saved_program_has_packed_weights_and_needs_no_compiler(tmp_path: Path) -> None:
    x = bytes_of(7, M, K)
    program = tuner.compile_program(TEXT, target="cpu")
    assert isinstance(program, FusedFunction)
    program.export(tmp_path / "program")
    np.testing.assert_array_equal(tuner.load(tmp_path / "program")(x), program(x))


# Payloads on the CPU: as fusions where they can be, else as a whole, and the reason is given.

WEIGHTS = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)
LINEAR = f"""#whole = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<5x4xf32>) -> tensor<5x6xf32> {{
  %w = arith.constant dense_resource<w> : tensor<6x4xf32>
  %zero = arith.constant 0.0 : f32
  %turned = tensor.empty() : tensor<4x6xf32>
  %t = linalg.transpose ins(%w : tensor<6x4xf32>) outs(%turned : tensor<4x6xf32>) permutation = [1, 0]
  %empty = tensor.empty() : tensor<5x6xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<5x6xf32>) -> tensor<5x6xf32>
  %y = linalg.matmul ins(%x, %t : tensor<5x4xf32>, tensor<4x6xf32>) outs(%zeros : tensor<5x6xf32>)
    -> tensor<5x6xf32>
  %z = linalg.generic {{indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}}
    ins(%y : tensor<5x6xf32>) outs(%empty : tensor<5x6xf32>) {{
  ^bb0(%a: f32, %b: f32):
    %m = arith.maximumf %a, %zero : f32
    linalg.yield %m : f32
  }} -> tensor<5x6xf32>
  return %z : tensor<5x6xf32>
}}
{{-#
  dialect_resources: {{
    builtin: {{
      w: "0x04000000{WEIGHTS.tobytes().hex().upper()}"
    }}
  }}
#-}}
"""
LOOP = text_beside(__file__, "LOOP")


@pytest.mark.mlir
def test_a_payload_with_weights_is_fusions_that_read_packed_weights() -> None:
    program: Any = tuner.compile_program(LINEAR, target="cpu")
    assert isinstance(program, FusedFunction)
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    np.testing.assert_allclose(program(x), np.maximum(x @ WEIGHTS.T, 0), rtol=1e-5, atol=1e-6)
    (fusion,) = program.code.fusions
    assert (fusion.kind, fusion.origin) == ("contraction", "first")
    assert program.code.needs[0] in ("avx512", "avx2")


@pytest.mark.mlir
def test_a_payload_with_control_flow_is_compiled_as_a_whole() -> None:
    program: Any = tuner.compile_program(LOOP, target="cpu")
    assert isinstance(program, HostFunction)
    np.testing.assert_array_equal(program(np.ones(4, np.float32), 2), [3, 3, 3, 3])
    assert "index is no tensor" in program.why_no_fusions


@pytest.mark.mlir
@pytest.mark.slow
def test_run_says_why_a_program_is_computed_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "loop.mlir").write_text(LOOP)
    run = Tuner(tmp_path / "results.db", real_backends())
    done = run("run", str(tmp_path / "loop.mlir"), "--target", "cpu", "--arg", "1=3", "--explain")
    assert done.code == 0, done.err
    assert "whole   no fusions, " in done.out
    assert "argument 1: index is no tensor" in done.out
    refused = run("run", str(tmp_path / "loop.mlir"), "--target", "simulator", "--explain")
    assert refused.code == 2
    assert "--explain cannot be combined with target simulator" in refused.err


@pytest.mark.mlir
@pytest.mark.slow
def test_run_shows_fusions_as_a_table_and_how_to_tune_them(tmp_path: Path) -> None:
    (tmp_path / "linear.mlir").write_text(LINEAR)
    run = Tuner(tmp_path / "results.db", real_backends())
    done = run("run", str(tmp_path / "linear.mlir"), "--target", "cpu", "--explain")
    assert done.code == 0, done.err
    *_, header, row, following = done.out.splitlines()
    assert header.split()[:6] == ["group", "kind", "time", "reliability", "share", "roofline"]
    assert row.split()[:2] == ["g0", "contraction"]
    assert "100%" in row or "unreliable" in row
    assert " first " in row
    assert following.startswith("next    tuner tune ")


@pytest.mark.mlir
@pytest.mark.slow
def test_run_explains_each_fusion(tmp_path: Path) -> None:
    (tmp_path / "linear.mlir").write_text(LINEAR)
    run = Tuner(tmp_path / "results.db", real_backends())
    done = run("run", str(tmp_path / "linear.mlir"), "--target", "cpu", "--explain", "--json")
    assert done.code == 0, done.err
    (fusion,) = json.loads(done.out)["groups"]
    assert fusion["ops"] == ["linalg.matmul", "arith.maximumf"]
    assert (fusion["flop"], fusion["reason"]) == (2 * 5 * 4 * 6, None)
    assert fusion["share"] == (1 if fusion["reliability"] == "reliable" else None)
    assert fusion["roofline"] is None or 0 < fusion["roofline"] < 1


# Shares of a program's fusions: only of times that can be relied on.

FIRST = ExplainedFusion(SUMMARY, 6e-6, reliability=RELIABLE)
SECOND = ExplainedFusion(replace(SUMMARY, kind="rows"), 2e-6, reliability=RELIABLE)


@pytest.mark.slow
def test_reliable_times_have_shares_of_the_whole_and_of_the_roofline() -> None:
    first, second = with_shares((FIRST, SECOND), describe_machine(), 8e-6)
    assert (first.share, second.share) == (0.75, 0.25)
    assert first.roofline is not None


@pytest.mark.slow
def test_a_part_that_takes_longer_than_the_whole_is_unreliable_and_nothing_has_a_share() -> None:
    """Measured: 75.21 us and 39.74 us for parts of a program of 11.55 us."""
    parts = (replace(FIRST, time_s=75.21e-6), replace(SECOND, time_s=39.74e-6))
    found = with_shares(parts, describe_machine(), 11.55e-6)
    assert [each.reliability for each in found] == [
        unreliable("it takes longer than a whole call, 11.55 us")
    ] * 2
    assert [(each.share, each.roofline) for each in found] == [(None, None)] * 2


@pytest.mark.slow
def test_one_disturbed_fusion_leaves_the_others_without_a_share() -> None:
    disturbed = replace(SECOND, reliability=unreliable("the reference kernel drifted by 34%: load"))
    found = with_shares((FIRST, disturbed), describe_machine(), 8e-6)
    assert [each.share for each in found] == [None, None]
    assert found[0].roofline is not None
    header, *rows = fusion_table(found)
    cells = [dict(zip(header, row, strict=True)) for row in rows]
    assert [(each["reliability"], each["share"]) for each in cells] == [
        ("reliable", "-"),
        ("unreliable", "-"),
    ]
    assert cells[1]["roofline"] == "-"
    document = explained_document(found[1])
    assert document["reliability"] == "unreliable: the reference kernel drifted by 34%: load"
    assert (document["share"], document["roofline"]) == (None, None)
