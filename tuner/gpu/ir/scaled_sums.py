"""Sums of products with scales of blocks: how a body that adds them up looks, and the scales set aside."""

from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value
from tuner.mlir.ir.memrefs import named_arguments
from tuner.mlir.ir.reading import op_of

SCALE = "tuner.scale"  # attribute of an argument: the operand, "a" or "b", of which it has the scales
OPERANDS = ("a", "b")


@dataclass(frozen=True)
class Scales:
    """The arguments of a function that hold scales: of A (m, k / 128), of B (n / 128, k / 128), in f32."""

    of_a: Value
    of_b: Value


def find_scales(function: Op) -> Scales | None:
    """Returns the scales of A and B, arguments that ``tuner.set_aside_scales`` marked; else None."""
    marked = named_arguments(function, SCALE)
    if not marked:
        return None
    return Scales(*map(marked.__getitem__, OPERANDS))


def is_sum_of_scaled_products(generic: Op) -> bool:
    """Returns whether the body of a linalg op adds the product of all other arguments to its last argument.

    Factors may be extended to the type of the sums first.
    """
    block = generic.regions[0].blocks[0]
    *factors, so_far = block.arguments
    total = op_of(list(block.operations)[-1].operands[0], "arith.addf")
    if total is None:
        return False
    first, second = total.operands
    if so_far not in (first, second):
        return False
    multiplied = _factors(first)
    if first == so_far:
        multiplied = _factors(second)
    return len(multiplied) == len(factors) and all(factor in multiplied for factor in factors)


def _factors(number: Value) -> list[Value]:
    """Returns the values of which ``number`` is the product, without their conversions to wider types."""
    widened = op_of(number, "arith.extf")
    if widened is not None:
        return _factors(widened.operands[0])
    product = op_of(number, "arith.mulf")
    if product is None:
        return [number]
    left, right = product.operands
    return [*_factors(left), *_factors(right)]
