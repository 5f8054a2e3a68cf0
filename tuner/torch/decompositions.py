"""Operations of PyTorch that torch-mlir would turn into something else, written by simpler ones.

torch-mlir 20261001 exports GELU by tanh with 0.797724 for the square root of 2 / pi, which is 0.797885;
clamp, hardtanh, hardsigmoid, minimum, maximum and isclose lose NaN; comparisons with a Python number are in
float64; one_hot of a number that is not a class is zeros; a reciprocal asserts that no element is zero;
cumulative sums become operations of a dialect that MLIR does not have; convolutions of volumes, pooling, and
sums over dimensions that are not adjacent have no schedule; transposed convolutions multiply zeros. Sums,
means, norms and average pools of bf16 and f16 are computed in that type, where sums of 512 numbers lose most
of their bits, and each step of GELU is rounded; PyTorch computes these in f32 and rounds once. A product of
i8 into i32 (``torch._int_mm``) has no counterpart in torch-mlir: fusions read i8 again where both operands of
a matmul were extended to i32.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from tuner.mlir.bindings import torch_decompositions
from tuner.torch.attention import attentions
from tuner.torch.convolutions import convolution
from tuner.torch.element_types import (
    NARROW,
    integer_like,
    is_wider_number,
    number_like,
    rounded_to,
    widened,
    wrapped_to,
)
from tuner.torch.encoder_layers import encoder_layers
from tuner.torch.interpolation import interpolations
from tuner.torch.normalizations import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
    variance_and_mean,
    variance_of,
)
from tuner.torch.pooling import adaptive_average_pool, adaptive_max_pool, average_pool, max_pool
from tuner.torch.products import sums_with_products
from tuner.torch.quotients import fmod, remainder, rounded_quotient
from tuner.torch.rearrangements import block_diagonal, constant_pad, fold, roll
from tuner.torch.recurrences import recurrences
from tuner.torch.written_positions import position_writes

# of the approximation by tanh
GELU_SCALE = math.sqrt(2 / math.pi)
GELU_CUBE = 0.044715
SIXTH = 1 / 6  # of hard functions: a processor takes five times as long to divide
ATEN = torch.ops.aten
BYTES_PRODUCT = ATEN._int_mm.default  # noqa: SLF001 - the only product of i8
COMPARISONS = (ATEN.eq, ATEN.ne, ATEN.lt, ATEN.le, ATEN.gt, ATEN.ge)
SHIFTS = (
    *(ATEN.__lshift__.Scalar, ATEN.__lshift__.Tensor, ATEN.bitwise_left_shift.Tensor),
    *(ATEN.__rshift__.Scalar, ATEN.__rshift__.Tensor, ATEN.bitwise_right_shift.Tensor),
)
COMPUTED_IN_F32 = (
    *(ATEN.elu.default, ATEN.leaky_relu.default, ATEN.sigmoid.default),
    *(ATEN.mean.default, ATEN.sum.default, ATEN.linalg_vector_norm.default),
)
POOLS = {
    "max_pool": max_pool,
    "avg_pool": average_pool,
    "adaptive_avg_pool": adaptive_average_pool,
    "adaptive_max_pool": adaptive_max_pool,
}
REMAINDERS = (ATEN.remainder.Scalar, ATEN.remainder.Tensor, ATEN.remainder.Scalar_Tensor)
SPECIAL_POWERS: dict[float, Callable[[torch.Tensor], torch.Tensor]] = {
    0.5: torch.sqrt,
    -0.5: torch.rsqrt,
    -2: lambda x: torch.reciprocal(x * x),
}
PREFIX_BLOCK = 16  # so many elements are summed by a triangle of additions: a vector of f32


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Returns a table operator -> function for ``run_decompositions``: torch-mlir's with changes.

    A function that returns NotImplemented leaves its operator in the graph, for torch-mlir.
    """
    table = torch_decompositions()
    softmaxes = (ATEN.softmax.int, ATEN._softmax.default, ATEN.log_softmax.int, ATEN._log_softmax.default)  # noqa: SLF001
    return {
        **table,
        ATEN.gelu.default: _gelu,
        ATEN.clamp.default: _clamp,
        ATEN.hardtanh.default: lambda x, least=-1.0, greatest=1.0: _clamp(x, least, greatest),
        ATEN.hardsigmoid.default: lambda x: (_clamp(widened(x) + 3, 0.0, 6.0) * SIXTH).to(x.dtype),
        ATEN.hardswish.default: _hardswish,
        ATEN.maximum.default: _maximum,
        ATEN.minimum.default: _minimum,
        ATEN.reciprocal.default: _reciprocal,
        ATEN.pow.Tensor_Scalar: _power,
        **{power: _power_by_tensor(power) for power in (ATEN.pow.Scalar, ATEN.pow.Tensor_Tensor)},
        ATEN.cumsum.default: _cumulative_sum,
        ATEN.cumprod.default: _cumulative_product,
        ATEN.convolution.default: convolution,
        **{
            getattr(ATEN, f"{name}{dims}d").default: pool(dims)
            for name, pool in POOLS.items()
            for dims in (1, 2, 3)
        },
        ATEN._efficientzerotensor.default: _zeros,  # noqa: SLF001
        **position_writes(),
        **attentions(table),
        **encoder_layers(),
        **recurrences(),
        **sums_with_products(table),
        ATEN.block_diag.default: block_diagonal,
        ATEN.constant_pad_nd.default: constant_pad,
        ATEN.roll.default: roll,
        ATEN.col2im.default: fold,
        **interpolations(),
        # of integers by their bits: torch-mlir would compute aten.neg of them as floats
        ATEN.neg.default: lambda x: NotImplemented if x.is_floating_point() else ATEN.bitwise_not(x) + 1,
        ATEN.div.Tensor_mode: rounded_quotient,
        ATEN.floor_divide.default: partial(rounded_quotient, rounding_mode="floor"),
        ATEN.mul.Tensor: _of_narrow_types(ATEN.mul.Tensor),
        ATEN.div.Tensor: _of_narrow_types(ATEN.div.Tensor),
        ATEN.add.Tensor: _sum_of_narrow_types(ATEN.add.Tensor),
        ATEN.sub.Tensor: _sum_of_narrow_types(ATEN.sub.Tensor),
        ATEN.addcdiv.default: _with_quotient,
        **{op: _in_f32(op) for op in COMPUTED_IN_F32},
        ATEN.mean.dim: _by_runs(ATEN.mean.dim),
        ATEN.sum.dim_IntList: _by_runs(ATEN.sum.dim_IntList),
        ATEN.amax.default: _by_runs(ATEN.amax.default),
        ATEN.amin.default: _by_runs(ATEN.amin.default),
        **{shift: _shifted(shift) for shift in SHIFTS},
        **dict.fromkeys((ATEN.fmod.Scalar, ATEN.fmod.Tensor), fmod),
        **dict.fromkeys(REMAINDERS, remainder),
        ATEN.rms_norm.default: rms_norm,
        ATEN.rsub.Scalar: _difference_from(table[ATEN.rsub.Scalar]),
        ATEN.group_norm.default: group_norm,
        ATEN.native_layer_norm.default: layer_norm,
        ATEN.instance_norm.default: instance_norm,
        ATEN._native_batch_norm_legit_no_training.default: batch_norm,  # noqa: SLF001
        ATEN.argmax.default: lambda x, dim=None, keepdim=False: _index_of(torch.amax, x, dim, keepdim),
        ATEN.argmin.default: lambda x, dim=None, keepdim=False: _index_of(torch.amin, x, dim, keepdim),
        ATEN.max.dim: lambda x, dim, keepdim=False: _with_index(torch.amax, x, dim, keepdim),
        ATEN.min.dim: lambda x, dim, keepdim=False: _with_index(torch.amin, x, dim, keepdim),
        ATEN._weight_int8pack_mm.default: _product_by_bytes,  # noqa: SLF001
        BYTES_PRODUCT: _product_of_bytes,
        **{softmax: _of_scalars(softmax, table.get(softmax)) for softmax in softmaxes},
        ATEN.clamp.Tensor: _clamp_by_tensors,
        ATEN.var.correction: variance_of,
        ATEN.var_mean.correction: variance_and_mean,
        ATEN.bucketize.Tensor: _bucketize,
        ATEN.linspace.default: _of_floats(table[ATEN.linspace.default]),
        ATEN.one_hot.default: _one_hot,
        ATEN.isclose.default: _is_close,
        ATEN.threshold.default: _threshold,
        ATEN.softplus.default: _softplus,
        **{comparison.Scalar: _compared(comparison.Scalar) for comparison in COMPARISONS},
    }


