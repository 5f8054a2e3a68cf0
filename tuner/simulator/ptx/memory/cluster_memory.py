"""Distributed shared memory: addresses in other blocks of a cluster, and accesses to blocks that have ended.

``mapa`` puts a block's rank into the upper bits of a shared address; an address without a rank is in the
thread's own block. PTX ISA, "shared::cluster" and "mapa".
"""

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from tuner.simulator.ptx.defects import Defect
from tuner.simulator.ptx.dtypes import Indices
from tuner.simulator.ptx.races.access_watch import Watch

RANK_BIT = 26  # above every shared address and every generic address truncated to 32 bits
RANKS_LIMIT = 16  # blocks of a cluster; CUDA C programming guide, non-portable cluster size


@dataclass
class ClusterMemory:
    """Shared memory across the blocks of a cluster: finds addresses, and records accesses to other blocks."""

    watch: Watch
    _touched: dict[tuple[int, int], int] = field(default_factory=dict)  # (block, lane) -> clock

    def located(self, lanes: Indices, addresses: Indices) -> tuple[Indices, Indices]:
        """Returns (indices of blocks, addresses inside these blocks) for the lanes' shared addresses.

        Records accesses to other blocks. Raises Fault for a rank above the cluster's, or for an address with
        a rank, even that of the lane's block, in an instruction that allows only addresses without one.
        """
        geometry = self.watch.geometry
        own, ranks = geometry.block_index[lanes], (addresses >> RANK_BIT) - 1
        is_away = (ranks >= 0) & (ranks < RANKS_LIMIT)
        if not is_away.any():
            return own, addresses
        worst = int(is_away.argmax())
        if ranks[is_away].max() >= geometry.cluster_blocks:
            reason = f"found rank {ranks[is_away].max()} of a cluster of {geometry.cluster_blocks} blocks"
            raise self.watch.out_of_bounds(int(lanes[worst]), reason)
        opcode = self.watch.instruction.opcode
        if ".shared" in opcode and "shared::cluster" not in opcode:
            reason = "found an address of the cluster, allowed those of the block's own shared memory"
            raise self.watch.out_of_bounds(int(lanes[worst]), reason)
        blocks = np.where(is_away, geometry.first_of_cluster(own) + ranks, own)
        self._note(lanes[blocks != own], blocks[blocks != own])
        return blocks, np.where(is_away, addresses - (ranks + 1 << RANK_BIT), addresses)

    def _note(self, lanes: Indices, blocks: Indices) -> None:
        for block, lane, clock in zip(
            blocks.tolist(), lanes.tolist(), self.watch.clocks.own(lanes).tolist(), strict=True
        ):
            self._touched[block, lane] = clock

    def report_ended(self) -> None:
        """Reports, as hazards, blocks that end before another block's access to their memory is ordered."""
        geometry, clocks = self.watch.geometry, self.watch.clocks
        for (block, lane), clock in self._touched.items():
            known = clocks.known[geometry.lanes_of(block), geometry.member[lane]]
            if known.max() < clock:
                owner, who = geometry.who(geometry.lanes_of(block).start), geometry.who(lane)
                example = f"{who}: the block of {owner} does not wait for it before it ends"
                self.watch.log.report(Defect.ENDED_BLOCK, None, partial(str, example))
