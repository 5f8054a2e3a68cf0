"""What is computed: one operation at one size."""

import math
import re
from dataclasses import dataclass, field, replace

from tuner.core.dtypes import (
    CPU_DTYPES,
    INPUT_DTYPES,
    NARROW_OUTPUTS,
    dtype_name,
    narrow_output,
    natural_output,
    number_type,
    output_names,
)
from tuner.core.epilogues import EPILOGUES, NONE, Epilogue
from tuner.core.errors import UsageError, unknown_value
from tuner.core.fusions import (
    ATTENTION,
    CONTRACTION,
    CONVOLUTION,
    KINDS,
    LOOPS,
    QUANTIZED,
    facts_of,
    text_hash,
)
from tuner.core.quantization import (
    ACTIVATION_DTYPES,
    CONSTANT,
    ElementTypes,
    WeightFormat,
    constant_text,
    parsed_format,
    quantized_text,
)
from tuner.core.serialization import stored_as
from tuner.core.typed_arguments import shown, typed_arguments

MATMUL, BATCH_MATMUL = OPERATIONS = ("matmul", "batch_matmul")
FUSION_OPERATIONS = tuple(kind for kind in KINDS if kind != LOOPS)  # what a fusion of a program computes
OF_BATCHES = (BATCH_MATMUL, ATTENTION, CONTRACTION, CONVOLUTION)  # operations on more than one matrix
LAYOUTS = ("nn", "nt", "tn")  # A then B: n as written (A is m x k, B is k x n), t transposed in memory
NUMPY_ALIGNMENT = "16"  # what numpy's arrays have, as malloc promises it
ALIGNMENTS = (NUMPY_ALIGNMENT, "64", "any")  # bytes; 64: a cache line; any: that of one element
# What is evicted from a CPU's caches before a call: nothing, B, all operands.
WARM, WEIGHTS_COLD, COLD = CACHES = ("warm", "weights-cold", "cold")
I8_DEPTH_LIMIT = 2**17 - 1  # of k: no sum of so many products of i8 overflows an i32
BATCH_LIMIT = 65535  # matrices: the most blocks of a GPU's grid along z
SHAPES = {  # operation -> the form of its shape on the command line, an example
    MATMUL: ("MxNxK", "512x512x512"),
    BATCH_MATMUL: ("BxMxNxK", "8x512x512x512"),
}
SIZE_LIMIT = 2**31 - 1  # an extent; kernels index with 64 bits, BLAS interfaces with 32


ALL_EPILOGUES = tuple(EPILOGUES)
OF_INTEGERS = tuple(name for name, epilogue in EPILOGUES.items() if epilogue.takes_integers)
PROBLEM_DEFAULTS = {"layout": "nn", "epilogue": NONE, "output": "", "align": NUMPY_ALIGNMENT, "cache": WARM}


@dataclass(frozen=True)
class Argument:
    """An array that the kernel of a problem is called with, as it lies in memory."""

    name: str  # "a", "b", "c", or that of an argument of the epilogue: "bias"
    shape: tuple[int, ...]  # with the batch in front, where each matrix of a batch has its own
    dtype: str  # MLIR element type
    matrices: int  # that lie in it, one for each pair of a batch; 0: all pairs share the array

    @property
    def bytes(self) -> int:
        """Returns the bytes of the whole array."""
        return math.prod(self.shape) * number_type(self.dtype).bytes

    @property
    def matrix_bytes(self) -> int:
        """Returns the bytes between a batch's matrices of this array; 0 for what they share."""
        return self.bytes // self.matrices if self.matrices else 0


