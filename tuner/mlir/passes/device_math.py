"""Math of kernels without libdevice, which upstream calls: what LLVM selects stays, the rest is formulas.

``math.exp2`` of float32 is one instruction, ``ex2.approx``, as in CUDA's own library. LLVM does not take
``lg2.approx`` for a logarithm: it is off by 2**-22 near 1, where the logarithm is 0.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import walk, walk_where
from tuner.mlir.passes import math_formulas
from tuner.mlir.passes.terms import Term

DIALECT = "math."
# Exact, or rounded once. Each was compiled for every type that it is allowed for.
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
# Upstream's way has no vectors of several dimensions.
TESTS: dict[str, Callable[[Term], Term]] = {
    "math.isfinite": lambda x: x.math("absf") < math.inf,
    "math.isinf": lambda x: x.math("absf").equals(math.inf),
    "math.isnan": Term.is_nan,
}
POWERS = {"math.powf": "extf", "math.fpowi": "sitofp"}  # and how the exponent becomes a float64
SINGLE = ("f16", "bf16", "f32")
FLOATS = (*SINGLE, "f64")
EXPONENT_BITS = 32  # of an integer: a float64 holds it


def lower_math(module: ir.Module) -> None:
    """Rewrites kernels. Raises CandidateError(COMPILE) for an operation, or a type, without a formula."""
    for op in [op for kernel in walk(module, "gpu.func") for op in _math_ops(kernel)]:
        _require(op)
        if op.name not in NATIVE | OF_INTEGERS:
            compute(op)


def compute(op: Any) -> None:
    """Replaces an operation by its formula, which it must have."""
    with op.location, ir.InsertionPoint(op):
        op.results[0].replace_all_uses_with(_computed(op).value)
    op.erase()


def _math_ops(kernel: Any) -> list[Any]:
    return walk_where(kernel, lambda op: op.name.startswith(DIALECT))


def _computed(op: Any) -> Term:
    x = Term(op.operands[0])
    if op.name in TESTS:
        return TESTS[op.name](x)
    narrow, single = x.element, ir.F32Type.get()
    if narrow.width >= single.width:
        return _formula(op, x)
    return _formula(op, x.converted("extf", single)).converted("truncf", narrow)


def _formula(op: Any, x: Term) -> Term:
    if op.name in FORMULAS:
        return FORMULAS[op.name](x)
    if _is_two(op.operands[1]):
        return x * x
    y = Term(op.operands[1]).converted(POWERS[op.name], ir.F64Type.get())
    return math_formulas.power(x, y)


def _is_two(exponent: Any) -> bool:
    """Tells whether a power is a square, as norms have it: float64 is slow on many devices."""
    if isinstance(exponent.owner, ir.Block) or exponent.owner.name != "arith.constant":
        return False
    found = exponent.owner.attributes["value"]
    if isinstance(found, ir.DenseElementsAttr):
        found = found.get_splat_value() if found.is_splat else None
    return isinstance(found, ir.FloatAttr | ir.IntegerAttr) and found.value == 2


def _require(op: Any) -> None:
    known = NATIVE | OF_INTEGERS | FORMULAS.keys() | TESTS.keys() | POWERS.keys()
    if op.name not in known:
        raise _refused(f"found {op.name}", sorted(known))
    if op.name in OF_INTEGERS:
        return
    floats = FLOATS if op.name in NATIVE | TESTS.keys() | {"math.rsqrt"} else SINGLE
    found = str(Term(op.operands[0]).element)
    if found not in floats:
        raise _refused(f"{op.name}: found {found}", floats)
    exponent = Term(op.operands[1]).element if op.name == "math.fpowi" else None
    if exponent is not None and exponent.width > EXPONENT_BITS:
        raise _refused(f"{op.name}: found an exponent of {exponent}", ["up to 32 bits"])


def _refused(found: str, allowed: Sequence[str]) -> CandidateError:
    return CandidateError(Stage.COMPILE, f"kernel: {found}, allowed {', '.join(allowed)}")
