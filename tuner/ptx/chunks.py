"""Puts together what some blocks of a launch need to run."""

from dataclasses import dataclass, field

import numpy as np

from tuner.ptx.arguments import Placement
from tuner.ptx.bulk_copies import BulkCopies
from tuner.ptx.chunk import Chunk
from tuner.ptx.clocks import Clocks
from tuner.ptx.conflicts import ConflictCounter
from tuner.ptx.copies import Copies
from tuner.ptx.geometry import Geometry
from tuner.ptx.hazards import HazardLog
from tuner.ptx.instruction import Instruction, Kernel
from tuner.ptx.layout import Layout
from tuner.ptx.mbarriers import MBARRIERS_LIMIT, MBarriers
from tuner.ptx.shared_memory import SharedMemory
from tuner.ptx.spaces import Spaces
from tuner.ptx.warpgroups import Warpgroups
from tuner.ptx.watch import Watch
from tuner.ptx.wgmma_layout import WARPGROUP_LANES

IDLE = Instruction("begin", (), None, 0, "begin")
ASYNCHRONOUS = ("mbarrier.", "cp.async.bulk.", "wgmma.")


@dataclass
class Launch:
    """What all blocks of a launch share."""

    layout: Layout
    placement: Placement
    shared_bytes: int
    log: HazardLog = field(default_factory=HazardLog)
    conflicts: ConflictCounter = field(default_factory=ConflictCounter)

    def chunk(self, geometry: Geometry, rng: np.random.Generator | None) -> Chunk:
        """Returns some blocks before their first instruction.

        Columns of their clocks: threads, mbarriers, reads of each warpgroup, reads of bulk stores.
        """
        is_async = uses_async(self.layout.kernel)
        warpgroups = -(-geometry.block_lanes // WARPGROUP_LANES)
        readers = warpgroups + 1 if is_async else 0
        clocks = Clocks(geometry, MBARRIERS_LIMIT + readers if is_async else 0)
        watch = Watch(clocks, self.log, self.conflicts, IDLE)
        shared = SharedMemory(watch, self.shared_bytes, self.layout.cell_bytes, readers)
        global_, mbarriers = self.placement.global_, MBarriers(watch)
        return Chunk(
            geometry=geometry,
            watch=watch,
            spaces=Spaces(watch, global_, shared, self.layout.local_bytes, self.placement.parameters),
            copies=Copies(watch, global_, shared),
            mbarriers=mbarriers,
            bulk=BulkCopies(watch, shared, mbarriers, clocks.columns - 1, rng),
            warpgroups=Warpgroups(watch, shared, clocks.columns - readers),
            tensor_maps=self.placement.tensor_maps,
            special=geometry.special_registers(),
            width_of=self.layout.width,
            exited=geometry.thread >= geometry.threads,
        )


def uses_async(kernel: Kernel) -> bool:
    """Tells whether a kernel uses mbarriers, bulk copies or wgmma."""
    return any(isinstance(item, Instruction) and item.opcode.startswith(ASYNCHRONOUS) for item in kernel.body)


def random_unit_lanes(kernel: Kernel) -> int:
    """Returns how many lanes random scheduling moves together: wgmma needs whole warpgroups."""
    has_wgmma = any(
        isinstance(item, Instruction) and item.opcode.startswith("wgmma.") for item in kernel.body
    )
    return WARPGROUP_LANES if has_wgmma else 32