@dataclass(frozen=True)
class Problem:
    """One operation at one size, such as ``matmul`` of (m, n, k) = (512, 512, 512).

    A ``batch_matmul`` multiplies ``batch`` pairs of matrices of the same sizes, contiguous in memory.
    """

    operation: str
    sizes: tuple[int, ...]  # (m, n, k)
    dtype: str  # of the inputs
    layout: str = "nn"
    epilogue: str = NONE  # a key of EPILOGUES
    output: str = ""  # type of C, one of NARROW_OUTPUTS[dtype]; "": the type of the sums
    batch: int = 1  # matrices of A, of B and of C; of OF_BATCHES only
    align: str = NUMPY_ALIGNMENT  # one of ALIGNMENTS: what addresses of operands on a CPU are multiples of
    cache: str = WARM  # one of CACHES: what the caches of a CPU hold when a kernel is called
    # Canonical text of a fusion, see tuner.core.fusions; "" for OPERATIONS.
    fusion: str = field(default="", metadata=stored_as("group"))

    def __post_init__(self) -> None:
        """Raises UsageError for a bad size, and for an unknown operation, dtype, layout and the like."""
        require_choice("operation", self.operation, FUSION_OPERATIONS if self.fusion else OPERATIONS)
        require_choice("dtype", self.dtype, INPUT_DTYPES)
        require_choice("layout", self.layout, LAYOUTS)
        require_choice("align", self.align, ALIGNMENTS)
        require_choice("cache", self.cache, CACHES)
        require_choice("epilogue", self.epilogue, ALL_EPILOGUES)
        require_choice(f"epilogue of {self.dtype}", self.epilogue, epilogues_of(self.dtype))
        if self.output and self.output not in NARROW_OUTPUTS.get(self.dtype, ()):
            allowed = " or ".join(output_names(self.dtype))
            raise UsageError(f"output dtype: found {self.output!r}, allowed {allowed} for dtype {self.dtype}")
        if len(self.sizes) != 3:
            raise UsageError(f"sizes: found {self.sizes}, allowed three numbers (m, n, k)")
        for name, size in zip("mnk", self.sizes, strict=True):
            if type(size) is not int or not 1 <= size <= SIZE_LIMIT:  # True is not a size
                raise UsageError(f"size {name}: found {size!r}, allowed 1..{SIZE_LIMIT}")
        allowed_batch = BATCH_LIMIT if self.operation in OF_BATCHES else 1
        if type(self.batch) is not int or not 1 <= self.batch <= allowed_batch:
            allowed = "1" if allowed_batch == 1 else f"1..{allowed_batch}"
            raise UsageError(f"batch: found {self.batch!r}, allowed {allowed} for {self.operation}")
        if self.dtype == "i8" and self.sizes[2] > I8_DEPTH_LIMIT:
            raise UsageError(
                f"size k: found {self.sizes[2]}, allowed 1..{I8_DEPTH_LIMIT} for i8, whose sums are i32"
            )

    def __repr__(self) -> str:
        """Returns the call that makes the problem, without its defaults; of a fusion its key."""
        if self.fusion:
            form = "" if self.weights else f" {self.layout} {self.epilogue}"
            return f"Problem({self.key}{form})"
        options = [repr(self.dtype)]
        for name in ("layout", "epilogue", "output", "align", "cache"):
            value = getattr(self, name)
            if value != PROBLEM_DEFAULTS[name]:
                options.append(f"{name}={value!r}")
        maker = "BatchMatmul" if self.operation == BATCH_MATMUL else "Matmul"
        return f"{maker}({', '.join([*map(str, self.extents), *options])})"

    @property
    def shape(self) -> str:
        """Returns the sizes as the command line takes them: 512x512x512, with a batch 8x512x512x512."""
        return "x".join(str(size) for size in self.extents)

    @property
    def extents(self) -> tuple[int, ...]:
        """Returns the numbers of ``shape``: (m, n, k), for a batch_matmul (batch, m, n, k)."""
        return (*self.lead, *self.sizes)

    @property
    def lead(self) -> tuple[int, ...]:
        """Returns the leading dimension of A, B and C: (batch,) for a batch_matmul, () for a matmul."""
        has_batch = self.operation == BATCH_MATMUL or self.batch > 1  # a fusion may have one
        return (self.batch,) if has_batch else ()

    @property
    def rows(self) -> int:
        """Returns the number of rows of the result C, summed over all matrices of the batch."""
        return self.batch * self.sizes[0]

    @property
    def a_shape(self) -> tuple[int, ...]:
        """Returns the shape of A in memory: (m, k), for layout tn (k, m); with the batch in front."""
        m, _, k = self.sizes
        return (*self.lead, k, m) if self.layout == "tn" else (*self.lead, m, k)

    @property
    def b_shape(self) -> tuple[int, ...]:
        """Returns the shape of B in memory: (k, n), for layout nt (n, k); with the batch in front."""
        _, n, k = self.sizes
        return (*self.lead, n, k) if self.layout == "nt" else (*self.lead, k, n)

    @property
    def c_shape(self) -> tuple[int, ...]:
        """Returns the shape of C in memory: (m, n), for a batch_matmul (batch, m, n)."""
        return (*self.lead, *self.sizes[:2])

    @property
    def after_product(self) -> Epilogue:
        """Returns what follows the product, as the table of epilogues has it."""
        return EPILOGUES[self.epilogue]

    @property
    def extra_arguments(self) -> tuple[Argument, ...]:
        """Returns the arrays that the epilogue reads, in the order in which kernels take them."""
        m, n, _ = self.sizes
        arguments = []
        for argument in self.after_product.arguments:
            shape = argument.shape(m, n)
            of_batch = () if argument.is_shared else self.lead
            matrices = 0 if argument.is_shared else self.batch
            arguments.append(Argument(argument.name, (*of_batch, *shape), self.result_dtype, matrices))
        return tuple(arguments)

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Returns the arrays of a matmul's kernel: A, B, those of the epilogue, and C, which it writes."""
        return (
            Argument("a", self.a_shape, self.stored_dtype, self.batch),
            Argument("b", self.b_shape, self.stored_dtype, self.batch),
            *self.extra_arguments,
            Argument("c", self.c_shape, self.result_dtype, self.batch),
        )

    @property
    def one(self) -> "Problem":
        """Returns the problem of one pair of matrices: a batch_matmul becomes a matmul of equal m, n, k."""
        return replace(self, operation=MATMUL, batch=1)

    @property
    def key(self) -> str:
        """Returns one line that identifies the problem: matmul 512x512x512 f32 nn none.

        An alignment other than numpy's and a cache state other than warm come last: align=64 cache=cold.
        A fusion has the hash of its text in place of layout and epilogue: rows 64x128x1 f32
        0a1b2c3d4e5f. A quantized matmul has the format of its weights: quantized_matmul 1x4096x4096
        f32*i4-g128-f16 nt none.
        """
        types = f"{self.dtype}*{self.weights}" if self.weights else self.dtype
        dtype = f"{types}->{self.output}" if self.output else types
        is_hashed = self.fusion and not self.weights
        form = (text_hash(self.fusion),) if is_hashed else (self.layout, self.epilogue)
        return " ".join((self.operation, self.shape, dtype, *form, *self.memory_options))

    @property
    def weights(self) -> str:
        """Returns the format of weights that are packed ahead: the text of a WeightFormat, or "constant".

        "" for other problems.
        """
        return facts_of(self.fusion).weights_format if self.fusion else ""

    @property
    def multiplied_dtype(self) -> str:
        """Returns the dtype whose instructions bound the speed: i8 where activations are quantized."""
        is_integer = self.operation == QUANTIZED and WeightFormat.of_text(self.weights).activations
        return "i8" if is_integer else self.dtype

    @property
    def memory_options(self) -> tuple[str, ...]:
        """Returns the alignment and the cache state that are not the default: ("align=64", "cache=cold")."""
        options = (("align", self.align, NUMPY_ALIGNMENT), ("cache", self.cache, WARM))
        return tuple(f"{name}={given}" for name, given, usual in options if given != usual)

    @property
    def flop(self) -> int:
        """Returns the floating-point operations: 2 * batch * m * n * k. The epilogue is not counted.

        A fusion of two contractions has twice as many, an attention those of both of its products for each
        score that no mask is known to hide, a convolution none with planes of zeros. Of rows and of
        elementwise operations, which are bound by memory, two for each element are counted.
        """
        m, n, k = self.sizes
        if self.operation == ATTENTION:
            facts = facts_of(self.fusion)
            return 2 * self.batch * facts.visible_scores(m, n) * (k + facts.loops[-1])
        facts = facts_of(self.fusion)
        if facts.products:
            return 2 * facts.products
        contractions = max(1, facts.contractions)
        return 2 * contractions * self.batch * m * n * k

    @property
    def stored_dtype(self) -> str:
        """Returns the MLIR element type of A and B in memory: f32 for tf32, f8E4M3FN for e4m3."""
        return number_type(self.dtype).mlir

    @property
    def accumulator(self) -> str:
        """Returns the MLIR type in which products are summed: f64 for f64, i32 for i8, else f32."""
        return natural_output(self.dtype)

    @property
    def result_dtype(self) -> str:
        """Returns the MLIR element type of C and of the bias."""
        return self.output or self.accumulator

    @property
    def input_bytes(self) -> int:
        """Returns the bytes of one element of A or B."""
        return number_type(self.dtype).bytes

    @property
    def output_bytes(self) -> int:
        """Returns the bytes of one element of C or of the bias."""
        return number_type(self.result_dtype).bytes

    @property
    def accumulator_bytes(self) -> int:
        """Returns the bytes of one sum, an element of C before it is rounded to a narrower output type."""
        return number_type(self.accumulator).bytes

    @property
    def bytes(self) -> int:
        """Returns the bytes of all arguments of a matmul or of a fusion: the least memory traffic."""
        if self.fusion:
            return facts_of(self.fusion).bytes
        return sum(argument.bytes for argument in self.arguments)

    @property
    def offset_bytes(self) -> int:
        """Returns how many bytes past the start of a cache line operands lie while a CPU kernel is timed.

        Operands then have the alignment of the problem and no more: 0 for align 64, 16 for align 16, one
        element of C for align any.
        """
        return {"64": 0, "16": 16}.get(self.align, self.output_bytes)

    def variables(self) -> tuple[tuple[str, int | str], ...]:
        """Returns the (name, value) pairs of the problem that constraints may use.

        Returns:
            Sizes m, n, k and batch; bytes per element; names of dtype, output, layout and epilogue. Of a
            fusion also what ``tuner.core.fusions`` reads from its text: loops, inner_rows, inner_columns,
            contractions, weights, transposed, copy, strided, dimensions, channels, stride.

        Raises:
            Nothing: a problem is checked when it is built.

        Example:
            >>> import tuner
            >>> dict(tuner.Matmul(64, 32, 16).variables())["k"]
            16
        """
        m, n, k = self.sizes
        return (
            ("m", m),
            ("n", n),
            ("k", k),
            ("batch", self.batch),
            ("input_bytes", self.input_bytes),
            ("output_bytes", self.output_bytes),
            ("accumulator_bytes", self.accumulator_bytes),
            ("sum_bytes", self.accumulator_bytes),  # as spaces of older versions and stored runs name it
            ("dtype", self.dtype),
            ("output", self.result_dtype),
            ("layout", self.layout),
            ("epilogue", self.epilogue),
            *(facts_of(self.fusion).variables() if self.fusion else ()),
        )


