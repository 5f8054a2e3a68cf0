"""Problems as a user asks for them: ``Matmul(512, 512, 512)``, and shapes as text."""

import re

from tuner.core.dtypes import dtype_name, narrow_output, output_names
from tuner.core.epilogues import NONE
from tuner.core.errors import UsageError
from tuner.core.fusions import CONTRACTION, QUANTIZED
from tuner.core.problem import (
    BATCH_MATMUL,
    MATMUL,
    NUMPY_ALIGNMENT,
    OPERATIONS,
    WARM,
    Problem,
    require_choice,
    split_extents,
)
from tuner.core.problem_classes import MatmulProblem, PackedProblem, quantized_problem
from tuner.core.quantization import CONSTANT, parsed_format
from tuner.core.typed_arguments import shown, typed_arguments

SHAPES = {  # operation -> the form of its shape on the command line, an example
    MATMUL: ("MxNxK", "512x512x512"),
    BATCH_MATMUL: ("BxMxNxK", "8x512x512x512"),
}


PACKABLE = (MATMUL, QUANTIZED)  # operations whose B may come packed, as a user names them


def example_of(operation: str | None, sizes: str) -> str:
    """Returns example arguments for hints: "matmul 512x512x512".

    For a batch_matmul "batch_matmul 8x512x512x512". ``sizes``: the text MxNxK.
    """
    if operation == BATCH_MATMUL:
        return f"{BATCH_MATMUL} 8x{sizes}"
    return f"{MATMUL} {sizes}"


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
        dtype: type of A and B: "f32", "f64", "bf16", "f16", "tf32", "tf32x3" (f32 by three products of tf32),
            "i8", "e4m3", "e5m2", or a numpy type
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
            "constant": B and the bias are as they are, but packed ahead (dtypes f32, f64, f16, bf16, i8); an
            addend and a factor come at each call.
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
    sizes = (m, n, k)
    given = dtype_name(dtype)
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
    options = (given, layout, epilogue, narrow)
    if weights:
        packed = (1, str(align), cache, CONSTANT)
        return PackedProblem(CONTRACTION, sizes, *options, *packed)
    return MatmulProblem(MATMUL, sizes, *options, align=str(align), cache=cache)


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
    pair = Matmul(m, n, k, dtype, layout, epilogue, output, align, cache)
    return MatmulProblem(
        BATCH_MATMUL,
        (m, n, k),
        pair.dtype,
        pair.layout,
        pair.epilogue,
        pair.output,
        batch,
        pair.align,
        pair.cache,
    )


def parse_shape(text: str) -> tuple[int, int, int]:
    """Returns (m, n, k) of a text ``MxNxK`` such as 512x256x128. Raises UsageError for other text."""
    _, sizes = parse_sizes(MATMUL, text)
    m, n, k = sizes
    return m, n, k


def parse_sizes(operation: str, text: str) -> tuple[int, tuple[int, ...]]:
    """Parses MxNxK to (1, (m, n, k)), for a batch_matmul BxMxNxK to (b, (m, n, k)).

    Raises UsageError for an unknown operation, and for text of another form.
    """
    require_choice("operation", operation, OPERATIONS)
    pattern, example = SHAPES[operation]
    extents = _extents(text)
    if len(extents) != pattern.count("x") + 1:
        advice = _shape_advice(operation, extents)
        raise UsageError(f"shape: found {text[:80]!r}, allowed {pattern} such as {example}{advice}")
    return split_extents(operation, extents)


def shape_text(operation: str | None, text: str) -> str:
    """Returns a shape that a user wrote in the form of ``Problem.shape``: 512x512x512 for 512X512X512.

    ``operation``: None takes four sizes as a batch_matmul. Raises UsageError for text that is not a shape and
    for sizes that are not allowed.
    """
    has_batch = len(_extents(text)) == SHAPES[BATCH_MATMUL][0].count("x") + 1
    named = operation or (BATCH_MATMUL if has_batch else MATMUL)
    named = MATMUL if named == QUANTIZED else named
    batch, sizes = parse_sizes(named, text)
    return MatmulProblem(named, sizes, "f32", batch=batch).shape


def _extents(text: str) -> tuple[int, ...]:
    numbers = re.fullmatch(r"[0-9]{1,18}(x[0-9]{1,18})*", text.lower())  # int() refuses thousands of digits
    if numbers:
        return tuple(map(int, numbers[0].split("x")))
    return ()


def _shape_advice(operation: str, extents: tuple[int, ...]) -> str:
    names = SHAPES[operation][0].split("x")
    text = "x".join(map(str, extents))
    if operation == MATMUL and len(extents) == len(names) + 1:
        return f"; with a batch it is: {BATCH_MATMUL} {text}"
    if operation == BATCH_MATMUL and len(extents) == len(names) - 1:
        return f"; without a batch it is: {MATMUL} {text}"
    missing = names[len(extents) :] if extents else []
    if missing:
        return f": {' and '.join(missing)} missing"
    return ""
