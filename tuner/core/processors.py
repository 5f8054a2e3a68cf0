"""Instruction sets that a machine offers and code needs; CPUs that code is compiled for, by LLVM's names."""

from collections.abc import Collection
from dataclasses import dataclass

from tuner.core.errors import Refusal, UsageError, unknown_value
from tuner.core.instruction_sets import (
    AMX_BF16,
    AMX_INT8,
    ARM_BF16,
    AVX2,
    AVX512,
    AVX512_BF16,
    DOTPROD,
    FIELDS,
    I8MM,
    ISA_ARCHITECTURES,
    ISAS,
    NEON,
    SETS,
    VNNI,
    Architecture,
    encoded,
)
from tuner.core.machine import EXTENSIONS, Machine, processor_class

SEE_TARGETS = "tuner targets shows what this machine has"
KIB = 2**10
MIB = 2**20
FIELD_OF = {name: field for field, name in FIELDS.items()}
AMX = (AVX512_BF16, VNNI, AMX_BF16, AMX_INT8)
NEOVERSE = (DOTPROD, I8MM, ARM_BF16)  # since V1
UNKNOWN_CACHES = (0, 0, 0)


def instruction_sets_of(machine: Machine) -> tuple[str, ...]:
    """Returns the instruction sets of a processor that code may use, such as ("avx2", "vnni"); () for a GPU.

    Without AMX where the operating system does not let processes use it.
    """
    if machine.chip:
        return ()
    always = ISAS[machine.isa].includes if machine.isa in ISAS else ()
    return (*always, *(name for field, name in FIELDS.items() if getattr(machine, field)))


def missing_on(machine: Machine, needs: Collection[str]) -> tuple[str, ...]:
    """Returns the instruction sets of ``needs`` that ``machine`` does not offer, in the same order."""
    return tuple(name for name in needs if name not in instruction_sets_of(machine))


def refusal(machine: Machine, needs: Collection[str]) -> Refusal | None:
    """Returns why code with the instruction sets ``needs`` cannot run on ``machine``; None where it can."""
    missing = missing_on(machine, needs)
    if not missing:
        return None
    return Refusal(f"needs {' and '.join(missing)}, which {machine.processor} does not offer")


def require_instructions(machine: Machine, needs: Collection[str], what: str) -> None:
    """Raises UsageError if ``machine`` does not offer all instruction sets ``needs``.

    ``what``: what needs them; the message begins with it.
    """
    reason = refusal(machine, needs)
    if reason is not None:
        raise UsageError(f"{what}: {reason.text}", SEE_TARGETS)


@dataclass(frozen=True)
class DescribedProcessor:
    """A CPU to compile for: LLVM's -mcpu name and features, cores and cache sizes of a real product.

    Or a level of x86-64, the processors that have just these instruction sets; cores and caches are unknown.
    """

    name: str  # LLVM's, for -mcpu
    product: str  # whose cores and caches these are; "" of a level
    isa: str  # "avx512", "avx2", "neon"
    cores: int  # 0 unknown
    cache_bytes: tuple[int, int, int]  # L1 data and L2 of a core; L3 as its cores share it; 0 unknown
    has: tuple[str, ...] = ()  # instruction sets beyond the isa: "vnni"

    @property
    def architecture(self) -> Architecture:
        return ISA_ARCHITECTURES[self.isa]

    @property
    def machine(self) -> Machine:
        has = {FIELD_OF[name] for name in self.has}
        words = (self.isa, *(word for field, word in EXTENSIONS.items() if field in has))
        l1, l2, l3 = self.cache_bytes
        return Machine(
            name=processor_class(self.name, "described", words, self.cache_bytes),
            processor=f"{self.name}, as {self.product}" if self.product else self.name,
            isa=self.isa,
            physical_cores=self.cores,
            logical_cores=self.cores * self.architecture.threads_per_core,
            l1_bytes=l1,
            l2_bytes=l2,
            l3_bytes=l3,
            memory_bytes=0,
            chip="",
            **{field: field in has for field in EXTENSIONS},
        )

    @property
    def all_sets(self) -> frozenset[str]:
        """Returns the names of the isa and of the sets in ``has``; for avx2 "vnni" is "avx-vnni"."""
        return frozenset((self.isa, *encoded(self.has, self.isa)))

    @property
    def features(self) -> str:
        """Returns the value of LLVM's attribute "target-features": "+avx2,+fma,...", "+neon,+lse,...".

        A function that is compiled for another processor has its own list of features, else LLVM adds those
        of the processor that it is compiled on.
        """
        features: list[str] = []
        for name in encoded(instruction_sets_of(self.machine), self.isa):
            features += [f"+{feature}" for feature in SETS[name].features]
        if self.name.startswith("znver"):
            features.append("-sse4a")  # slow among AVX's instructions: see tuner.runtime.cpu.jit
        return ",".join(dict.fromkeys(features))


