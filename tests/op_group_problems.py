"""A small program, and its fusions as problems: a matmul with an epilogue, rows, a plain matmul."""

from functools import cache

from tuner.core.interfaces import Script
from tuner.core.problem import Problem
from tuner.mlir.fusions import fusion_problem
from tuner.programs.fusions.payload import NotFused
from tuner.programs.fusions.pipeline import fuse_program
from tuner.runtime.cpu.host import describe_machine
from tuner.space.scripts.choice import first_configuration


def program_text(rows: int = 8, inner: int = 24, hidden: int = 32) -> str:
    """Returns y = softmax(relu(x W + b)) V as MLIR text, with weights as constants."""
    return f"""
#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @main(%x: tensor<{rows}x{inner}xf32>) -> tensor<{rows}x{inner}xf32> {{
  %w = arith.constant dense_resource<w> : tensor<{inner}x{hidden}xf32>
  %v = arith.constant dense_resource<v> : tensor<{hidden}x{inner}xf32>
  %b = arith.constant dense_resource<b> : tensor<{hidden}xf32>
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<{rows}x{hidden}xf32>
  %e1 = tensor.empty() : tensor<{rows}xf32>
  %e2 = tensor.empty() : tensor<{rows}x{inner}xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<{rows}x{hidden}xf32>) -> tensor<{rows}x{hidden}xf32>
  %h = linalg.matmul ins(%x, %w : tensor<{rows}x{inner}xf32>, tensor<{inner}x{hidden}xf32>)
    outs(%f0 : tensor<{rows}x{hidden}xf32>) -> tensor<{rows}x{hidden}xf32>
  %r = linalg.generic {{indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}}
    ins(%h, %b : tensor<{rows}x{hidden}xf32>, tensor<{hidden}xf32>) outs(%e0 : tensor<{rows}x{hidden}xf32>) {{
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %sum = arith.addf %in, %bias : f32
    %max = arith.maximumf %sum, %zero : f32
    linalg.yield %max : f32
  }} -> tensor<{rows}x{hidden}xf32>
  %f1 = linalg.fill ins(%low : f32) outs(%e1 : tensor<{rows}xf32>) -> tensor<{rows}xf32>
  %m = linalg.generic {{indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}}
    ins(%r : tensor<{rows}x{hidden}xf32>) outs(%f1 : tensor<{rows}xf32>) {{
  ^bb0(%in: f32, %out: f32):
    %max = arith.maximumf %in, %out : f32
    linalg.yield %max : f32
  }} -> tensor<{rows}xf32>
  %s = linalg.generic {{indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}}
    ins(%r, %m : tensor<{rows}x{hidden}xf32>, tensor<{rows}xf32>) outs(%e0 : tensor<{rows}x{hidden}xf32>) {{
  ^bb0(%in: f32, %max: f32, %out: f32):
    %d = arith.subf %in, %max : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  }} -> tensor<{rows}x{hidden}xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<{rows}x{inner}xf32>) -> tensor<{rows}x{inner}xf32>
  %y = linalg.matmul ins(%s, %v : tensor<{rows}x{hidden}xf32>, tensor<{hidden}x{inner}xf32>)
    outs(%f2 : tensor<{rows}x{inner}xf32>) -> tensor<{rows}x{inner}xf32>
  return %y : tensor<{rows}x{inner}xf32>
}}
""" + _resources({"w": inner * hidden, "v": inner * hidden, "b": hidden})


def _resources(sizes: dict[str, int]) -> str:
    """Returns the data of constants: 0.25, -0.5 and 0.75 again and again, as hexadecimal f32."""
    import numpy as np

    def words(size: int) -> str:
        numbers = np.resize(np.array([0.25, -0.5, 0.75], "<f4"), size)
        return "0x04000000" + numbers.tobytes().hex().upper()

    entries = ",\n".join(f'      {name}: "{words(size)}"' for name, size in sizes.items())
    return "{-#\n  dialect_resources: {\n    builtin: {\n" + entries + "\n    }\n  }\n#-}\n"


@cache
def fusion_problems(text: str = "") -> tuple[Problem, ...]:
    """Returns the fusions of a program as problems, in order."""
    formed = fuse_program(text or program_text())
    assert not isinstance(formed, NotFused), formed.reason
    return tuple(fusion_problem(fusion) for fusion in formed.program.fusions)


def first_script(problem: Problem) -> Script:
    """Returns the script of a problem's first configuration on this machine."""
    found = first_configuration(problem, describe_machine())
    assert found is not None
    return found[1]
