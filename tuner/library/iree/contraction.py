"""What IREE's compiler sees of a problem: a contraction of sizes, types and layout; and a program of it."""

from dataclasses import replace

from tuner.core.problem import NUMPY_ALIGNMENT, WARM, Problem
from tuner.payload.cpu import zero

MAPS = {  # layout -> dimensions of A and B in memory
    "nn": ("mk", "kn"),
    "nt": ("mk", "nk"),
    "tn": ("km", "kn"),
}
NUMBERED = {"m": 0, "n": 1, "k": 2}  # dimensions as IREE numbers them, without a batch


def contraction_of(problem: Problem) -> Problem:
    """Returns the problem without what IREE's matchers do not see: epilogue, type of C, alignment, caches."""
    return replace(problem, epilogue="none", output="", align=NUMPY_ALIGNMENT, cache=WARM)


def indexing_maps(problem: Problem) -> str:
    """Returns the indexing maps of A, B and C as an MLIR attribute; dimensions are named d0, d1, ..."""
    shift = 1 if problem.lead else 0
    names = {name: f"d{number + shift}" for name, number in NUMBERED.items()}
    lead = ["d0"] * shift
    domain = ", ".join((*lead, *names.values()))
    operands = (*MAPS[problem.layout], "mn")
    results = (", ".join((*lead, *(names[each] for each in operand))) for operand in operands)
    return "[" + ", ".join(f"affine_map<({domain}) -> ({result})>" for result in results) + "]"


def program_of(problem: Problem) -> str:
    """Returns a program for IREE with one public function ``product``: tensors A and B to the tensor C."""
    source, sums = problem.stored_dtype, problem.accumulator
    a, b, c = (
        _tensor(shape, dtype)
        for shape, dtype in ((problem.a_shape, source), (problem.b_shape, source), (problem.c_shape, sums))
    )
    maps = "" if problem.layout == "nn" else f" indexing_maps = {indexing_maps(problem)}"
    return f"""func.func @product(%a: {a}, %b: {b}) -> {c} {{
  %zero = arith.constant {zero(sums)}
  %empty = tensor.empty() : {c}
  %cleared = linalg.fill ins(%zero : {sums}) outs(%empty : {c}) -> {c}
  %product = linalg.{problem.operation}{maps} ins(%a, %b : {a}, {b}) outs(%cleared : {c}) -> {c}
  return %product : {c}
}}
"""


def _tensor(shape: tuple[int, ...], dtype: str) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{dtype}>"
