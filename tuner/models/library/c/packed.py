"""Matmuls by packed weights in a C library: a function for each problem, and one that packs its weights.

A kernel reads its weights as it was tuned for, so that packed bytes are of one problem and one library. By
quantized weights, and by a constant B (and bias):

    size_t  tuner_quantized_matmul_1x4096x4096_f32_i4_g128_f16_packed_bytes(void)
    void    tuner_quantized_matmul_1x4096x4096_f32_i4_g128_f16_pack(b, scales, packed)
    int     tuner_quantized_matmul_1x4096x4096_f32_i4_g128_f16(a, packed, c)
    void    tuner_matmul_32x768x3072_f32_nn_constant_bias_residual_pack(b, bias, packed)
    int     tuner_matmul_32x768x3072_f32_nn_constant_bias_residual(a, packed, addend, c)

The packed weights are the arrays that ``_pack`` takes, each from a multiple of 64 bytes on. Arguments of an
epilogue that are not rows come at each call.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tuner.core.dtypes import number_type
from tuner.core.errors import CandidateError, TunerError
from tuner.core.fusions import FUSION_ENTRY, QUANTIZED
from tuner.core.interfaces import Script
from tuner.core.packings import NIBBLE_ROWS, NIBBLES, WeightPacking, packings_in, threads_in
from tuner.core.problem import MATMUL, Argument
from tuner.core.problem_classes import PackedProblem
from tuner.core.quantization import WeightFormat
from tuner.mlir.cpu.llvm_modules import ModulePart
from tuner.mlir.cpu.needed_instructions import instructions_needed
from tuner.models.library.c.kernels import C_TYPES, CodeTarget, code_target
from tuner.models.library.entries import LibraryEntry
from tuner.payload.packed_weights import packed_shape
from tuner.targets.cpu.compiler import CpuCompiler

ALIGNMENT = 64  # bytes: where an array begins in the packed weights
TRANSPOSED = (1, 0)  # the order of a packing whose rows go through K, or through groups
# bits that are flipped where integers are packed as unsigned
SIGN_OF_BYTE = 0x80
SIGNS_OF_NIBBLES = 0x88


@dataclass(frozen=True)
class PackedWeight:
    """An array that a C library packs, as a caller has it: (rows, n), or (n, rows) if it is transposed."""

    name: str  # of the parameter in C
    dtype: str
    rows: int  # k, the number of groups, or 1
    is_transposed: bool = False


@dataclass(frozen=True)
class PackedArray:
    """How one weight is stored in the packed weights: its offset and the order of its elements."""

    weight: PackedWeight
    packing: WeightPacking
    n: int  # columns of C
    offset: int  # bytes from the start of the packed weights

    @property
    def element_bytes(self) -> int:
        return number_type(self.weight.dtype).bytes

    @cached_property
    def _shape(self) -> tuple[int, int, int, int]:
        rows = self.weight.rows
        columns = self.n
        is_by_columns = self.packing.order == TRANSPOSED
        return packed_shape((columns, rows) if is_by_columns else (rows, columns), self.packing)

    @property
    def steps(self) -> int:
        """Returns the number of steps in a panel of columns; a step is ``packing.interleave`` rows."""
        return self._shape[1]

    @property
    def bytes(self) -> int:
        """Returns the size of the packed array, with the padding of its panels."""
        return prod(self._shape) * self.element_bytes

    @property
    def strides(self) -> tuple[int, int]:
        """Returns the caller's array strides in elements: (from row to row, from column to column)."""
        if self.weight.is_transposed:
            return (1, self.weight.rows)
        return (self.n, 1)

    @property
    def flip(self) -> int:
        """Returns a mask of the bits to invert in each packed byte: integers are packed as unsigned.

        0: none.
        """
        if self.packing.nibbles:
            return SIGNS_OF_NIBBLES
        if self.packing.unsigned:
            return SIGN_OF_BYTE
        return 0

    @property
    def slots(self) -> tuple[int, ...]:
        """Returns, for each of eight rows, its index among a column's packed nibbles; () for whole bytes."""
        order = NIBBLES[self.packing.nibbles] if self.packing.nibbles else ()
        return tuple(order.index(row) for row in range(NIBBLE_ROWS) if order)


@dataclass(frozen=True, eq=False)
class PackedKernel:
    """A compiled entry with packed weights: its C names, processors, LLVM module and packed arrays."""

    entry: LibraryEntry
    name: str
    symbol: str  # of the kernel
    target: CodeTarget
    module: ModulePart
    arrays: tuple[PackedArray, ...]  # in the order of the kernel's arguments
    threads: int  # at most 1: the kernel takes neither a thread's number nor their count

    @property
    def problem(self) -> PackedProblem:
        return _packed_problem(self.entry)

    @cached_property
    def format(self) -> WeightFormat:
        """Returns the format of quantized weights; only for problems that have one."""
        assert self.problem.format is not None
        return self.problem.format

    @property
    def groups(self) -> int:
        """Returns the number of groups of k that share a scale; only for quantized weights."""
        return self.format.groups(self.problem.sizes[2])

    @property
    def input_type(self) -> str:
        return C_TYPES[self.problem.dtype]

    @property
    def scale_type(self) -> str:
        return C_TYPES[self.format.scale_dtype]

    @property
    def output_type(self) -> str:
        return C_TYPES[self.problem.result_dtype]

    @property
    def step_type(self) -> str:
        """Returns the C type in which the portable loop computes an epilogue.

        "float" for f32 sums, else "double", in which sums of integers are exact.
        """
        if self.problem.accumulator == "f32":
            return "float"
        return "double"

    @cached_property
    def others(self) -> tuple[Argument, ...]:
        """Returns the epilogue's arguments that are not packed: the caller passes them at each call."""
        packed = {array.weight.name for array in self.arrays}
        return tuple(argument for argument in self.problem.extra_arguments if argument.name not in packed)

    @cached_property
    def operands(self) -> tuple[tuple[str, str], ...]:
        """Returns (name, C expression of the address) of each argument of the kernel between A and C."""
        addresses = {}
        for array in self.arrays:
            addresses[array.weight.name] = f"packed + {array.offset}"
        for index, argument in enumerate(self.others):
            addresses[argument.name] = f"others[{index}]"
        if self.problem.format is not None:
            return tuple(addresses.items())
        names = ("b", *(argument.name for argument in self.problem.extra_arguments))
        return tuple((name, addresses[name]) for name in names)

    @property
    def packed_bytes(self) -> int:
        """Returns the size of all packed weights, the gaps for alignment included."""
        return self.arrays[-1].offset + self.arrays[-1].bytes


