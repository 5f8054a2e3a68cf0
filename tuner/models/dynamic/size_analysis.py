"""Which sizes, and which numbers that a program computes, are linear in its dynamic size n, or sizes n and m.

Every ``?`` of the arguments is n, unless the attribute SIZES says otherwise. From there each operation on
indices gives a number, and each operation on tensors a shape, in the order of the function.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from tuner.core.dynamic_sizes import (
    SIZE_N,
    LinearSize,
    Shape,
    Sizes,
    numbers_of,
    sizes_of,
    static_size,
)
from tuner.core.errors import UsageError
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.operations import is_tensor
from tuner.mlir.ir.reading import constant_of, location_of, op_of
from tuner.models.dynamic.padding_values import Facts

DYNAMIC_SIZE = ir.ShapedType.get_dynamic_size()
LEAST_BITS = 32  # of integers that hold each size
# of arith.cmpi, in the order of its predicates: eq, ne, slt, sle, sgt, sge; the unsigned ones follow
PREDICATES = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
FIRST_UNSIGNED = 6
CONVERSIONS = ("arith.sitofp", "arith.uitofp")
HINT = "compile it at one size: replace each ? by a number"


SIZES = "tuner.sizes"  # attribute of an argument: the text of each of its dynamic sizes, as ["n", "2n+1"]


class UnprovedError(UsageError):
    """An operation for which it is not proved that padding reaches no result: its MLIR location, and why."""

    def __init__(self, message: str, hint: str = "", location: str = "", why: str = "") -> None:
        super().__init__(message, hint)
        self.location = location
        self.why = why


def refusal(op: Op, why: str, hint: str = HINT) -> UnprovedError:
    """Returns the error for an operation that a program of a dynamic size cannot have, and why."""
    return UnprovedError(f"{op.name} {location_of(op)}: {why}", hint, str(op.location), why)


@dataclass(frozen=True, eq=False)
class KnownSizes:
    """The shapes of tensors and the values of index numbers, as far as the function was read.

    ``size``: n, or n and m, of the static program that is made, ``least``: the least of its calls.
    ``zero_padded``: tensors whose elements are 0 wherever a size is beyond that of the call. ``facts``: what
    else is known of elements.
    """

    size: Sizes
    least: Sizes = 1
    shapes: dict[Value, Shape] = field(default_factory=dict)
    numbers: dict[Value, LinearSize] = field(default_factory=dict)
    zero_padded: set[Value] = field(default_factory=set)
    facts: Facts = field(default_factory=Facts)
    refused: list[UnprovedError] = field(default_factory=list)
    unknown: set[Value] = field(default_factory=set)  # results of refused operations, and of what reads them

    def shape(self, tensor: Value) -> Shape:
        """Returns the shape of a tensor of the function."""
        return self.shapes[tensor]

    def is_dynamic(self, tensor: Value) -> bool:
        """Returns whether the shape of a tensor depends on n."""
        return not all(dimension.is_static for dimension in self.shapes[tensor])

    def number(self, op: Op, value: Value) -> LinearSize:
        """Returns the value of an index that ``op`` takes as a size or an offset.

        Raises UsageError where the value is not known, or not linear in n.
        """
        known = self.numbers.get(value)
        if known is None:
            raise refusal(op, "a size that is not a multiple of the program's size n, plus a constant")
        return known

    def limits(self, number: LinearSize) -> tuple[int, int]:
        """Returns the least and the greatest value of a number over the sizes of all calls."""
        ends = zip(numbers_of(self.least), numbers_of(self.size), strict=True)
        values = list(map(number.at, map(sizes_of, product(*ends))))
        return min(values), max(values)

    def mixed(self, op: Op, attribute: str, operands: Sequence[Value]) -> Shape:
        """Returns the sizes or offsets of an operation as functions of n.

        ``attribute``: its name; it has the static numbers. ``operands``: the values of the dynamic numbers.
        Raises UsageError where a value is not linear in n.
        """
        dynamic = iter(operands)
        sizes = []
        for number in ir.DenseI64ArrayAttr(op.attributes[attribute]):
            if number == DYNAMIC_SIZE:
                sizes.append(self.number(op, next(dynamic)))
            else:
                sizes.append(static_size(number))
        return tuple(sizes)

    def note_argument(self, argument: Value, sizes: Sequence[LinearSize] = ()) -> None:
        """Records the shape of an argument, which the caller pads with zeros.

        ``sizes``: its dynamic sizes, in the order of its dimensions; (): each is n. Raises UsageError for
        another number of sizes than the argument has, and for m in a program of one size.
        """
        shape = argument.type.shape
        count = shape.count(DYNAMIC_SIZE)
        dynamic = list(sizes) or [SIZE_N] * count
        if len(dynamic) != count:
            raise UsageError(f"{SIZES}: found {len(sizes)} sizes for {argument.type}, allowed one for each ?")
        if any(size.of_m for size in dynamic) and isinstance(self.size, int):
            raise UsageError(f"{SIZES}: found a second size, m, without its range", "--sizes 1..512,1..8")
        known = iter(dynamic)
        self.shapes[argument] = tuple(
            next(known) if size == DYNAMIC_SIZE else static_size(size) for size in shape
        )
        self.zero_padded.add(argument)

    def note_static(self, tensor: Value) -> None:
        """Records the shape of a tensor of static sizes, which has no padding."""
        self.shapes[tensor] = tuple(map(static_size, tensor.type.shape))
        self.zero_padded.add(tensor)


NumberRule = Callable[[Op, KnownSizes], LinearSize | None]


def _binary(compute: Callable[[LinearSize, LinearSize], LinearSize | None]) -> NumberRule:
    def rule(op: Op, known: KnownSizes) -> LinearSize | None:
        left, right = (known.numbers.get(operand) for operand in op.operands)
        if left is None or right is None:
            return None
        return compute(left, right)

    return rule


def _constant(op: Op, _known: KnownSizes) -> LinearSize | None:
    number = constant_of(op.results[0])
    if number is None:
        return None
    if _is_truth(op.results[0].type):
        return static_size(abs(number))
    return static_size(number)


def _is_truth(type_: ir.Type) -> bool:
    return isinstance(type_, ir.IntegerType) and type_.width == 1


def _same(op: Op, known: KnownSizes) -> LinearSize | None:
    return known.numbers.get(op.operands[0])


def _sign_extended(op: Op, known: KnownSizes) -> LinearSize | None:
    number = _same(op, known)
    if number is not None and _is_truth(op.operands[0].type):
        return number.scaled(-1)
    return number


def _zero_extended(op: Op, known: KnownSizes) -> LinearSize | None:
    number = _same(op, known)
    if number is None or not _are_positive([number], known):
        return None
    return number


def _truncated(op: Op, known: KnownSizes) -> LinearSize | None:
    number = _same(op, known)
    width = op.results[0].type.width
    if number is not None and number.is_static and not -(1 << width - 1) <= number.constant < 1 << width - 1:
        return None
    return number


def _compared(op: Op, known: KnownSizes) -> LinearSize | None:
    """Returns 1 for a comparison that holds at each n of the calls, 0 for one that holds at none.

    None where neither is known.
    """
    left, right = (known.numbers.get(operand) for operand in op.operands)
    if left is None or right is None:
        return None
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    if predicate >= FIRST_UNSIGNED:
        if not _are_positive((left, right), known):
            return None
        predicate -= 4  # to the signed one
    low, high = known.limits(left.minus(right))
    truths = {PREDICATES[predicate](low, 0), PREDICATES[predicate](high, 0)}
    if len(truths) > 1 or low < 0 < high:
        return None
    return static_size(int(truths.pop()))


def _are_positive(numbers: Sequence[LinearSize], known: KnownSizes) -> bool:
    return all(known.limits(number)[0] >= 0 for number in numbers)


def _selected(op: Op, known: KnownSizes) -> LinearSize | None:
    condition, chosen, other = (known.numbers.get(operand) for operand in op.operands)
    if chosen == other or (condition is not None and condition.constant):
        return chosen
    if condition is None:
        return None
    return other


def _extreme(sign: int, *, is_unsigned: bool) -> NumberRule:
    """Returns the rule of a maximum (``sign`` 1) or minimum (-1) of which one operand is so at each n."""

    def rule(op: Op, known: KnownSizes) -> LinearSize | None:
        left, right = (known.numbers.get(operand) for operand in op.operands)
        if left is None or right is None or (is_unsigned and not _are_positive((left, right), known)):
            return None
        low, high = known.limits(left.minus(right).scaled(sign))
        if low < 0 < high:
            return None
        return left if low >= 0 else right

    return rule


def _truths(absorbing: int) -> NumberRule:
    """Returns the rule of a logical operation on i1; one operand that is ``absorbing`` decides it."""

    def rule(op: Op, known: KnownSizes) -> LinearSize | None:
        if not _is_truth(op.results[0].type):
            return None
        truths = [known.numbers.get(operand) for operand in op.operands]
        if static_size(absorbing) in truths:
            return static_size(absorbing)
        if None in truths:
            return None
        return static_size(1 - absorbing)

    return rule


def _floor(left: LinearSize, right: LinearSize) -> LinearSize | None:
    """Returns the quotient, rounded down, where it is linear: (4n + 3) / 2 is 2n + 1."""
    rest = LinearSize(0, left.constant % max(right.constant, 1))
    return left.minus(rest).divided(right)


def _ceiling(left: LinearSize, right: LinearSize) -> LinearSize | None:
    down = _floor(left.scaled(-1), right)
    if down is None:
        return None
    return down.scaled(-1)


def _remainder(left: LinearSize, right: LinearSize) -> LinearSize | None:
    if left.divided(right) is None:
        return None
    return static_size(0)


def _dimension(op: Op, known: KnownSizes) -> LinearSize | None:
    tensor, dimension = op.operands
    number = known.numbers.get(dimension)
    shape = known.shapes.get(tensor)
    if number is None or shape is None or not number.is_static:
        return None
    return shape[number.constant]


def _affine(op: Op, known: KnownSizes) -> LinearSize | None:
    mapping = ir.AffineMapAttr(op.attributes["map"]).value
    operands = [known.numbers.get(operand) for operand in op.operands]
    return _evaluated(mapping.results[0], operands[: mapping.n_dims], operands[mapping.n_dims :])


def _evaluated(
    expression: ir.AffineExpr, dims: Sequence[LinearSize | None], symbols: Sequence[LinearSize | None]
) -> LinearSize | None:
    number: LinearSize | None = None
    if isinstance(expression, ir.AffineConstantExpr):
        number = static_size(expression.value)
    elif isinstance(expression, ir.AffineDimExpr):
        number = dims[expression.position]
    elif isinstance(expression, ir.AffineSymbolExpr):
        number = symbols[expression.position]
    if number is not None:
        return number
    compute = next((rule for kind, rule in AFFINE if isinstance(expression, kind)), None)
    if compute is None:
        return None
    left = _evaluated(expression.lhs, dims, symbols)
    right = _evaluated(expression.rhs, dims, symbols)
    if left is None or right is None:
        return None
    return compute(left, right)


AFFINE: Sequence[tuple[type, Callable[[LinearSize, LinearSize], LinearSize | None]]] = (
    (ir.AffineAddExpr, LinearSize.plus),
    (ir.AffineMulExpr, LinearSize.times),
    (ir.AffineFloorDivExpr, _floor),
    (ir.AffineCeilDivExpr, _ceiling),
)
# Operation -> the value of its result where that is linear in n; None where it is not.
NUMBER_RULES: Mapping[str, NumberRule] = {
    "arith.constant": _constant,
    "arith.addi": _binary(LinearSize.plus),
    "arith.subi": _binary(LinearSize.minus),
    "arith.muli": _binary(LinearSize.times),
    "arith.divsi": _binary(LinearSize.divided),
    "arith.divui": _binary(LinearSize.divided),
    "arith.floordivsi": _binary(_floor),
    "arith.ceildivsi": _binary(_ceiling),
    "arith.ceildivui": _binary(LinearSize.divided),
    "arith.remsi": _binary(_remainder),
    "arith.index_cast": _same,
    "arith.index_castui": _zero_extended,
    "arith.extsi": _sign_extended,
    "arith.extui": _zero_extended,
    "arith.trunci": _truncated,
    "arith.cmpi": _compared,
    "arith.select": _selected,
    "arith.andi": _truths(0),
    "arith.ori": _truths(1),
    "arith.maxsi": _extreme(1, is_unsigned=False),
    "arith.minsi": _extreme(-1, is_unsigned=False),
    "arith.maxui": _extreme(1, is_unsigned=True),
    "arith.minui": _extreme(-1, is_unsigned=True),
    "affine.apply": _affine,
    "tensor.dim": _dimension,
}


def note_number(op: Op, known: KnownSizes) -> None:
    """Records in ``known`` the result of a scalar operation, if it is a linear function of n."""
    rule = NUMBER_RULES.get(op.name)
    if rule is None or len(op.results) != 1 or is_tensor(op.results[0]):
        return
    number = rule(op, known)
    if number is not None and (number.is_static or not _wraps(op.results[0].type)):
        known.numbers[op.results[0]] = number


def _wraps(type_: ir.Type) -> bool:
    """Returns whether a size may not fit in an integer type: the operation that makes one is kept."""
    return isinstance(type_, ir.IntegerType) and type_.width < LEAST_BITS


def size_below(value: Value, known: KnownSizes) -> LinearSize | None:
    """Returns the size to which a scalar is equal, if that depends on n, as a function of n; else None.

    The scalar may be the size converted to a float.
    """
    conversion = op_of(value, *CONVERSIONS)
    number = known.numbers.get(conversion.operands[0] if conversion is not None else value)
    if number is None or number.is_static:
        return None
    return number


def reads_size(value: Value, known: KnownSizes) -> bool:
    """Returns whether a scalar that is computed outside of all loops depends on n."""
    if isinstance(value.owner, ir.Block) or is_tensor(value):
        return False
    if size_below(value, known) is not None:
        return True
    if value in known.numbers:
        return False
    return any(reads_size(operand, known) for operand in value.owner.operation.operands)
