"""Finds matmuls whose B is made of a weight's small integers and their scales, and keeps the integers.

A weight is followed from the matmul back to its integers, through reshapes, transposes and arithmetic:

    %f = linalg.generic ins(%q : tensor<256x512xi8>)                        // arith.sitofp
    %e = tensor.expand_shape %f [[0], [1, 2]] ... into tensor<256x4x128xf32>
    %w = linalg.generic ins(%e, %s : ..., tensor<256x4xf32>)                // arith.mulf
    %c = tensor.collapse_shape %w [[0], [1, 2]] ... into tensor<256x512xf32>
    %t = linalg.generic ins(%c)                                             // transposed
    %r = linalg.matmul ins(%a, %t : tensor<4x512xf32>, tensor<512x256xf32>) outs(%zeros)
  becomes
    %r = linalg.generic {tuner.quantization = "i8-g128-f32"} ins(%a, %q, %s) outs(%zeros)   // over m, n, k

Which element of a tensor is read is known by digits: digit (k, 128, 4) is the number of the group of K, of 4
groups of 128, (k, 1, 128) the place in the group. Integers whose digits are not those of n x k in order are
transposed as i8, at compile time (``hoist``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from typing import TypeGuard

from tuner.core.quantization import (
    ACTIVATION_DTYPES,
    BY_GROUP,
    GROUP_MULTIPLE,
    LEAST_GROUP,
    QUANTIZATION,
    SCALE_DTYPES,
    WeightFormat,
)
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions import operations
from tuner.mlir.ir.building import PARALLEL, REDUCTION, generic, value
from tuner.mlir.ir.reading import groups_of, maps_in
from tuner.models.fusions.generics import collapse, empty, expand, transposed
from tuner.models.fusions.matmul_forms import UNBATCHED, conversion_of, is_plain
from tuner.models.fusions.payload import TensorPayload
from tuner.models.fusions.quantized_activations import rounded_rows
from tuner.models.fusions.views import moved_loops, number_of

TO_FLOAT, EXTEND, ROUND, SUBTRACT, SCALE = (
    *("arith.sitofp", "arith.extf", "arith.truncf"),
    *("arith.subf", "arith.mulf"),
)
WIDEN = "arith.extsi"
SUBTRACT_INTEGERS = "arith.subi"
FOLLOWED = (TO_FLOAT, EXTEND, ROUND, SUBTRACT, SCALE, WIDEN, SUBTRACT_INTEGERS)  # operations of a body
ROUNDED = (ROUND, SCALE)  # whose results need not be exact in a narrow type


@dataclass(frozen=True, order=True)
class Digit:
    """A digit of a row number n or a column number k of a weight: ``number // stride % size``.

    An index of a reshaped weight is such a digit. With K in 4 groups of 128, the digit of stride 128 and size
    4 is the number of the group, and the digit of stride 1 and size 128 is the position in the group.
    """

    of: str  # "n" or "k"; "": the digit of a dimension of size 1
    stride: int
    size: int


Digits = tuple[Digit, ...]  # of one dimension of a tensor, the highest first
ONE = Digit("", 1, 1)


@dataclass(frozen=True, eq=False)
class Read:
    """An element of ``tensor``; its index in each dimension is the number that the digits form."""

    tensor: Value
    dimensions: tuple[Digits, ...]

    @property
    def element(self) -> str:
        return str(self.tensor.type.element_type)

    @property
    def digits(self) -> Digits:
        """Returns the digits of all dimensions in row-major order; adjacent digits are merged."""
        return _merged(list(chain.from_iterable(self.dimensions)))


@dataclass(frozen=True, eq=False)
class Computed:
    """A scalar result of a generic's body: the operation ``name`` applied to ``operands``."""

    name: str
    operands: "tuple[Term, ...]"
    element: str


Term = Read | Computed


@dataclass(frozen=True, eq=False)
class QuantizedWeight:
    """A weight of n x k as a matmul reads it: (integers - zero points) * scales."""

    integers: Read
    zero_points: Read | None
    scales: Read | None  # None: 1.0
    is_rounded: bool  # the model rounds it to a type narrower than f32


