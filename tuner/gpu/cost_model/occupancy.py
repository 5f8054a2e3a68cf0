"""Occupancy of a GPU by a kernel: resident blocks per multiprocessor, and which launches are possible."""

import math
import re
from dataclasses import dataclass

from tuner.core import gpu
from tuner.core.compiled_code import KernelCode, Launch
from tuner.core.errors import CandidateError, Stage

# cuda_occupancy.h: cudaOccRegAllocationGranularity, cudaOccSubPartitionsPerMultiprocessor,
# cudaOccSMemAllocationGranularity
REGISTER_UNIT = 256  # allocation granularity: registers of a warp are rounded up to a multiple
PARTITIONS = 4  # sub-partitions of a multiprocessor, each with a quarter of the registers
SHARED_UNIT_BYTES = 128
DYNAMIC = re.compile(r"\.extern\s+\.shared\s+\.align\s+(\d+)")  # declaration of dynamic shared memory in PTX


@dataclass(frozen=True)
class BlockNeeds:
    """The resources that one thread block of a kernel needs: threads, registers, shared memory, barriers."""

    threads: int
    registers: int  # of one thread
    shared_bytes: int = 0  # static and dynamic
    barriers: int = 1  # named barriers, as ptxas counts them

    @property
    def warps(self) -> int:
        return -(-self.threads // gpu.WARP_THREADS)


def blocks_per_multiprocessor(chip: gpu.Chip, needs: BlockNeeds) -> int:
    """Returns how many blocks with these needs can be resident on one multiprocessor; 0: not even one."""
    if not 1 <= needs.threads <= gpu.MAX_THREADS_PER_BLOCK:
        return 0
    limits = (
        chip.max_blocks,
        chip.max_warps // needs.warps,
        blocks_by_registers(needs),
        chip.shared_bytes // _round_up(needs.shared_bytes + gpu.RESERVED_SHARED_BYTES, SHARED_UNIT_BYTES),
        chip.max_barriers // max(needs.barriers, 1),
    )
    if needs.shared_bytes <= chip.max_shared_bytes:
        return min(limits)
    return 0


def occupancy(chip: gpu.Chip, needs: BlockNeeds) -> float:
    """Returns the theoretical occupancy, 0 to 1: resident warps over the most that a multiprocessor holds."""
    return blocks_per_multiprocessor(chip, needs) * needs.warps / chip.max_warps


def blocks_by_registers(needs: BlockNeeds) -> int:
    """Returns how many blocks fit the registers of one multiprocessor, which has as many on every chip.

    0 if not even one fits.
    """
    if needs.registers > gpu.MAX_REGISTERS_PER_THREAD:
        return 0
    of_warp = max(_round_up(needs.registers * gpu.WARP_THREADS, REGISTER_UNIT), REGISTER_UNIT)
    # The driver checks a launch with the number of warps rounded up to a multiple of the partitions.
    if of_warp * _round_up(needs.warps, PARTITIONS) > gpu.REGISTERS:
        return 0
    warps = gpu.REGISTERS // PARTITIONS // of_warp * PARTITIONS
    return warps // needs.warps


def _round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


# Static check, without a GPU, of whether the driver would accept a program's launches.
# Only launches that the driver refuses are rejected. A program that is merely expected to be slow passes: one
# with register spills may still be the fastest.


def require_launchable(program: KernelCode) -> None:
    """Raises CandidateError(RESOURCES) if the chip would refuse a kernel launch of a program.

    Registers and static shared memory count only for kernels in ``program.resources``, ptxas's report.
    """
    chip = gpu.chip_of(program.chip)
    resources = {resource.kernel: resource for resource in program.resources}
    for launch in program.launches:
        threads = math.prod(launch.block)
        _require(launch, "threads of a block", threads, gpu.MAX_THREADS_PER_BLOCK)
        for axis, blocks, width, most, widest in zip(
            "xyz", launch.grid, launch.block, gpu.MAX_GRID, gpu.MAX_BLOCK, strict=True
        ):
            _require(launch, f"grid {axis}", blocks, most)
            _require(launch, f"block {axis}", width, widest)
            if min(blocks, width) < 1:
                raise _refusal(launch, f"grid or block {axis}", 0, "1 or more")
        known = resources.get(launch.kernel)
        static = known.static_shared_bytes if known else 0
        shared = block_shared_bytes(program.text, static, launch.dynamic_shared_bytes)
        _require(launch, "shared bytes", shared, chip.max_shared_bytes, f" on {chip.name}")
        if known is not None and blocks_by_registers(BlockNeeds(threads, known.registers)) == 0:
            actual = f"{known.registers} for each of {threads} threads"
            raise _refusal(launch, "registers", actual, f"{gpu.REGISTERS} for a block, four warps at a time")


def block_shared_bytes(ptx: str, static_bytes: int, dynamic_bytes: int) -> int:
    """Returns the bytes of shared memory that one thread block occupies.

    ``static_bytes`` are rounded up to the alignment of dynamic memory in ``ptx``, then ``dynamic_bytes`` are
    added.
    """
    alignment = max(map(int, DYNAMIC.findall(ptx)), default=1)
    return _round_up(static_bytes, alignment) + dynamic_bytes


def _require(launch: Launch, what: str, actual: int, most: int, where: str = "") -> None:
    if actual > most:
        raise _refusal(launch, what, actual, f"{most}{where}")


def _refusal(launch: Launch, what: str, actual: object, allowed: str) -> CandidateError:
    return CandidateError(Stage.RESOURCES, f"{launch.kernel}: {what}: found {actual}, allowed {allowed}")