# Cores and caches: ark.intel.com, and AMD's product pages; the L3 of Zen is that of one complex of cores.
# Of AArch64: Ampere's and NVIDIA's product pages, what Linux prints on Graviton3, Apple's performance cores,
# of which four share an L2 of 12 MiB. L3 is the cache of the whole chip. Of Alder Lake: performance cores.
PROCESSORS = {
    processor.name: processor
    for processor in (
        DescribedProcessor("x86-64-v3", "", AVX2, 0, UNKNOWN_CACHES),
        DescribedProcessor("x86-64-v4", "", AVX512, 0, UNKNOWN_CACHES),
        DescribedProcessor("haswell", "Xeon E5-2680 v3", AVX2, 12, (32 * KIB, 256 * KIB, 30 * MIB)),
        DescribedProcessor("alderlake", "Core i9-12900K", AVX2, 8, (48 * KIB, 1280 * KIB, 30 * MIB), (VNNI,)),
        DescribedProcessor("skylake-avx512", "Xeon Platinum 8180", AVX512, 28, (32 * KIB, MIB, 39424 * KIB)),
        DescribedProcessor(
            "cascadelake", "Xeon Platinum 8280", AVX512, 28, (32 * KIB, MIB, 39424 * KIB), (VNNI,)
        ),
        DescribedProcessor(
            "icelake-server", "Xeon Platinum 8380", AVX512, 40, (48 * KIB, 1280 * KIB, 60 * MIB), (VNNI,)
        ),
        DescribedProcessor(
            "sapphirerapids", "Xeon Platinum 8480+", AVX512, 56, (48 * KIB, 2 * MIB, 105 * MIB), AMX
        ),
        DescribedProcessor("graniterapids", "Xeon 6980P", AVX512, 128, (48 * KIB, 2 * MIB, 504 * MIB), AMX),
        DescribedProcessor("znver3", "EPYC 7763", AVX2, 64, (32 * KIB, 512 * KIB, 32 * MIB)),
        DescribedProcessor("znver4", "EPYC 9654", AVX512, 96, (32 * KIB, MIB, 32 * MIB), (AVX512_BF16, VNNI)),
        DescribedProcessor(
            "znver5", "EPYC 9755", AVX512, 128, (48 * KIB, MIB, 32 * MIB), (AVX512_BF16, VNNI)
        ),
        DescribedProcessor(
            "neoverse-n1", "Ampere Altra Q80-30", NEON, 80, (64 * KIB, MIB, 32 * MIB), (DOTPROD,)
        ),
        DescribedProcessor("neoverse-v1", "AWS Graviton3", NEON, 64, (64 * KIB, MIB, 32 * MIB), NEOVERSE),
        DescribedProcessor("neoverse-v2", "NVIDIA Grace", NEON, 72, (64 * KIB, MIB, 114 * MIB), NEOVERSE),
        DescribedProcessor("apple-m1", "Apple M1", NEON, 4, (128 * KIB, 3 * MIB, 8 * MIB), (DOTPROD,)),
    )
}


# To what another processor's code can be limited: on x86-64 alone
LESSER_PROCESSORS: dict[str, DescribedProcessor] = {}
for _processor in PROCESSORS.values():
    if ISAS[_processor.isa].beyond:
        LESSER_PROCESSORS[_processor.name] = _processor


def processor_of(name: str) -> DescribedProcessor:
    """Returns the processor with LLVM's -mcpu name ``name``, such as "sapphirerapids".

    Raises UsageError for an unknown name.
    """
    if name not in PROCESSORS:
        raise unknown_value("cpu", name, PROCESSORS)
    return PROCESSORS[name]