def keep_integers(payload: TensorPayload, first_weight: int) -> None:
    """Replaces matmuls by dequantized weights by generics that read the integers and scales, in place.

    ``first_weight``: number of the first argument that is a weight. The generic has the attribute
    ``tuner.quantization`` with the format, always with 8 bits, because values are not known here. The model
    may round the weight to bf16 before the product; the generic does not, so its result is nearer to the
    exact one.
    """
    weights = set(list(payload.block.arguments)[first_weight:])
    for op in payload.ops:
        if op.name != UNBATCHED or not is_plain(op) or number_of(operations.inits_of(op)[0]) != 0.0:
            continue
        if str(op.results[0].type.element_type) != "f32":
            continue
        a, b = operations.inputs_of(op)
        k, n = b.type.shape
        weight = _quantized(_followed(b, (_merged([Digit("k", 1, k)]), _merged([Digit("n", 1, n)]))))
        rows = rounded_rows(a)
        a = _unextended(a)
        dtype = str(a.type.element_type)
        if weight is None or dtype not in ACTIVATION_DTYPES or (weight.is_rounded and dtype != "bf16"):
            continue
        form = _format(weight, n, k)
        reads = [read for read in (weight.integers, weight.scales, weight.zero_points) if read is not None]
        if form is None or not all(_is_of_weights(read, weights) for read in reads):
            continue
        if rows is not None and rows.group == form.group and not rows.group % GROUP_MULTIPLE:
            form = replace(form, activations=BY_GROUP)
            with ir.InsertionPoint(op), op.location:
                a = _unextended(_reshaped(rows.source, [a.type.shape[0], k]))
        _replace(op, a, weight, form)


def _followed(tensor: Value, dimensions: tuple[Digits, ...]) -> Term:
    """Returns how an element of a tensor is computed, as far as that is followed."""
    op = operations.defining(tensor)
    here = Read(tensor, dimensions)
    if op is None:
        return here
    if op.name == operations.EXPAND:
        groups = groups_of(op)
        merged = (_merged(list(chain.from_iterable(dimensions[at] for at in group))) for group in groups)
        return _followed(op.operands[0], tuple(merged))
    if op.name == operations.COLLAPSE:
        shape = op.operands[0].type.shape
        source: list[Digits] = []
        for digits, group in zip(dimensions, groups_of(op), strict=True):
            split = _split(digits, [shape[at] for at in group])
            if split is None:
                return here
            source += split
        return _followed(op.operands[0], tuple(source))
    if op.name != operations.GENERIC or not all(operations.is_parallel(op)) or len(op.results) != 1:
        return here
    is_small = prod(tensor.type.shape) < prod(digit.size for digit in chain.from_iterable(dimensions))
    if is_small and moved_loops(op) is None:
        return here
    return _followed_body(op, dimensions) or here


def _followed_body(op: Op, dimensions: tuple[Digits, ...]) -> Term | None:
    """Returns the term that a generic computes for one element of its result.

    ``dimensions``: the digits that index the element. None for a body with an operation that is not followed.
    """
    *maps, of_result = maps_in(op)
    loops = operations.dimensions(of_result)
    if loops is None or len(loops) != of_result.n_dims:
        return None
    by_loop = dict(zip(loops, dimensions, strict=True))
    known: dict[Value, Term] = {}
    arguments = op.regions[0].blocks[0].arguments
    for tensor, mapping, argument in zip(operations.inputs_of(op), maps, arguments, strict=False):
        read = operations.dimensions(mapping)
        if read is not None and operations.is_tensor(tensor):
            known[argument] = _followed(tensor, tuple(by_loop[loop] for loop in read))
    *steps, end = operations.body_of(op)
    for step in steps:
        if step.name not in FOLLOWED or any(operand not in known for operand in step.operands):
            return None
        element = str(step.results[0].type)
        if step.name in ROUNDED and element == "f16":  # may overflow
            return None
        known[step.results[0]] = Computed(
            step.name, tuple(known[operand] for operand in step.operands), element
        )
    return known.get(end.operands[0])


def _merged(digits: Sequence[Digit]) -> Digits:
    """Returns digits without those of size 1.

    Neighbours that are adjacent digits of one number become one digit.
    """
    merged: list[Digit] = []
    for digit in digits:
        if digit.size == 1:
            continue
        last = merged[-1] if merged else None
        if last is not None and last.of == digit.of and last.stride == digit.stride * digit.size:
            merged[-1] = Digit(digit.of, digit.stride, last.size * digit.size)
        else:
            merged.append(digit)
    return tuple(merged)


