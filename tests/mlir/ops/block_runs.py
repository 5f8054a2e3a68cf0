"""Runs of ops that replace a ``linalg.matmul`` of buffers: payloads, and the code of a script's function."""

import numpy as np
import numpy.typing as npt

from tests.mlir.ops.conftest import Apply
from tuner.mlir import interpreter
from tuner.mlir.bindings import ir
from tuner.mlir.cpu import lowering
from tuner.mlir.jit import CompiledFunction, JittedModule, PackedArguments

SUMS = {"bf16": "f32", "i8": "i32"}
MAPS = {"nt": ("(m, k)", "(n, k)"), "tn": ("(k, m)", "(k, n)")}
TURN = """transform.apply_patterns to %func {
      transform.apply_patterns.vector.lower_transpose lowering_strategy = "shuffle_16x16"
      transform.apply_patterns.canonicalization
    } : !transform.any_op"""


def payload(
    m: int, n: int, k: int, element: str, layout: str = "nn", *, fill: str = "0", more: int = 0
) -> str:
    """Returns f(A, B, C): C = fill + A B, or C += A B without ``fill``; ``more``: elements behind a row."""
    total = SUMS[element]
    rows, columns = (k, m) if layout == "tn" else (m, k)
    of_a = f"{rows}x{columns}x{element}" + (f", strided<[{columns + more}, 1]>" if more else "")
    of_b = f"{n}x{k}x{element}" if layout == "nt" else f"{k}x{n}x{element}"
    of_c = f"{m}x{n}x{total}"
    maps = ", ".join(f"affine_map<(m, n, k) -> {each}>" for each in (*MAPS.get(layout, ()), "(m, n)"))
    maps = f" indexing_maps = [{maps}]" if layout != "nn" else ""
    number = fill if total == "i32" or "." in fill else f"{fill}.0"
    cleared = f"""
    %start = arith.constant {number} : {total}
    linalg.fill ins(%start : {total}) outs(%c : memref<{of_c}>)"""
    return f"""
module {{
  func.func @f(%a: memref<{of_a}>, %b: memref<{of_b}>, %c: memref<{of_c}>) {{{cleared if fill else ""}
    linalg.matmul{maps} ins(%a, %b : memref<{of_a}>, memref<{of_b}>) outs(%c : memref<{of_c}>)
    return
  }}
}}
"""


def run(
    apply: Apply, line: str, text: str, arrays: tuple[npt.NDArray[np.generic], ...], *, emulates: bool
) -> None:
    """Applies a line of script, compiles function f and calls it with arrays."""
    with interpreter.new_context(), ir.Location.unknown():
        module = interpreter.parse(apply(f"{line}\n    {TURN}", text), "payload")
        code = JittedModule(lowering.lower_to_llvm(module, emulates=emulates), ("f",))
    CompiledFunction(code.addresses["f"])(PackedArguments(*(array.ctypes.data for array in arrays)))
