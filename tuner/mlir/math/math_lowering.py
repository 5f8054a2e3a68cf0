"""Expands math ops of kernels to formulas, where upstream would call libdevice; ops that LLVM selects stay.

Takes outlined kernels; gives arith ops and the math ops of ``NATIVE``. f16 and bf16 are computed in float32.
``math.exp2`` of float32 is one instruction, ``ex2.approx``, as in CUDA's own library. LLVM does not use
``lg2.approx`` for a logarithm: its error near 1, where the logarithm is 0, is 2**-22. Not handled: ops
without a formula (sin, cos, ...), and functions of float64 other than the native ones and rsqrt; both are
errors.

    %y = math.rsqrt %x : f16
  becomes
    %wide = arith.extf %x : f16 to f32
    %root = math.sqrt %wide : f32
    %quotient = arith.divf %one, %root : f32
    %y = arith.truncf %quotient : f32 to f16
"""

import math
from collections.abc import Callable, Sequence

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.math import math_formulas
from tuner.mlir.math.op_expressions import Term
from tuner.mlir.rewrite.definitions import op_of
from tuner.mlir.rewrite.walking import walk, walk_where

DIALECT = "math."
# Ops that NVPTX selects: exact, or rounded once. Each was compiled for every type that it is allowed for.
NATIVE = frozenset(
    {
        *("math.absf", "math.copysign", "math.sqrt", "math.fma", "math.trunc"),
        *("math.ceil", "math.floor", "math.round", "math.roundeven"),
    }
)
OF_INTEGERS = frozenset({"math.absi", "math.ctlz", "math.ctpop", "math.cttz"})
FORMULAS: dict[str, Callable[[Term], Term]] = {
    "math.erf": math_formulas.erf,
    "math.exp": math_formulas.exp,
    "math.exp2": lambda x: x.math("exp2"),
    "math.expm1": math_formulas.expm1,
    "math.log": math_formulas.log,
    "math.log10": math_formulas.log10,
    "math.log1p": math_formulas.log1p,
    "math.log2": math_formulas.log2,
    "math.rsqrt": math_formulas.rsqrt,
    "math.tanh": math_formulas.tanh,
}
# Upstream's lowering takes no vectors of several dimensions.
TESTS: dict[str, Callable[[Term], Term]] = {
    "math.isfinite": lambda x: x.math("absf") < math.inf,
    "math.isinf": lambda x: x.math("absf").equals(math.inf),
    "math.isnan": Term.is_nan,
}
POWERS = {"math.powf": "extf", "math.fpowi": "sitofp"}  # op -> conversion of the exponent to float64
SINGLE = ("f16", "bf16", "f32")
FLOATS = (*SINGLE, "f64")
EXPONENT_BITS = 32  # integers of up to so many bits are exact in float64


def lower_math(module: ir.Module) -> None:
    """Replaces math ops in all kernels by formulas that need no libdevice, in place.

    Ops for which the GPU has instructions stay (``NATIVE``, ``OF_INTEGERS``). Raises CandidateError(COMPILE)
    for an op without a formula, or without one for its type.
    """
    for op in [op for kernel in walk(module, "gpu.func") for op in _math_ops(kernel)]:
        _require(op)
        if op.name not in NATIVE | OF_INTEGERS:
            compute(op)


def expand_math(root: Op | ir.Module) -> None:
    """Replaces the math ops that have a formula for their type by it, on scalars and vectors, in place.

    Ops for which processors have instructions stay (``NATIVE``, ``OF_INTEGERS``), and so do ops without a
    formula: the C library has functions for most of these.
    """
    for op in _math_ops(root):
        if op.name not in NATIVE | OF_INTEGERS and _has_formula(op):
            compute(op)


def compute(op: Op) -> None:
    """Replaces one math op by the ops of its formula, in place; the op must have a formula for its type."""
    with op.location, ir.InsertionPoint(op):
        op.results[0].replace_all_uses_with(_computed(op).value)
    op.erase()


def _has_formula(op: Op) -> bool:
    try:
        _require(op)
    except CandidateError:
        return False
    return True


def _math_ops(kernel: Op | ir.Module) -> list[Op]:
    return walk_where(kernel, lambda op: op.name.startswith(DIALECT))


def _computed(op: Op) -> Term:
    x = Term(op.operands[0])
    if op.name in TESTS:
        return TESTS[op.name](x)
    narrow, single = x.element, ir.F32Type.get()
    if narrow.width >= single.width:
        return _formula(op, x)
    return _formula(op, x.converted("extf", single)).converted("truncf", narrow)


def _formula(op: Op, x: Term) -> Term:
    if op.name in FORMULAS:
        return FORMULAS[op.name](x)
    if _is_two(op.operands[1]):
        return x * x
    y = Term(op.operands[1]).converted(POWERS[op.name], ir.F64Type.get())
    return math_formulas.power(x, y)


def _is_two(exponent: Value) -> bool:
    """Returns whether an exponent is the constant 2: x * x avoids float64, which is slow on many devices."""
    constant = op_of(exponent, "arith.constant")
    if constant is None:
        return False
    found = constant.attributes["value"]
    if isinstance(found, ir.DenseElementsAttr):
        found = found.get_splat_value() if found.is_splat else None
    return isinstance(found, ir.FloatAttr | ir.IntegerAttr) and found.value == 2


def _require(op: Op) -> None:
    known = NATIVE | OF_INTEGERS | FORMULAS.keys() | TESTS.keys() | POWERS.keys()
    if op.name not in known:
        raise _unsupported(f"found {op.name}", sorted(known))
    if op.name in OF_INTEGERS:
        return
    floats = FLOATS if op.name in NATIVE | TESTS.keys() | {"math.rsqrt"} else SINGLE
    found = str(Term(op.operands[0]).element)
    if found not in floats:
        raise _unsupported(f"{op.name}: found {found}", floats)
    exponent = Term(op.operands[1]).element if op.name == "math.fpowi" else None
    if exponent is not None and exponent.width > EXPONENT_BITS:
        raise _unsupported(f"{op.name}: found an exponent of {exponent}", ["up to 32 bits"])


def _unsupported(found: str, allowed: Sequence[str]) -> CandidateError:
    return CandidateError(Stage.COMPILE, f"kernel: {found}, allowed {', '.join(allowed)}")
