"""Problems as a user asks for them from Python: ``Matmul(512, 512, 512)`` and those of batches and groups."""

from tuner.core.dtypes import IEEE, dtype_name, dtype_of_math, narrow_output, output_names
from tuner.core.epilogues import NONE
from tuner.core.errors import UsageError
from tuner.core.fusions import CONTRACTION, QUANTIZED
from tuner.core.problem import (
    BATCH_MATMUL,
    GROUPED,
    MATMUL,
    NUMPY_ALIGNMENT,
    SCALED,
    SCALES,
    WARM,
    Problem,
    require_choice,
)
from tuner.core.problem_classes import (
    GroupedProblem,
    MatmulProblem,
    PackedProblem,
    ScaledProblem,
    quantized_problem,
)
from tuner.core.quantization import CONSTANT, parsed_format
from tuner.core.typed_arguments import shown, typed_arguments

PACKABLE = (MATMUL, QUANTIZED)  # operations whose B may come packed, as a user names them
SCALABLE = (MATMUL,)  # operations that may have scales of blocks, as a user names them


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
    scales: str = "",
    math: str = IEEE,
) -> Problem:
    """Returns the problem C = A B, with A of m x k, B of k x n and C of m x n elements.

    Args:
        m: rows of A and C, 1 to 2**31 - 1; numpy's integers are allowed for each size.
        n: columns of B and C.
        k: columns of A, rows of B; at most 2**17 - 1 for "i8".
        dtype: type of A and B: "f32", "f64", "bf16", "f16", "i8", "e4m3", "e5m2", or a numpy type
            (``np.float32``, ``a.dtype``, "float32"). Also the dtype of a mode of ``math``, as keys have it.
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
        group_size: of quantized weights: elements of K that share a scale, a multiple of 32, of i8 also of 16
            where activations are not quantized, or "channel".
        scale_dtype: of quantized weights: type of the scales, n x (k / group_size): "f16", "bf16" or "f32".
        zero_points: of quantized weights: whether a number of each group is subtracted from its integers.
        activations: of quantized weights: "": A as it is. "i8-group" and "i8-row": A is quantized at each
            call, with a scale per group or per row; "i8": by group, but by row with group size "channel".
        scales: "", or "1x128,128x128": fp8 with layout nt, f32 or bf16 as output and two more arguments in
            f32, a scale for each row and 128 of K of A, and for each 128 rows and 128 of K of B as stored.
            Kernels are for sm_90a, with K a multiple of 16.
        math: how f32 is multiplied: "ieee"; on GPUs "tf32", or "tf32x3" (three products of tf32); on sm_90a
            and by AMX "bf16x6" (six products of bf16). Never chosen by a run itself. The problem then has
            that dtype.

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
    given = dtype_of_math(dtype_name(dtype), math)
    try:
        narrow = narrow_output(given, dtype_name(output))
    except UsageError:
        allowed = f"{' or '.join(output_names(given))} for dtype {given}"
        raise UsageError(f"output dtype: found {shown(output)}, allowed {allowed}") from None
    if scales:
        require_choice("scales", scales, (SCALES,))
        if weights or activations or zero_points:
            raise UsageError("scales cannot be combined with packed weights")
        scaled = (given, layout, epilogue, narrow)
        return ScaledProblem(SCALED, sizes, *scaled, align=str(align), cache=cache)
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
    math: str = IEEE,
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
        math: how f32 is multiplied, as for ``Matmul``.

    Returns:
        The problem, a frozen value.

    Raises:
        UsageError: as for ``Matmul``, or a batch that is not allowed.

    Example:
        >>> import tuner
        >>> tuner.BatchMatmul(8, 128, 64, 32).c_shape
        (8, 128, 64)
    """
    pair = Matmul(m, n, k, dtype, layout, epilogue, output, align, cache, math=math)
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


@typed_arguments
def GroupedMatmul(  # noqa: N802 - as Matmul
    groups: int,
    m: int,
    n: int,
    k: int,
    dtype: object = "bf16",
    layout: str = "nn",
    output: object = "",
    align: str | int = NUMPY_ALIGNMENT,
    cache: str = WARM,
) -> Problem:
    """Returns the problem of a product of groups of rows, each with its own B, as of a mixture of experts.

    C[offsets[g]:offsets[g + 1]] = A[offsets[g]:offsets[g + 1]] B[g] for each group g. The offsets, i32, are
    an argument of the kernel between B and C, (groups + 1,); they must not fall and not exceed m. Groups may
    be empty. Rows of C before the first and after the last offset are not written.

    Args:
        groups: number of groups, and of matrices of B, 1 to 65535.
        m: rows of A and C, of all groups together.
        n: columns of each matrix of B, and of C.
        k: columns of A, rows of each matrix of B.
        dtype: type of A and B, "f16" or "bf16".
        layout: "nn", or "nt" if each matrix of B is stored as n x k.
        output: type of C, as for ``Matmul``.
        align: alignment of the operands in bytes, as for ``Matmul``.
        cache: what the caches hold, as for ``Matmul``.

    Returns:
        The problem, a frozen value.

    Raises:
        UsageError: as for ``Matmul``, or a number of groups, a type or a layout that is not allowed.

    Example:
        >>> import tuner
        >>> problem = tuner.GroupedMatmul(8, 4096, 1024, 2048, layout="nt")
        >>> problem.b_shape
        (8, 1024, 2048)
        >>> problem.key
        'grouped_matmul 8x4096x1024x2048 bf16 nt none'
    """
    pair = Matmul(m, n, k, dtype, layout, NONE, output, align, cache)
    options = (pair.dtype, layout, NONE, pair.output, 1, pair.align, cache)
    return GroupedProblem(GROUPED, (m, n, k), *options, groups)
