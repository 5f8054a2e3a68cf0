"""The C functions of a library, for all sizes, and the processors that their kernels are compiled for."""

from dataclasses import dataclass, replace

from tuner.core.machine import Machine
from tuner.core.problem import BATCH_MATMUL, I8_DEPTH_LIMIT, NUMPY_ALIGNMENT, SIZE_LIMIT, WARM, Problem
from tuner.core.processors import (
    AMX_BF16,
    AMX_INT8,
    AVX2,
    AVX512,
    AVX512_BF16,
    AVX_VNNI,
    INSTRUCTION_SET_FEATURES,
    LEVELS,
    PLAIN_LEVEL,
    VNNI,
    instruction_sets_of,
)

# Which processors a kernel of a C library is compiled for, and what the C code asks the processor for.
#
# Kernels are timed as compiled for the processor that they ran on, with all that it has. In a library they
# are compiled for a level of x86-64 and no more than C code can ask for, so that no other instruction is in
# them. Levels: https://gitlab.com/x86-psABIs/x86-64-ABI, "Micro-Architecture Levels".

# Instruction set -> name of its bit in the header, after the prefix; in the order of the bits.
BITS = {
    AVX2: "AVX2",
    AVX512: "AVX512",
    VNNI: "AVX512_VNNI",
    AVX_VNNI: "AVX_VNNI",
    AVX512_BF16: "AVX512_BF16",
    AMX_BF16: "AMX_BF16",
    AMX_INT8: "AMX_INT8",
}


@dataclass(frozen=True)
class CodeTarget:
    """The processors that a kernel is compiled for: LLVM's names, and the instruction sets to ask for."""

    processor: str  # "x86-64-v4"
    features: str  # "+avx512vnni"
    needs: tuple[str, ...]  # keys of BITS

    @property
    def bits(self) -> int:
        """Returns ``needs`` as a bit mask (bit i: i-th key of BITS): a sort key, larger for newer sets."""
        return sum(1 << number for number, name in enumerate(BITS) if name in self.needs)


def code_target(problem: Problem, machine: Machine, needs: tuple[str, ...]) -> CodeTarget:
    """Returns a kernel's processors; VNNI for i8 even if not in ``needs``: LLVM uses it for i16 products."""
    level = LEVELS.get(machine.isa, PLAIN_LEVEL)
    used = {*needs, *([VNNI] if problem.dtype == "i8" and VNNI in instruction_sets_of(machine) else [])}
    if VNNI in used and machine.isa != AVX512:
        used = (used - {VNNI}) | {AVX_VNNI}
    required = {machine.isa} & set(LEVELS) | used
    features = ",".join(
        INSTRUCTION_SET_FEATURES[name]
        for name in BITS
        if name in required and name in INSTRUCTION_SET_FEATURES
    )
    return CodeTarget(level, features, tuple(name for name in BITS if name in required))


# Element type in memory -> C type. C has no bf16, f16 and 8-bit floats: their bits are passed as integers.
C_TYPES = {
    "f32": "float",
    "f64": "double",
    "i32": "int32_t",
    "i8": "int8_t",
    "bf16": "uint16_t",
    "f16": "uint16_t",
    "f8E4M3FN": "uint8_t",
    "f8E5M2": "uint8_t",
}
INDEX_A = {"nn": "i * k + l", "nt": "i * k + l", "tn": "l * m + i"}  # layout -> element (i, l) of A
INDEX_B = {"nn": "l * n + j", "nt": "j * k + l", "tn": "l * n + j"}  # layout -> element (l, j) of B
STORED_A = {"nn": "m x k", "nt": "m x k", "tn": "k x m (transposed)"}
STORED_B = {"nn": "k x n", "nt": "n x k (transposed)", "tn": "k x n"}


@dataclass(frozen=True)
class CFunction:
    """A C function that computes a kind of problem at any size: names and types as C text."""

    name: str
    kind: Problem  # a problem of this kind; its sizes, alignment and caches mean nothing
    input_type: str  # of an element of A or B
    output_type: str  # of an element of C and of the bias
    accumulator_type: str  # in which products are added up
    is_batch: bool
    has_bias: bool  # adds a bias, then ReLU
    depth_limit: int  # the largest k: beyond it sums of i8 could overflow
    stored_a: str  # extents in memory, for a comment: "m x k"
    stored_b: str
    index_a: str  # C expression of the index of element (i, l)
    index_b: str  # of element (l, j)


def function_of(problem: Problem, prefix: str) -> CFunction:
    """Returns the function that computes a problem: ``tuner_matmul_f32_nn`` for the prefix "tuner"."""
    dtype = f"{problem.dtype}_to_{problem.output}" if problem.output else problem.dtype
    epilogue = "" if problem.epilogue == "none" else f"_{problem.epilogue}"
    return CFunction(
        name=f"{prefix}_{problem.operation}_{dtype}_{problem.layout}{epilogue}",
        kind=replace(problem, sizes=(1, 1, 1), batch=1, align=NUMPY_ALIGNMENT, cache=WARM),
        input_type=C_TYPES[problem.stored_dtype],
        output_type=C_TYPES[problem.result_dtype],
        accumulator_type=C_TYPES[problem.accumulator],
        is_batch=problem.operation == BATCH_MATMUL,
        has_bias=problem.epilogue == "bias_relu",
        depth_limit=I8_DEPTH_LIMIT if problem.dtype == "i8" else SIZE_LIMIT,
        stored_a=STORED_A[problem.layout],
        stored_b=STORED_B[problem.layout],
        index_a=INDEX_A[problem.layout],
        index_b=INDEX_B[problem.layout],
    )
