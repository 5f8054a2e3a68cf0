"""The machine of this process, by Linux's /proc and /sys: description, instruction sets, processors, load.

``describe_machine`` gives the Machine; ``own_limit`` limits it to a lesser processor. ``usable_processors``
and ``present_load`` say what this process may use now.
"""

import ctypes
import os
import platform
import re
import time
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path

from tuner.core.errors import CandidateError, Stage, UsageError, unknown_value
from tuner.core.instruction_sets import (
    AARCH64,
    ARCHITECTURES,
    AVX_VNNI,
    FIELDS,
    ISAS,
    SETS,
    TILE_SETS,
    X86_64,
    Architecture,
    architecture_of,
    isa_of,
)
from tuner.core.machine import EXTENSIONS, Machine, PresentLoad, Processors, processor_class
from tuner.core.processors import LESSER_PROCESSORS, DescribedProcessor

# The permission of Linux to use AMX tile registers. Documentation/arch/x86/xstate.rst of the kernel.

ARCH_PRCTL = 158  # system call of x86-64
REQUEST_PERMISSION = 0x1023  # ARCH_REQ_XCOMP_PERM
TILE_DATA = 18  # XFEATURE_XTILEDATA
TILES = re.compile(r"\bllvm\.x86_amx\b|\bllvm\.x86\.(?:tile|tdp)")  # types and intrinsics of LLVM dialect
REFUSED = "needs AMX, which the operating system refuses to this process"
CPUINFO = Path("/proc/cpuinfo")
LIMIT_VARIABLE = "TUNER_CPU"  # of the environment: "x86-64-v3", "znver3"
AMX_TILE = "amx_tile"
# Implementer and part number of an AArch64 core, as /proc/cpuinfo prints them -> its name. Numbers: MIDR_EL1
# in the manuals of the cores; the Linux kernel's arch/arm64/include/asm/cputype.h.
PART = re.compile(r"^CPU implementer\s*:\s*(0x\w+)\n(?:CPU .*\n)*?CPU part\s*:\s*(0x\w+)", re.MULTILINE)
ARM, AMPERE, APPLE = "0x41", "0xc0", "0x61"
PARTS = {
    (ARM, "0xd08"): "Cortex-A72",
    (ARM, "0xd0b"): "Cortex-A76",
    (ARM, "0xd0c"): "Neoverse N1",
    (ARM, "0xd40"): "Neoverse V1",
    (ARM, "0xd49"): "Neoverse N2",
    (ARM, "0xd4f"): "Neoverse V2",
    (ARM, "0xd84"): "Neoverse V3",
    (ARM, "0xd8e"): "Neoverse N3",
    (AMPERE, "0xac3"): "Ampere-1",
    (AMPERE, "0xac4"): "Ampere-1A",
    (APPLE, "0x000"): "Apple",  # what a virtual machine sees
    (APPLE, "0x022"): "Apple M1 Icestorm",
    (APPLE, "0x023"): "Apple M1 Firestorm",
    (APPLE, "0x032"): "Apple M2 Blizzard",
    (APPLE, "0x033"): "Apple M2 Avalanche",
}
SYSTEM_PROCESSORS = Path("/sys/devices/system/cpu")
PROC = Path("/proc")
CONTROL_GROUPS = Path("/sys/fs/cgroup")
WINDOW_S = 0.2  # twenty ticks of the counters: resolves a load of a twentieth of a processor
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
BUSY = (0, 1, 2, 5, 6)  # fields of a line of /proc/stat, proc_stat(5): user, nice, system, irq, softirq
STOLEN = 7


@cache
def may_use_tiles() -> bool:
    """Asks Linux for permission to use AMX tiles; returns whether it is granted.

    A program that this process starts must ask again. Without the permission the first tile instruction ends
    the process with SIGILL.
    """
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return False
    library = ctypes.CDLL(None, use_errno=True)
    return bool(library.syscall(ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA) == 0)


