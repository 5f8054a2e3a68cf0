"""Tensors of GGUF files: integers with a scale, and perhaps an offset, for a few elements of a row; floats.

Matrices of these types keep their integers q; W[j, l] = q s + o, with s and o of the group of l:

    Q4_0   16 bytes of nibbles u, f16 d                    q = u - 8    s = d        no offset
    Q4_1   ... f16 d, f16 m                                q = u - 8    s = d        o = m + 8 d
    Q5_0   ... and 32 fifth bits                           q = u - 16   s = d        no offset
    Q5_1   ... and 32 fifth bits, f16 d, f16 m             q = u - 16   s = d        o = m + 16 d
    Q8_0   32 x i8, f16 d                                  q            s = d        no offset
    Q4_K   8 groups: nibbles, 6 bits c and b; f16 d, f16 e q = u - 8    s = d c      o = 8 d c - e b
    Q5_K   ... and fifth bits                              q = u - 16   s = d c      o = 16 d c - e b
    Q6_K   16 groups of 16 elements: 6 bits u, i8 c; f16 d q = u - 32   s = d c      no offset

``d c`` is exact in f32; ``o`` is rounded to f32 once. Other types are floats here, by gguf's own conversion.

Source: ggml-common.h and ggml-quants.c in https://github.com/ggml-org/ggml
"""

import importlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tuner.core.errors import UsageError, nearest

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]
Halves = npt.NDArray[np.float16]
GROUP: Final = 32  # elements of a row with one scale
HALF_GROUP = GROUP // 2
NIBBLE = 15
SIGN = 8  # of a nibble
K_GROUPS = 8  # of a block of Q4_K and Q5_K
FLOAT_TYPES = {"F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16}


@dataclass(frozen=True, eq=False)
class GroupedIntegers:
    """A matrix W (n x k) as ``integers * scales + offsets``, with a scale and an offset per group of k.

    Attributes:
        bits: 4 or 8.
        data: i8; of 8 bits (n, k) integers. Of 4 bits (n, k / 2): byte j of a group has its elements j, plus
            8, in the low nibble, and 16 + j, signed, in the high one.
        scales: f16 or f32, (n, groups); a group has 32 elements, of Q6_K 16.
        offsets: f32, (n, groups); None where all are 0.
    """

    bits: int
    data: npt.NDArray[np.int8]
    scales: Array
    offsets: npt.NDArray[np.float32] | None = None

    @property
    def integers(self) -> npt.NDArray[np.int8]:
        """Returns the integers, i8 (n, k), from -8 to 7 for 4 bits."""
        if self.bits != 4:
            return self.data
        grouped = self.data.reshape(*self.scales.shape, HALF_GROUP)
        numbers = np.concatenate(((grouped & NIBBLE) - SIGN, grouped >> 4), axis=-1)
        return numbers.reshape(len(self.data), -1)

    def rows(self, order: npt.NDArray[np.int64]) -> "GroupedIntegers":
        """Returns the matrix whose row i is row ``order[i]`` of this one."""
        offsets = None
        if self.offsets is not None:
            offsets = self.offsets[order]
        return GroupedIntegers(self.bits, self.data[order], self.scales[order], offsets)


class GgufFile:
    """A GGUF file: its metadata and its tensors, which are read from the mapped file when asked for."""

    def __init__(self, path: Path) -> None:
        """Reads the names of all tensors. Raises UsageError for another file, or without the package gguf."""
        self.path = path
        self._gguf = package("gguf", path)
        try:
            reader = self._gguf.GGUFReader(path)
        except (ValueError, IndexError, OSError) as error:
            raise UsageError(f"{path}: cannot be read as GGUF: {error}") from error
        self._fields = reader.fields
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the tensors, as they are in the file."""
        return tuple(self._tensors)

    def metadata(self, prefix: str) -> dict[str, Any]:
        """Returns key -> value (number, string, list); only keys that begin with ``prefix``, without it."""
        keys = [key for key in self._fields if key.startswith(prefix)]
        return {key.removeprefix(prefix): self._fields[key].contents() for key in keys}

    def type_of(self, name: str) -> str:
        """Returns a tensor's type, such as Q4_0. Raises UsageError where the file has no such tensor."""
        require_name(name, self._tensors, self.path)
        return str(self._tensors[name].tensor_type.name)

    def shape(self, name: str) -> tuple[int, ...]:
        """Returns a tensor's sizes; the dimension of adjacent elements, which GGUF names first, is the last.

        Raises UsageError if the file has no such tensor.
        """
        self.type_of(name)
        return tuple(map(int, reversed(self._tensors[name].shape)))

    def grouped(self, name: str) -> GroupedIntegers:
        """Returns a matrix of one of the types GROUPED; raises UsageError for another tensor."""
        type_ = self.type_of(name)
        sizes = self.shape(name)
        if type_ not in GROUPED:
            raise UsageError(f"{self.path}: {name}: found type {type_}, allowed {', '.join(GROUPED)}")
        if len(sizes) != 2:
            raise UsageError(f"{self.path}: {name}: found {len(sizes)} dimensions, allowed 2")
        # a block is contiguous: 32 elements of a row, or 256
        block_bytes = self._gguf.GGML_QUANT_SIZES[self._tensors[name].tensor_type][1]
        blocks = np.asarray(self._tensors[name].data).view(np.uint8)
        return GROUPED[type_](blocks.reshape(sizes[0], -1, block_bytes))

    def floats(self, name: str) -> Array:
        """Returns a tensor's numbers: f32, f16 or bf16 as the file has them; of other types f32.

        Raises UsageError for a type that gguf cannot convert.
        """
        type_ = self.type_of(name)
        data = np.asarray(self._tensors[name].data)
        numbers: Array
        if type_ in FLOAT_TYPES:
            numbers = np.ascontiguousarray(data).view(FLOAT_TYPES[type_])
        else:
            try:
                numbers = self._gguf.dequantize(data, self._tensors[name].tensor_type)
            except (NotImplementedError, ValueError) as error:
                raise UsageError(f"{self.path}: {name}: type {type_} cannot be read: {error}") from error
        return numbers.reshape(self.shape(name))


def package(name: str, path: Path) -> Any:
    """Returns a package that reads files; raises UsageError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UsageError(f"{path}: the package {name} is missing", f"pip install {name}") from None


def require_name(name: str, names: Collection[str], path: Path) -> None:
    """Raises UsageError where a file's tensors, ``names``, have not ``name`` among them."""
    if name not in names:
        near = nearest(name, names)
        hint = ""
        if near:
            hint = f"did you mean {near}?"
        raise UsageError(f"{path}: has no tensor {name!r}", hint)


def _halves(blocks: Bytes, start: int) -> Halves:
    """Returns the f16 at byte ``start`` of each block."""
    return np.ascontiguousarray(blocks[..., start : start + 2]).view("<f2")[..., 0].astype(np.float16)


def _signed_nibbles(unsigned: Bytes) -> npt.NDArray[np.int8]:
    """Returns bytes of two nibbles, 8 subtracted from each high one: ``GroupedIntegers.data``, (n, k / 2)."""
    return (unsigned ^ np.uint8(0x80)).view(np.int8).reshape(len(unsigned), -1)


def _fives(nibbles: Bytes, fifth_bits: Bytes) -> npt.NDArray[np.int8]:
    """Returns u - 16, (..., 32), for unsigned u of 5 bits: its low 4 bits, and its fifth bit as 0 or 1."""
    return (nibbles | fifth_bits << 4).view(np.int8) - np.int8(16)


def _nibbles_of_group(packed: Bytes) -> Bytes:
    """Returns nibbles as bytes: 16 bytes (..., 16) become 32, first all low nibbles, then the high ones."""
    return np.concatenate((packed & NIBBLE, packed >> 4), axis=-1)


def _q4_0(blocks: Bytes) -> GroupedIntegers:
    return GroupedIntegers(4, _signed_nibbles(blocks[..., 2:]), _halves(blocks, 0))


def _q4_1(blocks: Bytes) -> GroupedIntegers:
    scales = _halves(blocks, 0)
    offsets = _halves(blocks, 2).astype(np.float32) + np.float32(8) * scales
    return GroupedIntegers(4, _signed_nibbles(blocks[..., 4:]), scales, offsets)


def _fifth_bits(words: Bytes) -> Bytes:
    """Returns bits, the fifth ones of 32 numbers, as bytes of 0 and 1: (..., 4) becomes (..., 32).

    The lowest bit of the first byte comes first.
    """
    return np.unpackbits(np.ascontiguousarray(words), axis=-1, bitorder="little")


def _q5_0(blocks: Bytes) -> GroupedIntegers:
    integers = _fives(_nibbles_of_group(blocks[..., 6:]), _fifth_bits(blocks[..., 2:6]))
    return GroupedIntegers(8, integers.reshape(len(blocks), -1), _halves(blocks, 0))


def _q5_1(blocks: Bytes) -> GroupedIntegers:
    integers = _fives(_nibbles_of_group(blocks[..., 8:]), _fifth_bits(blocks[..., 4:8]))
    scales = _halves(blocks, 0)
    offsets = _halves(blocks, 2).astype(np.float32) + np.float32(16) * scales
    return GroupedIntegers(8, integers.reshape(len(blocks), -1), scales, offsets)


def _q8_0(blocks: Bytes) -> GroupedIntegers:
    integers = np.ascontiguousarray(blocks[..., 2:]).view(np.int8)
    return GroupedIntegers(8, integers.reshape(len(blocks), -1), _halves(blocks, 0))


def _k_scales(blocks: Bytes, zero: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Returns the scales and offsets (n, groups) of blocks of 8 groups; ``zero``: the u that q = 0 is.

    12 bytes hold 8 factors c and 8 factors b of 6 bits each: the first four in the low 6 bits of bytes 0 to 3
    and 4 to 7, the last four in the nibbles of bytes 8 to 11 with the 2 bits left over before.
    """
    d, e = (_halves(blocks, start).astype(np.float32)[..., None] for start in (0, 2))
    first, second, third = (blocks[..., start : start + 4] for start in (4, 8, 12))
    c = np.concatenate((first & 63, (third & NIBBLE) | (first >> 2 & 48)), axis=-1)
    b = np.concatenate((second & 63, (third >> 4) | (second >> 2 & 48)), axis=-1)
    scales = d * c.astype(np.float32)
    offsets = np.float32(zero) * scales - e * b.astype(np.float32)
    rows = len(blocks)
    return scales.reshape(rows, -1), offsets.reshape(rows, -1)


def _q4_k(blocks: Bytes) -> GroupedIntegers:
    # 32 bytes: low nibbles are a group, high ones the next one
    packed = blocks[..., 16:].reshape(*blocks.shape[:-1], -1, 2, HALF_GROUP)
    begin, end = packed[..., 0, :], packed[..., 1, :]
    low = (begin & NIBBLE) | (end << 4)
    high = (begin >> 4) | (end & 240)
    nibbles = np.stack((low, high), axis=-2)
    return GroupedIntegers(4, _signed_nibbles(nibbles), *_k_scales(blocks, 8))


def _q5_k(blocks: Bytes) -> GroupedIntegers:
    packed = blocks[..., 48:].reshape(*blocks.shape[:-1], -1, 1, GROUP)
    nibbles = np.concatenate((packed & NIBBLE, packed >> 4), axis=-2)
    nibbles = nibbles.reshape(*blocks.shape[:-1], K_GROUPS, GROUP)
    # bit g of byte j is the fifth bit of element j of group g
    shifts = np.arange(K_GROUPS, dtype=np.uint8)[:, None]
    fifth_bits = (blocks[..., 16:48][..., None, :] >> shifts) & np.uint8(1)
    integers = _fives(nibbles, fifth_bits)
    return GroupedIntegers(8, integers.reshape(len(blocks), -1), *_k_scales(blocks, 16))


def _q6_k(blocks: Bytes) -> GroupedIntegers:
    shape = blocks.shape[:-1]
    # for each 128 elements 64 bytes of low nibbles, then of high ones, and 32 bytes of four pairs of bits
    packed = blocks[..., :128].reshape(*shape, 2, 1, 64)
    nibbles = np.concatenate((packed & NIBBLE, packed >> 4), axis=-2).reshape(*shape, 8, GROUP)
    pairs = blocks[..., 128:192].reshape(*shape, 2, 1, GROUP)
    shifts = np.array([0, 2, 4, 6], np.uint8)[:, None]
    high = ((pairs >> shifts) & np.uint8(3)).reshape(*shape, 8, GROUP)
    integers = (nibbles | high << 4).view(np.int8) - np.int8(32)
    factors = np.ascontiguousarray(blocks[..., 192:208]).view(np.int8).astype(np.float32)
    scales = _halves(blocks, 208).astype(np.float32)[..., None] * factors
    return GroupedIntegers(8, integers.reshape(len(blocks), -1), scales.reshape(len(blocks), -1))


# A type whose groups are 32 or 16 elements -> its parts, of blocks (n, blocks of a row, bytes of a block).
GROUPED: Mapping[str, Callable[[Bytes], GroupedIntegers]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}
