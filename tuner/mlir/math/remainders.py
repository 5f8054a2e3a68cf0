"""Expands ``arith.remf`` to loops of subtractions: exact, where LLVM would call the C library or libdevice.

The divisor is doubled until it is more than half of the dividend, then halved again; each time it is
subtracted where it fits. All numbers are exact, so the result is C's fmod. The number of steps is the
difference of the exponents: a handful for numbers of alike size, at most 277 for float32.

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

import math
from collections.abc import Callable, Sequence

from tuner.mlir.bindings import Op, ir
from tuner.mlir.math.op_expressions import Term
from tuner.mlir.rewrite.building import create
from tuner.mlir.rewrite.located_error import unsupported
from tuner.mlir.rewrite.walking import walk

REMAINDER = "arith.remf"
SINGLE_BITS = 32  # narrower floats are computed in float32, exactly


def expand_remainders(root: Op | ir.Module) -> None:
    """Replaces each ``arith.remf`` in an operation by loops that compute C's fmod exactly, in place.

    Raises CandidateError(COMPILE) for vectors.
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
    """Creates ``scf.while`` that replaces values by ``step`` of them while ``goes_on`` of them holds."""
    types = [term.value.type for term in first]
    loop = ir.Operation.create("scf.while", types, [term.value for term in first], regions=2)
    blocks = [region.blocks.append(*types, arg_locs=[loop.location] * len(types)) for region in loop.regions]
    before, after = ([Term(each) for each in block.arguments] for block in blocks)
    with loop.location, ir.InsertionPoint(blocks[0]):
        create("scf.condition", (), [goes_on(before).value, *blocks[0].arguments])
    with loop.location, ir.InsertionPoint(blocks[1]):
        create("scf.yield", (), [term.value for term in step(after)])
    return [Term(each) for each in loop.results]
