"""The problem to tune: one operation at one size. ``Problem`` is the base class of all classes of problems.

A subclass says what is computed besides the product, such as a fusion's text or a format of weights.
"""

import abc
import math
from dataclasses import dataclass, replace
from typing import ClassVar

from tuner.core.dtypes import (
    IEEE,
    INPUT_DTYPES,
    MATH,
    NARROW_OUTPUTS,
    natural_output,
    number_type,
    output_names,
)
from tuner.core.epilogues import EPILOGUES, NONE, Epilogue
from tuner.core.errors import UsageError, unknown_value
from tuner.core.fusions import ATTENTION, CONTRACTION, CONVOLUTION, KINDS, LOOPS

MATMUL, BATCH_MATMUL = PRODUCTS = ("matmul", "batch_matmul")
GROUPED = "grouped_matmul"  # rows of A that lie sorted by group, each group by its own matrix B
OPERATIONS = (*PRODUCTS, GROUPED)
FUSION_OPERATIONS = tuple(kind for kind in KINDS if kind != LOOPS)  # what a fusion of a program computes
OF_BATCHES = (BATCH_MATMUL, ATTENTION, CONTRACTION, CONVOLUTION)  # operations on more than one matrix
LAYOUTS = ("nn", "nt", "tn")  # A then B: n as written (A is m x k, B is k x n), t transposed in memory
SCALED = "scaled_matmul"  # the operation of a matmul of 8-bit floats with scales of blocks
SCALES = "1x128,128x128"  # rows x steps of K that share a scale of A, columns x steps of K of B
SCALED_DEPTH = 128  # steps of K that share a scale
SCALED_COLUMNS = 128  # of B, that share a scale
NUMPY_ALIGNMENT = "16"  # what numpy's arrays have, as malloc promises it
ALIGNMENTS = (NUMPY_ALIGNMENT, "64", "any")  # bytes; 64: a cache line; any: that of one element
# What is evicted from a CPU's caches before a call: nothing, B, all operands.
WARM, WEIGHTS_COLD, COLD = CACHES = ("warm", "weights-cold", "cold")
BATCH_LIMIT = 65535  # matrices: the most blocks of a GPU's grid along z
SIZE_LIMIT = 2**31 - 1  # an extent; kernels index with 64 bits, BLAS interfaces with 32


ALL_EPILOGUES = tuple(EPILOGUES)
OF_INTEGERS = tuple(name for name, epilogue in EPILOGUES.items() if epilogue.takes_integers)
PROBLEM_DEFAULTS = {"layout": "nn", "epilogue": NONE, "output": "", "align": NUMPY_ALIGNMENT, "cache": WARM}
COUNT_LIMIT = 10**9


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
        """Returns the bytes from one matrix of the batch to the next in this array.

        0 if all share the array.
        """
        if self.matrices:
            return self.bytes // self.matrices
        return 0


