"""The machine that a time was measured on: name, instruction sets, limits for constraints, what is in use."""

from dataclasses import dataclass, replace

from tuner.core.candidate import Value
from tuner.core.gpu import MAX_THREADS_PER_BLOCK, REGISTERS, Chip, chip_of
from tuner.core.instruction_sets import AVX512, ISAS, NO_REGISTERS, NO_VECTOR_BYTES, WORDS
from tuner.core.problem import Problem

PTX = "ptx"  # ``Machine.isa`` of NVIDIA's GPUs
BF16_CAPABILITY = 80  # tensor cores of sm_80 and later multiply bf16
# Field of Machine -> the word for it in the machine's name
EXTENSIONS = WORDS
ADDED_LATER = ("amx_bf16", "amx_int8")  # words that names of the same machines did not have at first
# In names of machines whose dot products of bf16 are slower than multiply-adds of f32: Intel's since Golden
# Cove, which leave bf16 to AMX. docs/decisions/cpu-schedules.md has the figures.
SLOW_PAIRS = ("(family 6 model ", "sapphirerapids (", "graniterapids (")
COOPER_LAKE = "(family 6 model 85,"
BEFORE_CACHES = ", caches "  # in a processor's name, after the words


@dataclass(frozen=True)
class Machine:
    """The processor or GPU that times were measured on; times of machines of equal ``name`` are comparable.

    Outcomes and code are used on machines of the same name only, so the name has all that constraints may
    ask, except the number of cores, which depends on what the process may use.
    """

    name: str  # class of machine, see ``processor_class``; no host name
    processor: str  # as the system reports it
    isa: str  # "avx512", "avx2", "neon" or "none" of a processor; of a GPU "ptx", or its vendor's word
    has_bf16: bool  # avx512_bf16, or tensor cores for it
    physical_cores: int  # of a GPU: multiprocessors, 0 unknown
    logical_cores: int
    l1_bytes: int  # data cache of one core; 0 unknown
    l2_bytes: int  # of one core; 0 unknown
    l3_bytes: int  # shared: of a GPU its L2; 0 unknown
    memory_bytes: int  # 0 unknown
    chip: str = ""  # "sm_90", or what another vendor's target calls it; "" of a processor
    has_vnni: bool = False  # AVX512-VNNI or AVX-VNNI: dot products of four bytes
    has_amx_bf16: bool = False  # tiles of bf16, and the operating system lets processes use them
    has_amx_int8: bool = False  # tiles of bytes, likewise
    has_dotprod: bool = False  # of AArch64: dot products of four bytes
    has_i8mm: bool = False  # of AArch64: products of small matrices of bytes
    has_arm_bf16: bool = False  # of AArch64: dot products and products of small matrices of bf16

    @property
    def vector_bytes(self) -> int:
        """Returns the bytes of one vector register of the processor: 64 for avx512, 32 for avx2, else 16."""
        if self.isa in ISAS:
            return ISAS[self.isa].vector_bytes
        return NO_VECTOR_BYTES

    @property
    def vector_registers(self) -> int:
        """Returns the number of vector registers: 32 for avx512 and neon, else 16."""
        if self.isa in ISAS:
            return ISAS[self.isa].vector_registers
        return NO_REGISTERS

    @property
    def has_fast_bf16(self) -> bool:
        """Returns whether a processor's dot products of bf16 are faster than fused multiply-adds of f32."""
        is_slow = COOPER_LAKE not in self.name and any(part in self.name for part in SLOW_PAIRS)
        return self.has_bf16 and not is_slow

    @property
    def multiplies_pairs(self) -> bool:
        """Returns whether products of pairs of bf16, in vectors or tiles, are faster than those of f32.

        False for a machine with neither AVX-512 nor bf16 of AArch64.
        """
        return self.has_arm_bf16 or (self.isa == AVX512 and (self.has_fast_bf16 or self.has_amx_bf16))

    @property
    def multiplies_bytes(self) -> bool:
        """Returns whether a processor has dot products of bytes, which convolutions of i8 take."""
        return self.has_vnni or self.has_dotprod

    def limits(self) -> tuple[tuple[str, int], ...]:
        """Returns the (name, value) pairs of the machine's properties that constraints may use.

        0 where unknown. Of a processor: registers, extensions, cores, caches. Of an NVIDIA GPU: the limits of
        its chip.
        """
        if self.isa == PTX:
            chip = chip_of(self.chip)
            return (
                ("compute_capability", chip.capability),
                ("has_wgmma", int(chip.has_wgmma)),
                ("max_shared_bytes", chip.max_shared_bytes),  # of one block, when the host asks for it
                ("registers_per_block", REGISTERS),
                ("max_threads", MAX_THREADS_PER_BLOCK),
                ("sm_count", self.physical_cores),
            )
        return (
            ("vector_bytes", self.vector_bytes),
            ("vector_registers", self.vector_registers),
            *((name, int(getattr(self, name))) for name in (*EXTENSIONS, "has_fast_bf16")),
            ("cores", self.physical_cores),
            *((name, getattr(self, name)) for name in ("l1_bytes", "l2_bytes", "l3_bytes")),
        )

    def is_named(self, name: str) -> bool:
        """Returns whether ``name`` is this machine's name, or the one that earlier versions of tuner gave it.

        Earlier names lack "amx_bf16 amx_int8" of a processor with AMX; times stored under either name are
        comparable.
        """
        return name == self.name or name == _without_words(self.name, ADDED_LATER)