def require_tiles_for(llvm_text: str) -> None:
    """Asks for permission to use AMX tiles if LLVM-dialect code uses them.

    Raises CandidateError(LOAD) if refused.
    """
    if TILES.search(llvm_text) and not may_use_tiles():
        raise CandidateError(Stage.LOAD, REFUSED)


def own_architecture() -> Architecture:
    """Returns the architecture of this process; x86-64 on a processor for which tuner generates no code."""
    return architecture_of(platform.machine()) or X86_64


def require_own_intrinsics(llvm_text: str) -> None:
    """Raises CandidateError(LOAD) if LLVM-dialect code calls intrinsics of another architecture than this.

    LLVM's code generator would end the process by SIGABRT.
    """
    own = own_architecture()
    for other in ARCHITECTURES:
        if other is own:
            continue
        called = re.search(rf'"({re.escape(other.intrinsics)}[\w.]+)"', llvm_text)
        if called:
            raise CandidateError(
                Stage.LOAD, f"calls {called[1]}, an instruction of {other.name}; this processor is {own.name}"
            )


def own_flags(limit: str = "") -> set[str]:
    """Returns the flags of this process's processor (/proc/cpuinfo) that code may count on.

    An empty set if Linux reports none. If the process is limited to a lesser processor (``own_limit``), only
    flags that the lesser processor has, too. Raises UsageError for an unknown limit, or a limit whose
    instruction sets this processor lacks.
    """
    flags = flags_of(text_of(CPUINFO))
    processor = own_limit(limit)
    if processor is None:
        return flags
    missing = missing_sets(processor.all_sets, flags)
    if missing:
        line = f"{LIMIT_VARIABLE}={processor.name}: this processor does not offer {' and '.join(missing)}"
        raise UsageError(line)
    kept = set()
    for flag in flags:
        if not flag.startswith(ISAS[processor.isa].beyond):
            kept.add(flag)
    return kept.union(*map(_flags_of_set, processor.all_sets))


def _flags_of_set(name: str) -> frozenset[str]:
    return SETS[name].flags


def own_limit(limit: str = "") -> DescribedProcessor | None:
    """Returns the lesser processor that this process is limited to; None: there is no limit.

    A limited process makes and times code as on the lesser processor. ``limit``: its name, "znver3"; "": the
    value of the environment variable TUNER_CPU. Raises UsageError for an unknown name.
    """
    name = limit or os.environ.get(LIMIT_VARIABLE, "")
    if not name:
        return None
    if name not in LESSER_PROCESSORS:
        raise unknown_value(LIMIT_VARIABLE, name, LESSER_PROCESSORS)
    return LESSER_PROCESSORS[name]


def offers(processor: DescribedProcessor) -> bool:
    """Returns whether this process's processor has all that ``processor`` has: it can be limited to it."""
    if processor.name not in LESSER_PROCESSORS or missing_sets(processor.all_sets, own_flags()):
        return False
    return processor.all_sets.isdisjoint(TILE_SETS) or may_use_tiles()


def flags_of(cpuinfo: str) -> set[str]:
    """Returns the flags of the first processor in the text of /proc/cpuinfo.

    An empty set if the text has no flags.
    """
    flags: set[str] = set()
    for architecture in ARCHITECTURES:
        flags.update(_field(cpuinfo, architecture.flags_field).split())
    return flags


def missing_sets(needs: Collection[str], flags: set[str]) -> tuple[str, ...]:
    """Returns which of the instruction sets ``needs`` a processor with ``flags`` lacks.

    Unknown names are missing, too.
    """
    return tuple(name for name in needs if name not in SETS or not flags >= SETS[name].flags)


