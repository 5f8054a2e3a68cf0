"""Element types: the table of their widths and names; only PTX has a table of its own.

A problem's dtype is an MLIR type, or a shorter name: tf32 is f32 of which the last 13 bits of the mantissa
are 0, e4m3 and e5m2 are 8-bit floats.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

FLOAT8S = ("e4m3", "e5m2")
STORED = {"tf32": "f32", "e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}  # dtype -> MLIR type in memory


@dataclass(frozen=True)
class NumberType:
    """How an element type is stored: its bits and its numpy type. Integers are signless, as in MLIR."""

    bits: int
    numpy_name: str  # name in numpy, or in ml_dtypes
    fraction_bits: int | None = None  # of a float: of its mantissa, without the leading 1

    @property
    def bytes(self) -> int:
        """Returns the bytes of one element in memory, rounded up: 1 for i1."""
        return -(-self.bits // 8)

    @property
    def epsilon(self) -> float:
        """Returns the machine epsilon, the distance from 1 to the next larger number; 0 for integers."""
        return 0.0 if self.fraction_bits is None else 2.0**-self.fraction_bits


# MLIR type -> its properties
NUMBER_TYPES: Mapping[str, NumberType] = MappingProxyType(
    {
        "f16": NumberType(16, "float16", 10),
        "bf16": NumberType(16, "bfloat16", 7),
        "f32": NumberType(32, "float32", 23),
        "f64": NumberType(64, "float64", 52),
        "i1": NumberType(1, "bool_"),
        "i8": NumberType(8, "int8"),
        "i16": NumberType(16, "int16"),
        "i32": NumberType(32, "int32"),
        "i64": NumberType(64, "int64"),
        "index": NumberType(64, "int64"),
        "f8E4M3FN": NumberType(8, "float8_e4m3fn", 3),
        "f8E5M2": NumberType(8, "float8_e5m2", 2),
    }
)


def number_type(dtype: str) -> NumberType:
    """Returns how a dtype (an MLIR type, tf32, e4m3 or e5m2) is stored. Raises KeyError for another dtype."""
    return NUMBER_TYPES[STORED.get(dtype, dtype)]
