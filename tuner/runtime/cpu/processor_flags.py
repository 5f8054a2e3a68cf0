"""Which instruction sets this processor has: the flags of Linux's /proc/cpuinfo."""

from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
AVX512 = frozenset({"avx512f", "avx512vl", "avx512bw", "avx512dq"})
AVX2 = frozenset({"avx2", "fma"})
BF16 = frozenset({"avx512_bf16"})
AMX_TILE = "amx_tile"
AMX_BF16 = frozenset({AMX_TILE, "amx_bf16"})
AMX_INT8 = frozenset({AMX_TILE, "amx_int8"})
# Instruction set, as in ``tuner.core.instruction_sets`` -> flags. LLVM's levels of x86-64 imply more flags;
# each processor that has these has them too.
FLAGS = {
    "avx2": AVX2,
    "avx512": AVX512,
    "avx512-bf16": BF16,
    "vnni": frozenset({"avx512_vnni"}),
    "avx-vnni": frozenset({"avx_vnni"}),
    "amx-bf16": AMX_BF16,
    "amx-int8": AMX_INT8,
}


def own_flags() -> set[str]:
    """Returns the flags of the processor of this process; an empty set where Linux does not give them."""
    return flags_of(CPUINFO.read_text()) if CPUINFO.exists() else set()


def flags_of(cpuinfo: str) -> set[str]:
    """Returns the flags of the first processor in the text of /proc/cpuinfo; an empty set without them."""
    start = cpuinfo.find("\nflags")
    line = cpuinfo[start + 1 :].partition("\n")[0] if start >= 0 else ""
    return set(line.partition(":")[2].split())


def missing_sets(needs: tuple[str, ...], flags: set[str]) -> tuple[str, ...]:
    """Returns which of the instruction sets ``needs`` a processor with ``flags`` lacks, in their order.

    A set that tuner does not know is missing.
    """
    return tuple(name for name in needs if name not in FLAGS or not flags >= FLAGS[name])
