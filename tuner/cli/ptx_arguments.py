"""Parses the arguments of ``tuner ptx run``: arrays, numbers, sizes of grids and blocks."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuner.core.errors import UsageError, unknown_value
from tuner.programs.npy_file import read_npy

BYTES_LIMIT = 4 << 30  # largest size of one argument
FILLS = "random, zeros, ones, range, nan, a number or @FILE.npy"
EXAMPLE = "such as f32[64,64]=random, f32[64]=@bias.npy or u32=7"
NUMPY_NAMES = {"f16": "f2", "f32": "f4", "f64": "f8"} | {
    f"{kind}{8 * size}": f"{'i' if kind == 's' else 'u'}{size}" for kind in "su" for size in (1, 2, 4, 8)
}


def parse_argument(text: str, rng: np.random.Generator) -> NDArray[Any] | int | float:
    """Returns the kernel argument of a text: an array for ``f32[64]=random``, a number for ``u32=7``.

    ``rng`` draws random contents. Raises UsageError for a text of another form, and for more than 4 GiB.
    """
    match = re.fullmatch(r"(\w+)(?:\[([0-9]{1,9}(?:,[0-9]{1,9})*)\])?=(.+)", text)
    if match is None:
        raise UsageError(f"argument: found {text!r}, allowed TYPE[SIZES]=CONTENT, {EXAMPLE}")
    dtype = _dtype(match[1])
    if match[2] is None:
        return _number(match[3], dtype)
    sizes = tuple(int(size) for size in match[2].split(","))
    if math.prod(sizes) * dtype.itemsize > BYTES_LIMIT:
        raise UsageError(f"argument: found {text!r}, allowed up to {BYTES_LIMIT >> 30} GiB")
    return _array(match[3], dtype, sizes, rng)


def _dtype(name: str) -> "np.dtype[Any]":
    if name == "bf16":
        import ml_dtypes

        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    if name not in NUMPY_NAMES:
        raise unknown_value("argument: type", name, (*NUMPY_NAMES, "bf16"))
    return np.dtype(NUMPY_NAMES[name])


def _number(text: str, dtype: "np.dtype[Any]") -> int | float:
    try:
        return float(text) if dtype.kind not in "iu" else int(text, 0)
    except ValueError:
        raise UsageError(
            f"argument: found {text!r}, allowed a number; arrays have sizes, {EXAMPLE}"
        ) from None


def _array(
    fill: str, dtype: "np.dtype[Any]", sizes: tuple[int, ...], rng: np.random.Generator
) -> NDArray[Any]:
    if fill.startswith("@"):
        return _from_file(Path(fill[1:]), dtype, sizes)
    is_integer = dtype.kind in "iu"
    if fill == "nan" and is_integer:
        raise UsageError(f"argument: {dtype} has no nan")
    if fill == "random":
        drawn = rng.integers(0, 100, sizes) if is_integer else rng.standard_normal(sizes, np.float32)
        return np.asarray(drawn).astype(dtype)
    if fill == "range":
        return np.arange(math.prod(sizes)).reshape(sizes).astype(dtype)
    named = {"zeros": 0, "ones": 1, "nan": float("nan")}
    if fill not in named and not re.fullmatch(r"-?[\d.]+(?:e-?\d+)?|0x[0-9a-fA-F]+", fill):
        raise UsageError(f"argument: content: found {fill!r}, allowed {FILLS}")
    number = named[fill] if fill in named else _number(fill, dtype)
    if is_integer and not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
        raise UsageError(f"argument: content: found {fill}, allowed numbers of {dtype}")
    return np.full(sizes, number).astype(dtype)


def _from_file(path: Path, dtype: "np.dtype[Any]", sizes: tuple[int, ...]) -> NDArray[Any]:
    found = read_npy(path, f"{path}")
    if found.size != math.prod(sizes):
        raise UsageError(f"{path}: found {found.size} elements, allowed {math.prod(sizes)}")
    is_opaque = found.dtype.kind == "V" and found.dtype.itemsize == dtype.itemsize  # bf16, as numpy writes it
    if not is_opaque and found.dtype.kind not in "biuf":
        raise UsageError(f"{path}: found {found.dtype}, allowed numbers")
    same = found.view(dtype) if is_opaque else found.astype(dtype)
    return np.array(same.reshape(sizes), order="C")


def parse_sizes(text: str, what: str) -> tuple[int, int, int]:
    """Returns the sizes (x, y, z) of a grid or block from ``x,y,z``, ``x,y`` or ``x``; missing ones are 1.

    Raises UsageError for any other form; ``what`` names the option in its message.
    """
    if re.fullmatch(r"[0-9]{1,9}(?:,[0-9]{1,9}){0,2}", text) is None:
        raise UsageError(f"{what}: found {text!r}, allowed x,y,z such as 8,8,1")
    x, y, z = (*(int(size) for size in text.split(",")), 1, 1)[:3]
    return x, y, z


def parse_block_index(text: str) -> tuple[int, int, int]:
    """Returns the index (x, y, z) of a block from ``x,y,z``, ``x,y`` or ``x``; missing ones are 0.

    Raises UsageError for any other form.
    """
    missing = 2 - text.count(",")
    return parse_sizes(text + ",0" * missing, "only")
