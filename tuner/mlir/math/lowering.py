"""Expands math ops of CPU code and GPU kernels to formulas, where upstream would call a library.

Ops that LLVM has instructions for stay. Takes lowered functions or outlined kernels; gives arith ops, the
math ops of ``NATIVE``, and loops for ``arith.remf``. Functions of ``FORMULAS``, such as exp and tanh, are
computed in float32 for f16, bf16 and f32; other functions of these in float64, and rounded once, such as sin
and sinh. So are powers, except for small constant exponents, which are products. In GPU kernels ``math.exp2``
of float32 is one instruction, ``ex2.approx``, as in CUDA's own library. No logarithm is by ``lg2.approx``:
its error near 1, where the logarithm is 0, is 2**-22. Not handled: ops without a formula (cbrt, erfc, ...)
are errors.

    %y = math.rsqrt %x : f16
  becomes
    %wide = arith.extf %x : f16 to f32
    %root = math.sqrt %wide : f32
    %quotient = arith.divf %one, %root : f32
    %y = arith.truncf %quotient : f32 to f16
"""

import math
from collections.abc import Callable, Sequence

from tuner.core.dtypes import FLOATS
from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Type, ir
from tuner.mlir.ir.building import create
from tuner.mlir.ir.reading import number_of, unsupported, walk, walk_where
from tuner.mlir.math import float32, float64
from tuner.mlir.math.conversions import compute_bytes_in_single, expand_conversions
from tuner.mlir.math.expressions import Term