def _packed_problem(entry: LibraryEntry) -> PackedProblem:
    assert isinstance(entry.problem, PackedProblem)
    return entry.problem


def packed_name(problem: PackedProblem, prefix: str) -> str:
    """Returns the C name of a problem's function: ``tuner_quantized_matmul_1x64x128_f32_i4_g32_f16``."""
    dtype = f"{problem.dtype}_to_{problem.output}" if problem.output else problem.dtype
    shape = problem.shape
    weights = problem.weights.replace("-", "_")
    if problem.format is not None:
        return f"{prefix}_{QUANTIZED}_{shape}_{dtype}_{weights}"
    epilogue = f"_{problem.epilogue}" if problem.after_product.steps else ""
    return f"{prefix}_{MATMUL}_{shape}_{dtype}_{problem.layout}_{weights}{epilogue}"


def compile_packed(entries: tuple[LibraryEntry, ...], prefix: str) -> tuple[PackedKernel, ...]:
    """Compiles entries with packed weights; returns the fastest kernel of each problem.

    ``prefix`` begins C names. Raises TunerError if a script does not compile, or its packing is unknown to C
    code.
    """
    compiler = CpuCompiler()
    kernels: dict[str, PackedKernel] = {}
    for entry in sorted(entries, key=_rank):
        name = packed_name(_packed_problem(entry), prefix)
        if name not in kernels:
            kernels[name] = _compiled(compiler, entry, name, f"{prefix}_p{len(kernels)}_")
    return tuple(kernels.values())


def _rank(entry: LibraryEntry) -> tuple[object, ...]:
    return entry.problem.key, math.inf if entry.median_s is None else entry.median_s


def _compiled(compiler: CpuCompiler, entry: LibraryEntry, name: str, prefix: str) -> PackedKernel:
    failing = f"trial {entry.trial}: {entry.problem.key}"
    try:
        code = compiler.compile(entry.problem, Script.of(entry.script)).code.text
    except CandidateError as error:
        raise TunerError(f"{failing}: {error}") from error
    arrays = _arrays(_packed_problem(entry), packings_in(code)[1:])
    if not arrays:
        raise TunerError(f"{failing}: its script leaves weights as they are, where C packs them")
    target = code_target(entry.problem, entry.machine, instructions_needed(code))
    module = ModulePart(code, prefix, target.level.name, target.level.features)
    return PackedKernel(entry, name, prefix + FUSION_ENTRY, target, module, arrays, threads_in(code))


def _arrays(problem: PackedProblem, packings: tuple[WeightPacking | None, ...]) -> tuple[PackedArray, ...]:
    """Returns the packed arrays of a problem; () if C code cannot pack as one of ``packings`` says."""
    n = problem.sizes[1]
    weights = _weights(problem)
    is_quantized = problem.format is not None
    arrays: list[PackedArray] = []
    end = 0
    for weight, packing in zip(weights, packings, strict=False):
        if weight is None:
            continue
        used = packing if packing or is_quantized else WeightPacking(n)  # rows x n, as a kernel reads it
        if used is None or used.order != (TRANSPOSED if is_quantized else ()) or used.run:
            return ()
        arrays.append(PackedArray(weight, used, n, end))
        end += -(-arrays[-1].bytes // ALIGNMENT) * ALIGNMENT
    expected = len(weights) - weights.count(None)
    if len(arrays) == expected:
        return tuple(arrays)
    return ()


def _weights(problem: PackedProblem) -> tuple[PackedWeight | None, ...]:
    """Returns the weights that the C function ``_pack`` takes, by the kernel's arguments after A.

    None stands for an argument that comes at each call.
    """
    k = problem.sizes[2]
    if problem.format is None:
        b = PackedWeight("b", problem.dtype, k, is_transposed=problem.layout == "nt")
        dtype = problem.result_dtype
        rows: list[PackedWeight | None] = []
        for argument in problem.after_product.arguments:
            weight = None
            if argument.axes == "n":
                weight = PackedWeight(argument.name, dtype, 1)
            rows.append(weight)
        return (b, *rows)
    format_ = problem.format
    points = PackedWeight("zero_points", "i8", format_.groups(k), is_transposed=True)
    return (
        PackedWeight("b", "i8", k, is_transposed=True),
        PackedWeight("scales", format_.scale_dtype, format_.groups(k), is_transposed=True),
        *([points] if format_.has_zero_points else []),
    )
