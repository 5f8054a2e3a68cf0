"""Decoders of conversions: cvt of numbers, cvta of addresses, and isspacep, which tests their state space."""

from collections.abc import Callable

import numpy as np

from tuner.gpu.ptxsim.instructions.operands import PREDICATE, U64, Operands, Step
from tuner.gpu.ptxsim.memory.global_memory import SPACES, WINDOW_BITS, WINDOWS
from tuner.gpu.ptxsim.ptx.dtypes import (
    FORMATS,
    INTEGER_MODES,
    TYPES,
    Array,
    PtxType,
    round_to,
    to_odd,
    to_tf32,
    two_sum,
)
from tuner.gpu.ptxsim.state.resident_blocks import ResidentBlocks

MODES = ("rn", "rz", "rm", "rp", "rna")
Function = Callable[[Array], Array]


def convert(operands: Operands) -> Step:
    """Decodes PTX ``cvt``: returns a function that converts numbers between types, or packs two f32."""
    parts = operands.instruction.parts
    if len(parts) > 2 and parts[-2] in ("f16x2", "bf16x2"):
        return _convert_pair(operands)
    source = operands.modifiers.type()
    target = operands.modifiers.type()
    operands.need(2)
    function = _after(operands, source, target, _conversion(operands, source, target))
    write = operands.destination(0, target)
    read = operands.source(1, source)
    return lambda resident: write(resident, function(read(resident)))


def _conversion(operands: Operands, source: PtxType, target: PtxType) -> Function:
    modifiers = operands.modifiers
    flushes = modifiers.take("ftz") is not None
    if (source.is_float and target.is_float) or target.name == "tf32":
        return _between_floats(operands, source, target, flushes)
    if source.is_float:
        mode = INTEGER_MODES[modifiers.need(INTEGER_MODES, "a rounding to integers")]
        modifiers.take("sat")  # conversions of floats to integers always clamp
        return lambda x: _to_integer(mode(_flushed(x, flushes).astype(np.float64)), x, target)
    if target.is_float:
        mode_name = modifiers.need(MODES[:4], "a rounding")
        if target.name == "f64" and source.bits == 64 and mode_name != "rn":
            raise operands.unsupported(f".{mode_name} of 64 bits")
        return lambda x: _from_integer(x, target, mode_name)
    if modifiers.take("sat"):
        limits = np.iinfo(target.dtype)
        range_ = np.iinfo(source.dtype)
        low = max(limits.min, range_.min)
        high = min(limits.max, range_.max)
        return lambda x: np.clip(x, low, high).astype(target.dtype)
    return lambda x: x.astype(target.dtype)


def _between_floats(operands: Operands, source: PtxType, target: PtxType, flushes: bool) -> Function:
    modifiers = operands.modifiers
    if (whole := modifiers.take(*INTEGER_MODES)) is not None:
        mode = INTEGER_MODES[whole]
        return lambda x: mode(_flushed(x, flushes).astype(np.float64)).astype(target.dtype)
    if target.name == "tf32":
        rounding = modifiers.need(("rna", "rn", "rz"), "a rounding")
        return lambda x: to_tf32(x.view(np.float32), rounding)
    if source.bits < target.bits or source.name == target.name:
        return lambda x: _flushed(x, flushes).astype(target.dtype)  # every value is representable
    rounding = modifiers.need(MODES[:4], "a rounding")
    return lambda x: _flushed(narrow(_flushed(x, flushes), target, rounding), flushes)


def _after(operands: Operands, source: PtxType, target: PtxType, function: Function) -> Function:
    """Consumes .relu and .sat of floats; returns the conversion combined with their clamping."""
    modifiers = operands.modifiers
    if target.is_float and modifiers.take("sat"):
        return lambda x: np.nan_to_num(np.clip(function(x), 0, 1), nan=0).astype(target.dtype)
    if source.is_float and modifiers.take("relu"):
        return lambda x: function(np.where(x < 0, x.dtype.type(0), x))
    return function


def _flushed(values: Array, flushes: bool) -> Array:
    if not flushes or values.dtype != np.float32:
        return values
    return np.where(np.abs(values) < 2.0**-126, np.copysign(np.float32(0), values), values)


def narrow(values: Array, target: PtxType, mode: str) -> Array:
    """Returns floating-point ``values`` rounded once to f16, bf16 or f32.

    ``mode``: "rn", "rz", "rm" or "rp", as in PTX.
    """
    if mode == "rn" and target.name in ("f16", "f32"):
        return values.astype(target.dtype)
    rounded = round_to(values.astype(np.float64), FORMATS[target.name], mode)
    return rounded.astype(np.float32).astype(target.dtype)