def _product_of_bytes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Multiplies i8 as i32, which fusions narrow again.

    A uint8 x is shifted to i8 by -128; 128 times the sums of y's columns make up for that.
    """
    if x.dtype is not torch.uint8 or y.dtype is not torch.int8:
        return ATEN.mm.default(x.int(), y.int())
    signed = (x.int() - 128).to(torch.int8)
    return ATEN.mm.default(signed.int(), y.int()) + 128 * y.sum(0, keepdim=True, dtype=torch.int32)


def _product_by_bytes(x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Computes the product by weights of bytes: sums in f32, rounded once, as by PyTorch's kernel."""
    rows = weight.float() * scales.float().unsqueeze(1)
    return (x.float() @ rows.t()).to(x.dtype)


def _of_scalars(softmax: Any, decomposed: Callable[..., Any] | None) -> Callable[..., Any]:
    """Returns the decomposition of a softmax.

    For 0-d tensors, on which torch-mlir hangs, and else ``decomposed``.
    """

    def computed(x: torch.Tensor, dim: int, *arguments: Any, **keywords: Any) -> Any:
        if x.dim():
            if decomposed is None:
                return NotImplemented
            return decomposed(x, dim, *arguments, **keywords)
        return softmax(x.reshape(1), 0, *arguments, **keywords).reshape(())

    return computed