@typed_arguments
def Matmul(  # noqa: N802 - reads as the noun it builds: tuner.tune(tuner.Matmul(512, 512, 512))
    m: int,
    n: int,
    k: int,
    dtype: object = "f32",
    layout: str = "nn",
    epilogue: str = NONE,
    output: object = "",
    align: str | int = NUMPY_ALIGNMENT,
    cache: str = WARM,
    weights: str = "",
    group_size: int | str = 128,
    scale_dtype: str = "f16",
    zero_points: bool = False,
    activations: str = "",
) -> Problem:
    """Returns the problem C = A B, with A of m x k, B of k x n and C of m x n elements.

    Args:
        m: rows of A and C, 1 to 2**31 - 1; numpy's integers are allowed for each size.
        n: columns of B and C.
        k: columns of A, rows of B; at most 2**17 - 1 for "i8".
        dtype: type of A and B: "f32", "f64", "bf16", "f16", "tf32", "i8", "e4m3", "e5m2", or a numpy type
            (``np.float32``, ``a.dtype``, "float32").
        layout: storage of A, then of B: "nn", "nt" or "tn"; t is transposed in memory (B as n x k, A as k x
            m).
        epilogue: what follows the product, a key of ``tuner.core.epilogues.EPILOGUES``: "none", "bias_relu"
            for max(A B + bias[n], 0), "bias_gelu", "silu", "residual" for A B + addend[m, n] and others.
        output: type of C; "": the type of the sums, which is f32, for f64 f64, for i8 i32. Other types: "f16"
            for f16 and 8-bit floats, "bf16" for bf16 and 8-bit floats.
        align: bytes that the addresses of all operands on a CPU are multiples of: 16, as numpy promises, 64,
            as PyTorch does, or "any". Kernels are timed on operands with this alignment and no more.
        cache: what a CPU's caches hold when a kernel is called. "warm": what the call before left;
            "weights-cold": all but B, as in a model with more weights than the caches hold; "cold": nothing.
        weights: "", or "i4" or "i8": B is quantized, n x k integers of 4 or 8 bits (layout nt), and packed
            ahead; ``dtype``, f32 or bf16, is that of A. Also a whole format, "i4-g128-f16-zp-a8row".
            "constant": B and the bias are as they are, but packed ahead (dtypes f32, f64, bf16, i8).
        group_size: of quantized weights: elements of K that share a scale, a multiple of 32, or "channel".
        scale_dtype: of quantized weights: type of the scales, n x (k / group_size): "f16", "bf16" or "f32".
        zero_points: of quantized weights: whether each group has a number that its integers are less by.
        activations: of quantized weights: "" for products of A as it is; "i8": A is quantized for each call,
            by "i8-group" (what "i8" means, but with groups of a channel) or by "i8-row".

    Returns:
        The problem, a frozen value.

    Raises:
        UsageError: an unknown type, layout, epilogue, alignment or cache state, or a size that is not
            allowed; a group size that does not divide k.

    Example:
        >>> import tuner
        >>> problem = tuner.Matmul(512, 256, 128, dtype="bf16", layout="nt")
        >>> problem.b_shape
        (256, 128)
        >>> problem.key
        'matmul 512x256x128 bf16 nt none'
    """
    sizes, given = (m, n, k), dtype_name(dtype)
    try:
        narrow = narrow_output(given, dtype_name(output))
    except UsageError:
        allowed = f"{' or '.join(output_names(given))} for dtype {given}"
        raise UsageError(f"output dtype: found {shown(output)}, allowed {allowed}") from None
    if weights not in ("", CONSTANT):
        require_choice("epilogue with quantized weights", epilogue, ("none",))
        require_choice("layout with quantized weights", layout, ("nn", "nt"))  # nn: not given
        format_ = parsed_format(weights, group_size, scale_dtype, activations, has_zero_points=zero_points)
        return quantized_problem(sizes, given, format_, narrow, align=str(align), cache=cache)
    if activations or zero_points:
        raise UsageError("activations and zero points: only of quantized weights", "add weights: i4 or i8")
    plain = Problem("matmul", sizes, given, layout, epilogue, narrow, align=str(align), cache=cache)
    return constant_problem(plain) if weights else plain


