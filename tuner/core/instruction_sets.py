"""The instruction sets that code may need beyond plain vector code, which the code generator adapts.

Their names are those in headers of scripts and in messages: "amx-bf16".
"""

from collections.abc import Collection

from tuner.core.errors import UsageError
from tuner.core.machine import Machine

AMX_BF16, AMX_INT8, AVX512_BF16, VNNI = "amx-bf16", "amx-int8", "avx512-bf16", "vnni"
AVX2, AVX512 = "avx2", "avx512"  # also the names of a processor's isa
AVX_VNNI = "avx-vnni"  # of a processor without AVX-512: dot products in 256 bits
FIELDS = {"has_bf16": AVX512_BF16, "has_vnni": VNNI, "has_amx_bf16": AMX_BF16, "has_amx_int8": AMX_INT8}
WITHIN = {AVX512: (AVX2, AVX512), AVX2: (AVX2,)}  # of each isa of a processor
# Levels: https://gitlab.com/x86-psABIs/x86-64-ABI, "Micro-Architecture Levels".
LEVELS = {AVX512: "x86-64-v4", AVX2: "x86-64-v3"}  # isa of a machine -> level, LLVM's name
PLAIN_LEVEL = "x86-64"  # of a machine with neither
FEATURES = {  # instruction set -> LLVM's features beyond the level
    VNNI: "+avx512vnni",
    AVX_VNNI: "+avxvnni",
    AVX512_BF16: "+avx512bf16",
    AMX_BF16: "+amx-tile,+amx-bf16",
    AMX_INT8: "+amx-tile,+amx-int8",
}
SEE_TARGETS = "tuner targets shows what this machine has"


def instruction_sets_of(machine: Machine) -> tuple[str, ...]:
    """Returns the names of the instruction sets that code on a processor may use; () of a GPU.

    AMX is left out where the operating system refuses it. Example: ("avx2", "avx512", "vnni").
    """
    if machine.chip:
        return ()
    return (
        *WITHIN.get(machine.isa, ()),
        *(name for field, name in FIELDS.items() if getattr(machine, field)),
    )


def missing_on(machine: Machine, needs: Collection[str]) -> tuple[str, ...]:
    """Returns which of the instruction sets ``needs`` code on ``machine`` may not use, in the same order."""
    return tuple(name for name in needs if name not in instruction_sets_of(machine))


def refusal(machine: Machine, needs: Collection[str]) -> str:
    """Returns why code with the instruction sets ``needs`` cannot run on ``machine``; "" where it can."""
    missing = missing_on(machine, needs)
    return f"needs {' and '.join(missing)}, which {machine.processor} does not offer" if missing else ""


def require_instructions(machine: Machine, needs: Collection[str], what: str) -> None:
    """Raises UsageError where code that needs the instruction sets ``needs`` cannot run on ``machine``.

    ``what`` begins the message: the name of a file, or "trial 7".
    """
    found = refusal(machine, needs)
    if found:
        raise UsageError(f"{what}: {found}", SEE_TARGETS)