def _compared(comparison: Any) -> Callable[..., Any]:
    """Returns a comparison with a Python number in the type that PyTorch uses; torch-mlir's is in float64."""

    def computed(x: torch.Tensor, number: int | float) -> Any:
        if x.dtype is torch.bool:
            is_small = isinstance(number, float) or wrapped_to(number, torch.int32) == number
            return comparison(x.to(torch.int32 if is_small else torch.int64), number)
        if not x.is_floating_point():
            if isinstance(number, float):
                return comparison(x.to(torch.get_default_dtype()), number)
            wrapped = wrapped_to(number, x.dtype)
            if wrapped == number:
                return NotImplemented
            return comparison(x, wrapped)
        near = number if number != number else rounded_to(number, x.dtype)
        # A float that x's type has is left to torch-mlir. Another number is rounded to such a float: the new
        # comparison comes here again, and stays.
        is_exact = isinstance(number, float) and (near == number or near != near)
        if is_exact:
            return NotImplemented
        return comparison(x, near)

    return computed


def _one_hot(x: torch.Tensor, classes: int = -1) -> Any:
    """Reads each class from a table of the classes, so that a number out of range is an error."""
    if classes < 1:
        return NotImplemented
    numbers = torch.arange(classes)
    return (ATEN.embedding.default(numbers.unsqueeze(1), x) == numbers).long()


