"""Instruction sets: one table per architecture, with what Linux and LLVM call them and what they offer."""

from collections.abc import Iterable
from dataclasses import dataclass

# Names are those in headers of scripts and in messages.

AMX_BF16 = "amx-bf16"
AMX_INT8 = "amx-int8"
TILE_SETS = (AMX_BF16, AMX_INT8)  # products of tiles
AVX512_BF16 = "avx512-bf16"
VNNI = "vnni"
AVX_VNNI = "avx-vnni"  # of a processor without AVX-512: dot products in 256 bits
DOTPROD = "dotprod"
I8MM = "i8mm"
ARM_BF16 = "arm-bf16"
# also the values of ``Machine.isa``
AVX2 = "avx2"
AVX512 = "avx512"
NEON = "neon"
NO_ISA = "none"  # of a machine that code is not generated for
NO_VECTOR_BYTES = 16  # of such a machine
NO_REGISTERS = 16
SPIN_WAIT = "SPIN_WAIT"  # in MLIR texts: the assembly of a wait, by architecture


@dataclass(frozen=True)
class InstructionSet:
    """Instructions that code may use where the processor has them.

    ``features``: LLVM's names of all features that a function compiled for the set needs. ``added``: those of
    the features that the isa's ``level`` lacks.
    """

    name: str  # "amx-bf16"
    flags: frozenset[str]  # of /proc/cpuinfo
    features: tuple[str, ...]
    added: tuple[str, ...] = ()
    field: str = ""  # of Machine, that says whether it has the set; "": the isa says it
    word: str = ""  # in the machine's name


@dataclass(frozen=True)
class Isa:
    """The vector instructions that code for a machine may always use: the value of ``Machine.isa``."""

    name: str
    vector_bytes: int  # of a register
    vector_registers: int
    fma_units: int  # that multiply and add whole registers: the most in a core that is sold
    includes: tuple[str, ...]  # instruction sets, itself the last
    level: str  # LLVM's processor, as for -mcpu, of code for all machines of the isa
    level_features: str = ""  # of such code, beyond the level: "+lse"
    # Beginnings of flags of /proc/cpuinfo that a processor of just this level lacks
    beyond: tuple[str, ...] = ()
    # Products per element of a register, in an instruction on numbers of up to 16 bits: 2 where instructions
    # multiply small matrices
    narrow_products: int = 1


@dataclass(frozen=True)
class Architecture:
    """An architecture: what its machine code is called, and its instruction sets."""

    name: str  # in messages
    system_name: str  # as Linux reports it: ``platform.machine()``
    flags_field: str  # of /proc/cpuinfo
    intrinsics: str  # beginning of the names of LLVM's intrinsics for it
    spin_wait: str  # assembly of a wait in a loop that polls memory
    futex: int  # number of the system call
    isas: tuple[Isa, ...]  # the widest first
    sets: tuple[InstructionSet, ...]
    requires: str  # what a machine without an isa lacks
    plain_level: str  # LLVM's processor of code for a machine without an isa
    threads_per_core: int  # of servers as they are sold