def processor_class(
    processor: str,
    family: str,  # "family 6 model 143", "implementer 0x41 part 0xd0c"
    extensions: tuple[str, ...],  # the instruction set, then what else code is generated for: EXTENSIONS
    cache_bytes: tuple[int, ...],  # L1 data, L2, L3; 0 unknown
) -> str:
    """Returns the machine name that processors with comparable times share.

    Example: 'Xeon (family 6 model 143, avx512 bf16 vnni, caches 48K/2M/105M)'.
    """
    caches = "/".join(map(_size_text, cache_bytes))
    return f"{processor} ({family}, {' '.join(extensions)}{BEFORE_CACHES}{caches})"


def named_in_full(machine: Machine) -> Machine:
    """Returns a machine as read from a file, with today's name of its class.

    Names of earlier versions lack "amx_bf16" and "amx_int8" of a processor with AMX. Other names stay as they
    are.
    """
    words = [EXTENSIONS[field] for field in EXTENSIONS if getattr(machine, field)]
    bare, separator, caches = _without_words(machine.name, ADDED_LATER).rpartition(BEFORE_CACHES)
    added = "".join(f" {word}" for word in ADDED_LATER if word in words)
    if separator:
        return replace(machine, name=f"{bare}{added}{separator}{caches}")
    return machine


def _without_words(name: str, words: tuple[str, ...]) -> str:
    before, separator, caches = name.rpartition(BEFORE_CACHES)
    return " ".join(word for word in before.split(" ") if word not in words) + separator + caches


def _size_text(size_bytes: int) -> str:
    if not size_bytes:
        return "?"
    if size_bytes % 2**20:
        return f"{size_bytes >> 10}K"
    return f"{size_bytes >> 20}M"


def gpu_machine(kind: str, chip: Chip, processor: str) -> Machine:
    """Returns the machine of a GPU of which only the chip is known; cores and sizes are 0 (unknown).

    Its name is ``kind`` and the chip: "simulator sm_90". ``processor`` is a text for people.
    """
    return Machine(
        name=f"{kind} {chip.name}",
        processor=processor,
        isa=PTX,
        has_bf16=chip.capability >= BF16_CAPABILITY,
        physical_cores=0,
        logical_cores=0,
        l1_bytes=0,
        l2_bytes=0,
        l3_bytes=0,
        memory_bytes=0,
        chip=chip.name,
    )


def variables_of(problem: Problem, machine: Machine, threads: int) -> tuple[tuple[str, Value], ...]:
    """Returns the (name, value) pairs that constraints may use: of problem and machine, and "threads".

    "threads" is 1 for a fusion of a program: its loops are divided among threads after its script.
    """
    dividing = threads if problem.runs_alone else 1
    return (*problem.variables(), *machine.limits(), ("threads", dividing))


@dataclass(frozen=True)
class Processors:
    """How many processors this machine has, and how many of them this process may use."""

    present: int  # processors of the machine
    allowed: int  # by the affinity mask of this process: taskset, cpuset
    quota: float | None = None  # of the process's control group, in processors; None: no limit

    @property
    def usable(self) -> int:
        """Returns how many threads of this process can run at once, given affinity mask and CPU quota."""
        if self.quota is None:
            return self.allowed
        return max(1, min(self.allowed, int(self.quota)))

    @property
    def limit(self) -> str:
        """Returns why this process may use fewer processors than the machine has; '' where it may use all."""
        if self.usable < self.allowed:
            return f"the quota of the control group (cpu.max) is {self.quota:g} processors"
        if self.allowed < self.present:
            return (
                f"the affinity mask of this process (taskset, cpuset) allows {self.allowed} of {self.present}"
            )
        return ""


@dataclass(frozen=True)
class PresentLoad:
    """Load of the processors that this process may use, without its own; 1.0 is one busy processor."""

    busy: float  # with other programs
    stolen: float  # given away by the hypervisor