def _is_close(
    x: torch.Tensor, y: torch.Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    """Compares infinities and NaN as PyTorch does, where torch-mlir calls each close to any number."""
    if not x.is_floating_point():
        return NotImplemented
    is_equal = x == y
    if equal_nan:
        is_equal = is_equal | ((x != x) & (y != y))
    error = (x - y).abs()
    return is_equal | ((error < math.inf) & (error <= atol + (rtol * y).abs()))


def _threshold(x: torch.Tensor, least: float, number: float) -> torch.Tensor:
    """Computes threshold.

    In an integer tensor both numbers are truncated, and narrow floats are compared in f32.
    """
    if not x.is_floating_point():
        return torch.where(x <= int(least), int(number), x)
    return torch.where(widened(x) <= least, number_like(x, number), x)


def _softplus(x: torch.Tensor, beta: float = 1, threshold: float = 20) -> torch.Tensor:
    wide = widened(x)
    scaled = wide * beta
    return torch.where(scaled > threshold, wide, torch.log1p(torch.exp(scaled)) / beta).to(x.dtype)


def _clamp_by_tensors(
    x: torch.Tensor, least: torch.Tensor | None = None, greatest: torch.Tensor | None = None
) -> torch.Tensor:
    """Keeps NaN, and compares booleans without a sign, which torch-mlir does not."""
    x = x if least is None else torch.maximum(x, least)
    if greatest is None:
        return x
    return torch.minimum(x, greatest)


def _bucketize(
    x: torch.Tensor, boundaries: torch.Tensor, *, out_int32: bool = False, right: bool = False
) -> torch.Tensor:
    """Searches by halves as PyTorch does, so that unsorted boundaries give the same result, too."""
    count = boundaries.shape[0]
    low = torch.zeros(x.shape, dtype=torch.int64)
    high = torch.full(x.shape, count, dtype=torch.int64)
    for _ in range(count.bit_length()):
        middle = (low + high) >> 1
        boundary = boundaries[middle.clamp(max=count - 1)]
        is_after = ~(boundary > x) if right else ~(boundary >= x)  # NaN is after all
        is_searched = low < high
        low = torch.where(is_searched & is_after, middle + 1, low)
        high = torch.where(is_searched & ~is_after, middle, high)
    if out_int32:
        return low.to(torch.int32)
    return low


def _of_floats(linspace: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the decomposition of linspace for floats; of integers it is left, and refused later."""

    def computed(*arguments: Any, dtype: torch.dtype | None = None, **keywords: Any) -> Any:
        if dtype is not None and not dtype.is_floating_point:
            return NotImplemented
        return linspace(*arguments, dtype=dtype, **keywords)

    return computed


def _in_f32(operation: Any) -> Callable[..., Any]:
    """Returns an operation that computes narrow floats in f32 and rounds the result; leaves other types."""

    def computed(x: torch.Tensor, *arguments: Any, dtype: torch.dtype | None = None, **keywords: Any) -> Any:
        if x.dtype not in NARROW or (dtype or x.dtype) not in NARROW:
            return NotImplemented
        return operation(x.float(), *arguments, **keywords).to(dtype or x.dtype)

    return computed


def _by_runs(reduction: Any) -> Callable[..., Any]:
    """Returns a reduction that reduces each run of adjacent dimensions on its own, the last one first.

    A schedule is for one run. Sums of narrow floats are of f32, and rounded once.
    """

    def computed(x: torch.Tensor, dim: Any = (), keepdim: bool = False, **keywords: Any) -> Any:
        narrow = NotImplemented
        if reduction in (ATEN.mean.dim, ATEN.sum.dim_IntList):
            narrow = _in_f32(reduction)(x, dim, keepdim, **keywords)
        dims = sorted(number % max(x.dim(), 1) for number in dim or ())
        first = [number for number in dims if number - 1 not in dims]
        if narrow is not NotImplemented or len(first) < 2 or not x.is_floating_point():
            return narrow
        for start in reversed(first):
            run = [number for number in dims if number >= start]
            dims = [number for number in dims if number < start]
            x = reduction(x, run, keepdim, **keywords)
        return x

    return computed


def _gelu(x: torch.Tensor, approximate: str = "none") -> Any:
    if approximate == "none":  # torch-mlir's is right for what is not narrow
        if x.dtype in NARROW:
            return ATEN.gelu.default(x.float()).to(x.dtype)
        return NotImplemented
    wide = widened(x)
    inner = GELU_SCALE * (wide + GELU_CUBE * (wide * wide * wide))
    return (0.5 * wide * (1 + torch.tanh(inner))).to(x.dtype)


def _hardswish(x: torch.Tensor) -> torch.Tensor:
    """Multiplies in PyTorch's order, so that large numbers become infinity as there."""
    wide = widened(x)
    return (wide * _clamp(wide + 3, 0.0, 6.0) * SIXTH).to(x.dtype)


def _clamp(x: torch.Tensor, least: float | None = None, greatest: float | None = None) -> Any:
    """Keeps NaN: each comparison with NaN is false; a limit that is NaN makes all elements NaN."""
    if not x.is_floating_point():
        return NotImplemented
    if least != least or greatest != greatest:
        return x * math.nan
    if least is not None:
        x = torch.where(x < least, number_like(x, least), x)
    if greatest is not None:
        x = torch.where(x > greatest, number_like(x, greatest), x)
    return x


def _maximum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Compares in the type of the result, which an i64 of no dimensions does not change."""
    dtype = torch.result_type(x, y)
    x = x.to(dtype)
    y = y.to(dtype)
    return torch.where((x > y) | (x != x), x, y)


def _minimum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    dtype = torch.result_type(x, y)
    x = x.to(dtype)
    y = y.to(dtype)
    return torch.where((x < y) | (x != x), x, y)


def _reciprocal(x: torch.Tensor) -> Any:
    wide = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    return ATEN.div.Tensor(number_like(wide, 1.0), wide)


def _power(x: torch.Tensor, exponent: float) -> Any:
    """Computes powers as PyTorch does: x**0.5, x**-0.5 and x**-2 not by ``pow``, which differs at -inf.

    sqrt(-inf) is NaN, pow(-inf, 0.5) is inf. Powers of integers are products, which lose their high bits. A
    tensor of another type than the result's is converted first. Returns NotImplemented, which leaves the
    operator as it is, for all other exponents, for f16, and for negative exponents of integers.
    """
    result_type = torch.result_type(x, exponent)
    if result_type is not x.dtype:
        return ATEN.pow.Tensor_Scalar(x.to(result_type), exponent)
    if not x.is_floating_point():
        return _integer_power(x, int(exponent))
    if float(exponent) != exponent and exponent == exponent:  # an odd one becomes even, as in PyTorch
        return ATEN.pow.Tensor_Scalar(x, float(exponent))
    if x.dtype is torch.float16 or exponent not in SPECIAL_POWERS:
        return NotImplemented
    return SPECIAL_POWERS[exponent](widened(x)).to(x.dtype)


def _integer_power(x: torch.Tensor, exponent: int) -> Any:
    if exponent < 0:  # an error of PyTorch
        return NotImplemented
    if exponent == 0:
        return (x ^ x) + 1
    power = x.clone()
    for digit in f"{exponent:b}"[1:]:
        power = power * power
        if digit == "1":
            power = power * x
    return power


def _power_by_tensor(power: Any) -> Callable[..., Any]:
    """Returns a power that converts operands to floats where the result has floats, or torch-mlir crashes."""

    def computed(x: Any, exponent: torch.Tensor) -> Any:
        result_type = torch.result_type(x, exponent)
        operands = [value for value in (x, exponent) if isinstance(value, torch.Tensor)]
        if all(operand.dtype is result_type for operand in operands) or not result_type.is_floating_point:
            return NotImplemented
        if isinstance(x, torch.Tensor):
            x = x.to(result_type)
        return power(x, exponent.to(result_type))

    return computed


def _cumulative_sum(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Sums each prefix of a block on its own, by operations that become vectors, then adds earlier blocks.

    Sums of narrow floats are of f32, and rounded once, as PyTorch's.
    """
    sum_type = dtype or (x.dtype if x.is_floating_point() else torch.int64)
    if x.dim() == 0:
        return x.to(sum_type)
    at = dim % x.dim()
    return _prefix_sums(widened(x.to(sum_type)).movedim(at, -1)).movedim(-1, at).contiguous().to(sum_type)


def _cumulative_product(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Any:
    """Multiplies in order, f32 in f64 and narrow floats in f32, as PyTorch: no step overflows earlier."""
    result_type = dtype or (x.dtype if x.is_floating_point() else torch.int64)
    if x.dim() == 0:
        return x.to(result_type)
    wider = {torch.float32: torch.float64, **dict.fromkeys(NARROW, torch.float32)}.get(
        result_type, result_type
    )
    if x.dtype is wider:
        return NotImplemented
    return ATEN.cumprod.default(x.to(result_type).to(wider), dim).to(result_type)


def _prefix_sums(x: torch.Tensor) -> torch.Tensor:
    size = x.shape[-1]
    sum_type = x.dtype
    if size > PREFIX_BLOCK:
        blocks = -(-size // PREFIX_BLOCK)
        padded = torch.nn.functional.pad(x, (0, blocks * PREFIX_BLOCK - size))
        inside = _prefix_sums(padded.reshape(*x.shape[:-1], blocks, PREFIX_BLOCK))
        before = torch.nn.functional.pad(_prefix_sums(inside[..., :-1, -1]), (1, 0))
        sums = inside + before.unsqueeze(-1)
        return sums.reshape(*x.shape[:-1], blocks * PREFIX_BLOCK)[..., :size]
    steps = torch.arange(size)
    is_before = steps[:, None] <= steps[None, :]
    zero = torch.zeros((), dtype=sum_type)
    # in order, a vector of prefixes at a time: the sums are of rows, not of the last dimension
    return torch.where(is_before, x.unsqueeze(-1), zero).sum(-2, dtype=sum_type)


def _of_narrow_types(operation: Any) -> Callable[..., Any]:
    """Returns an operation of a tensor and a number: torch-mlir rounds it to narrow floats, unlike PyTorch.

    With an integer of fewer than 32 bits it crashes, but not with a tensor of this integer.
    """

    def computed(x: torch.Tensor, number: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return NotImplemented
        if is_wider_number(number, x):
            return operation(x.float(), number).to(x.dtype)
        if operation is ATEN.div.Tensor or integer_like(x, number) is number:
            return NotImplemented
        return operation(x, integer_like(x, number))

    return computed


def _sum_of_narrow_types(operation: Any) -> Callable[..., Any]:
    """Returns x + alpha y or x - alpha y: PyTorch rounds numbers to the narrow type, and the result once.

    With an integer of fewer than 32 bits torch-mlir crashes, but not with a tensor of this integer.
    """

    def computed(x: Any, y: Any, *, alpha: float = 1) -> Any:
        dtype = torch.result_type(x, y)
        if dtype in NARROW and alpha != 1:
            wide = [_widened_as(dtype, operand) for operand in (x, y)]
            return operation(wide[0], rounded_to(alpha, dtype) * wide[1]).to(dtype)
        if dtype is torch.bool and isinstance(y, bool):  # torch-mlir's sum of True and True is False
            return x | number_like(x, y)
        if operation is ATEN.add.Tensor or integer_like(x, y) is y:
            return NotImplemented
        return operation(x, integer_like(x, y * alpha))

    return computed


def _widened_as(dtype: torch.dtype, operand: Any) -> Any:
    """Returns an operand as PyTorch reads it next to 16-bit floats: rounded to ``dtype``, then as f32."""
    if isinstance(operand, torch.Tensor):
        return operand.to(dtype).float()
    return rounded_to(operand, dtype)


def _with_quotient(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, *, value: float = 1) -> torch.Tensor:
    dtype = torch.result_type(x, y / z)
    x, y, z = (widened(operand.to(dtype)) for operand in (x, y, z))
    return (x + value * y / z).to(dtype)


def _shifted(shift: Any) -> Callable[..., Any]:
    """Returns a shift by any number: 0 beyond the bits, or -1 to the right of a negative number."""
    is_right = shift in SHIFTS[3:]

    def computed(x: torch.Tensor, y: Any) -> Any:
        dtype = torch.result_type(x, y)
        last = torch.iinfo(dtype).bits - 1
        if not isinstance(y, torch.Tensor):
            if 0 <= y <= last:
                return NotImplemented
            if is_right and dtype.is_signed:
                return shift(x, last)
            return x ^ x
        x = x.to(dtype)
        y = y.to(dtype)
        is_within = (y >= 0) & (y <= last)
        y = torch.where(is_within, y, last)
        for bit in range(last.bit_length()):  # by 1, 2, 4 and so on, where y has this bit
            shifted = x >> (1 << bit) if is_right else x << (1 << bit)
            x = torch.where(((y >> bit) & 1) == 1, shifted, x)
        if is_right and dtype.is_signed:
            return x
        return torch.where(is_within, x, 0)

    return computed


def _difference_from(decomposed: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a number less x: torch-mlir converts a whole number per element, by loops."""

    def computed(x: torch.Tensor, number: float, alpha: float = 1) -> Any:
        operand = integer_like(x, number)
        if operand is not number:
            return ATEN.sub.Tensor(operand, x, alpha=alpha)
        if not x.is_floating_point():
            return decomposed(x, number, alpha)
        wide = widened(x)
        minuend = number_like(wide, rounded_to(float(number), x.dtype))
        factor = rounded_to(alpha, x.dtype) if x.dtype in NARROW else alpha
        return ATEN.sub.Tensor(minuend, wide, alpha=factor).to(x.dtype)

    return computed


def _index_of(extremum: Any, x: torch.Tensor, dim: int | None, keepdim: bool) -> Any:
    """Returns the index of the first NaN, else of the first extremum; torch-mlir skips NaN."""
    if not x.is_floating_point() or x.dim() == 0:
        return NotImplemented
    if dim is None:
        index = _index_of(extremum, x.reshape(-1), 0, False)
        if keepdim:
            return index.reshape([1] * x.dim())
        return index
    at = dim % x.dim()
    is_found = (x == extremum(x, at, keepdim=True)) | (x != x)  # an extremum of NaN equals nothing
    shape = [-1] + [1] * (x.dim() - 1 - at)
    numbers = torch.arange(x.shape[at]).reshape(shape)
    return torch.where(is_found, numbers, x.shape[at]).amin(at, keepdim=keepdim)


def _with_index(extremum: Any, x: torch.Tensor, dim: int, keepdim: bool) -> Any:
    index = _index_of(extremum, x, dim, keepdim)
    if index is NotImplemented:
        return NotImplemented
    return (extremum(x, dim, keepdim=keepdim), index)


def _zeros(size: list[int], *, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
    return torch.zeros(size, dtype=dtype or torch.get_default_dtype())