def describe_machine(limit: str = "") -> Machine:
    """Returns the description of this machine's processor, caches and memory.

    Logical cores are those that this process may use. The size of an unknown cache is 0. If the process is
    limited to a lesser processor (``own_limit``), the name ends with the lesser one's name, and no cache is
    larger than there. Raises UsageError for an unknown limit, or one that this processor lacks.
    """
    cpuinfo = text_of(CPUINFO)
    flags = own_flags(limit)
    processor, family = _processor(cpuinfo)
    lesser = own_limit(limit)
    caches = (_cache_bytes(1), _cache_bytes(2), _cache_bytes(3))
    if lesser is not None:
        processor = f"{processor} as {lesser.name}"
        caches = _smaller(caches, lesser.cache_bytes)
    isa = isa_of(flags)
    has: dict[str, bool] = {}
    for field, name in FIELDS.items():
        has[field] = flags >= SETS[name].flags
    # either: LLVM compiles dot products of four bytes to these instructions
    has["has_vnni"] = has["has_vnni"] or flags >= SETS[AVX_VNNI].flags
    if AMX_TILE in flags and not may_use_tiles():
        has["has_amx_bf16"] = has["has_amx_int8"] = False
    extensions = (isa, *(extension for name, extension in EXTENSIONS.items() if has[name]))
    allowed = os.sched_getaffinity(0)
    logical = len(allowed)
    packages = re.findall(r"^physical id\s*:\s*(\d+)", cpuinfo, re.MULTILINE)
    cores = re.findall(r"^core id\s*:\s*(\d+)", cpuinfo, re.MULTILINE)
    return Machine(
        name=processor_class(processor, family, extensions, caches),
        processor=processor,
        isa=isa,
        physical_cores=min(len(set(zip(packages, cores, strict=False))) or logical, len(cores_of(allowed))),
        logical_cores=logical,
        l1_bytes=caches[0],
        l2_bytes=caches[1],
        l3_bytes=caches[2],
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        chip="",
        **has,
    )


def _smaller(own: tuple[int, int, int], others: tuple[int, int, int]) -> tuple[int, int, int]:
    """Returns the smaller of the two sizes of each cache (L1, L2, L3); an unknown size (0) does not count."""
    l1, l2, l3 = map(_smaller_size, own, others)
    return l1, l2, l3


def _smaller_size(own: int, other: int) -> int:
    return min(own, other) or max(own, other)


def _processor(cpuinfo: str) -> tuple[str, str]:
    """Returns (name, family): the processor's name and the numbers of its model, "family 6 model 143".

    Linux names no model of AArch64: there the name is that of its part number, and the numbers are those of
    all kinds of its cores.
    """
    parts = list(dict.fromkeys(PART.findall(cpuinfo)))
    if not parts:
        processor = _field(cpuinfo, "model name") or "unknown processor"
        return processor, f"family {_field(cpuinfo, 'cpu family')} model {_field(cpuinfo, 'model')}"
    names: dict[str, None] = {}
    numbers = []
    for implementer, part in parts:
        names[PARTS.get((implementer, part), AARCH64.name)] = None
        numbers.append(f"implementer {implementer} part {part}")
    return " and ".join(names), " and ".join(numbers)


def has_refused_tiles() -> bool:
    """Returns whether the processor has AMX, but the operating system refuses it to this process."""
    return AMX_TILE in own_flags() and not may_use_tiles()


def load_average() -> float:
    """Returns the load average of the last minute: threads that run, are ready to run or wait for a disk."""
    return os.getloadavg()[0]


def processors(count: int) -> tuple[int, ...]:
    """Returns ``count`` processors to pin threads to.

    First one hardware thread of each core, then the other hardware threads; repeated if ``count`` is larger.
    """
    allowed = sorted(os.sched_getaffinity(0))
    second_threads = {sibling for cpu in allowed for sibling in _siblings(cpu)[1:]}
    ordered = sorted(allowed, key=lambda cpu: (cpu in second_threads, cpu))
    return tuple(ordered[index % len(ordered)] for index in range(count))


def cores_of(processors: Collection[int]) -> tuple[int, ...]:
    """Returns the cores that ``processors`` belong to, ascending: of each core its first hardware thread."""
    return tuple(sorted({min([*_siblings(processor), processor]) for processor in processors}))


