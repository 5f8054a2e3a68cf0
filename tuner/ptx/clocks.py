"""Vector clocks: what every thread knows of its block's other threads and of its asynchronous agents.

A thread's access happened before another thread's one exactly when the other knows at least the clock that
the first had then. Clocks advance where a thread tells others what it did: at barriers and arrivals.
"""

import numpy as np

from tuner.ptx.dtypes import Array, Indices
from tuner.ptx.geometry import WARP_LANES, Geometry

PENDING = 1 << 24  # clock of a write that is still in flight: nobody knows it, not even its thread


class Clocks:
    """One row per lane; columns are the threads of its block, then agents such as bulk copies."""

    def __init__(self, geometry: Geometry, agents: int) -> None:
        self.geometry = geometry
        self.columns = geometry.block_lanes + agents
        self.known = np.zeros((geometry.lanes, self.columns), np.int32)
        self.known[np.arange(geometry.lanes), geometry.thread] = 1
        self._agent_clocks = np.zeros((len(geometry.blocks), self.columns), np.int32)
        self._least: Array | None = None
        self._most: Array | None = None

    def own(self, lanes: Indices) -> Array:
        """Returns the clocks of threads."""
        return self.known[lanes, self.geometry.thread[lanes]]

    def tick(self, lanes: Indices) -> None:
        """Advances the clocks of whole warps: what the lanes do next is not known to anyone yet."""
        warps = np.unique(lanes // WARP_LANES)
        every = (warps[:, None] * WARP_LANES + np.arange(WARP_LANES)).ravel()
        self.known[every, self.geometry.thread[every]] += 1
        self._forget()

    def join(self, lanes: Indices, more: Array | None = None) -> None:
        """Tells every one of these threads of one block what all of them know, and ``more``."""
        together = self.known[lanes].max(axis=0)
        self.known[lanes] = together if more is None else np.maximum(together, more)
        self.tick(lanes)

    def learn(self, lanes: Indices, clocks: Array) -> None:
        """Tells threads what someone else knows."""
        self.known[lanes] = np.maximum(self.known[lanes], clocks)
        self._forget()

    def learn_agent(self, lanes: Indices, column: int, clock: int) -> None:
        """Tells threads how far an agent is."""
        self.known[lanes, column] = np.maximum(self.known[lanes, column], clock)
        self._forget()

    def tick_agent(self, place: int, column: int) -> int:
        """Advances an agent of a block; returns its clock."""
        self._agent_clocks[place, column] += 1
        return int(self._agent_clocks[place, column])

    def least_of_warps(self) -> Array:
        """Returns, for each lane and warp, the clock it knows all of the warp to have reached."""
        if self._least is None:
            self._least = self._by_warp().min(axis=2)
        return self._least

    def most_of_warps(self) -> Array:
        """Returns, for each lane and warp, the clock it knows any of the warp to have reached."""
        if self._most is None:
            self._most = self._by_warp().max(axis=2)
        return self._most

    def _by_warp(self) -> Array:
        threads = self.known[:, : self.geometry.block_lanes]
        return threads.reshape(len(threads), self.geometry.warps, WARP_LANES)

    def _forget(self) -> None:
        self._least = self._most = None
