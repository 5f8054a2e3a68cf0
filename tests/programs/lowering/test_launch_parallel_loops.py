from typing import Any

import numpy as np
import pytest

from tests.programs.lowering.compiled import host_function, module_text
from tuner.core.errors import CandidateError

pytestmark = pytest.mark.mlir

launch_parallel_loops = pytest.importorskip("tuner.programs.lowering.kernels")

CONSTANTS = "%c0 = arith.constant 0 : index %c1 = arith.constant 1 : index %c3 = arith.constant 3 : index"
ONE = "%one = arith.constant 1.0 : f32"


def rewrite(payload: Any) -> None:
    launch_parallel_loops.launch_parallel_loops(payload.function)


def filling(bounds: str, kind: str, indices: str = "%i, %j", extra: str = "") -> str:
    """Returns a program that adds one to the element of each iteration."""
    return f"""func.func @f(%a: memref<{kind}>{extra}) {{
      {CONSTANTS} {ONE}
      scf.parallel {bounds} {{
        %x = memref.load %a[{indices}] : memref<{kind}>
        %y = arith.addf %x, %one : f32
        memref.store %y, %a[{indices}] : memref<{kind}>
        scf.reduce
      }}
      return
    }}"""


def test_every_iteration_runs_once() -> None:
    kind = "37x53xf32"
    sizes = "%c37 = arith.constant 37 : index %c53 = arith.constant 53 : index"
    text = filling("(%i, %j) = (%c0, %c0) to (%c37, %c53) step (%c1, %c1)", kind)
    a = np.zeros((37, 53), np.float32)
    host_function(text.replace(ONE, f"{ONE} {sizes}"), rewrite)(a)
    np.testing.assert_array_equal(a, np.ones((37, 53)))


def test_bounds_and_steps_are_kept() -> None:
    text = filling("(%i) = (%c1) to (%n) step (%c3)", "?xf32", "%i", ", %n: index")
    function = host_function(text, rewrite)
    for length in (0, 1, 2, 4, 5, 20):
        a, expected = np.zeros(20, np.float32), np.zeros(20)
        function(a, length)
        expected[1:length:3] = 1
        np.testing.assert_array_equal(a, expected)


def test_neighbouring_threads_take_the_last_dimension() -> None:
    text = module_text(filling("(%i, %j) = (%c0, %c0) to (%c3, %c3) step (%c1, %c1)", "3x3xf32"), rewrite)
    lines = [line.strip() for line in text.splitlines()]
    column = next(line for line in lines if "arith.remui" in line).split(" =")[0]
    assert f", {column}]" in next(line for line in lines if "memref.load" in line)
    assert text.count("gpu.launch") == 1
    assert "scf.parallel" not in text


def test_an_inner_loop_stays_within_its_thread() -> None:
    inner = """scf.parallel (%i) = (%c0) to (%c3) step (%c1) {
        scf.parallel (%j) = (%c0) to (%c3) step (%c1) {
          memref.store %one, %a[%i, %j] : memref<3x3xf32>
          scf.reduce
        }
        scf.reduce
      }"""
    text = f"func.func @f(%a: memref<3x3xf32>) {{ {CONSTANTS} {ONE} {inner} return }}"
    assert module_text(text, rewrite).count("gpu.launch") == 1
    a = np.zeros((3, 3), np.float32)
    host_function(text, rewrite)(a)
    assert a.all()


def test_a_loop_that_reduces_to_a_value_stays_with_the_host() -> None:
    text = f"""func.func @f(%a: memref<8xf32>) -> f32 {{
      {CONSTANTS} {ONE}
      %sum = scf.parallel (%i) = (%c0) to (%c3) step (%c1) init (%one) -> f32 {{
        %x = memref.load %a[%i] : memref<8xf32>
        scf.reduce(%x : f32) {{
        ^bb0(%left: f32, %right: f32):
          %both = arith.addf %left, %right : f32
          scf.reduce.return %both : f32
        }}
      }}
      return %sum : f32
    }}"""
    assert "gpu.launch" not in module_text(text, rewrite)
    assert host_function(text, rewrite)(np.arange(8, dtype=np.float32)) == 4.0


def test_a_grid_is_never_empty() -> None:
    text = filling("(%i) = (%c0) to (%n) step (%c1)", "?xf32", "%i", ", %n: index")
    lines = module_text(text, rewrite).splitlines()
    (largest,) = (line for line in lines if "arith.maxsi" in line and "%c1" in line)
    blocks = largest.split("=")[0].strip()
    assert f"= {blocks}" in next(line for line in lines if "gpu.launch" in line)


def test_more_iterations_than_a_grid_has_threads_are_refused() -> None:
    text = filling("(%i) = (%c0) to (%n) step (%c1)", "?xf32", "%i")
    with pytest.raises(CandidateError, match="found 549755813889 parallel iterations, allowed 549755813632"):
        module_text(text.replace(ONE, f"{ONE} %n = arith.constant 549755813889 : index"), rewrite)
