"""Which processors a kernel of a C library is compiled for, and what the C code asks the processor for.

Kernels are timed as compiled for the processor that they ran on, with all that it has. In a library they are
compiled for a level of x86-64 and no more than C code can ask for, so that no other instruction is in them.
Levels: https://gitlab.com/x86-psABIs/x86-64-ABI, "Micro-Architecture Levels".
"""

from dataclasses import dataclass

from tuner.core.instruction_sets import (
    AMX_BF16,
    AMX_INT8,
    AVX2,
    AVX512,
    AVX512_BF16,
    AVX_VNNI,
    FEATURES,
    LEVELS,
    PLAIN_LEVEL,
    VNNI,
    instruction_sets_of,
)
from tuner.core.machine import Machine
from tuner.core.problem import Problem

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
        """Returns the instruction sets as the number that C code compares; later ones are larger."""
        return sum(1 << number for number, name in enumerate(BITS) if name in self.needs)


def code_target(problem: Problem, machine: Machine, needs: tuple[str, ...]) -> CodeTarget:
    """Returns the processors to compile a kernel for that was timed on ``machine``.

    ``needs`` are the instruction sets of the intrinsics that the kernel calls. A kernel of i8 may use VNNI
    without such calls: LLVM makes its instructions of products of 16-bit integers.
    """
    level = LEVELS.get(machine.isa, PLAIN_LEVEL)
    used = {*needs, *([VNNI] if problem.dtype == "i8" and VNNI in instruction_sets_of(machine) else [])}
    if VNNI in used and machine.isa != AVX512:
        used = (used - {VNNI}) | {AVX_VNNI}
    asked = {machine.isa} & set(LEVELS) | used
    features = ",".join(FEATURES[name] for name in BITS if name in asked and name in FEATURES)
    return CodeTarget(level, features, tuple(name for name in BITS if name in asked))