def with_siblings(processors: Collection[int]) -> frozenset[int]:
    """Returns ``processors`` and the other hardware threads of their cores, whose work slows them."""
    return frozenset(processors).union(*map(_siblings, processors))


def _siblings(cpu: int) -> list[int]:
    text = text_of(SYSTEM_PROCESSORS / f"cpu{cpu}" / "topology" / "thread_siblings_list")
    ranges = re.findall(r"(\d+)(?:-(\d+))?", text)
    return [number for low, high in ranges for number in range(int(low), int(high or low) + 1)]


def _field(cpuinfo: str, name: str) -> str:
    match = re.search(rf"^{name}[ \t]*:[ \t]*(.*)$", cpuinfo, re.MULTILINE)
    if match:
        return match[1].strip()
    return ""


def _cache_bytes(level: int) -> int:
    for index in sorted((SYSTEM_PROCESSORS / "cpu0" / "cache").glob("index*")):
        type_ = (index / "type").read_text().strip()
        size = (index / "size").read_text().strip()
        if (index / "level").read_text().strip() == str(level) and type_ != "Instruction":
            return int(size.rstrip("KM")) * {"K": 2**10, "M": 2**20}.get(size[-1], 1)
    return 0


def usable_processors() -> Processors:
    """Returns how many processors the machine has and this process may use, and its control group's quota."""
    quota = min(_quotas(), default=None)
    return Processors(os.cpu_count() or 1, len(os.sched_getaffinity(0)), quota)


def present_load(window_s: float = WINDOW_S, sleep: Callable[[float], None] = time.sleep) -> PresentLoad:
    """Returns how many of the usable processors were busy, and how many the hypervisor took, on average.

    Measured over ``window_s`` seconds, in which it sleeps. Usable are processors that this process may use.
    """
    allowed = os.sched_getaffinity(0)
    before_s = processor_s(allowed)
    started_s = time.monotonic()
    sleep(window_s)
    elapsed_s = max(time.monotonic() - started_s, TICK_S)
    busy_s, stolen_s = (after - before for before, after in zip(before_s, processor_s(allowed), strict=True))
    return PresentLoad(busy_s / elapsed_s, stolen_s / elapsed_s)


def processor_s(processors: Collection[int]) -> tuple[float, float]:
    """Returns (busy, stolen): cumulative seconds, each summed over ``processors``; 0.0 without counters.

    If /proc/stat lists none of the processors, sums over all: a container may number its own from 0.
    """
    names = {f"cpu{number}" for number in processors}
    lines = [line.split() for line in text_of(PROC / "stat").splitlines()]
    of_each = [line for line in lines if line and line[0] in names]
    of_all = lines[:1]  # the first line sums up all processors
    busy_ticks = 0
    stolen_ticks = 0
    for line in of_each or of_all:
        counters = list(map(int, line[1:9]))
        busy_ticks += sum(counters[field] for field in BUSY)
        stolen_ticks += counters[STOLEN]
    return busy_ticks * TICK_S, stolen_ticks * TICK_S


def _quotas() -> Iterator[float]:
    """Yields quotas, in processors, of control groups: cgroups(7).

    Of version 2 those of this process's group and its ancestors, of version 1 only the root's.
    """
    paths = [line[3:] for line in text_of(PROC / "self" / "cgroup").splitlines() if line.startswith("0::")]
    for path in paths:
        group = Path(path.strip().lstrip("/"))
        for folder in (group, *group.parents):
            numbers = text_of(CONTROL_GROUPS / folder / "cpu.max").split()
            if len(numbers) == 2 and numbers[0] != "max":
                yield int(numbers[0]) / int(numbers[1])
    version_1 = CONTROL_GROUPS / "cpu"
    quota, period = (text_of(version_1 / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    if quota.strip() and period.strip() and int(quota) > 0:  # -1: no limit
        yield int(quota) / int(period)


def text_of(path: Path) -> str:
    """Returns the text of a /proc or /sys file; '' where it cannot be read, as of an ended process."""
    try:
        return path.read_text()
    except OSError:
        return ""
