"""The state that all thread blocks of a launch share, and the creation of resident blocks."""

from dataclasses import dataclass, field

import numpy as np

from tuner.simulator.ptx.geometry import Geometry
from tuner.simulator.ptx.instruction import Instruction, PtxKernel
from tuner.simulator.ptx.matrices.wgmma_in_flight import Warpgroups
from tuner.simulator.ptx.matrices.wgmma_layout import WARPGROUP_LANES
from tuner.simulator.ptx.memory.async_copies import Copies
from tuner.simulator.ptx.memory.bulk_copies import BulkCopies
from tuner.simulator.ptx.memory.mbarriers import MBARRIERS_LIMIT, MBarriers
from tuner.simulator.ptx.memory.shared_memory import SharedMemory
from tuner.simulator.ptx.memory.state_spaces import Spaces
from tuner.simulator.ptx.parse.layout import Layout
from tuner.simulator.ptx.races.access_sample import AccessSample
from tuner.simulator.ptx.races.access_watch import Watch
from tuner.simulator.ptx.races.bank_conflicts import ConflictCounter
from tuner.simulator.ptx.races.clocks import Clocks
from tuner.simulator.ptx.races.hazards import HazardLog
from tuner.simulator.ptx.state.arguments import Placement
from tuner.simulator.ptx.state.cluster_barriers import ClusterBarriers
from tuner.simulator.ptx.state.resident_blocks import ResidentBlocks

IDLE = Instruction("begin", (), None, 0, "begin")
ASYNCHRONOUS = ("mbarrier.", "cp.async.bulk.", "wgmma.")


@dataclass
class LaunchState:
    """The state that all thread blocks of a launch share: arguments in memory, and logs."""

    layout: Layout
    placement: Placement
    shared_bytes: int
    log: HazardLog = field(default_factory=HazardLog)
    conflicts: ConflictCounter = field(default_factory=ConflictCounter)
    printed: list[str] = field(default_factory=list)
    sample: AccessSample | None = None  # records accesses; None: not recorded

    def resident_blocks(self, geometry: Geometry, rng: np.random.Generator | None) -> ResidentBlocks:
        """Returns the state of the thread blocks of ``geometry`` before their first instruction.

        They share this launch's memory and logs. ``rng`` delays bulk loads at random, to find missing waits;
        None: no delays. Columns of a vector clock: threads of the cluster; then, if the kernel has
        asynchronous operations, its mbarriers, the shared-memory reads of wgmma per warpgroup, and those of
        bulk stores per block.
        """
        is_async = uses_async(self.layout.kernel)
        warpgroups, blocks = -(-geometry.block_lanes // WARPGROUP_LANES), geometry.cluster_blocks
        readers = (warpgroups + 1) * blocks if is_async else 0
        clocks = Clocks(geometry, MBARRIERS_LIMIT * blocks + readers if is_async else 0)
        watch = Watch(clocks, self.log, self.conflicts, IDLE, self.sample)
        shared = SharedMemory(watch, self.shared_bytes, self.layout.cell_bytes, readers)
        global_, mbarriers = self.placement.global_, MBarriers(watch, shared.cluster)
        return ResidentBlocks(
            geometry=geometry,
            watch=watch,
            spaces=Spaces(watch, global_, shared, self.layout.local_bytes, self.placement.parameters),
            copies=Copies(watch, global_, shared),
            mbarriers=mbarriers,
            cluster_barriers=ClusterBarriers(watch),
            bulk=BulkCopies(watch, shared, mbarriers, clocks.columns - blocks, rng),
            warpgroups=Warpgroups(watch, shared, clocks.columns - readers),
            tensor_maps=self.placement.tensor_maps,
            special=geometry.special_registers(),
            width_of=self.layout.width,
            exited=geometry.thread >= geometry.threads,
            printed=self.printed,
        )


def uses_async(kernel: PtxKernel) -> bool:
    """Returns whether a kernel contains mbarriers, bulk copies or wgmma; cp.async does not count."""
    return any(isinstance(item, Instruction) and item.opcode.startswith(ASYNCHRONOUS) for item in kernel.body)


def random_unit_lanes(kernel: PtxKernel) -> int:
    """Returns how many lanes a random schedule runs together: 128 (warpgroup) with wgmma, else 32 (warp)."""
    has_wgmma = any(
        isinstance(item, Instruction) and item.opcode.startswith("wgmma.") for item in kernel.body
    )
    return WARPGROUP_LANES if has_wgmma else 32
