"""The table of types: a row for each type of numbers that is stored, multiplied or summed.

A problem's dtype is the name of a row. It is an MLIR type, or a shorter name of numbers that are stored as an
MLIR type: tf32 is f32 of which the last 13 bits of the mantissa are 0, tf32x3 is f32 that is multiplied by
three products of tf32, bf16x6 is f32 that is multiplied by six products of bf16, e4m3 and e5m2 are 8-bit
floats. What an instruction, a library or a chip does with a type is a row of theirs, which names the types
that it takes.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Final

from tuner.core.errors import UsageError, unknown_value
from tuner.core.typed_arguments import shown

FEW_TERMS: Final = 16  # sums of up to so many terms have the bound of the worst case
INDEPENDENT: Final = 4.0  # times sqrt(n): seven standard deviations of n independent roundings


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format as in IEEE 754."""

    fraction_bits: int  # of the mantissa, without the leading 1
    least: int  # exponent of the smallest normal number
    greatest: int  # exponent of the largest numbers
    has_infinity: bool = True  # else the largest bit pattern is NaN alone

    @property
    def epsilon(self) -> float:
        """Returns the machine epsilon: the distance from 1 to the next larger number."""
        return 2.0**-self.fraction_bits

    @property
    def smallest(self) -> float:
        """Returns the least positive number, which is subnormal."""
        return 2.0 ** (self.least - self.fraction_bits)

    @property
    def smallest_normal(self) -> float:
        """Returns the least positive normal number, 2 to the power of the least exponent."""
        return 2.0**self.least

    @property
    def largest(self) -> float:
        """Returns the largest finite number."""
        units = 1.0 if self.has_infinity else 2.0
        return (2.0 - units * self.epsilon) * 2.0**self.greatest

    @property
    def overflow(self) -> float:
        """Returns the least magnitude that is rounded to infinity, in a format that has infinity."""
        return (2.0 - self.epsilon / 2) * 2.0**self.greatest

    @property
    def last_rounded_down(self) -> float:
        """Returns the greatest float64 magnitude that is rounded to the largest finite number.

        The number in the middle between the largest and the next is rounded to the even one of these.
        """
        middle = self.largest + 2.0 ** (self.greatest - self.fraction_bits - 1)
        return math.nextafter(middle, 0.0) if self.has_infinity else middle


@dataclass(frozen=True)
class ExtremeExponents:
    """Powers of two of the extreme numbers that kernels are verified with, for one dtype.

    Sums of large rows times columns must not overflow in the type of the sums. Processors' instructions for
    pairs of bf16 read subnormal numbers as zeros; tensor cores do so for tf32.
    """

    large: int  # of a row of A
    small: int  # of a row; gives subnormal numbers where the type's arithmetic supports them
    column: int  # of a column of B, positive or negative
    largest_whole: int = 15  # of the integers that are multiplied: four bits, exact also as subnormal numbers


