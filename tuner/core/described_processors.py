"""Processors of other machines that code can be generated for, by LLVM's names (-mcpu)."""

from dataclasses import dataclass

from tuner.core.errors import unknown_value
from tuner.core.instruction_sets import FIELDS, instruction_sets_of
from tuner.core.machine import EXTENSIONS, Machine, processor_class

KIB, MIB = 2**10, 2**20
# Instruction set -> LLVM's features. A function that is compiled for another processor has its own list of
# features, else LLVM adds those of the processor that it is compiled on.
FEATURES = {
    "avx2": ("avx2", "fma"),
    "avx512": ("avx512f", "avx512bw", "avx512dq", "avx512vl"),
    "avx512-bf16": ("avx512bf16",),
    "vnni": ("avx512vnni",),
    "amx-bf16": ("amx-tile", "amx-bf16"),
    "amx-int8": ("amx-tile", "amx-int8"),
}
FIELD_OF = {name: field for field, name in FIELDS.items()}


@dataclass(frozen=True)
class DescribedProcessor:
    """A processor of another machine: what code is generated for, and the sizes of a product that is sold."""

    name: str  # LLVM's, for -mcpu
    product: str  # whose cores and caches these are
    isa: str  # "avx512", "avx2"
    cores: int
    cache_bytes: tuple[int, int, int]  # L1 data and L2 of a core; L3 as its cores share it
    has: tuple[str, ...] = ()  # names of tuner.core.instruction_sets, beyond the isa

    @property
    def machine(self) -> Machine:
        """Returns the machine that constraints and cost models ask; its memory is unknown (0)."""
        has = {FIELD_OF[each]: True for each in self.has}
        words = (self.isa, *(word for field, word in EXTENSIONS.items() if has.get(field)))
        l1, l2, l3 = self.cache_bytes
        return Machine(
            name=processor_class(self.name, "described", words, self.cache_bytes),
            processor=f"{self.name}, as {self.product}",
            isa=self.isa,
            has_bf16=has.get("has_bf16", False),
            physical_cores=self.cores,
            logical_cores=2 * self.cores,
            l1_bytes=l1,
            l2_bytes=l2,
            l3_bytes=l3,
            memory_bytes=0,
            has_vnni=has.get("has_vnni", False),
            has_amx_bf16=has.get("has_amx_bf16", False),
            has_amx_int8=has.get("has_amx_int8", False),
        )

    @property
    def features(self) -> str:
        """Returns the value of LLVM's attribute "target-features": "+avx2,+fma,..."."""
        sets = instruction_sets_of(self.machine)
        return ",".join(dict.fromkeys(f"+{each}" for name in sets for each in FEATURES[name]))


AMX = ("avx512-bf16", "vnni", "amx-bf16", "amx-int8")
# Cores and caches: ark.intel.com, and AMD's product pages; the L3 of Zen is that of one complex of cores.
PROCESSORS = {
    each.name: each
    for each in (
        DescribedProcessor("haswell", "Xeon E5-2680 v3", "avx2", 12, (32 * KIB, 256 * KIB, 30 * MIB)),
        DescribedProcessor(
            "skylake-avx512", "Xeon Platinum 8180", "avx512", 28, (32 * KIB, MIB, 39424 * KIB)
        ),
        DescribedProcessor(
            "cascadelake", "Xeon Platinum 8280", "avx512", 28, (32 * KIB, MIB, 39424 * KIB), ("vnni",)
        ),
        DescribedProcessor(
            "icelake-server", "Xeon Platinum 8380", "avx512", 40, (48 * KIB, 1280 * KIB, 60 * MIB), ("vnni",)
        ),
        DescribedProcessor(
            "sapphirerapids", "Xeon Platinum 8480+", "avx512", 56, (48 * KIB, 2 * MIB, 105 * MIB), AMX
        ),
        DescribedProcessor("graniterapids", "Xeon 6980P", "avx512", 128, (48 * KIB, 2 * MIB, 504 * MIB), AMX),
        DescribedProcessor("znver3", "EPYC 7763", "avx2", 64, (32 * KIB, 512 * KIB, 32 * MIB)),
        DescribedProcessor(
            "znver4", "EPYC 9654", "avx512", 96, (32 * KIB, MIB, 32 * MIB), ("avx512-bf16", "vnni")
        ),
        DescribedProcessor(
            "znver5", "EPYC 9755", "avx512", 128, (48 * KIB, MIB, 32 * MIB), ("avx512-bf16", "vnni")
        ),
    )
}


def processor_of(name: str) -> DescribedProcessor:
    """Returns the processor with LLVM's name ``name``: "sapphirerapids". Raises UsageError for another."""
    if name not in PROCESSORS:
        raise unknown_value("cpu", name, PROCESSORS)
    return PROCESSORS[name]
