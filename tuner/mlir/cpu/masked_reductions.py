"""Reduces masked vectors to their greatest or least element from infinities on, before LLVM dialect.

Upstream's ``convert-vector-to-llvm`` puts a number of the least magnitude, -1.4e-45 for a maximum of f32,
where the mask is false: a row of negative numbers that is shorter than a vector has a wrong maximum then.
Sums and products are left unchanged.

    %r = vector.mask %m { vector.reduction <maximumf>, %v, %a : vector<4xf32> into f32 } : vector<4xi1> -> f32
  becomes
    %neutral = arith.constant dense<0xFF800000> : vector<4xf32>
    %s = arith.select %m, %v, %neutral : vector<4xi1>, vector<4xf32>
    %r = vector.reduction <maximumf>, %s, %a : vector<4xf32> into f32
"""

import math

from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.building import value
from tuner.mlir.rewrite.walking import walk

NEUTRAL = {
    f"#vector.kind<{name}>": number
    for names, number in ((("maximumf", "maxnumf"), -math.inf), (("minimumf", "minnumf"), math.inf))
    for name in names
}


def fill_masked_lanes(module: ir.Module) -> None:
    """Gives masked reductions to the greatest or least float infinity for what is masked, in place."""
    for mask in walk(module, "vector.mask"):
        inner = next(iter(mask.regions[0].blocks[0].operations)).operation
        if inner.name == "vector.reduction" and str(inner.attributes["kind"]) in NEUTRAL:
            _fill(mask, inner, NEUTRAL[str(inner.attributes["kind"])])


def _fill(mask: Op, reduction: Op, number: float) -> None:
    vector = reduction.operands[0]
    with mask.location, ir.InsertionPoint(mask):
        splat = ir.DenseElementsAttr.get_splat(
            vector.type, ir.FloatAttr.get(vector.type.element_type, number)
        )
        neutral = value("arith.constant", vector.type, value=splat)
        chosen = value("arith.select", vector.type, mask.operands[0], vector, neutral)
        plain = reduction.clone()
        plain.operands[0] = chosen
    mask.results[0].replace_all_uses_with(plain.results[0])
    mask.erase()
