"""Race detection in shared memory by vector clocks, independent of the executed schedule.

As in FastTrack (Flanagan and Freund, PLDI 2009), a cell keeps its last write as an epoch: thread and clock;
of its reads, the last one of each warp. A cell has the size of the kernel's smallest access.

``Clocks.known[lane, column]`` is the latest time of a thread or an asynchronous agent (column) that a lane is
ordered after; an access is unordered where that is less than the time that the cell keeps.
"""

import numpy as np

from tuner.gpu.ptxsim.memory.hazards import SAME_INSTRUCTION, Unordered, only
from tuner.gpu.ptxsim.memory.vector_clocks import PENDING, Clocks
from tuner.gpu.ptxsim.ptx.defects import Defect
from tuner.gpu.ptxsim.ptx.dtypes import Array, Bools, Indices
from tuner.gpu.ptxsim.ptx.geometry import WARP_LANES

NOBODY = -1
SEVERAL = 32  # several lanes of a warp read the cell independently
TOGETHER = 33  # the warp read the cell in one collective instruction: ordered for all lanes if for one
LANE_BITS = 6


class SharedRaces:
    """A race detector of resident blocks' shared memory, in cells of the kernel's smallest access."""

    def __init__(self, clocks: Clocks, bytes_: int, cell_bytes: int, async_readers: int) -> None:
        self.cell_bytes = cell_bytes
        self._clocks = clocks
        self._geometry = clocks.geometry
        cells = -(-bytes_ // cell_bytes)
        self.writer = np.full(cells, NOBODY, np.int16)  # column of the vector clocks
        self._written = np.zeros(cells, np.int32)
        # per warp: clock and lane of the last read
        self._read = np.zeros((cells, self._geometry.cluster_warps), np.int32)
        self._is_atomic = np.zeros(cells, bool)  # updated by atomics since the last non-atomic access
        self._async_read = np.zeros((cells, async_readers), np.int32)
        self._first_reader = clocks.columns - async_readers  # column of the first asynchronous reader

    def cells(self, starts: Indices, size_bytes: int) -> Indices:
        return starts[:, None] // self.cell_bytes + np.arange(max(size_bytes // self.cell_bytes, 1))

    def read(self, lanes: Indices, cells: Indices, is_collective: bool = False) -> list[Unordered]:
        """Records reads of ``cells`` [access, cell]; returns those that are unordered or uninitialised.

        ``is_collective``: one instruction reads for a whole warp.
        """
        found = self._uninitialised(cells)
        is_atomic = self._is_atomic[cells]
        if is_atomic.any():
            found += only(self._against_reads(lanes, cells), is_atomic)
            found += only(self._against_writes(lanes, cells), ~is_atomic)
            self._end_atomics(cells[is_atomic])
        else:
            found += self._against_writes(lanes, cells)
        self._note_read(lanes, cells, is_collective)
        return found

    def _note_read(self, lanes: Indices, cells: Indices, is_collective: bool) -> None:
        warp = (self._geometry.member[lanes] // WARP_LANES)[:, None]
        lane = (self._geometry.member[lanes] % WARP_LANES)[:, None]
        clock = self._clocks.own(lanes)[:, None] << LANE_BITS
        if is_collective:
            self._read[cells, warp] = clock | TOGETHER
            return
        before = self._read[cells, warp]
        is_shared = (before > 0) & ((before & (1 << LANE_BITS) - 1) != lane)
        self._read[cells, warp] = clock | lane
        is_shared |= self._read[cells, warp] != (clock | lane)  # another lane of the same instruction
        if is_shared.any():
            chosen = np.nonzero(is_shared)
            self._read[cells[chosen], warp[chosen[0], 0]] = (clock | SEVERAL)[chosen[0], 0]

    def write(self, lanes: Indices, cells: Indices, is_pending: bool = False) -> list[Unordered]:
        """Records writes of ``cells`` [access, cell]; returns the unordered ones.

        ``is_pending``: the writes are in flight until ``complete`` is called.
        """
        found = self._against_writes(lanes, cells) + self._against_reads(lanes, cells)
        writer = self._geometry.member[lanes][:, None].astype(np.int16)
        self.writer[cells] = writer
        self._written[cells] = PENDING if is_pending else self._clocks.own(lanes)[:, None]
        self._end_atomics(cells)
        is_double = self.writer[cells] != writer
        if is_double.any():
            found.append(Unordered(Defect.SHARED_RACE, is_double, cells, SAME_INSTRUCTION))
        return found

    def complete(self, lanes: Indices, cells: Indices) -> None:
        """Completes writes of ``cells`` [access, cell] by ``lanes`` that were recorded as pending."""
        self._written[cells] = self._clocks.own(lanes)[:, None]

    def atomic(self, lanes: Indices, cells: Indices) -> list[Unordered]:
        """Records atomic updates of ``cells``, which do not race with each other.

        Returns those that are unordered with other accesses, or uninitialised.
        """
        is_first = ~self._is_atomic[cells]
        found = self._uninitialised(cells)
        found += only(self._against_writes(lanes, cells) + self._against_reads(lanes, cells), is_first)
        self._forget_reads(cells[is_first])
        self._is_atomic[cells] = True
        self.writer[cells] = self._geometry.member[lanes][:, None].astype(np.int16)
        self._written[cells] = self._clocks.own(lanes)[:, None]
        self._note_read(lanes, cells, is_collective=False)
        return found

    def async_write(self, lane: int, cells: Indices, column: int) -> tuple[int, list[Unordered]]:
        """Records a write of ``cells`` by an asynchronous agent (a bulk copy) that ``lane`` has started.

        ``column``: the agent's column of the vector clocks. Returns (time of the write in that column,
        unordered accesses).
        """
        lanes = np.array([lane])
        row = cells[None]
        found = self._against_writes(lanes, row) + self._against_reads(lanes, row)
        clock = self._clocks.tick_agent(lane, column)
        self.writer[cells] = column
        self._written[cells] = clock
        self._end_atomics(cells)
        return clock, found

    def async_read(
        self, lanes: Indices, cells: Indices, column: int, fenced: Array
    ) -> tuple[int, list[Unordered]]:
        """Records a read of ``cells`` [cell] by an asynchronous agent (wgmma, bulk store) for ``lanes``.

        ``column``: the agent's column of the vector clocks; ``fenced`` [lane]: time of each resident lane's
        last proxy fence. Returns (time of the read in the agent's column, list of the accesses that were
        uninitialised, unordered after the write, or not fenced).
        """
        row = cells[None]
        found = self._uninitialised(row)
        writer = self.writer[row]
        least = self._clocks.known[lanes].min(axis=0)
        unknown = (writer != NOBODY) & (least[np.maximum(writer, 0)] < self._written[row])
        found += self._conflicts(unknown, row, "write")
        is_thread = (writer != NOBODY) & (writer < self._geometry.cluster_lanes)
        first = self._geometry.lanes_of_cluster(int(self._geometry.cluster_index[lanes[0]])).start
        unfenced = (
            is_thread & ~unknown & (fenced[first + np.where(is_thread, writer, 0)] < self._written[row])
        )
        if unfenced.any():
            found.append(Unordered(Defect.MISSING_FENCE, unfenced, row, "write"))
        clock = self._clocks.tick_agent(int(lanes[0]), column)
        self._async_read[cells, column - self._first_reader] = clock
        return clock, found

    def _uninitialised(self, cells: Indices) -> list[Unordered]:
        nobody = self.writer[cells] == NOBODY
        if nobody.any():
            return [Unordered(Defect.UNINITIALISED, nobody, cells, "write")]
        return []

    def _against_writes(self, lanes: Indices, cells: Indices) -> list[Unordered]:
        writer = self.writer[cells]
        known = self._clocks.known[lanes[:, None], np.maximum(writer, 0)]
        return self._conflicts((writer != NOBODY) & (known < self._written[cells]), cells, "write")

    def _conflicts(self, is_bad: Bools, cells: Indices, earlier: str) -> list[Unordered]:
        if not is_bad.any():
            return []
        in_flight = is_bad & (self._written[cells] == PENDING)
        plain = is_bad & ~in_flight
        kinds = ((Defect.IN_FLIGHT, in_flight), (Defect.SHARED_RACE, plain))
        return [Unordered(kind, bad, cells, earlier) for kind, bad in kinds if bad.any()]

    def _against_reads(self, lanes: Indices, cells: Indices) -> list[Unordered]:
        found = []
        stamps = self._read[cells]  # [access, cell, warp]
        if stamps.any():
            # the component of each warp's last reader in the clocks of lanes: [access, cell, warp]
            lane = stamps & ((1 << LANE_BITS) - 1)
            first_lanes = np.arange(self._geometry.cluster_warps) * WARP_LANES
            column = first_lanes + np.minimum(lane, WARP_LANES - 1)
            known = self._clocks.known[lanes[:, None, None], column]
            if (lane >= SEVERAL).any():
                least = self._clocks.least_of_warps()[lanes][:, None]
                most = self._clocks.most_of_warps()[lanes][:, None]
                known = np.where(lane == SEVERAL, least, np.where(lane == TOGETHER, most, known))
            is_bad = (known < stamps >> LANE_BITS).max(axis=2)
            if is_bad.any():
                found.append(Unordered(Defect.SHARED_RACE, is_bad, cells, "read"))
        if self._async_read.shape[1] and (clocks := self._async_read[cells]).any():
            known = self._clocks.known[lanes, self._first_reader :]
            is_bad = (known[:, None] < clocks).max(axis=2)
            if is_bad.any():
                found.append(Unordered(Defect.IN_FLIGHT, is_bad, cells, "asynchronous read"))
        return found

    def _end_atomics(self, cells: Indices) -> None:
        self._is_atomic[cells] = False
        self._forget_reads(cells)

    def _forget_reads(self, cells: Indices) -> None:
        """Clears cells' reads at an ordered write: accesses after the write are after these reads too."""
        self._read[cells] = 0
        if self._async_read.shape[1]:
            self._async_read[cells] = 0
