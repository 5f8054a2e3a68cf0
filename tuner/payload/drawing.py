"""Random inputs of kernels: drawn once as a base, then scaled by exact factors for each comparison.

``draw_base`` draws A and B once. ``draw`` makes inputs of them for one comparison, ``negated`` and
``with_special_numbers`` change inputs. All of these keep products exact, so that the reference is computed
once.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from tuner.core.dtypes import number_type
from tuner.core.numpy_types import BF16, DTYPES, FLOAT8_STEPS, scale, wide
from tuner.core.problem import Problem
from tuner.payload.group_offsets import draw_offsets
from tuner.payload.reference import (
    NUMPY_DTYPES,
    Array,
    BaseDraw,
    Float64,
    Inputs,
    as_stored,
    by_rows,
    scaled_operands,
)
from tuner.payload.special_numbers import (
    BIAS_KINDS,
    FEW,
    MANY,
    ONE,
    NumberTypes,
    SpecialKinds,
    SpecialNumbers,
    put_extreme_integers,
    put_special_numbers,
    special_bias,
    special_kinds,
)
from tuner.payload.special_numbers import DTYPES as SPECIAL_DTYPES

# f16 inputs are multiples of 2**-20, so that their halves are multiples of the smallest number, 2**-24
F16_STEPS = np.float32(2.0**20)
INTEGER_LARGEST = 63  # of a base: twice this number, of either sign, is an i8 as well
BYTE_BITS = 8
INTEGER_DEVIATION = 21.0  # standard deviation of a base: a third of the largest number
TF32_DROPPED_BITS = 13  # of the mantissa of an f32
FACTORS = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])  # of rows and columns
INTEGER_FACTORS = np.array([-2.0, -1.0, 1.0, 2.0])
SPARED_BITS = 8  # for a usual number of B, by which a large one of A is multiplied, and for a sum
LARGE_BITS = 7  # of the mantissa of a large number, as bf16 has
SCALE_OCTAVES = 8.0  # powers of two over which drawn scales of blocks are spread


def draw_base(problem: Problem, rng: np.random.Generator) -> BaseDraw:
    """Returns random A and B, drawn from a normal distribution, with random scales and offsets if needed.

    Scales and offsets are drawn if the problem's operation has them. A and B are rounded by ``wide_integers``
    for integers of more than 8 bits, else by ``round_inputs``.
    """
    m, n, k = problem.sizes
    drawn = np.float64 if problem.dtype == "f64" else np.float32  # f32 inputs would hide f64 cut to f32
    a = rng.standard_normal((*problem.lead, m, k), drawn)
    b = rng.standard_normal((problem.b_matrices, k, n), drawn).reshape(*problem.b_shape[:-2], k, n)
    type_ = number_type(problem.dtype)
    if not type_.is_float and type_.bits > BYTE_BITS:
        return base_of(problem, *wide_integers(a, b, problem.dtype, problem.accumulator))
    scales = draw_scales(problem, rng)
    offsets = draw_offsets_of(problem, rng)
    return base_of(problem, round_inputs(a, problem.dtype), round_inputs(b, problem.dtype), scales, offsets)


def draw_offsets_of(problem: Problem, rng: np.random.Generator) -> tuple[Array, ...]:
    """Returns (offsets,), the random offsets at which the groups of rows of a grouped_matmul begin.

    Together the groups have all rows of A. () for other operations.
    """
    if not problem.groups:
        return ()
    return (draw_offsets(problem.groups, problem.rows, rng),)


def draw_scales(problem: Problem, rng: np.random.Generator) -> tuple[Array, ...]:
    """Returns random scales of A and B, f32 numbers from 2**-4 to 2**4; () if the problem has none."""
    scales = []
    for argument in problem.scales:
        exponents = rng.uniform(-SCALE_OCTAVES / 2, SCALE_OCTAVES / 2, argument.shape)
        scales.append(np.exp2(exponents).astype(np.float32))
    return tuple(scales)


def wide_integers(a: Array, b: Array, dtype: str, sums: str) -> tuple[Array, Array]:
    """Returns ``a`` and ``b``, numbers of a normal distribution, as integers of ``dtype`` (over 8 bits).

    One column of A and one row of B reach the upper half of the type, times a row and a column of small
    numbers; all others are small: sums of magnitudes, times 4 for the factors of ``draw``, stay below the
    largest of the type ``sums``. ``a``: (..., m, k), ``b``: (..., k, n).
    """
    k = a.shape[-1]
    room = number_type(sums).largest / 8  # for small numbers, and as much for large ones
    large = number_type(dtype).largest / 2 - 1
    small = max(1.0, np.floor(min((room / k) ** 0.5, room / (2 * large), large)))
    deviations = 3.0  # of what is drawn, below the largest
    whole = [np.clip(np.rint(numbers * small / deviations), -small, small) for numbers in (a, b)]
    for numbers in whole:
        numbers[numbers == 0] = 1.0  # no product is 0: a missing one shows
    column = whole[0][..., 0]
    row = whole[1][..., -1, :]
    column[...] = np.copysign(large - np.abs(column), column)
    if k > 1:
        row[...] = np.copysign(large - np.abs(row), row)
    return whole[0].astype(DTYPES[dtype]), whole[1].astype(DTYPES[dtype])


def base_of(
    problem: Problem, a: Array, b: Array, scales: tuple[Array, ...] = (), offsets: tuple[Array, ...] = ()
) -> BaseDraw:
    """Returns a ``BaseDraw`` of A and B: both stored in the problem's layout, and their norms.

    ``a``: (m, k), ``b``: (k, n); with the batch in front for a batch_matmul, of a grouped_matmul with the
    groups in front of B. ``scales``: of A and B, if any; ``offsets``: of groups, if any.
    """
    wide_a = wide(a)
    wide_b = wide(b)
    if scales:
        wide_a, wide_b = scaled_operands(a, b, scales, slice(None), slice(None))
    return BaseDraw(
        np.ascontiguousarray(a.swapaxes(-1, -2)) if problem.layout == "tn" else a,
        np.ascontiguousarray(b.swapaxes(-1, -2)) if problem.layout == "nt" else b,
        problem.layout,
        np.linalg.norm(wide_a, axis=-1).reshape(-1),
        np.linalg.norm(wide_b, axis=-2).reshape(problem.b_matrices, -1),
        scales,
        offsets,
    )


def draw(
    problem: Problem, base: BaseDraw, rng: np.random.Generator, into: tuple[Array, Array] | None = None
) -> Inputs:
    """Returns inputs made from ``base``: its rows of A and columns of B times random factors.

    The epilogue's arguments, and C where the kernel reads it, are drawn anew. ``into``: arrays that A and B
    are written to, of the shapes and types in ``base``; None: new ones.
    """
    factors = FACTORS if number_type(problem.dtype).is_float else INTEGER_FACTORS
    rows = rng.choice(factors, problem.rows)
    columns = rng.choice(factors, (problem.b_matrices, problem.sizes[1]))
    a, b = scaled(problem, base, rows, columns, into)
    extra = draw_extra(problem, rng)
    return Inputs(problem, base, a, b, extra, rows, columns, before=draw_before(problem, rng))


def draw_extra(problem: Problem, rng: np.random.Generator) -> tuple[Array, ...]:
    """Returns random arguments of the epilogue, such as a bias, in C's type; () if it has none."""
    return tuple(_like_a_result(problem, argument.shape, rng) for argument in problem.extra_arguments)


