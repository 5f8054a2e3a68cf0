"""Vector clocks of the threads of a cluster and of asynchronous agents.

Vector clocks are those of Fidge and Mattern (1988). An access by thread t at clock c of t happens before an
access by thread u if the component for t in u's clock is at least c. A thread's own component advances where
its accesses are released to other threads: at barriers and arrivals.
"""

import numpy as np

from tuner.gpu.ptxsim.memory.block_order import BlockOrder
from tuner.gpu.ptxsim.ptx.dtypes import Array, Indices
from tuner.gpu.ptxsim.ptx.geometry import WARP_LANES, Geometry

PENDING = 1 << 24  # clock of a write in flight: greater than every component, also that of the writing thread


class Clocks:
    """The vector clocks of the lanes: a component per thread of the cluster, then one per agent.

    An agent is an asynchronous operation's reader or writer, such as bulk copies at an mbarrier.
    """

    def __init__(self, geometry: Geometry, agents: int) -> None:
        self.geometry = geometry
        self.columns = geometry.cluster_lanes + agents
        self.known = np.zeros((geometry.lanes, self.columns), np.int32)  # [lane, component]
        self.known[np.arange(geometry.lanes), geometry.member] = 1
        # lanes without a thread access nothing: all is known of them (``least_of_warps``)
        self.known[:, geometry.member[geometry.thread >= geometry.threads]] = PENDING - 1
        self._agent_clocks = np.zeros((int(geometry.cluster_index[-1]) + 1, self.columns), np.int32)
        self.of_others = BlockOrder()  # what lanes know of other clusters
        self._least: Array | None = None
        self._most: Array | None = None

    def own(self, lanes: Indices) -> Array:
        """Returns the current time of each lane: its thread's component in its own vector clock."""
        return self.known[lanes, self.geometry.member[lanes]]

    def tick(self, lanes: Indices) -> None:
        """Advances the time of all lanes of the warps of ``lanes``, which have released their accesses.

        The lanes of a warp always have equal times: race detection relies on that.
        """
        warps = np.unique(lanes // WARP_LANES)
        every = (warps[:, None] * WARP_LANES + np.arange(WARP_LANES)).ravel()
        self.known[every, self.geometry.member[every]] += 1
        self._forget()

    def join(self, lanes: Indices, more: Array | None = None) -> None:
        """Applies a barrier of ``lanes``, all in one block: afterwards each knows all that one of them knew.

        ``more``: another vector clock that all of them learn, or None. Then the lanes' clocks tick.
        """
        together = self.known[lanes].max(axis=0)
        self.known[lanes] = together if more is None else np.maximum(together, more)
        self.of_others.join(lanes)
        self.tick(lanes)

    def learn(self, lanes: Indices, clocks: Array) -> None:
        """Joins the vector clock ``clocks`` into those of ``lanes``: an acquire."""
        self.known[lanes] = np.maximum(self.known[lanes], clocks)
        self._forget()

    def learn_agent(self, lanes: Indices, column: int, clock: int) -> None:
        """Orders ``lanes`` after the accesses of an asynchronous agent up to ``clock``.

        ``column``: the agent's component of the vector clocks.
        """
        self.known[lanes, column] = np.maximum(self.known[lanes, column], clock)
        self._forget()

    def tick_agent(self, lane: int, column: int) -> int:
        """Advances the time of the agent of ``column`` in the cluster of ``lane``; returns the new time."""
        cluster = int(self.geometry.cluster_index[lane])
        self._agent_clocks[cluster, column] += 1
        return int(self._agent_clocks[cluster, column])

    def least_of_warps(self) -> Array:
        """Returns each lane's least component of each warp of its cluster: [lane, warp]."""
        if self._least is None:
            self._least = self._by_warp().min(axis=2)
        return self._least

    def most_of_warps(self) -> Array:
        """Returns each lane's greatest component of each warp of its cluster: [lane, warp]."""
        if self._most is None:
            self._most = self._by_warp().max(axis=2)
        return self._most

    def _by_warp(self) -> Array:
        threads = self.known[:, : self.geometry.cluster_lanes]
        return threads.reshape(len(threads), self.geometry.cluster_warps, WARP_LANES)

    def _forget(self) -> None:
        self._least = self._most = None