REMAINDER = "arith.remf"
SINGLE_BITS = 32  # narrower floats are computed in float32, exactly
DIALECT = "math."
# Ops that NVPTX selects: exact, or rounded once. Each was compiled for every type that it is allowed for.
NATIVE = frozenset(
    {
        *("math.absf", "math.copysign", "math.sqrt", "math.fma", "math.trunc"),
        *("math.ceil", "math.floor", "math.round", "math.roundeven"),
    }
)
OF_INTEGERS = frozenset({"math.absi", "math.ctlz", "math.ctpop", "math.cttz"})
Formula = Callable[..., Term]  # of a term per operand
DOUBLE_FORMULAS: dict[str, Formula] = {  # of float64
    **{
        f"math.{name}": getattr(float64, name)
        for name in (
            *("erf", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "tanh"),
            *("sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
            *("sinh", "cosh", "asinh", "acosh", "atanh"),
        )
    },
    "math.rsqrt": float32.rsqrt,
}
POWERS = frozenset({"math.powf", "math.fpowi"})


def expand_remainders(root: Op | ir.Module) -> None:
    """Replaces each ``arith.remf`` in an operation by loops that compute C's fmod exactly, in place.

    LLVM would call the C library or libdevice. The divisor is doubled until it is more than half of the
    dividend, then halved again; each time it is subtracted where it fits, exactly, at most 277 times for
    float32. Raises CandidateError(COMPILE) for vectors.

        %r = arith.remf %x, %y : f32
      becomes
        %scaled = scf.while (%s = %b) : (f32) -> f32 {        // doubles abs(y)
          %fits = arith.cmpf ole, %s, %half_of_a : f32
          scf.condition(%fits) %s : f32
        } do { ... scf.yield %twice : f32 }
        %rest:2 = scf.while (%a = %size, %s = %scaled) : (f32, f32) -> (f32, f32) {   // subtracts and halves
          %goes_on = arith.cmpf oge, %s, %b : f32
          scf.condition(%goes_on) %a, %s : f32, f32
        } do { ... scf.yield %less, %half : f32, f32 }
        %r = math.copysign %rest#0, %x : f32
    """
    for op in walk(root, REMAINDER):
        x = Term(op.operands[0])
        if isinstance(op.operands[0].type, ir.VectorType):
            raise unsupported(op, f"{REMAINDER} of {op.operands[0].type}", "scalars")
        with op.location, ir.InsertionPoint(op):
            y = Term(op.operands[1])
            narrow = x.element
            if narrow.width < SINGLE_BITS:
                x, y = (term.converted("extf", ir.F32Type.get()) for term in (x, y))
            result = _remainder(x, y)
            if narrow.width < SINGLE_BITS:
                result = result.converted("truncf", narrow)
            op.results[0].replace_all_uses_with(result.value)
        op.erase()


def _remainder(x: Term, y: Term) -> Term:
    """Returns x - n * y with the sign of x; NaN where x is infinite, y is 0, or one is NaN."""
    divisor = y.math("absf")
    is_defined = (x.math("absf") < math.inf) & (divisor > 0.0)  # false for NaN
    size = x.constant(math.nan).replaced(is_defined, x.math("absf"))  # NaN ends the loops
    half = size * 0.5
    (scaled,) = _while([divisor], lambda s: s[0].not_above(half), lambda s: [s[0] * 2.0])
    first = scaled.replaced(divisor.equals(math.inf), 0.0)  # halves of infinity never end
    rest, _ = _while(
        [size, first],
        lambda now: divisor.not_above(now[1]) & now[0].not_above(math.inf),
        lambda now: [now[0].replaced(now[1].not_above(now[0]), now[0] - now[1]), now[1] * 0.5],
    )
    return rest.math("copysign", x)


def _while(
    first: Sequence[Term],
    goes_on: Callable[[Sequence[Term]], Term],
    step: Callable[[Sequence[Term]], Sequence[Term]],
) -> list[Term]:
    """Creates ``scf.while``: from ``first``, values become ``step(values)`` while ``goes_on(values)``."""
    types = [term.value.type for term in first]
    loop = ir.Operation.create("scf.while", types, [term.value for term in first], regions=2)
    blocks = [region.blocks.append(*types, arg_locs=[loop.location] * len(types)) for region in loop.regions]
    before, after = (list(map(Term, block.arguments)) for block in blocks)
    with loop.location, ir.InsertionPoint(blocks[0]):
        create("scf.condition", (), [goes_on(before).value, *blocks[0].arguments])
    with loop.location, ir.InsertionPoint(blocks[1]):
        create("scf.yield", (), [term.value for term in step(after)])
    return list(map(Term, loop.results))


FORMULAS: dict[str, Formula] = {  # of float32
    "math.erf": float32.erf,
    "math.exp": float32.exp,
    "math.exp2": lambda x: x.math("exp2"),
    "math.expm1": float32.expm1,
    "math.log": float32.log,
    "math.log10": float32.log10,
    "math.log1p": float32.log1p,
    "math.log2": float32.log2,
    "math.rsqrt": float32.rsqrt,
    "math.tanh": float32.tanh,
}
# Replaced too: upstream's lowering of these takes no vectors of several dimensions.
TESTS: dict[str, Callable[[Term], Term]] = {
    "math.isfinite": lambda x: x.math("absf") < math.inf,
    "math.isinf": lambda x: x.math("absf").equals(math.inf),
    "math.isnan": Term.is_nan,
}
# Constant exponents whose powers are products or a quotient: power() of float64 is slow on many devices.
PRODUCTS: dict[float, Formula] = {
    1: lambda x: x,
    2: lambda x: x * x,
    3: lambda x: x * x * x,
    4: lambda x: (x * x) * (x * x),
    -1: lambda x: x.constant(1.0) / x,
}


def lower_math(module: ir.Module) -> None:
    """Replaces math ops and ``arith.remf`` in all kernels by formulas that need no libdevice, in place.

    Ops of ``NATIVE`` and ``OF_INTEGERS``, for which LLVM has instructions, stay. Raises
    CandidateError(COMPILE) for an op without a formula for its type, and for ``arith.remf`` of vectors.
    """
    for kernel in walk(module, "gpu.func"):
        compute_bytes_in_single(kernel)
        expand_remainders(kernel)
        for op in _math_ops(kernel):
            _require(op)
            if op.name not in NATIVE | OF_INTEGERS:
                replace_by_formula(op)
        expand_conversions(kernel)


def expand_math(root: Op | ir.Module) -> None:
    """Replaces the math ops and ``arith.remf`` in any code by formulas of arith and math ops, in place.

    Ops of ``NATIVE`` and ``OF_INTEGERS``, for which LLVM has instructions, stay; ``math.exp2`` of float32 is
    computed in float64. Raises CandidateError(COMPILE) for an op without a formula for its type, and for
    ``arith.remf`` of vectors.
    """
    compute_bytes_in_single(root)
    expand_remainders(root)
    for op in _math_ops(root):
        _require(op)
        if op.name == "math.exp2" and Term(op.operands[0]).element == ir.F32Type.get():
            with op.location, ir.InsertionPoint(op):
                x = Term(op.operands[0])
                result = DOUBLE_FORMULAS[op.name](x.converted("extf", ir.F64Type.get()))
                op.results[0].replace_all_uses_with(result.converted("truncf", x.element).value)
            op.erase()
        elif op.name not in NATIVE | OF_INTEGERS:
            replace_by_formula(op)
    expand_conversions(root)


def replace_by_formula(op: Op) -> None:
    """Replaces one math op by the ops of its formula, in place.

    The caller checks before that the op has a formula for its type.
    """
    with op.location, ir.InsertionPoint(op):
        op.results[0].replace_all_uses_with(_computed(op).value)
    op.erase()


def _math_ops(kernel: Op | ir.Module) -> list[Op]:
    return walk_where(kernel, lambda op: op.name.startswith(DIALECT))


def _computed(op: Op) -> Term:
    operands = list(map(Term, op.operands))
    if op.name in TESTS:
        return TESTS[op.name](*operands)
    narrow = operands[0].element
    exponent = number_of(op.operands[1]) if op.name in POWERS else None
    product = None if exponent is None else PRODUCTS.get(exponent)
    if op.name in POWERS and product is None:
        return _power(op.name, *operands)
    if product is not None:
        operands = operands[:1]
    is_single = op.name in FORMULAS or product is not None
    # f16, bf16 and f32 are computed in f32 where there is such a formula, all others in f64
    if is_single and narrow.width <= ir.F32Type.get().width:
        wide = ir.F32Type.get()
    else:
        wide = ir.F64Type.get()
    formula = product or (FORMULAS if wide == ir.F32Type.get() else DOUBLE_FORMULAS)[op.name]
    return _narrowed(formula(*(_widened(operand, wide) for operand in operands)), narrow)


def _power(name: str, x: Term, y: Term) -> Term:
    """Returns x**y in the type of x; of float64 in double words, else in float64."""
    narrow = x.element
    wide = ir.F64Type.get()
    base = x if narrow == wide else _widened(x, ir.F32Type.get())
    power = float64.power if narrow == wide else float32.power
    if name == "math.powf":
        return _narrowed(power(base, _widened(y, wide)), narrow)
    # The sign is the integer's: as a float64, an integer of 64 bits may lose its lowest bit.
    result = power(base.math("absf"), y.converted("sitofp", wide))
    is_odd = y.converted("trunci", ir.IntegerType.get_signless(1))
    return _narrowed(result.replaced(is_odd, result.math("copysign", base)), narrow)


def _widened(x: Term, wide: Type) -> Term:
    if x.element == wide:
        return x
    return x.converted("extf", wide)


def _narrowed(x: Term, narrow: Type) -> Term:
    if x.element == narrow:
        return x
    return x.converted("truncf", narrow)


def _require(op: Op) -> None:
    known = NATIVE | OF_INTEGERS | FORMULAS.keys() | DOUBLE_FORMULAS.keys() | TESTS.keys() | POWERS
    if op.name not in known:
        raise _unsupported(f"found {op.name}", sorted(known))
    element = str(Term(op.operands[0]).element)
    if op.name not in OF_INTEGERS and element not in FLOATS:
        raise _unsupported(f"{op.name}: found {element}", FLOATS)


def _unsupported(found: str, allowed: Sequence[str]) -> CandidateError:
    return CandidateError(Stage.COMPILE, f"kernel: {found}, allowed {', '.join(allowed)}")