BEYOND_VECTORS = ("avx10", "avx_", "amx")  # flags that no level of x86-64 has: AVX10, AVX-VNNI, tiles
# Levels: https://gitlab.com/x86-psABIs/x86-64-ABI, "Micro-Architecture Levels"; they imply more flags than
# these, and each processor that has these has them too. Two units of 512 bits: Golden Cove, Zen 5.
X86_64 = Architecture(
    name="x86-64",
    system_name="x86_64",
    flags_field="flags",
    intrinsics="llvm.x86.",
    spin_wait="pause",
    futex=202,
    isas=(
        Isa(
            AVX512,
            64,
            32,
            fma_units=2,
            includes=(AVX2, AVX512),
            level="x86-64-v4",
            beyond=("avx512_", "avx512ifma", "avx512vbmi", *BEYOND_VECTORS),
        ),
        Isa(
            AVX2,
            32,
            16,
            fma_units=2,
            includes=(AVX2,),
            level="x86-64-v3",
            beyond=("avx512", *BEYOND_VECTORS),
        ),
    ),
    sets=(
        InstructionSet(AVX2, frozenset({"avx2", "fma"}), ("avx2", "fma", "f16c")),
        InstructionSet(
            AVX512,
            frozenset({"avx512f", "avx512vl", "avx512bw", "avx512dq"}),
            ("avx512f", "avx512bw", "avx512dq", "avx512vl"),
        ),
        InstructionSet(
            AVX512_BF16,
            frozenset({"avx512_bf16"}),
            ("avx512bf16",),
            ("avx512bf16",),
            field="has_bf16",
            word="bf16",
        ),
        InstructionSet(
            VNNI,
            frozenset({"avx512_vnni"}),
            ("avx512vnni",),
            ("avx512vnni",),
            field="has_vnni",
            word="vnni",
        ),
        InstructionSet(AVX_VNNI, frozenset({"avx_vnni"}), ("avxvnni",), ("avxvnni",)),
        InstructionSet(
            AMX_BF16,
            frozenset({"amx_tile", "amx_bf16"}),
            ("amx-tile", "amx-bf16"),
            ("amx-tile", "amx-bf16"),
            field="has_amx_bf16",
            word="amx_bf16",
        ),
        InstructionSet(
            AMX_INT8,
            frozenset({"amx_tile", "amx_int8"}),
            ("amx-tile", "amx-int8"),
            ("amx-tile", "amx-int8"),
            field="has_amx_int8",
            word="amx_int8",
        ),
    ),
    requires="neither AVX-512 nor AVX2 with FMA",
    plain_level="x86-64",
    threads_per_core=2,
)
# Flags: https://docs.kernel.org/arch/arm64/elf_hwcaps.html. Four units: Neoverse V1 as 128-bit NEON, V2,
# Apple. Atomics in one instruction (ARMv8.1) are required: without them LLVM calls helpers that no library
# here has.
AARCH64 = Architecture(
    name="aarch64",
    system_name="aarch64",
    flags_field="Features",
    intrinsics="llvm.aarch64.",
    spin_wait="isb",
    futex=98,
    isas=(
        Isa(
            NEON,
            16,
            32,
            fma_units=4,
            includes=(NEON,),
            level="generic",
            level_features="+neon,+lse",
            narrow_products=2,
        ),
    ),
    sets=(
        InstructionSet(NEON, frozenset({"asimd", "atomics"}), ("neon", "lse")),
        InstructionSet(
            DOTPROD,
            frozenset({"asimddp"}),
            ("dotprod",),
            ("dotprod",),
            field="has_dotprod",
            word="dotprod",
        ),
        InstructionSet(I8MM, frozenset({"i8mm"}), ("i8mm",), ("i8mm",), field="has_i8mm", word="i8mm"),
        InstructionSet(
            ARM_BF16, frozenset({"bf16"}), ("bf16",), ("bf16",), field="has_arm_bf16", word="bf16"
        ),
    ),
    requires="no NEON with the atomics of ARMv8.1",
    plain_level="generic",
    threads_per_core=1,
)
ARCHITECTURES = (X86_64, AARCH64)
ISAS: dict[str, Isa] = {}  # by name
ISA_ARCHITECTURES: dict[str, Architecture] = {}  # by name of the isa
SETS: dict[str, InstructionSet] = {}  # by name
FIELDS: dict[str, str] = {}  # field of Machine -> instruction set
WORDS: dict[str, str] = {}  # field of Machine -> the word for it in the machine's name
for _architecture in ARCHITECTURES:
    for _isa in _architecture.isas:
        ISAS[_isa.name] = _isa
        ISA_ARCHITECTURES[_isa.name] = _architecture
    for _set in _architecture.sets:
        SETS[_set.name] = _set
        if _set.field:
            FIELDS[_set.field] = _set.name
            WORDS[_set.field] = _set.word


def architecture_of(system_name: str) -> Architecture | None:
    """Returns the architecture that Linux calls ``system_name``, such as "x86_64"; None for another."""
    return next((each for each in ARCHITECTURES if each.system_name == system_name), None)


def isa_of(flags: set[str]) -> str:
    """Returns the name of the widest isa of a processor with ``flags``, as in /proc/cpuinfo; else "none"."""
    for name in ISAS:
        if flags >= SETS[name].flags:
            return name
    return NO_ISA


def encoded(names: Iterable[str], isa: str) -> tuple[str, ...]:
    """Returns names of instruction sets, with "avx-vnni" in place of "vnni" for the isa avx2.

    There, without AVX-512, LLVM needs that name to encode dot products of bytes in 256 bits.
    """
    if isa == AVX2:
        return tuple(AVX_VNNI if name == VNNI else name for name in names)
    return tuple(names)


def added_features(names: Iterable[str]) -> str:
    """Returns LLVM's features of instruction sets beyond the level of their isa: "+amx-tile,+amx-bf16".

    Ignores unknown names.
    """
    added = [f"+{feature}" for name in names if name in SETS for feature in SETS[name].added]
    return ",".join(added)


@dataclass(frozen=True)
class CodeLevel:
    """The processors that portable code is compiled for: LLVM's processor, and features beyond it."""

    architecture: Architecture
    name: str  # "x86-64-v4"
    features: str = ""  # "+avx512vnni"


def code_level(isa: str, needs: Iterable[str], architecture: Architecture) -> CodeLevel:
    """Returns the level of code for all machines of an isa that have the instruction sets ``needs``.

    For the isa "none" it is the level of all processors of ``architecture``.
    """
    if isa not in ISAS:
        return CodeLevel(architecture, architecture.plain_level, added_features(needs))
    row = ISAS[isa]
    features = ",".join(filter(None, (row.level_features, added_features(needs))))
    return CodeLevel(ISA_ARCHITECTURES[isa], row.level, features)
