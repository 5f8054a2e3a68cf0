"""The hardware barrier of each cluster: every thread arrives, then waits. PTX ISA, "barrier.cluster"."""

from dataclasses import dataclass, field

import numpy as np

from tuner.simulator.ptx.defects import Defect, Fault
from tuner.simulator.ptx.dtypes import Array, Bools, Indices
from tuner.simulator.ptx.races.access_watch import Watch


@dataclass
class ClusterBarriers:
    """The hardware barriers of resident clusters, with the arrivals and waits of each lane."""

    watch: Watch
    _arrivals: Indices = field(init=False)  # per lane: number of its arrivals
    _waits: Indices = field(init=False)  # per lane: number of its completed waits
    _clocks: dict[tuple[int, int], Array] = field(default_factory=dict)  # (cluster, phase)

    def __post_init__(self) -> None:
        self._arrivals, self._waits = (np.zeros(self.watch.geometry.lanes, np.int64) for _ in range(2))

    def arrive(self, lanes: Indices, *, releases: bool) -> None:
        """Counts an arrival of each of ``lanes``: barrier.cluster.arrive.

        With ``releases``, the lanes' accesses so far are ordered before the waits of the phase. Raises Fault
        for a second arrival without a wait in between.
        """
        geometry, clocks = self.watch.geometry, self.watch.clocks
        is_twice = self._arrivals[lanes] > self._waits[lanes]
        if is_twice.any():
            who = geometry.who(int(lanes[is_twice.argmax()]))
            raise Fault(Defect.BARRIER, f"{who}: found a second arrival, allowed one before each wait")
        if releases:
            for cluster in np.unique(geometry.cluster_index[lanes]).tolist():
                some = lanes[geometry.cluster_index[lanes] == cluster]
                for phase in np.unique(self._arrivals[some]).tolist():
                    known = clocks.known[some[self._arrivals[some] == phase]].max(axis=0)
                    before = self._clocks.get((cluster, phase), known)
                    self._clocks[cluster, phase] = np.maximum(before, known)
            clocks.tick(lanes)
        self._arrivals[lanes] += 1

    def begin_wait(self, lanes: Indices) -> None:
        """Raises Fault where one of ``lanes`` has not arrived since its last wait; changes nothing."""
        is_early = self._arrivals[lanes] == self._waits[lanes]
        if is_early.any():
            who = self.watch.geometry.who(int(lanes[is_early.argmax()]))
            raise Fault(Defect.BARRIER, f"{who}: found a wait, allowed one after each arrival")

    def released(self, waiting: Bools, ended: Bools) -> Indices:
        """Returns the waiting lanes whose phase is complete, and orders them after the phase's arrivals.

        Counts their waits. ``waiting`` and ``ended`` are masks of all lanes. A phase is complete when all
        threads of the cluster that have not ended have arrived.
        """
        geometry, found = self.watch.geometry, []
        for cluster in np.unique(geometry.cluster_index[waiting]).tolist():
            lanes = geometry.lanes_of_cluster(cluster)
            complete = self._arrivals[lanes][~ended[lanes]].min()
            here = np.flatnonzero(waiting[lanes]) + lanes.start
            done = here[self._arrivals[here] <= complete]
            for lane in done.tolist():
                clocks = self._clocks.get((cluster, int(self._waits[lane])))
                if clocks is not None:
                    self.watch.clocks.learn(np.array([lane]), clocks)
            self._waits[done] += 1
            found.append(done)
        return np.concatenate(found) if found else np.zeros(0, np.int64)