# Epilogues whose arguments, if any, are rows, and so as constant as B.
OF_ROWS = tuple(
    name
    for name, epilogue in EPILOGUES.items()
    if all(argument.axes == "n" for argument in epilogue.arguments)
)


def constant_problem(problem: Problem) -> Problem:
    """Returns a matmul whose B, and bias, are constant: packed once, not at each call.

    Raises UsageError for types and layouts that no strategy packs ahead.
    """
    require_choice("dtype with constant weights", problem.dtype, CPU_DTYPES)
    require_choice("layout with constant weights", problem.layout, ("nn", "nt"))
    require_choice("epilogue with constant weights", problem.epilogue, OF_ROWS)
    types = ElementTypes(problem.stored_dtype, problem.accumulator, problem.result_dtype)
    text = constant_text(problem.sizes, types, problem.bytes, problem.after_product)
    return replace(problem, operation=CONTRACTION, fusion=text)


def quantized_problem(
    sizes: tuple[int, int, int],
    dtype: str,
    weights: WeightFormat,
    output: str = "",
    align: str = NUMPY_ALIGNMENT,
    cache: str = WARM,
) -> Problem:
    """Returns the problem of a matmul by quantized weights; raises UsageError for what is not allowed."""
    require_choice("dtype with quantized weights", dtype, ACTIVATION_DTYPES)
    narrow = narrow_output(dtype, output)
    Problem(MATMUL, sizes, dtype, "nt", "none", narrow)  # checks the sizes and the type of C
    text = quantized_text(sizes, dtype, weights, narrow or natural_output(dtype))
    return Problem(QUANTIZED, sizes, dtype, "nt", "none", narrow, 1, align, cache, text)


