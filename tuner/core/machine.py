"""The machine that a time was measured on, its state during the measurement, and the compiler of the code."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tuner.core.candidate import Value
from tuner.core.gpu import MAX_THREADS_PER_BLOCK, REGISTERS, Chip, chip_of
from tuner.core.problem import Problem
from tuner.core.serialization import stored_as

BF16_CAPABILITY = 80  # tensor cores of sm_80 and later multiply bf16
# Field of Machine -> the word for it in the machine's name
EXTENSIONS = {"has_bf16": "bf16", "has_vnni": "vnni", "has_amx_bf16": "amx_bf16", "has_amx_int8": "amx_int8"}
ADDED_LATER = ("amx_bf16", "amx_int8")  # words that names of the same machines did not have at first
REACHED = "reached by a kernel"  # source of a roofline's flop/s
SHIPPED = "measured on a machine of this name"  # of a roofline that comes with tuner
BEFORE_CACHES = ", caches "  # in a processor's name, after the words


@dataclass(frozen=True)
class GpuState:
    """One reading of a GPU's sensors; None for a sensor that the GPU does not report."""

    sm_clock_hz: float | None
    memory_clock_hz: float | None
    temperature_c: float | None
    power_w: float | None
    slowdowns: tuple[str, ...] = ()  # why the clocks are held down: "power cap", "thermal (hardware)", ...


@dataclass(frozen=True)
class Span:
    """A summary of the sensor readings that were taken between the rounds of one measurement."""

    readings: int
    lowest_sm_clock_hz: float | None  # None: not reported
    highest_sm_clock_hz: float | None
    slowdowns: tuple[str, ...] = ()  # of any reading

    @classmethod
    def of(cls, states: Sequence[GpuState]) -> "Span":
        """Summarizes sensor readings; clocks are None if no reading reports one."""
        clocks = [state.sm_clock_hz for state in states if state.sm_clock_hz is not None]
        lowest, highest = (min(clocks), max(clocks)) if clocks else (None, None)
        return cls(len(states), lowest, highest, _distinct(states))


@dataclass(frozen=True)
class Conditions:
    """A GPU's sensor readings before and after one measurement, and a summary of those in between, if any."""

    before: GpuState
    after: GpuState
    between: Span | None = None

    @property
    def slowdowns(self) -> tuple[str, ...]:
        """Returns why the GPU held its clocks down at any reading, each reason once; () for no slowdown."""
        return _distinct([self.before, *([self.between] if self.between else []), self.after])


def _distinct(readings: Sequence[GpuState | Span]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reason for reading in readings for reason in reading.slowdowns))


@dataclass(frozen=True)
class HostConditions:
    """Load while something was timed; a share is a fraction (0 to 1) of the wall time of the measurement."""

    load_average: float  # of the last minute, when the measurement began
    others_cores: float  # processors that other programs kept busy, on average
    waited_share: float  # a timed thread was ready to run, and another ran in its place
    stolen_share: float  # a processor was given away by the hypervisor
    throttled_share: float  # the quota of a control group held the timed processes back
    # median time of the reference kernel (canary), the same code in each measurement
    reference_s: float = field(metadata=stored_as("anchor_s"))
    # relative, of the reference kernel's median between parts of the measurement
    reference_drift: float = field(metadata=stored_as("anchor_drift"))
    panel_product_s: float | None = None  # lower quartile, a product of small packed panels; None: not timed


@dataclass(frozen=True)
class Machine:
    """The processor or GPU that times were measured on; times of machines of equal ``name`` are comparable.

    Outcomes and code are used on machines of the same name only, so the name has all that constraints may
    ask, except the number of cores, which depends on what the process may use.
    """

    name: str  # class of machine, see ``processor_class``; no host name
    processor: str  # as the system reports it
    isa: str  # "avx512", "avx2" or "none" of a processor; "ptx" of a GPU
    has_bf16: bool  # avx512_bf16, or tensor cores for it
    physical_cores: int  # of a GPU: multiprocessors, 0 unknown
    logical_cores: int
    l1_bytes: int  # data cache of one core; 0 unknown
    l2_bytes: int  # of one core; 0 unknown
    l3_bytes: int  # shared: of a GPU its L2; 0 unknown
    memory_bytes: int  # 0 unknown
    chip: str = ""  # "sm_90"; "" of a processor
    has_vnni: bool = False  # AVX512-VNNI or AVX-VNNI: dot products of four bytes
    has_amx_bf16: bool = False  # tiles of bf16, and the operating system lets processes use them
    has_amx_int8: bool = False  # tiles of bytes, likewise

    @property
    def vector_bytes(self) -> int:
        """Returns the bytes of one vector register of the processor: 64 for avx512, 32 for avx2, else 16."""
        return {"avx512": 64, "avx2": 32}.get(self.isa, 16)

    @property
    def vector_registers(self) -> int:
        """Returns the number of vector registers of the instruction set: 32 for avx512, else 16."""
        if self.isa == "avx512":
            return 32
        return 16

    @property
    def multiplies_pairs(self) -> bool:
        """Returns whether a processor has dot products of pairs of bf16, of vectors of 512 bits."""
        return self.has_bf16 and self.isa == "avx512"

    def limits(self) -> tuple[tuple[str, int], ...]:
        """Returns the (name, value) pairs of the machine's properties that constraints may use.

        0 where unknown. Of a processor: registers, extensions, cores, caches. Of a GPU: the limits of its
        chip.
        """
        if self.chip:
            chip = chip_of(self.chip)
            return (
                ("compute_capability", chip.capability),
                ("has_wgmma", int(chip.is_specific and chip.capability == 90)),
                ("max_shared_bytes", chip.max_shared_bytes),  # of one block, when the host asks for it
                ("registers_per_block", REGISTERS),
                ("max_threads", MAX_THREADS_PER_BLOCK),
                ("sm_count", self.physical_cores),
            )
        return (
            ("vector_bytes", self.vector_bytes),
            ("vector_registers", self.vector_registers),
            *((name, int(getattr(self, name))) for name in EXTENSIONS),
            ("cores", self.physical_cores),
            *((name, getattr(self, name)) for name in ("l1_bytes", "l2_bytes", "l3_bytes")),
        )

    def is_named(self, name: str) -> bool:
        """Returns whether ``name`` is a name of this class of machine, today's or that of an earlier version.

        Earlier versions left out "amx_bf16 amx_int8" in the name of a processor with AMX; times are
        comparable.
        """
        return name == self.name or name == _without_words(self.name, ADDED_LATER)


