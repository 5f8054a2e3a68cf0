"""Resident thread blocks of a kernel per multiprocessor, by the rules of ``cuda_occupancy.h``, CUDA 13.0."""

from dataclasses import dataclass

from tuner.core.chips import (
    MAX_REGISTERS_PER_THREAD,
    MAX_THREADS_PER_BLOCK,
    REGISTERS,
    RESERVED_SHARED_BYTES,
    WARP_THREADS,
    Chip,
)

# cuda_occupancy.h: cudaOccRegAllocationGranularity, cudaOccSubPartitionsPerMultiprocessor,
# cudaOccSMemAllocationGranularity
REGISTER_UNIT = 256  # allocation granularity: registers of a warp are rounded up to a multiple
PARTITIONS = 4  # sub-partitions of a multiprocessor, each with a quarter of the registers
SHARED_UNIT_BYTES = 128


@dataclass(frozen=True)
class BlockNeeds:
    """The resources that one thread block of a kernel needs: threads, registers, shared memory, barriers."""

    threads: int
    registers: int  # of one thread
    shared_bytes: int = 0  # static and dynamic
    barriers: int = 1  # named barriers, as ptxas counts them

    @property
    def warps(self) -> int:
        """Returns the number of warps of the block: threads divided by 32, rounded up."""
        return -(-self.threads // WARP_THREADS)


def blocks_per_multiprocessor(chip: Chip, needs: BlockNeeds) -> int:
    """Returns how many blocks with these needs can be resident on one multiprocessor; 0: not even one."""
    if not 1 <= needs.threads <= MAX_THREADS_PER_BLOCK:
        return 0
    limits = (
        chip.max_blocks,
        chip.max_warps // needs.warps,
        blocks_by_registers(needs),
        _by_shared_memory(chip, needs),
        chip.max_barriers // max(needs.barriers, 1),
    )
    return min(limits)


def occupancy(chip: Chip, needs: BlockNeeds) -> float:
    """Returns the theoretical occupancy, 0 to 1: resident warps over the most that a multiprocessor holds."""
    return blocks_per_multiprocessor(chip, needs) * needs.warps / chip.max_warps


def blocks_by_registers(needs: BlockNeeds) -> int:
    """Returns how many blocks fit the register file of one multiprocessor; 0 where not even one fits.

    Other resources are not considered. The register file has the same size on all chips.
    """
    if needs.registers > MAX_REGISTERS_PER_THREAD:
        return 0
    of_warp = max(_round_up(needs.registers * WARP_THREADS, REGISTER_UNIT), REGISTER_UNIT)
    # The driver checks a launch with the number of warps rounded up to a multiple of the partitions.
    if of_warp * _round_up(needs.warps, PARTITIONS) > REGISTERS:
        return 0
    warps = REGISTERS // PARTITIONS // of_warp * PARTITIONS
    return warps // needs.warps


def _by_shared_memory(chip: Chip, needs: BlockNeeds) -> int:
    if needs.shared_bytes > chip.max_shared_bytes:
        return 0
    return chip.shared_bytes // _round_up(needs.shared_bytes + RESERVED_SHARED_BYTES, SHARED_UNIT_BYTES)


def _round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