@typed_arguments
def BatchMatmul(  # noqa: N802 - as Matmul
    batch: int,
    m: int,
    n: int,
    k: int,
    dtype: object = "f32",
    layout: str = "nn",
    epilogue: str = NONE,
    output: object = "",
    align: str | int = NUMPY_ALIGNMENT,
    cache: str = WARM,
) -> Problem:
    """Returns the problem C[b] = A[b] B[b] for each b of a batch; all matrices share one bias.

    Args:
        batch: number of matrices of A, of B and of C, 1 to 65535.
        m: rows of each matrix of A and C.
        n: columns of each matrix of B and C.
        k: columns of each matrix of A, rows of each matrix of B.
        dtype: type of A and B, as for ``Matmul``.
        layout: storage of each matrix of A and B, as for ``Matmul``.
        epilogue: what follows each product, as for ``Matmul``.
        output: type of C, as for ``Matmul``.
        align: alignment of the operands in bytes, as for ``Matmul``.
        cache: what the caches hold, as for ``Matmul``.

    Returns:
        The problem, a frozen value.

    Raises:
        UsageError: as for ``Matmul``, or a batch that is not allowed.

    Example:
        >>> import tuner
        >>> tuner.BatchMatmul(8, 128, 64, 32).c_shape
        (8, 128, 64)
    """
    one = Matmul(m, n, k, dtype, layout, epilogue, output, align, cache)
    return replace(one, operation=BATCH_MATMUL, batch=batch)


