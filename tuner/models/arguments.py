"""The arguments of a program that the command line runs: random, or numbers and .npy files of ``--arg``."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from tuner.core.device_programs import BufferType, ScalarType, ValueType
from tuner.core.errors import UsageError
from tuner.core.numpy_types import dtype_of
from tuner.runtime.arrays import read_npy

WORD = re.compile(r"([0-9]{1,4})=(?:\[([0-9]{1,9}(?:,[0-9]{1,9})*)\])?(.*)")
EXAMPLE = "such as 0=zeros, 1=[64,64]random or 2=7"
FILLS = {"zeros": 0.0, "ones": 1.0, "nan": float("nan")}
CONTENTS = "random, range, zeros, ones, nan, @FILE.npy or a number"
INTEGERS_BELOW = 100  # random integers are below this limit, and not negative
ELEMENTS_LIMIT = 1 << 31  # of one argument


def make_arguments(
    types: tuple[ValueType, ...], options: tuple[str, ...], rng: np.random.Generator
) -> tuple[Any, ...]:
    """Returns one array or number per type in ``types``; an argument without an option is random.

    Args:
        types: The types of the entry function's arguments.
        options: Values of ``--arg``: the argument's number from 0 on, "=", and its content. Of a scalar: a
            number, ``2=7``. Of an array: sizes in brackets, then random, range, zeros, ones, nan, @FILE.npy
            or a number, ``0=[8,4]zeros``; either may be left out.
        rng: Source of the random numbers: standard normal, for integer arrays 0 to 99, for boolean arrays 0
            or 1.

    Raises UsageError for an option that is malformed, repeated or does not fit its type, for a file that
    cannot be read, for an array with a dynamic size whose sizes are missing or with more than 2**31 elements,
    and for a scalar of integer or boolean type without an option.
    """
    contents: dict[int, tuple[tuple[int, ...], str]] = {}  # sizes and content by an argument's number
    for typed in options:
        match = WORD.fullmatch(typed)
        if match is None or not (match[2] or match[3]) or not int(match[1]) < len(types):
            numbers = f" with NUMBER below {len(types)}" if match and (match[2] or match[3]) else ""
            raise UsageError(f"argument: found {typed!r}, allowed NUMBER=[SIZES]CONTENT{numbers}, {EXAMPLE}")
        if match[3].startswith("["):
            raise UsageError(f"argument {int(match[1])}: found {typed!r}, allowed sizes such as [64,64]")
        if int(match[1]) in contents:
            raise UsageError(f"argument {int(match[1])}: {typed!r} cannot be combined with an earlier one")
        sizes = tuple(map(int, match[2].split(","))) if match[2] else ()
        contents[int(match[1])] = (sizes, match[3])
    return tuple(
        _make(index, type_, *contents.get(index, ((), "")), rng) for index, type_ in enumerate(types)
    )


def type_text(type_: ValueType) -> str:
    """Returns a type as text: ``64x?xf32`` for an array (?: a dynamic size), ``f32`` for a scalar."""
    if isinstance(type_, ScalarType):
        return type_.element
    return "x".join([*("?" if size is None else str(size) for size in type_.shape), type_.element])


def _make(
    number: int, type_: ValueType, sizes: tuple[int, ...], content: str, rng: np.random.Generator
) -> Any:
    dtype = dtype_of(type_.element)
    if isinstance(type_, BufferType):
        return _array(f"argument {number}", dtype, _shape(number, type_, sizes), content or "random", rng)
    if sizes:
        raise UsageError(
            f"argument {number}: found sizes {list(sizes)}, allowed a number: it is {type_text(type_)}"
        )
    if content:
        return _number(f"argument {number}", content, dtype, "a number")
    if dtype.kind in "ib":
        raise UsageError(
            f"argument {number}: a value of type {type_text(type_)} is missing",
            f"for example --arg {number}=7",
        )
    return float(rng.standard_normal())


def _shape(number: int, type_: BufferType, sizes: tuple[int, ...]) -> tuple[int, ...]:
    fits = len(sizes) == len(type_.shape) and all(
        known in (None, size) for known, size in zip(type_.shape, sizes, strict=True)
    )
    if sizes and not fits:
        raise UsageError(f"argument {number}: found sizes {list(sizes)}, allowed those of {type_text(type_)}")
    shape: tuple[int | None, ...] = sizes or type_.shape
    if any(size is None for size in shape):
        example = ",".join("64" if size is None else str(size) for size in type_.shape)
        raise UsageError(
            f"argument {number}: sizes of {type_text(type_)} are missing",
            f"for example --arg {number}=[{example}]random",
        )
    known = tuple(int(size) for size in shape if size is not None)
    if np.prod(known, dtype=object) > ELEMENTS_LIMIT:
        raise UsageError(f"argument {number}: found {type_text(type_)}, allowed {ELEMENTS_LIMIT} elements")
    return known


def _array(
    name: str, dtype: "np.dtype[Any]", shape: tuple[int, ...], content: str, rng: np.random.Generator
) -> Any:
    if content == "random":
        below = {"i": INTEGERS_BELOW, "b": 2}.get(dtype.kind)
        drawn = rng.standard_normal(shape) if below is None else rng.integers(0, below, shape)
        return np.asarray(drawn).astype(dtype)
    if content == "range":
        return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    if content.startswith("@"):
        return _of_file(name, content[1:], dtype, shape)
    if content in FILLS and not (content == "nan" and dtype.kind in "ib"):
        return np.full(shape, FILLS[content]).astype(dtype)
    number = _number(name, content, dtype, CONTENTS)
    if dtype.kind in "bi":
        low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if not low <= number <= high:
            raise UsageError(f"{name}: found {content}, allowed numbers that {dtype} has")
    return np.full(shape, number).astype(dtype)


def _of_file(name: str, path: str, dtype: "np.dtype[Any]", shape: tuple[int, ...]) -> Any:
    array = read_npy(Path(path), f"{name}: {path}")
    if array.shape != shape:
        raise UsageError(f"{name}: {path}: found shape {array.shape}, allowed {shape}")
    if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:  # numpy has no name for bf16
        return np.array(array.view(dtype), order="C")
    numbers = array.astype(dtype) if array.dtype.kind in "biuf" else None
    is_kept = numbers is not None and (dtype.kind not in "biu" or np.array_equal(numbers, array))
    if not is_kept:
        raise UsageError(f"{name}: {path}: found {array.dtype}, allowed numbers that {dtype} has")
    return np.ascontiguousarray(numbers)


def _number(name: str, text: str, dtype: "np.dtype[Any]", allowed: str) -> int | float:
    try:
        if dtype.kind in "ib":
            return int(text, 0)
        return float(text)
    except ValueError:
        raise UsageError(f"{name}: found {text!r}, allowed {allowed} of type {dtype}") from None