def processor_class(
    processor: str,
    family: str,  # "family 6 model 143"
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
        isa="ptx",
        has_bf16=chip.capability >= BF16_CAPABILITY,
        physical_cores=0,
        logical_cores=0,
        l1_bytes=0,
        l2_bytes=0,
        l3_bytes=0,
        memory_bytes=0,
        chip=chip.name,
    )


@dataclass(frozen=True)
class Roofline:
    """The roofline of a machine for one dtype and number of threads: peak flop/s and memory bandwidth.

    Williams et al., 2009, https://doi.org/10.1145/1498765.1498785.
    """

    flop_per_s: float  # multiply-adds in registers, two each; at least what a right kernel was seen to reach
    bytes_per_s: float  # reading memory in order; of a GPU: copying within it; at least what a kernel reached
    # "measured by AMX" or the like; of a GPU "documented, at 1980 MHz"; REACHED where a kernel was faster
    flop_source: str = "measured"

    def least_s(self, flop: int, moved_bytes: int, cache_bytes: int) -> float:
        """Returns a lower bound of the seconds for ``flop`` operations that move ``moved_bytes`` bytes.

        The memory bandwidth counts only where ``moved_bytes`` is more than ``cache_bytes``.
        """
        from_memory_s = moved_bytes / self.bytes_per_s if moved_bytes > cache_bytes else 0.0
        return max(flop / self.flop_per_s, from_memory_s)

    def raised(self, flop: int, moved_bytes: int, cache_bytes: int, time_s: float) -> "Roofline":
        """Returns the roofline with its peaks raised to what a correct kernel of ``time_s`` has reached.

        ``least_s`` is then at most ``time_s``, seconds per call. Measured peaks are too low where their loops
        were disturbed.
        """
        bound = self
        if flop / time_s > self.flop_per_s:
            bound = replace(bound, flop_per_s=flop / time_s, flop_source=REACHED)
        if moved_bytes > cache_bytes and moved_bytes / time_s > self.bytes_per_s:
            bound = replace(bound, bytes_per_s=moved_bytes / time_s)
        return bound

    def share(self, flop: int, moved_bytes: int, cache_bytes: int, time_s: float) -> float:
        """Returns the least possible time over ``time_s``, 0 to 1: 1 is the speed of the roofline.

        The peaks are first raised to what the kernel itself reached (``raised``).
        """
        bound = self.raised(flop, moved_bytes, cache_bytes, time_s)
        return min(1.0, bound.least_s(flop, moved_bytes, cache_bytes) / time_s)  # 1 + 2e-16 by rounding


@dataclass(frozen=True)
class Compiler:
    """What makes code of a script and verifies it: versions, sources, and the number of the verifier.

    An outcome is reused for an equal script where the fingerprint is equal, and for equal code where the
    tools are: other sources that make the same code change nothing.
    """

    mlir: str  # LLVM version string of the bindings
    packages: tuple[tuple[str, str], ...]  # (distribution, version)
    pipeline_sha256: str  # of the files that turn a script into code
    verifier: str = (
        ""  # number of what verifies results, raised by hand; "" in results that are older than it
    )

    @property
    def tools(self) -> str:
        """Returns one line of versions and the verifier's number: with equal code, verdicts are equal."""
        versions = " ".join(f"{name}=={version}" for name, version in self.packages)
        return f"{self.mlir} {versions} verifier:{self.verifier}"

    @property
    def fingerprint(self) -> str:
        """Returns one line of tools and source hash, which changes whenever generated code may change."""
        return f"{self.tools} pipeline:{self.pipeline_sha256[:12]}"

    def changes_to(self, later: "Compiler") -> tuple[str, ...]:
        """Returns the differences to a ``later`` compiler, one text each: packages, LLVM, tuner's passes."""
        before = dict(self.packages)
        after = dict(later.packages)
        changes = [
            f"{name} {before.get(name, 'none')} -> {after.get(name, 'none')}"
            for name in before | after
            if before.get(name) != after.get(name)
        ]
        if self.mlir != later.mlir:
            changes.append(f"{self.mlir} -> {later.mlir}")
        if self.pipeline_sha256 != later.pipeline_sha256:
            changes.append("tuner's passes")
        if self.verifier != later.verifier:
            changes.append("tuner's verifier")
        return tuple(changes)


def variables_of(problem: Problem, machine: Machine, threads: int) -> tuple[tuple[str, Value], ...]:
    """Returns the (name, value) pairs that constraints may use: of problem and machine, and "threads"."""
    return (*problem.variables(), *machine.limits(), ("threads", threads))
