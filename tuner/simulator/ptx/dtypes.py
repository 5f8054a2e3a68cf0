"""PTX types as numpy types (PTX ISA, "Types"). Registers hold bits; the instruction determines the type."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]  # one value per lane, or one for all lanes
Bools: TypeAlias = npt.NDArray[np.bool_]
Indices: TypeAlias = npt.NDArray[np.int64]

UNSIGNED: dict[int, "np.dtype[Any]"] = {
    1: np.dtype("u1"),
    2: np.dtype("u2"),
    4: np.dtype("u4"),
    8: np.dtype("u8"),
}
SIGNED: dict[int, "np.dtype[Any]"] = {
    1: np.dtype("i1"),
    2: np.dtype("i2"),
    4: np.dtype("i4"),
    8: np.dtype("i8"),
}
BOOL = np.dtype(bool)
BFLOAT16: "np.dtype[Any]" = np.dtype(ml_dtypes.bfloat16)
FLOAT8: dict[str, "np.dtype[Any]"] = {  # e4m3 has no infinity; its one NaN of each sign is all ones
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}


@dataclass(frozen=True)
class PtxType:
    """A type of PTX, such as f32, or packed such as f16x2, with the numpy type of its elements."""

    name: str
    dtype: "np.dtype[Any]"  # of one element
    elements: int = 1  # 2 for packed types such as f16x2

    @property
    def bytes(self) -> int:
        """Returns the size of a value in bytes; all elements of a packed type count."""
        return self.dtype.itemsize * self.elements

    @property
    def is_float(self) -> bool:
        """Returns whether an element is a floating-point number.

        False for tf32, whose values are held as bits (uint32).
        """
        return self.dtype.kind == "f" or self.dtype in (BFLOAT16, *FLOAT8.values())

    @property
    def is_signed(self) -> bool:
        """Returns whether an element is a signed integer; False for floating-point types."""
        return self.dtype.kind == "i"

    @property
    def bits(self) -> int:
        """Returns the size of one element in bits; 16 for f16x2."""
        return 8 * self.dtype.itemsize

    @property
    def raw(self) -> "np.dtype[Any]":
        """Returns numpy's unsigned integer type of the size of a value; uint32 for f32 and for f16x2."""
        return UNSIGNED[self.bytes]


def _types() -> dict[str, PtxType]:
    found = [PtxType("pred", BOOL), PtxType("bf16", BFLOAT16), PtxType("bf16x2", BFLOAT16, 2)]
    found += [PtxType("f16", np.dtype("f2")), PtxType("f16x2", np.dtype("f2"), 2)]
    found += [PtxType("f32", np.dtype("f4")), PtxType("f64", np.dtype("f8")), PtxType("tf32", np.dtype("u4"))]
    found += [PtxType(name, dtype) for name, dtype in FLOAT8.items()]
    found += [PtxType("u16x2", np.dtype("u2"), 2), PtxType("s16x2", np.dtype("i2"), 2)]
    for size in (1, 2, 4, 8):
        found += [PtxType(f"{kind}{8 * size}", UNSIGNED[size]) for kind in "bu"]
        found.append(PtxType(f"s{8 * size}", SIGNED[size]))
    return {type_.name: type_ for type_ in found}


TYPES = _types()


def read_bits(bits: Array, type_: PtxType, lanes: int) -> Array:
    """Returns ``bits``, a register's unsigned integers per lane, as an array of values of ``type_``.

    Of a wider register the low bits are read. Elements of a packed type are adjacent: [lane * elements].
    ``bits`` may hold a single value for all ``lanes`` lanes. Predicates stay unchanged.
    """
    if type_.dtype == BOOL:
        return bits
    if bits.dtype.itemsize > type_.bytes:
        bits = bits.astype(type_.raw)
    if type_.elements > 1:
        bits = np.ascontiguousarray(np.broadcast_to(bits, (lanes,)))
    return bits.view(type_.dtype)


def write_bits(values: Array, type_: PtxType, register: "np.dtype[Any]") -> Array:
    """Returns ``values`` of ``type_`` as a register's bits, an array of the numpy type ``register``.

    In a wider register, signed integers are sign-extended; other values, and packed ones of any type, are
    zero-extended. Predicates stay unchanged.
    """
    if register == BOOL:
        return values
    bits = np.ascontiguousarray(values).view(type_.raw) if type_.elements > 1 else values.view(type_.raw)
    if register.itemsize == type_.bytes:
        return bits
    if type_.is_signed and type_.elements == 1:
        return values.astype(SIGNED[register.itemsize]).view(register)
    return bits.astype(register)
