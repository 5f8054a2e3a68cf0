"""Race detection in global memory by vector clocks, independent of the executed schedule.

Blocks are unordered, and the blocks of a cluster count as one. Each cell keeps its last write and its last
read. Atomic and strong operations (PTX ISA, "Memory Consistency Model") do not race with each other.
Blocks are ordered by atomics that release and acquire (``block_order``); other synchronisation between blocks
is not modelled: accesses that rely on it are reported. Within a block, a write after reads by several threads
is not checked.
"""

import numpy as np

from tuner.gpu.ptxsim.memory.block_order import Known, joined
from tuner.gpu.ptxsim.memory.hazards import SAME_INSTRUCTION, Unordered
from tuner.gpu.ptxsim.memory.vector_clocks import Clocks
from tuner.gpu.ptxsim.ptx.defects import Defect
from tuner.gpu.ptxsim.ptx.dtypes import Bools, Indices

MANY = -1  # several blocks, or several threads of a block


class GlobalRaces:
    """A race detector of one global buffer: keeps the last accesses to each cell, by all blocks of a launch.

    A cell is as large as the kernel's smallest access, at most 4 bytes; in a variable of the module, 1 byte.
    """

    def __init__(self, bytes_: int, cell_bytes: int) -> None:
        self.cell_bytes = cell_bytes
        cells = -(-bytes_ // cell_bytes)
        # np.zeros commits memory on first access: sampled blocks access a small part of large buffers
        self._write_block = np.zeros(cells, np.int32)  # block number + 1; negative: atomic or strong
        self._write_thread = np.zeros(cells, np.int16)
        self._write_clock = np.zeros(cells, np.int32)
        self._read_block = np.zeros(cells, np.int32)  # block number + 1, or MANY
        self._read_thread = np.zeros(cells, np.int16)  # thread in its cluster, or MANY
        self._read_clock = np.zeros(cells, np.int32)
        self._is_read_first = np.zeros(cells, bool)  # read before the launch wrote the cell
        self._is_strong = np.zeros(cells, bool)  # accessed by an atomic or strong operation
        self.has_strong = False  # in any cell
        self._is_mixed = np.zeros(cells, bool)  # accessed by a plain operation before an atomic or strong one
        self._released: dict[int, Known] = {}  # by cell: what atomics released there

    @property
    def written(self) -> Bools:
        written: Bools = self._write_block != 0
        return written

    @property
    def read_first(self) -> Bools:
        return self._is_read_first

    @property
    def only_strong(self) -> Bools:
        """Returns which cells were accessed by atomic and strong operations alone."""
        only: Bools = self._is_strong & ~self._is_mixed & (self._write_block <= 0) & (self._read_block == 0)
        return only

    def _note_strong(self, cells: Indices) -> None:
        self._is_mixed[cells] |= (self._write_block[cells] > 0) | (self._read_block[cells] != 0)
        self._is_strong[cells] = True
        self.has_strong = True

    def note_read(self, cells: Indices) -> None:
        self._is_read_first[cells[self._write_block[cells] == 0]] = True

    def cells(self, starts: Indices, size_bytes: int) -> Indices:
        """Returns the cells of accesses: [access, cell].

        An access is within one cell, or begins at one's start.
        """
        return starts[:, None] // self.cell_bytes + np.arange(-(-size_bytes // self.cell_bytes))

    def read(self, clocks: Clocks, lanes: Indices, cells: Indices, is_strong: bool) -> list[Unordered]:
        """Records reads of ``cells`` [access, cell] by ``lanes``; returns those that race with writes.

        Strong reads, volatile or with a memory order, race with no strong or atomic write.
        """
        block, thread = _who(clocks, lanes)
        found = self._against_writes(clocks, lanes, cells, is_strong)
        self.note_read(cells)
        if is_strong:
            self._note_strong(cells)
            return found
        before = self._read_block[cells]
        reader = self._read_thread[cells]
        is_mine = (before == 0) | (before == block)
        self._read_block[cells] = np.where(is_mine, block, MANY)
        is_alone = (before == 0) | ((before == block) & (reader == thread))
        self._read_thread[cells] = np.where(is_alone, thread, MANY)
        self._read_clock[cells] = clocks.own(lanes)[:, None]
        # cells that several lanes of this instruction read
        for readers, own in ((self._read_block, block), (self._read_thread, thread)):
            other = (readers[cells] != MANY) & (readers[cells] != own)
            readers[cells[other]] = MANY
        return found

    def write(self, clocks: Clocks, lanes: Indices, cells: Indices, is_strong: bool) -> list[Unordered]:
        """Records writes of ``cells`` [access, cell] by ``lanes``; returns those that race.

        Atomic and strong writes do not race with each other; plain writes also race within the instruction.
        """
        block, thread = _who(clocks, lanes)
        found = self._against_writes(clocks, lanes, cells, is_strong)
        found += self._against_reads(clocks, lanes, cells)
        if is_strong:
            self._note_strong(cells)
        self._write_block[cells] = -block if is_strong else block
        self._write_thread[cells] = thread
        self._write_clock[cells] = clocks.own(lanes)[:, None]
        self._read_block[cells] = 0
        if not is_strong:  # cells that other lanes of this instruction wrote too
            other_block = self._write_block[cells] != block
            other_thread = ~other_block & (self._write_thread[cells] != thread)
            found += _conflicts(other_block, other_thread, cells, SAME_INSTRUCTION)
        return found

    def synchronise(self, clocks: Clocks, lanes: Indices, cells: Indices, order: str) -> None:
        """Orders clusters by atomics on ``cells`` [access, cell], one lane after the other.

        ``order``: "acquire", "release" or "acq_rel".
        """
        clusters, _ = _who(clocks, lanes)
        threads = clocks.geometry.cluster_lanes
        for lane, cell, cluster in zip(
            lanes.tolist(), cells[:, 0].tolist(), clusters[:, 0].tolist(), strict=True
        ):
            before = self._released.get(cell, {})
            if order != "release":
                clocks.of_others.learn(lane, before)
            if order != "acquire":
                own = {cluster: clocks.known[lane, :threads].copy()}
                self._released[cell] = joined(joined(before, clocks.of_others.known(lane)), own)
        if order != "acquire":
            clocks.tick(lanes)

    def _against_writes(
        self, clocks: Clocks, lanes: Indices, cells: Indices, is_strong: bool
    ) -> list[Unordered]:
        block, _ = _who(clocks, lanes)
        writer = self._write_block[cells]
        if not writer.any():
            return []
        # 0: never written; negative: a strong write
        is_ordered = (writer == 0) | ((writer < 0) & is_strong)
        is_other = ~is_ordered & (np.abs(writer) != block)
        if is_other.any():
            earlier = (np.abs(writer), self._write_thread[cells], self._write_clock[cells])
            is_other &= ~clocks.of_others.covers(lanes, *earlier)
        known = clocks.known[lanes[:, None], self._write_thread[cells]]
        is_own = ~is_ordered & (np.abs(writer) == block) & (known < self._write_clock[cells])
        return _conflicts(is_other, is_own, cells, "write")

    def _against_reads(self, clocks: Clocks, lanes: Indices, cells: Indices) -> list[Unordered]:
        reader = self._read_block[cells]
        if not reader.any():
            return []
        block, _ = _who(clocks, lanes)
        is_other = (reader != 0) & (reader != block)
        thread = self._read_thread[cells]
        if is_other.any():
            is_known = clocks.of_others.covers(lanes, reader, thread, self._read_clock[cells])
            is_other &= ~(is_known & (thread != MANY))
        known = clocks.known[lanes[:, None], np.maximum(thread, 0)]
        is_own = (reader == block) & (thread != MANY) & (known < self._read_clock[cells])
        return _conflicts(is_other, is_own, cells, "read")


def _who(clocks: Clocks, lanes: Indices) -> tuple[Indices, Indices]:
    """Returns two columns [lane, 1]: index + 1 of the cluster's first block, and thread in the cluster."""
    geometry = clocks.geometry
    block = np.asarray(geometry.blocks)[geometry.first_of_cluster(geometry.block_index[lanes])] + 1
    return block[:, None].astype(np.int32), geometry.member[lanes][:, None].astype(np.int16)


def _conflicts(is_other: Bools, is_own: Bools, cells: Indices, earlier: str) -> list[Unordered]:
    kinds = ((Defect.BLOCK_RACE, is_other), (Defect.GLOBAL_RACE, is_own))
    return [Unordered(kind, bad, cells, earlier) for kind, bad in kinds if bad.any()]