def draw_before(problem: Problem, rng: np.random.Generator) -> Array | None:
    """Returns what C, (rows, n), holds before a call; None where no kernel may read it."""
    if not problem.after_product.reads_output:
        return None
    return _like_a_result(problem, (problem.rows, problem.sizes[1]), rng)


def _like_a_result(problem: Problem, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    numbers = np.asarray(rng.standard_normal(shape))
    if not number_type(problem.result_dtype).is_float:
        numbers = np.rint(numbers * INTEGER_DEVIATION**2)
    return as_stored(numbers, problem.result_dtype)


def negated(inputs: Inputs, into: tuple[Array, Array]) -> Inputs:
    """Returns inputs with -A and -B, written into the arrays ``into``: the expected C stays the same.

    ``inputs.flip`` and ``inputs.special`` are not kept.
    """
    rows = -inputs.rows
    columns = -inputs.columns
    a, b = scaled(inputs.problem, inputs.base, rows, columns, into)
    return replace(inputs, a=a, b=b, rows=rows, columns=columns, flip=None, special=None)


def special_draws(problem: Problem) -> int:
    """Returns how many different draws ``with_special_numbers`` has of a problem."""
    if problem.dtype not in SPECIAL_DTYPES:
        return 1
    return len(_special_kinds(problem))


def _special_kinds(problem: Problem) -> tuple[SpecialKinds, ...]:
    m, n, _ = problem.sizes
    if problem.groups:
        return special_kinds(_usual_rows(problem), n)
    return special_kinds(m, n)


def _usual_rows(problem: Problem) -> int:
    """Returns the mean number of rows of a group, rounded up: at least one group has so many."""
    return -(-problem.rows // problem.groups)


def with_special_numbers(inputs: Inputs, rng: np.random.Generator, draw: int = 0) -> Inputs:
    """Returns inputs with NaN, infinity, unit vectors or extreme integers, where their types have them.

    A and B are changed in place. In draw 0 the arguments of the epilogue get numbers of any size and from FEW
    (4) columns on NaN and infinity; these arguments and what C then is are in the returned inputs only.
    ``draw``: which set of special numbers, from 0 to ``special_draws`` - 1.
    """
    problem = inputs.problem
    m, n, _ = problem.sizes
    if draw == 0:
        inputs = with_special_bias(inputs, rng, 0 if n < FEW else min(len(BIAS_KINDS), n // 2))
    stored = replace(inputs.base, a=inputs.a, b=inputs.b)
    if not number_type(problem.dtype).is_float:
        of_rows, of_columns = inputs.base.sums
        sums = of_rows * inputs.rows.reshape(-1, m), of_columns * inputs.columns.reshape(-1, n)
        return replace(inputs, special=put_extreme_integers(*stored.without_layout, sums, rng))
    if problem.dtype not in SPECIAL_DTYPES:
        return inputs
    kinds = _special_kinds(problem)[draw]
    store = partial(as_stored, dtype=problem.dtype)
    types = NumberTypes(_large(problem), NUMPY_DTYPES[problem.accumulator], store)
    if problem.groups:
        special = _put_into_group(stored, kinds, _usual_rows(problem), types, rng)
    else:
        special = put_special_numbers(*stored.without_layout, kinds, types, rng)
    return replace(inputs, special=special)


def _put_into_group(
    stored: BaseDraw,
    kinds: SpecialKinds,
    usual_rows: int,
    types: NumberTypes,
    rng: np.random.Generator,
) -> SpecialNumbers:
    """Puts special numbers into the rows of one group and into its matrix of B, in place.

    The group has at least one row; if some element of C is to be infinite or large, at least ``usual_rows``.
    """
    least = 1
    if ONE in kinds.rows + kinds.columns:
        least = min(usual_rows, MANY)
    group = int(rng.choice(np.flatnonzero(np.diff(stored.offsets[0]) >= least)))
    a, b = stored.factors_of(group)
    return replace(put_special_numbers(a[None], b[None], kinds, types, rng), matrix=group)


def _large(problem: Problem) -> float:
    """Returns a number near the largest of A's type and of C's, with at most 8 significant bits.

    Where an epilogue may multiply it by its arguments, which have large numbers too, no product overflows.
    """
    types = [number_type(dtype) for dtype in (problem.dtype, problem.result_dtype)]
    exponent = min(math.frexp(type_.largest)[1] - 1 for type_ in types)
    if problem.after_product.steps:
        sums = number_type(problem.accumulator)
        below_arguments = math.frexp(sums.largest)[1] - sums.bias_exponent - SPARED_BITS
        exponent = min(below_arguments, *(type_.bias_exponent or exponent for type_ in types))
    return (2.0 - 2.0**-LARGE_BITS) * 2.0**exponent


def has_narrow_bias(problem: Problem) -> bool:
    """Returns whether the epilogue has an argument and C fewer than FEW (4) columns.

    NaN in so small an argument would hide errors in A and B.
    """
    return bool(problem.extra_arguments) and problem.sizes[1] < FEW


def with_special_bias(inputs: Inputs, rng: np.random.Generator, kinds: int = len(BIAS_KINDS)) -> Inputs:
    """Returns inputs with special numbers in the epilogue's arguments: half of them are of any magnitude.

    ``kinds`` elements are replaced by the first of BIAS_KINDS, NaN, infinities and zeros; no element of an
    argument that is one number, since NaN there would hide all of C.
    """
    dtype = inputs.problem.result_dtype
    extra = []
    for argument, array in zip(inputs.problem.after_product.arguments, inputs.extra, strict=True):
        hidden = kinds if argument.axes else 0  # NaN in place of one number would hide all of C
        numbers = special_bias(array.reshape(-1), dtype, hidden, rng)
        extra.append(as_stored(numbers.reshape(array.shape), dtype))
    return replace(inputs, extra=tuple(extra))


def round_inputs(numbers: Array, dtype: str) -> Array:
    """Rounds numbers to a dtype so that their products with the factors of ``draw`` are exact.

    The factors are +-0.5, +-1 and +-2. Integers, whose factors are whole, are first scaled by 21 and limited
    to -63 to 63, and 0 becomes 1.
    """
    if not number_type(dtype).is_float:
        whole = np.clip(np.rint(numbers * INTEGER_DEVIATION), -INTEGER_LARGEST, INTEGER_LARGEST)
        whole[whole == 0] = 1.0  # no product is 0: a missing one shows
        return as_stored(whole, dtype)
    match dtype:
        case "f16":  # halves of the smallest numbers are not exact: drop the last bits
            return (np.round(numbers * F16_STEPS) / F16_STEPS).astype(np.float16)
        case "e4m3" | "e5m2":  # for the same reason
            steps = FLOAT8_STEPS[dtype]
            return as_stored(np.round(numbers * steps) / steps, dtype)
        case "tf32":
            bits = numbers.view(np.uint32)
            odd = bits >> TF32_DROPPED_BITS & 1  # to the nearest, ties to even
            rounded = bits + (1 << TF32_DROPPED_BITS - 1) - 1 + odd
            return (rounded >> TF32_DROPPED_BITS << TF32_DROPPED_BITS).astype(np.uint32).view(np.float32)
        case _:
            return as_stored(numbers, dtype)


def scaled(
    problem: Problem, base: BaseDraw, rows: Float64, columns: Float64, into: tuple[Array, Array] | None
) -> tuple[Array, Array]:
    """Returns A and B of ``base``, with each row of A and each column of B times its factor, exactly.

    ``rows``: (rows,), ``columns``: (matrices of B, n). ``into``: arrays that A and B are written to, of the
    shapes and types in ``base``; None: new ones.
    """
    a, b = into or (np.empty_like(base.a), np.empty_like(base.b))
    m, n, _ = problem.sizes
    of_a = as_stored(rows, problem.stored_dtype).reshape(*problem.lead, m)
    of_b = as_stored(columns, problem.stored_dtype).reshape(*problem.b_shape[:-2], n)
    # one factor per row of A and per column of B, along the other axis as the matrices are stored
    of_a = of_a[..., None, :] if problem.layout == "tn" else of_a[..., None]
    of_b = of_b[..., None] if problem.layout == "nt" else of_b[..., None, :]
    if base.a.dtype == BF16:
        scale(base.a, of_a, a, base.hard_to_scale[0])
        scale(base.b, of_b, b, base.hard_to_scale[1])
    else:
        for array, factors, out in ((base.a, of_a, a), (base.b, of_b, b)):
            _multiply(array, np.broadcast_to(factors, array.shape), out)
    return a, b


def _multiply(array: Array, factors: Array, out: Array) -> None:
    def scale_rows(part: slice) -> None:
        np.multiply(array[..., part, :], factors[..., part, :], out=out[..., part, :])

    by_rows(array.shape[-2], array.size, scale_rows)
