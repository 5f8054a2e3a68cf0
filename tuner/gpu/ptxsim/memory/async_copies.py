"""Copies in flight by cp.async, which take effect when a thread waits: PTX ISA, "Async-group mechanism"."""

from dataclasses import dataclass

import numpy as np

from tuner.gpu.ptxsim.memory.access_log import Watch
from tuner.gpu.ptxsim.memory.global_memory import GlobalMemory
from tuner.gpu.ptxsim.memory.shared_memory import SharedMemory
from tuner.gpu.ptxsim.ptx.defects import Defect, Fault
from tuner.gpu.ptxsim.ptx.dtypes import Array, Bools, Indices


@dataclass
class Copy:
    """A cp.async instruction in flight, for all threads that executed it; async-groups are per thread."""

    lanes: Indices
    starts: Indices  # offsets in the shared memory of all resident blocks
    content: Array  # [lane, byte]
    groups: Indices  # per lane: number of its async-group, from 0
    is_done: Bools
    reads_global: Bools  # lanes whose copy is not a mere zero-fill
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
        """Begins a cp.async per lane, from global ``sources`` to shared ``targets``.

        The targets read as NaN until a wait. Each copy reads ``source_bytes`` bytes now, and fills the rest
        of ``size_bytes`` with zeros. Raises Fault for an invalid address, and for too many source bytes.
        """
        if (source_bytes > size_bytes).any():
            reason = f"found a source of {int(source_bytes.max())} bytes, allowed {size_bytes}"
            raise Fault(Defect.ILLEGAL, reason)
        starts = self._shared.begin_copy(lanes, targets, size_bytes)
        self._watch.require_aligned(lanes, sources, size_bytes)
        content = np.zeros((len(lanes), size_bytes), np.uint8)
        for size in np.unique(source_bytes[source_bytes > 0]):
            chosen = source_bytes == size
            loaded = self._global.load_bytes(self._watch, lanes[chosen], sources[chosen], int(size))
            content[chosen, :size] = loaded
        done = np.zeros(len(lanes), bool)
        who = self._watch.geometry.who(int(lanes[0]))
        groups = self._groups[lanes]
        self._flying.append(Copy(lanes, starts, content, groups, done, source_bytes > 0, who))

    def commit(self, lanes: Indices) -> None:
        """Closes the open async-group of each lane in ``lanes``: cp.async.commit_group."""
        self._groups[lanes] += 1

    def wait(self, mask: Bools, newest: int) -> None:
        """Completes committed copies of the lanes in ``mask``, except their ``newest`` latest groups."""
        for copy in self._flying:
            is_old = copy.groups < self._groups[copy.lanes] - newest
            lands = mask[copy.lanes] & ~copy.is_done & is_old
            if lands.any():
                self._shared.finish_copy(copy.lanes[lands], copy.starts[lands], copy.content[lands])
                copy.is_done |= lands
        self._flying = [copy for copy in self._flying if not copy.is_done.all()]

    def wait_all(self, mask: Bools) -> None:
        """Completes all copies of the lanes in ``mask``, committed or not."""
        self.commit(np.flatnonzero(mask))
        self.wait(mask, 0)

    def report_unfinished(self) -> None:
        """Reports copies that nobody waited for, except zero-fills, which pipelines issue at their end."""
        unfinished = [copy for copy in self._flying if (copy.reads_global & ~copy.is_done).any()]
        if unfinished:
            example = f"{unfinished[0].who} ends with a cp.async in flight"
            self._watch.log.report(Defect.UNFINISHED, None, lambda: example, len(unfinished))