def epilogues_of(dtype: str) -> tuple[str, ...]:
    """Returns the names of the epilogues that products of a dtype may have: of i8 those of integers."""
    return OF_INTEGERS if natural_output(dtype).startswith("i") else ALL_EPILOGUES


def parse_shape(text: str) -> tuple[int, int, int]:
    """Returns (m, n, k) of a text ``MxNxK`` such as 512x256x128. Raises UsageError for other text."""
    _, sizes = parse_sizes(MATMUL, text)
    m, n, k = sizes
    return m, n, k


def parse_sizes(operation: str, text: str) -> tuple[int, tuple[int, ...]]:
    """Parses MxNxK to (1, (m, n, k)), of a batch_matmul BxMxNxK; raises UsageError for other text."""
    require_choice("operation", operation, OPERATIONS)
    pattern, example = SHAPES[operation]
    extents = _extents(text)
    if len(extents) != pattern.count("x") + 1:
        advice = _shape_advice(operation, extents)
        raise UsageError(f"shape: found {text[:80]!r}, allowed {pattern} such as {example}{advice}")
    return split_extents(operation, extents)


def shape_text(operation: str | None, text: str) -> str:
    """Returns a shape that a user wrote in the form of ``Problem.shape``: 512x512x512 for 512X512X512.

    Four sizes without ``operation``: a batch_matmul. Raises UsageError for other text and sizes.
    """
    has_batch = len(_extents(text)) == SHAPES[BATCH_MATMUL][0].count("x") + 1
    named = operation or (BATCH_MATMUL if has_batch else MATMUL)
    named = MATMUL if named == QUANTIZED else named
    batch, sizes = parse_sizes(named, text)
    return Problem(named, sizes, "f32", batch=batch).shape


def _extents(text: str) -> tuple[int, ...]:
    numbers = re.fullmatch(r"[0-9]{1,18}(x[0-9]{1,18})*", text.lower())  # int() refuses thousands of digits
    return tuple(int(number) for number in numbers[0].split("x")) if numbers else ()


def _shape_advice(operation: str, extents: tuple[int, ...]) -> str:
    names = SHAPES[operation][0].split("x")
    text = "x".join(str(extent) for extent in extents)
    if operation == MATMUL and len(extents) == len(names) + 1:
        return f"; with a batch it is: {BATCH_MATMUL} {text}"
    if operation == BATCH_MATMUL and len(extents) == len(names) - 1:
        return f"; without a batch it is: {MATMUL} {text}"
    missing = names[len(extents) :] if extents else []
    return f": {' and '.join(missing)} missing" if missing else ""


def split_extents(operation: str, extents: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Splits ``Problem.extents`` into (batch, (m, n, k)); the batch of a matmul is 1. Checks no size."""
    has_batch = operation == BATCH_MATMUL or (operation in FUSION_OPERATIONS and len(extents) > 3)
    return (extents[0], extents[1:]) if has_batch and extents else (1, extents)


def require_choice(what: str, found: str, allowed: tuple[str, ...]) -> None:
    """Raises UsageError unless ``found`` is one of ``allowed``; its message begins with ``what``."""
    if found not in allowed:
        raise unknown_value(what, found, allowed)


COUNT_LIMIT = 10**9


@dataclass(frozen=True)
class NamedProblem:
    """A problem to tune together with others: what it is called, and how often it occurs."""

    problem: Problem
    name: str = ""  # of a layer or a function
    count: int = 1

    def __post_init__(self) -> None:
        if type(self.count) is not int or not 1 <= self.count <= COUNT_LIMIT:
            raise UsageError(f"count: found {self.count!r}, allowed 1..{COUNT_LIMIT}")


def distinct_problems(problems: tuple[NamedProblem, ...]) -> tuple[NamedProblem, ...]:
    """Returns each problem once, in order of occurrence: counts are added, names joined by a comma."""
    by_problem: dict[Problem, NamedProblem] = {}
    for each in problems:
        known = by_problem.setdefault(each.problem, each)
        if known is each:
            continue
        names = dict.fromkeys((*known.name.split(", "), each.name))
        joined = ", ".join(name for name in names if name)
        by_problem[each.problem] = replace(known, name=joined, count=known.count + each.count)
    return tuple(by_problem.values())
