"""Describes the machine of this process, from Linux's /proc and /sys."""

import os
import re
from pathlib import Path

from tuner.core.machine import EXTENSIONS, Machine, processor_class
from tuner.mlir.tile_permission import may_use_tiles
from tuner.runtime.cpu.processor_flags import (
    AMX_BF16,
    AMX_INT8,
    AMX_TILE,
    AVX2,
    AVX512,
    BF16,
    CPUINFO,
    flags_of,
)

PROCESSORS = Path("/sys/devices/system/cpu")
VNNI = {"avx512_vnni", "avx_vnni"}  # either: LLVM compiles dot products of four bytes to these instructions


def describe_machine() -> Machine:
    """Returns the description of the machine that this process runs on: processor, vector ISA, cores, memory.

    Logical cores are those that the process may use. Physical cores are those of the whole machine, but at
    most as many as the logical cores. Memory is that of the whole machine. A cache of unknown size has 0
    bytes. Asks the operating system for the permission to use AMX tiles, if the processor has them.
    """
    cpuinfo = _cpuinfo()
    flags = flags_of(cpuinfo)
    processor = _field(cpuinfo, "model name") or "unknown processor"
    family = f"family {_field(cpuinfo, 'cpu family')} model {_field(cpuinfo, 'model')}"
    isa = "avx512" if flags >= AVX512 else "avx2" if flags >= AVX2 else "none"
    has = {
        "has_bf16": bool(flags & BF16),
        "has_vnni": bool(flags & VNNI),
        "has_amx_bf16": flags >= AMX_BF16 and may_use_tiles(),
        "has_amx_int8": flags >= AMX_INT8 and may_use_tiles(),
    }
    extensions = (isa, *(word for name, word in EXTENSIONS.items() if has[name]))
    caches = (_cache_bytes(1), _cache_bytes(2), _cache_bytes(3))
    logical = len(os.sched_getaffinity(0))
    return Machine(
        name=processor_class(processor, family, extensions, caches),
        processor=processor,
        isa=isa,
        physical_cores=_physical_cores(cpuinfo, logical),
        logical_cores=logical,
        l1_bytes=caches[0],
        l2_bytes=caches[1],
        l3_bytes=caches[2],
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        has_bf16=has["has_bf16"],
        has_vnni=has["has_vnni"],
        has_amx_bf16=has["has_amx_bf16"],
        has_amx_int8=has["has_amx_int8"],
    )


def has_refused_tiles() -> bool:
    """Returns whether the processor has AMX and the operating system refuses it to this process."""
    return AMX_TILE in flags_of(_cpuinfo()) and not may_use_tiles()


def load_average() -> float:
    """Returns the load average of the last minute: threads that run, are ready to run or wait for a disk."""
    return os.getloadavg()[0]


def processors(count: int) -> tuple[int, ...]:
    """Returns the numbers of ``count`` processors to pin threads to, of those that this process may use.

    First one hardware thread of each core, then the others; repeated from the start if there are too few.
    """
    allowed = sorted(os.sched_getaffinity(0))
    seconds = {sibling for cpu in allowed for sibling in _siblings(cpu)[1:]}
    ordered = [cpu for cpu in allowed if cpu not in seconds] + [cpu for cpu in allowed if cpu in seconds]
    return tuple(ordered[index % len(ordered)] for index in range(count))


def _siblings(cpu: int) -> list[int]:
    """Returns the hardware threads of a processor's core, from a list such as ``0,64`` or ``0-1,8-9``."""
    path = PROCESSORS / f"cpu{cpu}" / "topology" / "thread_siblings_list"
    ranges = re.findall(r"(\d+)(?:-(\d+))?", path.read_text()) if path.exists() else []
    return [number for low, high in ranges for number in range(int(low), int(high or low) + 1)]


def _physical_cores(cpuinfo: str, logical: int) -> int:
    packages = re.findall(r"^physical id\s*:\s*(\d+)", cpuinfo, re.MULTILINE)
    cores = re.findall(r"^core id\s*:\s*(\d+)", cpuinfo, re.MULTILINE)
    return min(len(set(zip(packages, cores, strict=False))) or logical, logical)


def _cpuinfo() -> str:
    return CPUINFO.read_text() if CPUINFO.exists() else ""


def _field(cpuinfo: str, name: str) -> str:
    match = re.search(rf"^{name}\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
    return match[1].strip() if match else ""


def _cache_bytes(level: int) -> int:
    for index in sorted((PROCESSORS / "cpu0" / "cache").glob("index*")):
        kind, size = (index / "type").read_text().strip(), (index / "size").read_text().strip()
        if (index / "level").read_text().strip() == str(level) and kind != "Instruction":
            return int(size.rstrip("KM")) * {"K": 2**10, "M": 2**20}.get(size[-1], 1)
    return 0
