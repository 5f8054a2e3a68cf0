"""The order between accesses of different blocks that atomics make: which accesses a lane has seen happen.

A lane knows, per thread of another cluster of blocks, the time of the last access that happened before the
lane's next access: a component of a vector clock (``Known``). ``BlockOrder`` keeps these per lane; ``learn``
adds what a lane acquires, ``join`` what a barrier shares, ``covers`` asks. The simulator stores what a lane
knows with the word that its atomic releases, and lets an atomic that acquires from this word learn it, also
through atomics in between, which continue a release sequence (PTX ISA, "Release and Acquire Patterns").
Fences, and loads and stores with a memory order, are not modelled between blocks: accesses that rely on them
are reported as races.
"""

from typing import TypeAlias

import numpy as np

from tuner.gpu.ptxsim.ptx.dtypes import Array, Bools, Indices

# Cluster (index of its first block + 1) -> the known time of each of its threads; replaced, never changed
Known: TypeAlias = dict[int, Array]


def joined(first: Known, second: Known) -> Known:
    """Returns the join of two vector clocks: each thread's later time, by cluster; changes neither."""
    if not first or first is second:
        return second
    merged = dict(first)
    for cluster, times in second.items():
        merged[cluster] = np.maximum(merged[cluster], times) if cluster in merged else times
    return merged


class BlockOrder:
    """What each resident lane knows of accesses by threads of other clusters (``Known``)."""

    def __init__(self) -> None:
        self._of_lane: dict[int, Known] = {}

    def known(self, lane: int) -> Known:
        """Returns what ``lane`` knows; {} if it has acquired nothing. Not to be changed."""
        return self._of_lane.get(lane, {})

    def learn(self, lane: int, known: Known) -> None:
        """Adds ``known``, which ``lane`` acquires from a word of memory, to what it knows."""
        if known:
            self._of_lane[lane] = joined(self.known(lane), known)

    def join(self, lanes: Indices) -> None:
        """Applies a barrier: afterwards each of ``lanes`` knows all that one of them knew."""
        if not self._of_lane:
            return
        together: Known = {}
        for lane in lanes.tolist():
            together = joined(together, self.known(lane))
        for lane in lanes.tolist():
            self.learn(lane, together)

    def covers(self, lanes: Indices, clusters: Array, threads: Array, times: Array) -> Bools:
        """Returns which earlier accesses of other clusters happen before the next accesses of ``lanes``.

        ``clusters``, ``threads``, ``times``: of the last earlier access to each cell (clusters as in
        ``Known``). They and the result have shape (lanes, cells that a lane accesses).
        """
        is_known = np.zeros(clusters.shape, bool)
        if not self._of_lane:
            return is_known
        for access, lane in enumerate(lanes.tolist()):
            for cluster, known in self.known(lane).items():
                of_cluster = np.flatnonzero(clusters[access] == cluster)
                reached = known[threads[access, of_cluster]] >= times[access, of_cluster]
                is_known[access, of_cluster] = reached
        return is_known
