"""Payloads on the CPU: as fusions where they can be, else as a whole, and the reason is given."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tests.cli.conftest import Tuner
from tuner.programs.run.fused_program import FusedFunction
from tuner.programs.run.host_function import HostFunction
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir

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
LOOP = """func.func @main(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %x) -> tensor<4xf32> {
    %more = arith.addf %sum, %x : tensor<4xf32>
    scf.yield %more : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}"""


def test_a_payload_with_weights_is_fusions_that_read_packed_weights() -> None:
    program: Any = tuner.compile_program(LINEAR, target="cpu")
    assert isinstance(program, FusedFunction)
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    np.testing.assert_allclose(program(x), np.maximum(x @ WEIGHTS.T, 0), rtol=1e-5, atol=1e-6)
    (fusion,) = program.code.fusions
    assert (fusion.kind, fusion.origin) == ("contraction", "first")
    assert program.code.needs[0] in ("avx512", "avx2")


def test_a_payload_with_control_flow_is_compiled_as_a_whole() -> None:
    program: Any = tuner.compile_program(LOOP, target="cpu")
    assert isinstance(program, HostFunction)
    np.testing.assert_array_equal(program(np.ones(4, np.float32), 2), [3, 3, 3, 3])
    assert "index is no tensor" in program.why_no_fusions


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
