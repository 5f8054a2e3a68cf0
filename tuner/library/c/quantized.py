"""Matmuls by quantized weights in a C library: a function for each problem, and one that packs its weights.

A kernel reads its weights as it was tuned for, so that packed bytes are of one problem and one library:

    size_t  tuner_quantized_matmul_1x4096x4096_f32_i4_g128_f16_packed_bytes(void)
    void    tuner_quantized_matmul_1x4096x4096_f32_i4_g128_f16_pack(b, scales, packed)
    int     tuner_quantized_matmul_1x4096x4096_f32_i4_g128_f16(a, packed, c)

The packed weights are the integers, the scales and the zero points, each from a multiple of 64 bytes on.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tuner.core.errors import CandidateError, TunerError
from tuner.core.fusions import (
    FUSION_ENTRY,
    NIBBLE_ROWS,
    NIBBLES,
    WeightPacking,
    number_type,
    packings_in,
    threads_in,
)
from tuner.core.interfaces import Script
from tuner.core.problem import Problem
from tuner.core.quantization import WeightFormat
from tuner.library.c.kernels import C_TYPES, CodeTarget, code_target
from tuner.library.entries import LibraryEntry
from tuner.mlir.cpu.llvm_modules import ModulePart, instructions_needed
from tuner.payload.packed_weights import packed_shape
from tuner.targets.cpu.compiler import CpuCompiler

ALIGNMENT = 64  # bytes: where an array begins in the packed weights
TRANSPOSED = (1, 0)  # the order of a packing whose rows go through K, or through groups
SIGN_OF_BYTE, SIGNS_OF_NIBBLES = 0x80, 0x88  # bits that are flipped where integers are packed as unsigned


@dataclass(frozen=True)
class PackedArray:
    """Where the elements of the integers, the scales or the zero points are in the packed weights."""

    offset: int  # bytes from the start of the packed weights
    bytes: int  # of the array, packed
    rows: int  # k, or the number of groups
    packing: WeightPacking
    steps: int  # of ``packing.interleave`` rows in a panel
    element_bytes: int

    @property
    def flip(self) -> int:
        """Returns the bits of a byte that are flipped."""
        if self.packing.nibbles:
            return SIGNS_OF_NIBBLES
        return SIGN_OF_BYTE if self.packing.unsigned else 0

    @property
    def slots(self) -> tuple[int, ...]:
        """Returns where each of eight rows is among the nibbles of a column; () for whole bytes."""
        order = NIBBLES[self.packing.nibbles] if self.packing.nibbles else ()
        return tuple(order.index(row) for row in range(NIBBLE_ROWS) if order)


@dataclass(frozen=True, eq=False)
class QuantizedKernel:
    """A compiled entry: the names of its functions, its processors, its module, and its packed weights."""

    entry: LibraryEntry
    name: str
    symbol: str  # of the kernel
    target: CodeTarget
    module: ModulePart
    packings: tuple[WeightPacking, ...]  # of the integers, the scales and the zero points
    threads: int  # 1: the kernel takes neither a thread's number nor their count

    @property
    def problem(self) -> Problem:
        return self.entry.problem

    @cached_property
    def format(self) -> WeightFormat:
        return WeightFormat.of_text(self.problem.weights)

    @property
    def groups(self) -> int:
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

    @cached_property
    def arrays(self) -> tuple[PackedArray, ...]:
        """Returns the integers, the scales and, where the format has these, the zero points."""
        _, n, k = self.problem.sizes
        found: list[PackedArray] = []
        dtypes = ("i8", self.format.scale_dtype, "i8")
        end = 0
        for number, packing in enumerate(self.packings):
            rows = self.groups if number else k
            shape, width = packed_shape((n, rows), packing), number_type(dtypes[number]).bytes
            found.append(PackedArray(end, prod(shape) * width, rows, packing, shape[1], width))
            end += -(-found[-1].bytes // ALIGNMENT) * ALIGNMENT
        return tuple(found)

    @property
    def packed_bytes(self) -> int:
        return self.arrays[-1].offset + self.arrays[-1].bytes


def quantized_name(problem: Problem, prefix: str) -> str:
    """Returns the name of a problem's function: ``tuner_quantized_matmul_1x64x128_f32_i4_g32_f16``."""
    dtype = f"{problem.dtype}_to_{problem.output}" if problem.output else problem.dtype
    weights = problem.weights.replace("-", "_")
    return f"{prefix}_{problem.operation}_{problem.shape}_{dtype}_{weights}"


def compile_quantized(entries: tuple[LibraryEntry, ...], prefix: str) -> tuple[QuantizedKernel, ...]:
    """Returns the kernels of entries by quantized weights, of each problem the fastest. Raises TunerError."""
    compiler = CpuCompiler()
    found: dict[str, QuantizedKernel] = {}
    for entry in sorted(entries, key=_rank):
        name = quantized_name(entry.problem, prefix)
        if name not in found:
            found[name] = _compiled(compiler, entry, name, f"{prefix}_q{len(found)}_")
    return tuple(found.values())


def _rank(entry: LibraryEntry) -> tuple[object, ...]:
    return entry.problem.key, math.inf if entry.median_s is None else entry.median_s


def _compiled(compiler: CpuCompiler, entry: LibraryEntry, name: str, prefix: str) -> QuantizedKernel:
    failing = f"trial {entry.trial}: {entry.problem.key}"
    try:
        code = compiler.compile(entry.problem, Script.of(entry.script)).host_code
    except CandidateError as error:
        raise TunerError(f"{failing}: {error}") from error
    packings = tuple(each for each in packings_in(code)[1:] if each is not None and each.order == TRANSPOSED)
    if len(packings) != 2 + WeightFormat.of_text(entry.problem.weights).has_zero_points:
        raise TunerError(f"{failing}: its script leaves weights as they are, where C packs them")
    target = code_target(entry.problem, entry.machine, instructions_needed(code))
    module = ModulePart(code, prefix, target.processor, target.features)
    return QuantizedKernel(entry, name, prefix + FUSION_ENTRY, target, module, packings, threads_in(code))
