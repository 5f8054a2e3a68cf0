"""What is computed: one operation at one size."""

import re
from dataclasses import dataclass

from tuner.core.errors import UsageError

OPERATIONS = ("matmul",)
# dtype -> bytes of an element as it is stored; tf32 is f32 of which the last 13 bits of the mantissa are 0
ELEMENT_BYTES = {"f32": 4, "f64": 8, "bf16": 2, "f16": 2, "tf32": 4, "i8": 1, "e4m3": 1, "e5m2": 1}
FLOAT8S = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}  # dtype -> as MLIR spells it
NUMPY_WORDS = {  # name -> word
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "float16": "f16",
    "int8": "i8",
    "int32": "i32",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
}
SUM_BYTES = {"f32": 4, "f64": 8, "i32": 4}  # of the types that products are added up in
SUM_DTYPES = tuple(SUM_BYTES)
NARROW_OUTPUTS = {  # dtype -> types of C beside that of the sums, which is f32 of all but f64 and i8
    "f16": ("f16",),
    "bf16": ("bf16",),
    **dict.fromkeys(FLOAT8S, ("f16", "bf16")),
}
LAYOUTS = ("nn", "nt", "tn")  # A then B: n as written (A is m x k, B is k x n), t transposed in memory
EPILOGUES = ("none", "bias_relu")  # bias_relu: max(A B + bias[n], 0)
I8_DEPTH_LIMIT = 2**17 - 1  # of k: no sum of so many products of i8 overflows an i32
SIZE_LIMIT = 2**31 - 1  # an extent; kernels index with 64 bits, BLAS interfaces with 32


@dataclass(frozen=True)
class Problem:
    """One operation at one size, e.g. ``matmul`` of (m, n, k) = (512, 512, 512)."""

    operation: str
    sizes: tuple[int, ...]  # (m, n, k)
    dtype: str  # of the inputs
    layout: str = "nn"
    epilogue: str = "none"
    output: str = ""  # type of C where it is not the natural one: see NARROW_OUTPUTS

    def __post_init__(self) -> None:
        """Raises UsageError for a word that is not known or a size that is not positive."""
        _require("operation", self.operation, OPERATIONS)
        _require("dtype", self.dtype, tuple(ELEMENT_BYTES))
        _require("layout", self.layout, LAYOUTS)
        _require("epilogue", self.epilogue, EPILOGUES)
        if self.output and self.output not in NARROW_OUTPUTS.get(self.dtype, ()):
            allowed = " or ".join(output_words(self.dtype))
            raise UsageError(f"output: found {self.output!r}, allowed {allowed} for dtype {self.dtype}")
        if len(self.sizes) != 3:
            raise UsageError(f"sizes: found {self.sizes}, allowed three numbers (m, n, k)")
        for name, size in zip("mnk", self.sizes, strict=True):
            if not isinstance(size, int) or not 1 <= size <= SIZE_LIMIT:
                raise UsageError(f"size {name}: found {size!r}, allowed 1..{SIZE_LIMIT}")
        if self.dtype == "i8" and self.sizes[2] > I8_DEPTH_LIMIT:
            raise UsageError(
                f"size k: found {self.sizes[2]}, allowed 1..{I8_DEPTH_LIMIT} for i8, whose sums are i32"
            )

    @property
    def shape(self) -> str:
        """Returns the sizes as the command line spells them: 512x512x512."""
        return "x".join(str(size) for size in self.sizes)

    @property
    def key(self) -> str:
        """Returns one line that names the problem; equal for equal problems only."""
        dtype = f"{self.dtype}->{self.output}" if self.output else self.dtype
        return f"{self.operation} {self.shape} {dtype} {self.layout} {self.epilogue}"

    @property
    def flop(self) -> int:
        """Returns multiplications and additions, two per (m, n, k) point; the epilogue is not counted."""
        m, n, k = self.sizes
        return 2 * m * n * k

    @property
    def stored_dtype(self) -> str:
        """Returns the type of A and B in memory, as MLIR spells it."""
        return {"tf32": "f32", **FLOAT8S}.get(self.dtype, self.dtype)

    @property
    def accumulator(self) -> str:
        """Returns the type that products are added up in."""
        return natural_output(self.dtype)

    @property
    def result_dtype(self) -> str:
        """Returns the type of C and of the bias, as MLIR spells it."""
        return self.output or self.accumulator

    @property
    def input_bytes(self) -> int:
        """Returns the bytes of one input element."""
        return ELEMENT_BYTES[self.dtype]

    @property
    def output_bytes(self) -> int:
        """Returns the bytes of one output element."""
        return (ELEMENT_BYTES | SUM_BYTES)[self.result_dtype]

    @property
    def bytes(self) -> int:
        """Returns the bytes that must move at least once: A, B, the bias and C."""
        m, n, k = self.sizes
        bias = n if self.epilogue == "bias_relu" else 0
        return self.input_bytes * (m * k + k * n) + self.output_bytes * (m * n + bias)

    def variables(self) -> tuple[tuple[str, int | str], ...]:
        """Returns the names that constraints may use for this problem."""
        m, n, k = self.sizes
        return (
            ("m", m),
            ("n", n),
            ("k", k),
            ("input_bytes", self.input_bytes),
            ("output_bytes", self.output_bytes),
            ("dtype", self.dtype),
            ("output", self.result_dtype),
            ("layout", self.layout),
            ("epilogue", self.epilogue),
        )


