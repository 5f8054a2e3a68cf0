"""The order between blocks that atomics make: releases to words of global memory, and acquires from them.

What a cluster of blocks has done is known to another one by times of its threads: components of vector
clocks. An atomic that releases leaves at its word what its lane knows; one that acquires there learns it,
also through atomics in between, which continue a release sequence (PTX ISA, "Release and Acquire Patterns").
Fences, and loads and stores with a memory order, are not modelled between blocks: accesses that rely on them
are reported.
"""

from typing import TypeAlias

import numpy as np

from tuner.simulator.ptx.dtypes import Array, Bools, Indices

# Cluster (number + 1 of its first block) -> known time of each thread of it; never changed, only replaced
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
    """What each resident lane knows of threads of other clusters."""

    def __init__(self) -> None:
        self._of_lane: dict[int, Known] = {}

    def known(self, lane: int) -> Known:
        return self._of_lane.get(lane, {})

    def learn(self, lane: int, known: Known) -> None:
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
        """Returns which accesses [access, cell] of other clusters happen before those of ``lanes``.

        ``clusters``, ``threads`` and ``times``: of the earlier accesses.
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
