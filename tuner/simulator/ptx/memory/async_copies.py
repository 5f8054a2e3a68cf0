"""cp.async: copies that take effect when a thread waits for them. PTX ISA, "Async-group mechanism"."""

from dataclasses import dataclass

import numpy as np

from tuner.simulator.ptx.defects import Defect, Fault
from tuner.simulator.ptx.dtypes import Array, Bools, Indices
from tuner.simulator.ptx.memory.global_memory import GlobalMemory
from tuner.simulator.ptx.memory.shared_memory import SharedMemory
from tuner.simulator.ptx.races.access_watch import Watch


@dataclass
class Copy:
    """A cp.async instruction in flight, for all threads that executed it; async-groups are per thread."""

    lanes: Indices
    starts: Indices  # offsets in the shared memory of all resident blocks
    content: Array  # [lane, byte]
    groups: Indices  # per lane: number of its async-group, from 0
    is_done: Bools
    reads_global: bool  # False: all threads only zero-fill
    who: str  # the first thread, for messages


class Copies:
    """The cp.async copies of resident blocks that are in flight."""

    def __init__(self, watch: Watch, global_: GlobalMemory, shared: SharedMemory) -> None:
        self._watch = watch
        self._global = global_
        self._shared = shared
        self._flying: list[Copy] = []
        self._groups = np.zeros(watch.geometry.lanes, np.int64)  # committed async-groups per thread

    def begin(
        self, lanes: Indices, targets: Indices, sources: Indices, size_bytes: int, source_bytes: Indices
    ) -> None:
        """Begins a cp.async per lane, from global address ``sources`` to shared address ``targets``.

        Each copy reads ``source_bytes`` bytes at once and fills the rest of ``size_bytes`` with zeros; the
        destination is NaN until a wait. Raises Fault for an address that is misaligned or out of bounds, or
        too many source bytes.
        """
        if (source_bytes > size_bytes).any():
            raise Fault(
                Defect.ILLEGAL, f"found a source of {int(source_bytes.max())} bytes, allowed {size_bytes}"
            )
        starts = self._shared.begin_copy(lanes, targets, size_bytes)
        self._watch.require_aligned(lanes, sources, size_bytes)
        content = np.zeros((len(lanes), size_bytes), np.uint8)
        for size in np.unique(source_bytes[source_bytes > 0]):
            chosen = source_bytes == size
            content[chosen, :size] = self._global.load_bytes(
                self._watch, lanes[chosen], sources[chosen], int(size)
            )
        done = np.zeros(len(lanes), bool)
        who = self._watch.geometry.who(int(lanes[0]))
        copy = Copy(lanes, starts, content, self._groups[lanes], done, bool(source_bytes.any()), who)
        self._flying.append(copy)

    def commit(self, lanes: Indices) -> None:
        """Closes the open async-group of each lane in ``lanes``: cp.async.commit_group."""
        self._groups[lanes] += 1

    def wait(self, mask: Bools, newest: int) -> None:
        """Completes cp.async copies of the lanes in ``mask``: cp.async.wait_group.

        The copies in each lane's ``newest`` latest async-groups, and copies that are not committed, stay in
        flight.
        """
        for copy in self._flying:
            is_old = copy.groups < self._groups[copy.lanes] - newest
            lands = mask[copy.lanes] & ~copy.is_done & is_old
            if lands.any():
                self._shared.finish_copy(copy.lanes[lands], copy.starts[lands], copy.content[lands])
                copy.is_done |= lands
        self._flying = [copy for copy in self._flying if not copy.is_done.all()]

    def wait_all(self, mask: Bools) -> None:
        """Completes all cp.async copies of the lanes in ``mask``, committed or not: cp.async.wait_all."""
        self.commit(np.flatnonzero(mask))
        self.wait(mask, 0)

    def report_unfinished(self) -> None:
        """Reports, as a hazard, cp.async copies that no thread waited for.

        Copies that only fill with zeros are left out: the last iterations of a pipeline issue such copies.
        """
        unfinished = [copy for copy in self._flying if copy.reads_global]
        if unfinished:
            example = f"{unfinished[0].who} ends with a cp.async in flight"
            self._watch.log.report(Defect.UNFINISHED, None, lambda: example, len(unfinished))