def _to_integer(whole: Array, original: Array, target: PtxType) -> Array:
    """Returns rounded floats ``whole`` as integers of ``target``, clamped to its range.

    NaN, looked for in ``original``, the numbers before rounding, becomes 0; from f64 or to 64 bits, the
    integer of which only the highest bit is set. PTX ISA, "cvt".
    """
    limits = np.iinfo(target.dtype)
    is_high = whole >= float(limits.max)
    is_low = whole <= float(limits.min)
    inside = np.where(is_high | is_low | np.isnan(original), 0, whole)
    if target.dtype == np.uint64:  # numpy converts large floats to uint64 correctly, but not negative floats
        inside = np.maximum(inside, 0)
    clamped = np.where(is_high, limits.max, np.where(is_low, limits.min, inside.astype(target.dtype)))
    is_wide = original.dtype == np.float64 or target.bits == 64
    if not is_wide:
        nothing = 0
    elif target.is_signed:
        nothing = limits.min
    else:
        nothing = 1 << (target.bits - 1)
    return np.where(np.isnan(original), nothing, clamped).astype(target.dtype)


def _from_integer(values: Array, target: PtxType, mode: str) -> Array:
    """Returns integers as floats rounded once; 64-bit integers by way of 2Sum and rounding to odd."""
    if target.name == "f64" and mode == "rn":
        return values.astype(np.float64)
    if values.dtype.itemsize < 8:
        return _narrow_exact(values.astype(np.float64), target, mode)
    if target.name == "f32" and mode == "rn":
        return values.astype(np.float32)
    high = values >> values.dtype.type(32)
    low = values & values.dtype.type(0xFFFFFFFF)
    total, lost = two_sum(high.astype(np.float64) * 2.0**32, low.astype(np.float64))
    return _narrow_exact(to_odd(total, lost), target, mode)


def _narrow_exact(values: Array, target: PtxType, mode: str) -> Array:
    if target.name == "f64":
        return values
    if target.name == "bf16" or mode != "rn":
        return round_to(values, FORMATS[target.name], mode).astype(np.float32).astype(target.dtype)
    return values.astype(target.dtype)


def _convert_pair(operands: Operands) -> Step:
    """Decodes cvt.rn.f16x2.f32 and similar: packs two floats, the first one in the upper half."""
    modifiers = operands.modifiers
    modifiers.type("f32")
    target = TYPES[modifiers.type("f16x2", "bf16x2").name[:-2]]
    mode = modifiers.need(("rn", "rz"), "a rounding")
    is_relu = modifiers.take("relu") is not None
    operands.need(3)
    high = operands.source(1, TYPES["f32"])
    low = operands.source(2, TYPES["f32"])
    write = operands.destination(0, TYPES["b32"])

    def half(values: Array) -> Array:
        if is_relu:
            values = np.where(values < 0, np.float32(0), values)
        return narrow(values, target, mode).view(np.uint16).astype(np.uint32)

    def step(resident: ResidentBlocks) -> None:
        write(resident, half(high(resident)) << np.uint32(16) | half(low(resident)))

    return step


def convert_address(operands: Operands) -> Step:
    """Decodes PTX ``cvta`` to generic addresses, and ``cvta.to`` back, without a check of the state space."""
    modifiers = operands.modifiers
    type_ = modifiers.type("u64", "u32")
    is_to_space = modifiers.take("to") is not None
    window = WINDOWS.get(modifiers.space(), 0)
    operands.need(2)
    read = operands.source(1, type_)
    write = operands.destination(0, type_)
    offset = type_.dtype.type((-window if is_to_space else window) & ((1 << type_.bits) - 1))
    return lambda resident: write(resident, read(resident) + offset)


def is_in_space(operands: Operands) -> Step:
    """Decodes PTX ``isspacep``: returns a function that tests whether generic addresses are in a state space.

    Constant memory is simulated as a part of global memory.
    """
    number = SPACES.index(operands.modifiers.space())
    operands.need(2)
    read = operands.source(1, U64)
    write = operands.destination(0, PREDICATE)
    return lambda resident: write(resident, read(resident) >> np.uint64(WINDOW_BITS) == number)


CONVERSIONS: dict[str, Callable[[Operands], Step]] = {
    "cvt": convert,
    "cvta": convert_address,
    "isspacep": is_in_space,
}