def Matmul(  # noqa: N802 - reads as the noun it builds: tuner.tune(tuner.Matmul(512, 512, 512))
    m: int,
    n: int,
    k: int,
    dtype: object = "f32",
    layout: str = "nn",
    epilogue: str = "none",
    output: object = "",
) -> Problem:
    """Returns the matmul C[m, n] = A[m, k] B[k, n]. Raises UsageError for a bad word or size.

    Types are words, as on the command line, or numpy's: ``np.float32``, ``a.dtype``.
    """
    word = dtype_word(dtype)
    return Problem("matmul", (m, n, k), word, layout, epilogue, narrow_output(word, dtype_word(output)))


def dtype_word(dtype: object) -> str:
    """Returns a type as MLIR spells it, of a numpy dtype or scalar type. Raises UsageError for another."""
    if isinstance(dtype, str):
        return dtype
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", "")
    if name not in NUMPY_WORDS:
        raise UsageError(f"dtype: found {dtype!r}, allowed {', '.join(ELEMENT_BYTES)}, or a numpy type")
    return NUMPY_WORDS[name]


def natural_output(dtype: str) -> str:
    """Returns the type that C has where nothing else is said, the one that products are added up in."""
    return {"f64": "f64", "i8": "i32"}.get(dtype, "f32")


def narrow_output(dtype: str, word: str) -> str:
    """Returns a type of C as Problem takes it: the natural one, said or not, is the empty word."""
    return "" if word == natural_output(dtype) else word


def output_words(dtype: str) -> tuple[str, ...]:
    """Returns the types that C may have, the natural one first."""
    return (natural_output(dtype), *NARROW_OUTPUTS.get(dtype, ()))


def parse_shape(text: str) -> tuple[int, int, int]:
    """Reads ``MxNxK``. Raises UsageError with what was found."""
    match = re.fullmatch("x".join(["([0-9]{1,18})"] * 3), text)  # int() refuses thousands of digits
    if match is None:
        raise UsageError(f"shape: found {text[:80]!r}, allowed MxNxK such as 512x512x512")
    m, n, k = (int(size) for size in match.groups())
    return m, n, k


def _require(what: str, found: str, allowed: tuple[str, ...]) -> None:
    if found not in allowed:
        raise UsageError(f"{what}: found {found!r}, allowed {', '.join(allowed)}")