@dataclass(frozen=True)
class NumberType:
    """A type of numbers: how it is stored, and how its products are summed. Integers have no sign in MLIR.

    ``sums`` is "" where no kernel multiplies numbers of the type, ``vector`` where no CPU kernel does.
    """

    name: str
    bits: int  # in memory
    numpy_name: str  # in numpy, or in ml_dtypes
    c: str = ""  # C type of an element in memory: an unsigned integer for the bits of what C does not have
    format: FloatFormat | None = None  # None: an integer
    stored: str = ""  # MLIR type in memory, where it is another one
    sums: str = ""  # dtype in which products are summed
    narrow: tuple[str, ...] = ()  # types that C may have besides the type of the sums
    vector: str = ""  # type in which a CPU's vector instructions multiply it, without dot products
    ptx: str = ""  # its name in PTX's products of matrices; "": tensor cores do not multiply it
    promised: str = ""  # type whose tolerance its results have, a promise of its products; "": its own
    tiles: str = ""  # type whose products by a CPU's tiles make up its products
    tile_products: int = 1  # of that type, for one of its own
    extremes: ExtremeExponents | None = None
    bias_exponent: int = 0  # of the large numbers of a bias that kernels are verified with

    @property
    def mlir(self) -> str:
        """Returns the MLIR element type in memory: f32 for tf32, f8E4M3FN for e4m3."""
        return self.stored or self.name

    @property
    def bytes(self) -> int:
        """Returns the bytes of one element in memory, rounded up: 1 for i1."""
        return -(-self.bits // 8)

    @property
    def epsilon(self) -> float:
        """Returns the machine epsilon; 0 for integers."""
        if self.format is None:
            return 0.0
        return self.format.epsilon

    @property
    def rounding(self) -> float:
        """Returns the unit roundoff: the largest relative error of rounding to nearest; 0 for integers."""
        return self.epsilon / 2

    @property
    def smallest(self) -> float:
        """Returns the least positive number of a float; 0 for integers, which lose nothing below it."""
        if self.format is None:
            return 0.0
        return self.format.smallest

    @property
    def largest(self) -> float:
        """Returns the largest finite number of a float.

        For an integer of b bits 2**(b - 1), its largest plus 1.
        """
        if self.format is None:
            return 2.0 ** (self.bits - 1)
        return self.format.largest

    @property
    def depth_limit(self) -> int:
        """Returns the most products of two numbers whose sum always fits into the type of the sums.

        0 where there is no limit: sums are floats, or no kernel multiplies numbers of the type.
        """
        if self.is_float or not self.sums:
            return 0
        greatest_sum = (1 << ROWS[self.sums].bits - 1) - 1
        return greatest_sum >> 2 * (self.bits - 1)

    @property
    def cuts_sums(self) -> bool:
        """Returns whether the tolerance of results allows for the bits of sums that tensor cores cut off.

        True if tensor cores multiply the type and ``promised`` is "".
        """
        return bool(self.ptx) and not self.promised

    @property
    def is_float(self) -> bool:
        """Returns whether the type is a floating-point type, not an integer."""
        return self.format is not None

    @property
    def is_c_bits(self) -> bool:
        """Returns whether the type is a float that C lacks: C code holds its bits in an unsigned integer."""
        return self.is_float and self.c.startswith("uint")


_SINGLE = FloatFormat(23, -126, 127)
_ROWS = (
    NumberType(
        "f32",
        32,
        "float32",
        "float",
        _SINGLE,
        sums="f32",
        vector="f32",
        extremes=ExtremeExponents(60, -145, 30),
        bias_exponent=100,
    ),
    NumberType(
        "f64",
        64,
        "float64",
        "double",
        FloatFormat(52, -1022, 1023),
        sums="f64",
        vector="f64",
        extremes=ExtremeExponents(400, -1070, 300),
        bias_exponent=900,
    ),
    NumberType(
        "bf16",
        16,
        "bfloat16",
        "uint16_t",
        FloatFormat(7, -126, 127),
        sums="f32",
        narrow=("bf16",),
        vector="f32",
        ptx="bf16",
        extremes=ExtremeExponents(60, -60, 20),
        bias_exponent=100,
    ),
    NumberType(
        "f16",
        16,
        "float16",
        "uint16_t",
        FloatFormat(10, -14, 15),
        sums="f32",
        narrow=("f16",),
        vector="f32",
        ptx="f16",
        extremes=ExtremeExponents(4, -20, 2),
        bias_exponent=13,
    ),
    NumberType(
        "tf32",
        32,
        "float32",
        "float",
        FloatFormat(10, -126, 127),
        stored="f32",
        sums="f32",
        ptx="tf32",
        extremes=ExtremeExponents(60, -60, 20),
    ),
    NumberType(  # f32, multiplied by three products of tf32
        "tf32x3",
        32,
        "float32",
        "float",
        _SINGLE,
        stored="f32",
        sums="f32",
        promised="f32",
        extremes=ExtremeExponents(60, -60, 20),
    ),
    NumberType(  # f32, multiplied by six products of bf16, by a CPU's tiles or by wgmma
        "bf16x6",
        32,
        "float32",
        "float",
        _SINGLE,
        stored="f32",
        sums="f32",
        promised="f32",
        tiles="bf16",
        tile_products=6,
        extremes=ExtremeExponents(60, -60, 20),
    ),
    NumberType(
        "i8", 8, "int8", "int8_t", sums="i32", vector="i16", ptx="s8", extremes=ExtremeExponents(3, 0, 0)
    ),
    NumberType(
        "e4m3",
        8,
        "float8_e4m3fn",
        "uint8_t",
        FloatFormat(3, -6, 8, has_infinity=False),
        stored="f8E4M3FN",
        sums="f32",
        narrow=("f16", "bf16"),
        ptx="e4m3",
        extremes=ExtremeExponents(4, -9, 2),
    ),
    NumberType(
        "e5m2",
        8,
        "float8_e5m2",
        "uint8_t",
        FloatFormat(2, -14, 15),
        stored="f8E5M2",
        sums="f32",
        narrow=("f16", "bf16"),
        ptx="e5m2",
        extremes=ExtremeExponents(10, -16, 4, largest_whole=7),
    ),
    NumberType("i32", 32, "int32", "int32_t"),
    NumberType("i64", 64, "int64", "int64_t"),
    NumberType("i16", 16, "int16", "int16_t"),
    NumberType("i1", 1, "bool_"),
    NumberType("index", 64, "int64"),
)

ROWS: Final[Mapping[str, NumberType]] = MappingProxyType({row.name: row for row in _ROWS})
# MLIR type -> its row
NUMBER_TYPES: Final[Mapping[str, NumberType]] = MappingProxyType(
    {row.mlir: row for row in _ROWS if row.stored not in ROWS}
)
STORED: Final = {row.name: row.stored for row in _ROWS if row.stored}  # dtype -> MLIR type in memory


def _with(field: str) -> tuple[str, ...]:
    """Returns the names of the rows whose ``field``, a text, is not ""."""
    return tuple(row.name for row in _ROWS if getattr(row, field))


INPUT_DTYPES: Final = _with("sums")  # of A and B
INTEGER_DTYPES: Final = tuple(row.name for row in _ROWS if row.sums and not row.is_float)  # of A and B
SUM_DTYPES: Final = tuple(dict.fromkeys(row.sums for row in _ROWS if row.sums))
NARROW_OUTPUTS: Final = {row.name: row.narrow for row in _ROWS if row.narrow}
OUTPUTS: Final = (*SUM_DTYPES, *dict.fromkeys(chain.from_iterable(NARROW_OUTPUTS.values())))
CPU_DTYPES: Final = _with("vector")
TILE_DTYPES: Final = _with("tiles")  # that CPUs multiply by tiles, and GPUs by wgmma alone
TENSOR_DTYPES: Final = _with("ptx")  # that tensor cores multiply
FLOAT8S: Final = tuple(row.name for row in _ROWS if row.is_float and row.bits == 8)
FLOATS: Final = tuple(row.name for row in _ROWS if row.is_float and row.bits > 8 and not row.stored)
PROMISED: Final = _with("promised")  # computed by others' products, to the errors of that type
# numpy's name -> dtype; "float32" means f32, not tf32
NUMPY_NAMES: Final = {
    row.numpy_name: row.name
    for row in _ROWS
    if row.name in (*INPUT_DTYPES, *SUM_DTYPES) and row.stored not in ROWS
}


IEEE: Final = "ieee"
# How f32 is multiplied, as a user names it (--math), and the type that it then has in a problem's key
MATH: Final[Mapping[str, str]] = MappingProxyType(
    {
        IEEE: "f32",
        "tf32": "tf32",
        "tf32x3": "tf32x3",
        "bf16x6": "bf16x6",
    }
)
MODES: Final[Mapping[str, str]] = MappingProxyType({dtype: math for math, dtype in MATH.items()})
PLAIN_DTYPES: Final = tuple(dtype for dtype in INPUT_DTYPES if MODES.get(dtype, IEEE) == IEEE)  # of --dtype


def dtype_of_math(dtype: str, math: str) -> str:
    """Returns the type of a problem whose A and B have type ``dtype`` and are multiplied as ``math`` says.

    Raises UsageError for an unknown mode, and for a mode other than "ieee" with a type other than f32 and the
    mode's own ("tf32" with "tf32" is allowed).
    """
    if math not in MATH:
        raise unknown_value("math", math, tuple(MATH))
    if math == IEEE:
        return dtype
    if dtype not in (MATH[IEEE], MATH[math]):
        line = f"math {math} cannot be combined with dtype {dtype}, only with {MATH[IEEE]}"
        raise UsageError(line, f"--dtype {MATH[IEEE]} --math {math}, in Python math={math!r}")
    return MATH[math]


def require_plain_dtype(dtype: str) -> None:
    """Raises UsageError for a dtype that ``--dtype`` does not take.

    That is an unknown one, or one that a user names by its mode: "tf32x3" is f32 with math "tf32x3".
    """
    if dtype in PLAIN_DTYPES:
        return
    error = unknown_value("dtype", dtype, PLAIN_DTYPES)
    if dtype in MODES:
        raise UsageError(error.message, f"--dtype {MATH[IEEE]} --math {MODES[dtype]}")
    raise error


def unsupported_type(dtype: str, allowed: tuple[str, ...], where: str) -> UsageError:
    """Returns the error for a type that a target does not multiply; for f32 in a mode it names the mode.

    ``allowed``: the types that the target multiplies; ``where``: "on target cpu; cuda takes it".
    """
    if dtype in MODES:
        modes = ", ".join(MODES[name] for name in allowed if name in MODES)
        return UsageError(f"math: found {MODES[dtype]!r}, allowed {modes} {where}", f"--math {IEEE}")
    plain = ", ".join(name for name in allowed if name in PLAIN_DTYPES)
    return UsageError(f"dtype: found {dtype!r}, allowed {plain} {where}")


def number_type(dtype: str) -> NumberType:
    """Returns the entry of a dtype or MLIR type ("e4m3", "f8E4M3FN") in the table of types.

    Raises KeyError for any other name.
    """
    if dtype in ROWS:
        return ROWS[dtype]
    return NUMBER_TYPES[dtype]


def sum_roundings(terms: int) -> float:
    """Returns the bound on the rounding error of a sum, in unit roundoffs of its largest partial sum.

    For up to FEW_TERMS (16) terms that of the worst case, ``terms``; for more 4 sqrt(terms), which
    independent roundings do not exceed in practice.
    """
    if terms <= FEW_TERMS:
        return float(terms)
    return INDEPENDENT * math.sqrt(terms)


def dtype_name(dtype: object) -> str:
    """Returns tuner's name ("f32") of a numpy dtype or scalar type, or of numpy's name for it ("float32").

    Any other text is returned unchanged and unchecked. Raises UsageError for any other object.
    """
    if isinstance(dtype, str):
        return NUMPY_NAMES.get(dtype, dtype)
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", "")
    if name not in NUMPY_NAMES:
        raise UsageError(f"dtype: found {shown(dtype)}, allowed {', '.join(INPUT_DTYPES)}, or a numpy type")
    return NUMPY_NAMES[name]


def natural_output(dtype: str) -> str:
    """Returns the default type of C for a dtype of A and B: the type of the sums, f32 for bf16, i32 for i8.

    "f32" for a dtype that cannot be the type of A and B.
    """
    if dtype in INPUT_DTYPES:
        return ROWS[dtype].sums
    return "f32"


def narrow_output(dtype: str, output: str) -> str:
    """Returns the ``Problem.output`` for a type of C: "" for the default of ``dtype``, else ``output``."""
    if output == natural_output(dtype):
        return ""
    return output


def output_names(dtype: str) -> tuple[str, ...]:
    """Returns the types that C may have where A and B have type ``dtype``, the default type first."""
    return (natural_output(dtype), *NARROW_OUTPUTS.get(dtype, ()))
