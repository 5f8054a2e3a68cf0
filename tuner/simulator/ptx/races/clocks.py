"""Vector clocks (Fidge, Mattern 1988) of the threads of a cluster and of its asynchronous agents.

An access by thread t at clock c of t happens before an access by thread u if the component for t in u's clock
is at least c. A thread's own component advances where its accesses are released to other threads: at barriers
and arrivals.
"""

import numpy as np

from tuner.simulator.ptx.dtypes import Array, Indices
from tuner.simulator.ptx.geometry import WARP_LANES, Geometry

PENDING = 1 << 24  # clock of a write in flight: greater than every component, also that of the writing thread


class Clocks:
    """The vector clocks of the lanes of resident blocks, which order accesses to memory.

    A lane's clock has a component per thread of the cluster, then one per agent, such as bulk copies.
    """

    def __init__(self, geometry: Geometry, agents: int) -> None:
        self.geometry = geometry
        self.columns = geometry.cluster_lanes + agents
        self.known = np.zeros((geometry.lanes, self.columns), np.int32)
        self.known[np.arange(geometry.lanes), geometry.member] = 1
        self._agent_clocks = np.zeros((int(geometry.cluster_index[-1]) + 1, self.columns), np.int32)
        self._least: Array | None = None
        self._most: Array | None = None

    def own(self, lanes: Indices) -> Array:
        """Returns, for each lane, the component of its thread in its vector clock: its current time."""
        return self.known[lanes, self.geometry.member[lanes]]

    def tick(self, lanes: Indices) -> None:
        """Advances the time of all lanes of the warps that contain ``lanes``: a release."""
        warps = np.unique(lanes // WARP_LANES)
        every = (warps[:, None] * WARP_LANES + np.arange(WARP_LANES)).ravel()
        self.known[every, self.geometry.member[every]] += 1
        self._forget()

    def join(self, lanes: Indices, more: Array | None = None) -> None:
        """Orders ``lanes``, all in one block, after each other's accesses so far, then ticks them: a barrier.

        ``more`` is a vector clock to join with theirs, such as that of threads that arrived without waiting.
        """
        together = self.known[lanes].max(axis=0)
        self.known[lanes] = together if more is None else np.maximum(together, more)
        self.tick(lanes)

    def learn(self, lanes: Indices, clocks: Array) -> None:
        """Joins the vector clock ``clocks`` into the vector clocks of ``lanes``: an acquire."""
        self.known[lanes] = np.maximum(self.known[lanes], clocks)
        self._forget()

    def learn_agent(self, lanes: Indices, column: int, clock: int) -> None:
        """Orders ``lanes`` after an asynchronous agent's accesses up to ``clock``.

        Sets the component ``column`` of the agent in their vector clocks to at least ``clock``.
        """
        self.known[lanes, column] = np.maximum(self.known[lanes, column], clock)
        self._forget()

    def tick_agent(self, lane: int, column: int) -> int:
        """Advances the time of an asynchronous agent in the cluster of ``lane``; returns the new time.

        ``column`` is the agent's component of vector clocks.
        """
        cluster = int(self.geometry.cluster_index[lane])
        self._agent_clocks[cluster, column] += 1
        return int(self._agent_clocks[cluster, column])

    def least_of_warps(self) -> Array:
        """Returns, in each lane's vector clock, the least component of each warp's threads: [lane, warp].

        Warps are those of the lane's cluster.
        """
        if self._least is None:
            self._least = self._by_warp().min(axis=2)
        return self._least

    def most_of_warps(self) -> Array:
        """Returns, in each lane's vector clock, the greatest component of each warp's threads: [lane, warp].

        Warps are those of the lane's cluster.
        """
        if self._most is None:
            self._most = self._by_warp().max(axis=2)
        return self._most

    def _by_warp(self) -> Array:
        threads = self.known[:, : self.geometry.cluster_lanes]
        return threads.reshape(len(threads), self.geometry.cluster_warps, WARP_LANES)

    def _forget(self) -> None:
        self._least = self._most = None
