"""Vector clocks (Fidge, Mattern 1988) of the threads of a cluster and of its asynchronous agents.

An access by thread t at its clock c happens before one by thread u if u's component for t is at least c. A
thread ticks where it releases its accesses to others: at barriers and arrivals.
"""

import numpy as np

from tuner.simulator.ptx.dtypes import Array, Indices
from tuner.simulator.ptx.geometry import WARP_LANES, Geometry

PENDING = 1 << 24  # clock of a write in flight: greater than any component, its own thread's included


class Clocks:
    """A vector clock per lane: a component per thread of its cluster, then per agent, such as bulk copies."""

    def __init__(self, geometry: Geometry, agents: int) -> None:
        self.geometry = geometry
        self.columns = geometry.cluster_lanes + agents
        self.known = np.zeros((geometry.lanes, self.columns), np.int32)
        self.known[np.arange(geometry.lanes), geometry.member] = 1
        self._agent_clocks = np.zeros((int(geometry.cluster_index[-1]) + 1, self.columns), np.int32)
        self._least: Array | None = None
        self._most: Array | None = None

    def own(self, lanes: Indices) -> Array:
        """Returns the own components of lanes."""
        return self.known[lanes, self.geometry.member[lanes]]

    def tick(self, lanes: Indices) -> None:
        """Advances the own components of the lanes' warps: later accesses happen before nothing yet."""
        warps = np.unique(lanes // WARP_LANES)
        every = (warps[:, None] * WARP_LANES + np.arange(WARP_LANES)).ravel()
        self.known[every, self.geometry.member[every]] += 1
        self._forget()

    def join(self, lanes: Indices, more: Array | None = None) -> None:
        """Sets lanes of one block to the join of their clocks and ``more``, then ticks them: a barrier."""
        together = self.known[lanes].max(axis=0)
        self.known[lanes] = together if more is None else np.maximum(together, more)
        self.tick(lanes)

    def learn(self, lanes: Indices, clocks: Array) -> None:
        """Joins a clock into those of lanes: an acquire."""
        self.known[lanes] = np.maximum(self.known[lanes], clocks)
        self._forget()

    def learn_agent(self, lanes: Indices, column: int, clock: int) -> None:
        """Raises the component of an agent in the clocks of lanes."""
        self.known[lanes, column] = np.maximum(self.known[lanes, column], clock)
        self._forget()

    def tick_agent(self, lane: int, column: int) -> int:
        """Advances the component of an agent of a lane's cluster; returns it."""
        cluster = int(self.geometry.cluster_index[lane])
        self._agent_clocks[cluster, column] += 1
        return int(self._agent_clocks[cluster, column])

    def least_of_warps(self) -> Array:
        """Returns the least component of each warp's threads: [lane, warp]."""
        if self._least is None:
            self._least = self._by_warp().min(axis=2)
        return self._least

    def most_of_warps(self) -> Array:
        """Returns the greatest component of each warp's threads: [lane, warp]."""
        if self._most is None:
            self._most = self._by_warp().max(axis=2)
        return self._most

    def _by_warp(self) -> Array:
        threads = self.known[:, : self.geometry.cluster_lanes]
        return threads.reshape(len(threads), self.geometry.cluster_warps, WARP_LANES)

    def _forget(self) -> None:
        self._least = self._most = None
