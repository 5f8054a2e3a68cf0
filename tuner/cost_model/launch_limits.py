"""Static check, without a GPU, of whether the driver would accept a program's launches.

Only launches that the driver refuses are rejected. A program that is merely expected to be slow passes: one
with register spills may still be the fastest.
"""

import math
import re

from tuner.core.chips import MAX_BLOCK, MAX_GRID, MAX_THREADS_PER_BLOCK, REGISTERS, chip_of
from tuner.core.errors import CandidateError, Stage
from tuner.core.kernel_program import KernelProgram, Launch, Resources
from tuner.cost_model.occupancy import BlockNeeds, blocks_by_registers

DYNAMIC = re.compile(r"\.extern\s+\.shared\s+\.align\s+(\d+)")  # declaration of dynamic shared memory in PTX


def require_launchable(program: KernelProgram) -> None:
    """Raises CandidateError(RESOURCES) for the first kernel launch of a program that its chip would refuse.

    Checks grid and block sizes and shared memory. Registers and static shared memory are checked only for
    kernels that ``program.resources``, the report of ptxas, lists.
    """
    chip = chip_of(program.chip)
    resources = {each.kernel: each for each in program.resources}
    for launch in program.launches:
        _require_geometry(launch)
        known = resources.get(launch.kernel)
        static = known.static_shared_bytes if known else 0
        shared = block_shared_bytes(program.ptx, static, launch.dynamic_shared_bytes)
        _require(launch, "shared bytes", shared, chip.max_shared_bytes, f" on {chip.name}")
        if known is not None:
            _require_registers(launch, known)


def block_shared_bytes(ptx: str, static_bytes: int, dynamic_bytes: int) -> int:
    """Returns the bytes of shared memory that one thread block occupies.

    The sum of ``static_bytes``, rounded up to the alignment that the PTX text ``ptx`` declares for dynamic
    shared memory, and ``dynamic_bytes``.
    """
    alignment = max((int(number) for number in DYNAMIC.findall(ptx)), default=1)
    return -(-static_bytes // alignment) * alignment + dynamic_bytes


def _require_geometry(launch: Launch) -> None:
    _require(launch, "threads of a block", math.prod(launch.block), MAX_THREADS_PER_BLOCK)
    for axis, blocks, threads, most, widest in zip(
        "xyz", launch.grid, launch.block, MAX_GRID, MAX_BLOCK, strict=True
    ):
        _require(launch, f"grid {axis}", blocks, most)
        _require(launch, f"block {axis}", threads, widest)
        if min(blocks, threads) < 1:
            _refuse(launch, f"grid or block {axis}", 0, "1 or more")


def _require_registers(launch: Launch, known: Resources) -> None:
    needs = BlockNeeds(math.prod(launch.block), known.registers)
    if blocks_by_registers(needs) == 0:
        found = f"{known.registers} for each of {needs.threads} threads"
        _refuse(launch, "registers", found, f"{REGISTERS} for a block, four warps at a time")


def _require(launch: Launch, what: str, found: int, most: int, where: str = "") -> None:
    if found > most:
        _refuse(launch, what, found, f"{most}{where}")


def _refuse(launch: Launch, what: str, found: object, allowed: str) -> None:
    raise CandidateError(Stage.RESOURCES, f"{launch.kernel}: {what}: found {found}, allowed {allowed}")
