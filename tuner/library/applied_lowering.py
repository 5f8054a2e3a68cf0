"""A program on tensors, a library applied to it, lowered to LLVM dialect for this processor.

  func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>) -> tensor<4x16xf32>
becomes
  llvm.func @f(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr)
"""

from tuner.core.problem import Problem
from tuner.mlir import bindings, interpreter
from tuner.mlir.cpu.jit_guards import reject_what_the_jit_cannot_take
from tuner.mlir.cpu.lowering import lower_to_llvm
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.memref_copies import copy_by_loops
from tuner.payload.cpu import zero
from tuner.scripts.matchers import LINALG, maps_attribute

# With bare pointers a function cannot return a buffer: malloc's address is returned, not the aligned one.
RESULTS_TO_ARGUMENTS = (
    "builtin.module(buffer-results-to-out-params{modify-public-functions=true hoist-static-allocs=true})"
)


def lower_applied(library: str, program: str) -> str:
    """Returns the LLVM dialect, as text for the JIT, of a program to which a library was applied.

    Both are MLIR text. Results of functions become arguments. Raises CandidateError where the library or a
    pass fails, and for code that the JIT cannot take.
    """
    with interpreter.new_context(), bindings.ir.Location.unknown():
        module = interpreter.parse(program, "payload")
        interpreter.apply_script(module, interpreter.parse(library, "library"))
        return lowered(module)


def lowered(module: bindings.ir.Module) -> str:
    """Returns the LLVM dialect of a bufferized module, changed in place; results become arguments."""
    run_passes(module, RESULTS_TO_ARGUMENTS)
    copy_by_loops(module)
    code = lower_to_llvm(module)
    reject_what_the_jit_cannot_take(code)
    return code


def tensor_program(problem: Problem, name: str) -> str:
    """Returns a module of a function ``name`` from the tensors A and B to their product."""
    a, b, c = (
        f"tensor<{'x'.join(map(str, shape))}x{kind}>"
        for shape, kind in (
            (problem.a_shape, problem.stored_dtype),
            (problem.b_shape, problem.stored_dtype),
            (problem.c_shape, problem.result_dtype),
        )
    )
    element = problem.result_dtype
    op = LINALG[problem.operation]
    return f"""func.func @{name}(%a: {a}, %b: {b}) -> {c} {{
  %zero = arith.constant {zero(element)}
  %empty = tensor.empty() : {c}
  %cleared = linalg.fill ins(%zero : {element}) outs(%empty : {c}) -> {c}
  %product = {op} {maps_attribute(problem.operation, problem.layout)}
    ins(%a, %b : {a}, {b}) outs(%cleared : {c}) -> {c}
  return %product : {c}
}}
"""
