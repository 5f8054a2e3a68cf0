"""Passes over host code: expand math, assert bounds, rename C math functions."""

import re
from itertools import chain

from tuner.mlir.bindings import ir
from tuner.mlir.cpu.lowering import DECLARATION, RESOLVABLE
from tuner.mlir.effects.runner_signatures import is_runner_function
from tuner.mlir.ir.building import value
from tuner.mlir.ir.reading import walk
from tuner.mlir.math.conversions import compute_bytes_in_single, expand_conversions
from tuner.mlir.math.expressions import Term
from tuner.mlir.math.lowering import TESTS, expand_remainders, replace_by_formula
from tuner.mlir.passes import run_passes
from tuner.mlir.programs.entry import RUNTIME

ASSERT_BOUNDS = (
    "builtin.module(func.func(convert-linalg-to-loops),lower-affine,func.func(generate-runtime-verification))"
)
CALLBACK = "_mlir_ciface_"  # prefix of the C names of functions that the runtime defines
MATH_PREFIX = (
    "math_"  # prefix of C library functions that ``tuner.runtime.programs.runner_functions`` resolves
)
# counts of bits, which are intrinsics of LLVM -> whether they have a case for zero
BIT_COUNTS = {"ctlz": True, "cttz": True, "ctpop": False}
MISSING = ("math.rsqrt", "math.fpowi", *TESTS)


def assert_bounds(module: ir.Module) -> None:
    """Inserts a ``cf.assert`` before each load and store of a module, in place: indices must be in bounds.

    By an upstream pass, after linalg and affine ops are lowered; not for vectors and code in the LLVM
    dialect. Raises CandidateError(COMPILE) where a pass fails.

        memref.store %x, %a[%i] : memref<8xf32>
      is preceded by
        %2 = ...  // 0 <= %i < 8
        cf.assert %2, "ERROR: Runtime op verification failed ..."
    """
    run_passes(module, ASSERT_BOUNDS)


def with_prefixed_c_functions(text: str) -> str:
    """Returns LLVM-dialect text in which math functions, ``puts`` and ``abort`` have the prefix ``math_``.

    The runtime defines these; the JIT would resolve the original names, which LLVM knows, wrongly. Other
    names, such as malloc and those of the GPU runtime and of MLIR's runner functions, stay.
    """
    for name in set(DECLARATION.findall(text)) - RESOLVABLE:
        if not name.startswith((RUNTIME, CALLBACK)) and not is_runner_function(name):
            text = re.sub(rf"@{re.escape(name)}\b", f"@{MATH_PREFIX}{name}", text)
    return text


def lower_missing_math(module: ir.Module) -> None:
    """Expands math operations that ``convert-math-to-libm`` has no C function for, in place.

    These are rsqrt, copysign, fpowi, absi, tests such as isnan, and counts of bits, which become intrinsics
    of LLVM; also ``arith.remf``, for which LLVM calls a function that the JIT does not find. Raises
    CandidateError(COMPILE) for ``arith.remf`` of vectors.

        %0 = math.rsqrt %x : f32
      becomes
        %1 = math.sqrt %x : f32
        %0 = arith.divf %c1, %1 : f32
    """
    compute_bytes_in_single(module)
    expand_remainders(module.operation)
    for op in list(chain.from_iterable(walk(module, name) for name in MISSING)):
        replace_by_formula(op)
    for name, has_zero in BIT_COUNTS.items():
        for op in walk(module, f"math.{name}"):
            with op.location, ir.InsertionPoint(op):
                zero = {"is_zero_poison": ir.BoolAttr.get(False)} if has_zero else {}
                count = value(f"llvm.intr.{name}", op.results[0].type, op.operands[0], **zero)
                op.results[0].replace_all_uses_with(count)
            op.erase()
    for op in walk(module, "math.absi"):
        with op.location, ir.InsertionPoint(op):
            x = Term(op.operands[0])
            negative = x.constant(0) - x
            larger = value("arith.maxsi", op.operands[0].type, x.value, negative.value)
            op.results[0].replace_all_uses_with(larger)
        op.erase()
    expand_conversions(module)
    for op in walk(module, "math.copysign"):  # some are created by the expansions above
        with op.location, ir.InsertionPoint(op):
            size, sign = (Term(operand).bits() for operand in op.operands)
            highest = 1 << (size.element.width - 1)
            bits = (size & (highest - 1)) | (sign & -highest)
            op.results[0].replace_all_uses_with(bits.converted("bitcast", Term(op.operands[0]).element).value)
        op.erase()