def _split(digits: Digits, sizes: Sequence[int]) -> list[Digits] | None:
    """Returns digits of dimensions of ``sizes`` that were one dimension; None where these cut a digit."""
    left = list(digits)
    parts = list[Digits]()
    for size in reversed(sizes):
        part: list[Digit] = []
        while size > 1:
            if not left:
                return None
            last = left.pop()
            taken = min(size, last.size)
            if size % taken or last.size % taken:
                return None
            part.insert(0, Digit(last.of, last.stride, taken))
            if last.size > taken:
                left.append(Digit(last.of, last.stride * taken, last.size // taken))
            size //= taken
        parts.insert(0, tuple(part))
    return parts


def _quantized(term: Term) -> QuantizedWeight | None:
    """Returns the dequantized weight that a term is, (integers - zero points) * scales.

    None for another form.
    """
    numbers = _without_casts(term)
    scales = None
    if _is(numbers, SCALE):
        left, right = numbers.operands
        scales = _scale(right) or _scale(left)
        if scales is None:
            return None
        numbers = _without_casts(left if _scale(right) else right)
    difference = _difference(numbers)
    if difference is None:
        return None
    return QuantizedWeight(*difference, scales, is_rounded=_is_rounded(term))


def _difference(term: Term) -> tuple[Read, Read | None] | None:
    """Returns the integers that a term is the float of, less zero points; None for another term."""
    if _is(term, SUBTRACT):
        parts = list(map(_integers, term.operands))
    elif _is(term, TO_FLOAT) and _is(term.operands[0], SUBTRACT_INTEGERS):
        parts = list(map(_extended_bytes, term.operands[0].operands))
    else:
        integers = _integers(term)
        if integers is None:
            return None
        return (integers, None)
    integers, points = parts
    if integers is None or points is None:
        return None
    return (integers, points)


def _extended_bytes(term: Term) -> Read | None:
    """Returns the i8 element that a term extends to i32 or i64; None for another term.

    A difference of such numbers does not wrap around, as one in i8 could.
    """
    if _is(term, WIDEN):
        return _as_bytes(term.operands[0])
    return None


def _is(term: Term, name: str) -> TypeGuard[Computed]:
    return isinstance(term, Computed) and term.name == name


def _without_casts(term: Term) -> Term:
    """Returns a term without changes of its float type."""
    while isinstance(term, Computed) and term.name in (EXTEND, ROUND):
        (term,) = term.operands
    return term


def _is_rounded(term: Term) -> bool:
    if isinstance(term, Read):
        return False
    return (term.name in ROUNDED and term.element != "f32") or any(map(_is_rounded, term.operands))


def _scale(term: Term) -> Read | None:
    """Returns the scales that a term is, or extends; None for another term."""
    if _is(term, EXTEND):
        (term,) = term.operands
    if isinstance(term, Read) and term.element in SCALE_DTYPES:
        return term
    return None


def _integers(term: Term) -> Read | None:
    """Returns the i8 that a term is the float of; None for another term."""
    term = _without_casts(term)
    if isinstance(term, Computed):
        if term.name == TO_FLOAT:
            return _as_bytes(term.operands[0])
        return None
    op = operations.defining(term.tensor)
    if op is None or conversion_of(op) != TO_FLOAT:
        return None
    return _as_bytes(_followed(op.operands[0], term.dimensions))


def _as_bytes(term: Term) -> Read | None:
    if isinstance(term, Read) and term.element == "i8":
        return term
    return None


def _format(weight: QuantizedWeight, n: int, k: int) -> WeightFormat | None:
    """Returns the format of a weight; None where no format has its groups."""
    if _sorted(weight.integers.digits) != _merged([Digit("n", 1, n), Digit("k", 1, k)]):
        return None
    others = [read.digits for read in (weight.scales, weight.zero_points) if read is not None]
    strides = {digit.stride for digit in chain.from_iterable(others) if digit.of == "k"}
    group = min(strides, default=k)
    allowed = {Digit("n", 1, n), Digit("k", group, k // group)}
    if len(strides) > 1 or any(not set(digits) <= allowed or len(digits) > 2 for digits in others):
        return None
    if group != k and group % LEAST_GROUP:
        return None
    scales = weight.scales.element if weight.scales is not None else "f32"
    return WeightFormat(8, 0 if group == k else group, scales, weight.zero_points is not None)


def _sorted(digits: Digits) -> Digits:
    """Returns the digits of rows, then of columns, the highest digit first, adjacent digits merged."""
    return _merged(_in_order(digits))


def _is_of_weights(read: Read, weights: set[Value]) -> bool:
    """Returns whether what is read depends on weights alone, and is contiguous: no slice, or transposed."""
    tensor = read.tensor
    op = operations.defining(tensor)
    if op is None:
        return tensor in weights
    is_moved = list(read.digits) != _in_order(read.digits)
    if operations.is_free(tensor) or (_is_sliced(tensor) and not is_moved):
        return False
    needed = operations.needed_ops([op])
    values = set(chain.from_iterable(map(operations.read_by, needed)))
    return all(operations.defining(value) is not None or value in weights for value in values)


def _is_sliced(tensor: Value) -> bool:
    op = operations.defining(tensor)
    if op is None or op.name not in operations.VIEWS:
        return False
    return op.name == operations.SLICE or _is_sliced(op.operands[0])


def _unextended(tensor: Value) -> Value:
    """Returns the bf16 tensor that ``tensor`` extends to f32; another tensor is returned as it is."""
    op = operations.defining(tensor)
    if op is None or conversion_of(op) != EXTEND or str(op.operands[0].type.element_type) != "bf16":
        return tensor
    return op.operands[0]


def _replace(op: Op, a: Value, weight: QuantizedWeight, form: WeightFormat) -> None:
    init = operations.inits_of(op)[0]
    n = op.results[0].type.shape[1]
    k = a.type.shape[1]
    groups = form.groups(k)
    group = k // form.groups(k)
    with ir.InsertionPoint(op), op.location:
        inputs = [a, _matrix(weight.integers, n, k), _table(weight.scales, n, groups)]
        if weight.zero_points is not None:
            inputs.append(_table(weight.zero_points, n, groups))
        row, column, depth = map(ir.AffineDimExpr.get, range(3))
        of_group = [column, ir.AffineExpr.get_floor_div(depth, group)]
        maps = [[row, depth], [column, depth], *[of_group] * (len(inputs) - 2), [row, column]]
        made = generic(inputs, init, maps, [PARALLEL, PARALLEL, REDUCTION], _sum_of_products)
        made.attributes[QUANTIZATION] = ir.StringAttr.get(str(form))
    op.results[0].replace_all_uses_with(made.results[0])
    op.erase()


def _sum_of_products(a: Value, q: Value, scale: Value, *rest: Value) -> Value:
    type_ = ir.F32Type.get()
    a, scale = (tensor if tensor.type == type_ else value(EXTEND, type_, tensor) for tensor in (a, scale))
    number = value(TO_FLOAT, type_, q)
    if len(rest) > 1:
        number = value(SUBTRACT, type_, number, value(TO_FLOAT, type_, rest[0]))
    weight = value(SCALE, type_, number, scale)
    return value("arith.addf", type_, rest[-1], value(SCALE, type_, a, weight))


def _matrix(read: Read, n: int, k: int) -> Value:
    """Creates a matrix of n x k of integers: reshaped, or transposed where they lie in another order."""
    if read.digits == _merged([Digit("n", 1, n), Digit("k", 1, k)]):
        return _reshaped(read.tensor, [n, k])
    tensor, digits = _by_digits(read)
    order = sorted(range(len(digits)), key=lambda at: (digits[at].of == "k", -digits[at].stride))
    return _reshaped(transposed(tensor, order), [n, k])


def _by_digits(read: Read) -> tuple[Value, Digits]:
    """Reshapes a tensor to one dimension for each digit; returns it, and its digits."""
    groups: list[list[int]] = []
    digits: list[Digit] = []
    for dimension in read.dimensions:
        own = dimension or (ONE,)
        groups.append(list(range(len(digits), len(digits) + len(own))))
        digits += own
    shape = [digit.size for digit in digits]
    is_split = len(digits) > len(read.dimensions)
    return (expand(read.tensor, groups, shape) if is_split else read.tensor), tuple(digits)


def _table(read: Read | None, n: int, groups: int) -> Value:
    """Creates a number for each row of n and each group of K, repeated where rows or groups share one.

    Ones where ``read`` is None.
    """
    is_whole = read is not None and prod(read.tensor.type.shape) == n * groups
    if read is not None and is_whole and list(read.digits) == _in_order(read.digits):
        return _reshaped(read.tensor, [n, groups])
    row, column = map(ir.AffineDimExpr.get, range(2))
    if read is None:
        type_ = ir.F32Type.get()
        return generic(
            [],
            empty([n, groups], type_),
            [[row, column]],
            [PARALLEL, PARALLEL],
            lambda _: value("arith.constant", type_, value=ir.FloatAttr.get(type_, 1.0)),
        ).results[0]
    tensor, digits = _by_digits(read)
    kept = [at for at, digit in enumerate(digits) if digit.size > 1]
    tensor = _reshaped(tensor, [digits[at].size for at in kept])
    loops = [column if digits[at].of == "k" else row for at in kept]
    target = empty([n, groups], tensor.type.element_type)
    made = generic([tensor], target, [loops, [row, column]], [PARALLEL, PARALLEL], lambda number, _: number)
    return made.results[0]


def _in_order(digits: Digits) -> list[Digit]:
    """Returns the digits of rows, then of columns, the highest digit of each first."""
    return sorted(digits, key=lambda digit: (digit.of == "k", -digit.stride))


def _reshaped(tensor: Value, shape: Sequence[int]) -> Value:
    """Reshapes a tensor to ``shape``, through one dimension where needed; returns it."""
    sizes = list(tensor.type.shape)
    if sizes == list(shape):
        return tensor
    if len(sizes) > 1:
        tensor = collapse(tensor, [list(range(len(sizes)))])
    if len(shape) == 1:
        return tensor
    if not shape:
        return collapse(tensor, [])
    return expand(tensor, [list(range(len(shape)))], shape)
