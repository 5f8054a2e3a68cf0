"""Race detection in global memory: between blocks, which are unordered, and within a block by vector clocks.

The blocks of a cluster count as one block. Each cell keeps its last write and its last read. Atomic and
strong operations (PTX ISA, "Memory Consistency Model") do not race with each other. Synchronisation between
blocks by spinning on memory is not modelled: accesses that rely on it are reported. Within a block, a write
after reads by several threads is not checked.
"""

import numpy as np

from tuner.simulator.ptx.defects import Defect
from tuner.simulator.ptx.dtypes import Bools, Indices
from tuner.simulator.ptx.races.clocks import Clocks
from tuner.simulator.ptx.races.unordered import SAME_INSTRUCTION, Unordered

MANY = -1  # several blocks, or several threads of a block


class GlobalRaces:
    """A race detector of a global buffer: the last accesses to each cell, by all blocks of a launch.

    A cell has ``cell_bytes`` bytes: in an argument, the size of the kernel's smallest access, at most 4; in
    a variable of the module, 1.
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
        self._is_mixed = np.zeros(cells, bool)  # by another one before that

    @property
    def written(self) -> Bools:
        """Returns for each cell of the buffer whether the launch has written it."""
        written: Bools = self._write_block != 0
        return written

    @property
    def read_first(self) -> Bools:
        """Returns for each cell of the buffer whether the launch read it before writing to it."""
        return self._is_read_first

    @property
    def only_strong(self) -> Bools:
        """Returns for each cell of the buffer whether only atomic and strong operations accessed it.

        A cell that only atomics have written counts although a plain read after a write is not recorded.
        """
        only: Bools = self._is_strong & ~self._is_mixed & (self._write_block <= 0) & (self._read_block == 0)
        return only

    def _note_strong(self, cells: Indices) -> None:
        self._is_mixed[cells] |= (self._write_block[cells] > 0) | (self._read_block[cells] != 0)
        self._is_strong[cells] = True
        self.has_strong = True

    def note_read(self, cells: Indices) -> None:
        """Marks ``cells`` as read before any write, but those that the launch has already written.

        ``cells`` are the numbers that the method ``cells`` returns.
        """
        self._is_read_first[cells[self._write_block[cells] == 0]] = True

    def cells(self, starts: Indices, size_bytes: int) -> Indices:
        """Returns the numbers of the cells [access, cell] that accesses at byte offsets ``starts`` touch.

        Each access has ``size_bytes`` bytes, 1 or more; a cell is ``cell_bytes`` bytes of the buffer. An
        access must lie in one cell or begin at one: otherwise its last cell is missing.
        """
        return starts[:, None] // self.cell_bytes + np.arange(-(-size_bytes // self.cell_bytes))

    def read(self, clocks: Clocks, lanes: Indices, cells: Indices, is_strong: bool) -> list[Unordered]:
        """Records reads of ``cells`` [access, cell], an access per lane; returns those that race with writes.

        ``cells`` are the numbers that the method ``cells`` returns. ``is_strong``: volatile or with a memory
        order; strong reads do not race with strong or atomic writes, and no later write races with them.
        """
        block, thread = _who(clocks, lanes)
        found = self._against_writes(clocks, lanes, cells, is_strong)
        self.note_read(cells)
        if is_strong:
            self._note_strong(cells)
            return found
        before, reader = self._read_block[cells], self._read_thread[cells]
        is_mine = (before == 0) | (before == block)
        self._read_block[cells] = np.where(is_mine, block, MANY)
        is_alone = (before == 0) | ((before == block) & (reader == thread))
        self._read_thread[cells] = np.where(is_alone, thread, MANY)
        self._read_clock[cells] = clocks.own(lanes)[:, None]
        self._spread(cells, block, thread)
        return found

    def _spread(self, cells: Indices, block: Indices, thread: Indices) -> None:
        """Marks cells that several lanes of the current instruction read as read by MANY."""
        other_block = ~np.isin(self._read_block[cells], (MANY,)) & (self._read_block[cells] != block)
        if other_block.any():
            self._read_block[cells[other_block]] = MANY
        seen = self._read_thread[cells]
        other_thread = (seen != MANY) & (seen != thread)
        if other_thread.any():
            self._read_thread[cells[other_thread]] = MANY

    def write(self, clocks: Clocks, lanes: Indices, cells: Indices, is_strong: bool) -> list[Unordered]:
        """Records writes of ``cells`` [access, cell], an access per lane; returns those that race.

        ``cells`` are the numbers that the method ``cells`` returns. Writes race with earlier accesses, or
        with writes by other lanes of the instruction. ``is_strong``: atomic, volatile or with a memory order;
        strong writes do not race with each other.
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
        if not is_strong:
            found += self._double(cells, block, thread)
        return found

    def _double(self, cells: Indices, block: Indices, thread: Indices) -> list[Unordered]:
        """Returns the cells that other lanes of the current instruction also wrote, as unordered accesses."""
        other_block = self._write_block[cells] != block
        other_thread = ~other_block & (self._write_thread[cells] != thread)
        kinds = ((Defect.BLOCK_RACE, other_block), (Defect.GLOBAL_RACE, other_thread))
        return [Unordered(kind, bad, cells, SAME_INSTRUCTION) for kind, bad in kinds if bad.any()]

    def _against_writes(
        self, clocks: Clocks, lanes: Indices, cells: Indices, is_strong: bool
    ) -> list[Unordered]:
        block, _ = _who(clocks, lanes)
        writer = self._write_block[cells]
        if not writer.any():
            return []
        is_ordered = (writer == 0) | ((writer < 0) & is_strong)
        is_other = ~is_ordered & (np.abs(writer) != block)
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
        known = clocks.known[lanes[:, None], np.maximum(thread, 0)]
        is_own = (reader == block) & (thread != MANY) & (known < self._read_clock[cells])
        return _conflicts(is_other, is_own, cells, "read")


def _who(clocks: Clocks, lanes: Indices) -> tuple[Indices, Indices]:
    """Returns two columns [lane, 1]: number + 1 of the cluster's first block, and thread in the cluster."""
    geometry = clocks.geometry
    block = np.asarray(geometry.blocks)[geometry.first_of_cluster(geometry.block_index[lanes])] + 1
    return block[:, None].astype(np.int32), geometry.member[lanes][:, None].astype(np.int16)


def _conflicts(is_other: Bools, is_own: Bools, cells: Indices, earlier: str) -> list[Unordered]:
    kinds = ((Defect.BLOCK_RACE, is_other), (Defect.GLOBAL_RACE, is_own))
    return [Unordered(kind, bad, cells, earlier) for kind, bad in kinds if bad.any()]