@dataclass(frozen=True)
class Problem(abc.ABC):
    """One operation at one size, such as ``matmul`` of (m, n, k) = (512, 512, 512); made by ``tuner.Matmul``.

    A ``batch_matmul`` multiplies ``batch`` pairs of matrices of the same sizes, contiguous in memory.
    """

    operations: ClassVar[tuple[str, ...]]  # that a problem of the class may have

    operation: str
    sizes: tuple[int, ...]  # (m, n, k)
    dtype: str  # of the inputs
    layout: str = "nn"
    epilogue: str = NONE  # a key of EPILOGUES
    output: str = ""  # type of C, one of NARROW_OUTPUTS[dtype]; "": the type of the sums
    batch: int = 1  # matrices of A, of B and of C; of OF_BATCHES only
    align: str = NUMPY_ALIGNMENT  # one of ALIGNMENTS: what addresses of operands on a CPU are multiples of
    cache: str = WARM  # one of CACHES: what the caches of a CPU hold when a kernel is called

    def __post_init__(self) -> None:
        """Raises UsageError for a bad size, and for an unknown operation, dtype, layout and the like."""
        require_choice("operation", self.operation, self.operations)
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
        type_ = number_type(self.dtype)
        if type_.depth_limit and self.sizes[2] > type_.depth_limit:
            allowed = f"1..{type_.depth_limit} for {self.dtype}, whose sums are {type_.sums}"
            raise UsageError(f"size k: found {self.sizes[2]}, allowed {allowed}")

    # What each class says itself

    @property
    @abc.abstractmethod
    def one_matmul(self) -> "Problem":
        """Returns the matmul of one pair of matrices of a batch_matmul; any other problem itself."""

    @property
    @abc.abstractmethod
    def form(self) -> tuple[str, ...]:
        """Returns the part of the key after the type: (layout, epilogue), of a fusion (hash of its text,)."""

    @property
    @abc.abstractmethod
    def computed(self) -> str:
        """Returns a text of what a kernel computes besides products, such as the epilogue's name.

        Problems of one operation and of equal texts differ at most in sizes, types, layout, alignment and
        cache state.
        """

    @property
    @abc.abstractmethod
    def text(self) -> str:
        """Returns the MLIR text of a fusion, or of a matmul with packed weights; "" for any other problem.

        The payload of other problems follows from their sizes, types and epilogue.
        """

    @property
    @abc.abstractmethod
    def scheduled_as(self) -> "Problem":
        """Returns the problem whose strategies and stored trials also serve this one.

        The problem itself where there is no other. A fusion that is a matmul with an epilogue of the table
        becomes that matmul. With a constant B the layout becomes nn: B is packed into the same panels from
        either layout.
        """

    @property
    @abc.abstractmethod
    def weights(self) -> str:
        """Returns the format of weights that are packed ahead: the text of a WeightFormat, or "constant".

        "" for a matmul whose operands all come at each call, and for a fusion of a program.
        """

    @property
    @abc.abstractmethod
    def groups(self) -> int:
        """Returns the number of matrices B of a grouped_matmul, one for each group of rows; else 0."""

    @property
    @abc.abstractmethod
    def runs_alone(self) -> bool:
        """Returns whether the problem can be called and compared with libraries; False inside a program."""

    @property
    @abc.abstractmethod
    def flop(self) -> int:
        """Returns the floating-point operations: 2 * batch * m * n * k. The epilogue is not counted.

        A fusion of two contractions counts both. An attention counts both of its products, for the scores
        that no mask is known to hide. A convolution counts no products with planes of zeros. Row fusions and
        elementwise operations, which are bound by memory, count two operations for each element.
        """

    @property
    @abc.abstractmethod
    def bytes(self) -> int:
        """Returns the least memory traffic in bytes: all arguments, C twice where the epilogue reads it."""

    @property
    @abc.abstractmethod
    def compared_limit(self) -> int:
        """Returns an upper bound of the number of elements that one verification of a kernel compares."""

    def multiplied_as(self, mode: str) -> "Problem":
        """Returns the problem with f32 multiplied as a mode says; of another type the problem itself.

        Args:
            mode: of multiplication: "ieee", "tf32", "tf32x3", "bf16x6".

        Returns:
            The problem of the same sizes, whose dtype is the mode's.

        Raises:
            KeyError: there is no such mode.

        Example:
            >>> import tuner
            >>> tuner.Matmul(64, 32, 16).multiplied_as("tf32x3").dtype
            'tf32x3'
        """
        if self.dtype != MATH[IEEE]:
            return self
        return replace(self, dtype=MATH[mode])

    @property
    @abc.abstractmethod
    def multiplied_dtype(self) -> str:
        """Returns the dtype whose instructions bound the speed: i8 where activations are quantized."""

    @property
    @abc.abstractmethod
    def narrowest_dtype(self) -> str:
        """Returns the narrowest element type that a kernel may multiply: it bounds the flop/s."""

    @abc.abstractmethod
    def variables(self) -> tuple[tuple[str, int | str], ...]:
        """Returns the (name, value) pairs of the problem that constraints may use.

        Returns:
            Sizes m, n, k and batch; bytes per element (input_bytes, output_bytes, accumulator_bytes); names
            of dtype, output, layout and epilogue; scale_depth, the steps of K that share a scale, or 0;
            groups, the matrices of a grouped_matmul, or 0. Of a fusion and of a matmul with packed weights
            also facts (``tuner.core.fusion_facts.FusionFacts.variables``): loops, inner_rows, inner_columns,
            contractions, weights, transposed, copy, strided, dimensions, channels, stride, masked,
            weight_bits, group_size, zero_points, integers.

        Raises:
            Nothing: a problem is checked when it is built.

        Example:
            >>> import tuner
            >>> dict(tuner.Matmul(64, 32, 16).variables())["k"]
            16
        """

    # What all have in common

    @property
    def shape(self) -> str:
        """Returns the sizes as the command line takes them: 512x512x512, with a batch 8x512x512x512.

        With groups in place of a batch likewise.
        """
        return "x".join(map(str, self.extents))

    @property
    def extents(self) -> tuple[int, ...]:
        """Returns the numbers of ``shape``: (m, n, k).

        For a batch_matmul (batch, m, n, k), for a grouped_matmul (groups, m, n, k).
        """
        if self.groups:
            return (self.groups, *self.sizes)
        return (*self.lead, *self.sizes)

    @property
    def lead(self) -> tuple[int, ...]:
        """Returns the sizes of A, B and C before rows and columns: (batch,), or () without a batch."""
        has_batch = self.operation == BATCH_MATMUL or self.batch > 1  # a fusion may have one
        if has_batch:
            return (self.batch,)
        return ()

    @property
    def rows(self) -> int:
        """Returns the number of rows of the result C, summed over all matrices of the batch."""
        return self.batch * self.sizes[0]

    @property
    def a_shape(self) -> tuple[int, ...]:
        """Returns the shape of A in memory: (m, k), for layout tn (k, m); with the batch in front."""
        m, _, k = self.sizes
        if self.layout == "tn":
            return (*self.lead, k, m)
        return (*self.lead, m, k)

    @property
    def b_shape(self) -> tuple[int, ...]:
        """Returns the shape of B in memory: (k, n), for layout nt (n, k); with batch or groups in front."""
        _, n, k = self.sizes
        lead = self.lead
        if self.groups:
            lead = (self.groups,)
        if self.layout == "nt":
            return (*lead, n, k)
        return (*lead, k, n)

    @property
    def b_matrices(self) -> int:
        """Returns how many matrices B consists of: the groups of a grouped_matmul, else the batch."""
        return self.groups or self.batch

    @property
    def c_shape(self) -> tuple[int, ...]:
        """Returns the shape of C in memory: (m, n), for a batch_matmul (batch, m, n)."""
        return (*self.lead, *self.sizes[:2])

    @property
    def after_product(self) -> Epilogue:
        """Returns the entry of ``EPILOGUES`` that follows the product."""
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
    def scales(self) -> tuple[Argument, ...]:
        """Returns the scales of A, (m, k / 128), and of B, (n / 128, k / 128), in f32; quotients rounded up.

        () for all operations but a scaled_matmul.
        """
        if self.operation != SCALED:
            return ()
        m, n, k = self.sizes
        blocks = -(-k // SCALED_DEPTH)
        return (
            Argument("scale_a", (m, blocks), "f32", 1),
            Argument("scale_b", (-(-n // SCALED_COLUMNS), blocks), "f32", 1),
        )

    @property
    def offsets(self) -> tuple[Argument, ...]:
        """Returns the argument of a grouped_matmul with the first row of each group, (groups + 1,), in i32.

        Its last number is the end of the last group. () for all other operations.
        """
        if not self.groups:
            return ()
        return (Argument("offsets", (self.groups + 1,), "i32", 0),)

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Returns the arrays of a matmul's kernel: A, B, scales, offsets, those of the epilogue, and C."""
        return (
            Argument("a", self.a_shape, self.stored_dtype, self.batch),
            Argument("b", self.b_shape, self.stored_dtype, self.batch),
            *self.scales,
            *self.offsets,
            *self.extra_arguments,
            Argument("c", self.c_shape, self.result_dtype, self.batch),
        )

    @property
    def key(self) -> str:
        """Returns one line that identifies the problem: matmul 512x512x512 f32 nn none.

        An alignment other than numpy's and a cache state other than warm come last: align=64 cache=cold.
        A fusion has the hash of its text in place of layout and epilogue: rows 64x128x1 f32
        0a1b2c3d4e5f. A quantized matmul has the format of its weights: quantized_matmul 1x4096x4096
        f32*i4-g128-f16 nt none.
        """
        dtype = f"{self.types}->{self.output}" if self.output else self.types
        return " ".join((self.operation, self.shape, dtype, *self.form, *self.memory_options))

    @property
    def types(self) -> str:
        """Returns the types of A and of packed weights: "f32", or with packed weights "f32*i4-g128-f16"."""
        if self.weights:
            return f"{self.dtype}*{self.weights}"
        return self.dtype

    @property
    def memory_options(self) -> tuple[str, ...]:
        """Returns alignment and cache state as in keys, where not the default: ("align=64", "cache=cold")."""
        options = (("align", self.align, NUMPY_ALIGNMENT), ("cache", self.cache, WARM))
        return tuple(f"{name}={value}" for name, value, usual in options if value != usual)

    @property
    def stored_dtype(self) -> str:
        """Returns the MLIR element type of A and B in memory: f32 for tf32 and tf32x3, f8E4M3FN for e4m3."""
        return number_type(self.dtype).mlir

    @property
    def accumulator(self) -> str:
        """Returns the MLIR type in which products are summed: f64 for f64, i32 for i8, else f32."""
        return natural_output(self.dtype)

    @property
    def result_dtype(self) -> str:
        """Returns the MLIR element type of C and of the epilogue's extra arguments, such as a bias."""
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
    def offset_bytes(self) -> int:
        """Returns how many bytes past the start of a cache line operands lie while a CPU kernel is timed.

        Operands then have the alignment of the problem and no more: 0 for align 64, 16 for align 16, one
        element of C for align any.
        """
        return {"64": 0, "16": 16}.get(self.align, self.output_bytes)


def epilogues_of(dtype: str) -> tuple[str, ...]:
    """Returns the names of the epilogues that products of a dtype may have.

    For i8 only those for integers.
    """
    if natural_output(dtype).startswith("i"):
        return OF_INTEGERS
    return ALL_EPILOGUES


def split_extents(operation: str, extents: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Splits ``Problem.extents`` into (batch, (m, n, k)); the batch of a matmul is 1.

    Of a grouped_matmul the first number is that of groups. Does not check the sizes.
    """
    has_batch = operation in (BATCH_MATMUL, GROUPED) or (operation in FUSION_OPERATIONS and len(extents) > 3)
    if has_batch and extents:
        return (extents[0], extents[1:])
    return (1, extents)


def require_choice(what: str, found: str, allowed: tuple[str, ...]) -> None:
    """Raises UsageError unless ``found`` is one of ``allowed``; its message begins with ``what``."""
    if found not in allowed:
        raise unknown_value(what, found, allowed)


@dataclass(frozen=True)
class NamedProblem:
    """A problem to tune together with others: its name in the user's program, how often it occurs.

    Raises UsageError for a count outside of 1 to COUNT_LIMIT.
    """

    problem: Problem
    name: str = ""  # of a layer or a function
    count: int = 1

    def __post_init__(self) -> None:
        if type(self.count) is not int or not 1 <= self.count <= COUNT_LIMIT:
            raise UsageError(f"count: found {self.count!r}, allowed 1..{COUNT_LIMIT}")


def distinct_problems(problems: tuple[NamedProblem, ...]) -> tuple[NamedProblem, ...]:
    """Returns each problem once, in order of occurrence: counts are added, names joined by a comma."""
    by_problem: dict[Problem, NamedProblem] = {}
    for problem in problems:
        known = by_problem.setdefault(problem.problem, problem)
        if known is problem:
            continue
        names = dict.fromkeys((*known.name.split(", "), problem.name))
        joined = ", ".join(filter(None, names))
        by_problem[problem.problem] = replace(known, name=joined, count=known.count + problem.count)
    return tuple(by_problem.values())
