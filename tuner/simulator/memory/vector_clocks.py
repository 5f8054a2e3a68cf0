"""Vector clocks of the threads of a cluster and of asynchronous agents, and the hazards that they show.

Vector clocks are those of Fidge and Mattern (1988). An access by thread t at clock c of t happens before an
access by thread u if the component for t in u's clock is at least c. A thread's own component advances where
its accesses are released to other threads: at barriers and arrivals.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tuner.simulator.ptx.defects import Defect, Hazard
from tuner.simulator.ptx.dtypes import Array, Bools, Indices
from tuner.simulator.ptx.geometry import WARP_LANES, Geometry
from tuner.simulator.ptx.syntax_tree import Instruction

PENDING = 1 << 24  # clock of a write in flight: greater than every component, also that of the writing thread
SAME_INSTRUCTION = "write of the same instruction"
RACES = (Defect.SHARED_RACE, Defect.GLOBAL_RACE, Defect.BLOCK_RACE)


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
        """Applies a barrier of ``lanes``, all in one block: each then knows what any of them knew.

        ``more``: another vector clock that all learn, or None. Then the lanes' clocks tick.
        """
        together = self.known[lanes].max(axis=0)
        self.known[lanes] = together if more is None else np.maximum(together, more)
        self.tick(lanes)

    def learn(self, lanes: Indices, clocks: Array) -> None:
        """Joins the vector clock ``clocks`` into those of ``lanes``: an acquire."""
        self.known[lanes] = np.maximum(self.known[lanes], clocks)
        self._forget()

    def learn_agent(self, lanes: Indices, column: int, clock: int) -> None:
        """Orders ``lanes`` after the accesses of an asynchronous agent up to ``clock``.

        ``column``: of the agent.
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


class HazardLog:
    """The hazards of a launch so far: a count and an example per kind and instruction."""

    def __init__(self) -> None:
        self._found: dict[tuple[Defect, Instruction | None], tuple[str, int]] = {}

    def report(
        self, kind: Defect, instruction: Instruction | None, example: Callable[[], str], count: int = 1
    ) -> None:
        """Adds ``count`` hazards at ``instruction``; None: at the end of the kernel.

        ``example`` returns a text, and is called for the first hazard of a kind at an instruction.
        """
        key = (kind, instruction)
        text, before = self._found[key] if key in self._found else (example(), 0)
        self._found[key] = (text, before + count)

    def hazards(self) -> tuple[Hazard, ...]:
        """Returns the hazards by line and kind; those at the end of the kernel have line 0."""
        hazards = []
        for (kind, instruction), (example, count) in self._found.items():
            line = instruction.line if instruction else 0
            text = instruction.short_text if instruction else "end of the kernel"
            hazards.append(Hazard(kind, line, text, example, count))
        return tuple(sorted(hazards, key=lambda hazard: (hazard.line, hazard.kind.value)))


@dataclass(frozen=True)
class Unordered:
    """Accesses of one kind of defect that are not ordered after earlier accesses to the same cells."""

    kind: Defect
    is_bad: Bools  # [access, cell of the access]
    cells: Indices  # [access, cell of the access]
    earlier: str  # "write", "read", ...


@dataclass(frozen=True)
class SilentStores:
    """Which cells a store leaves as they are: silent stores (Lepak and Lipasti, ISCA 2000).

    For each written cell [access, cell]: whether its new value equals the one before, and the one after all
    lanes' writes.
    """

    is_as_before: Bools  # equal to the value before the instruction
    is_as_after: Bools  # equal to the value after all lanes of the instruction

    @classmethod
    def of(cls, values: Array, before: Array, after: Array) -> "SilentStores":
        """Compares stored ``values`` with memory [access, cell, byte] before and after the instruction."""
        mine = np.ascontiguousarray(values).view(np.uint8).reshape(before.shape)
        return cls((mine == before).all(axis=2), (mine == after).all(axis=2))


def only(found: list[Unordered], where: Bools) -> list[Unordered]:
    """Returns the unordered accesses of ``found`` to cells where ``where`` [access, cell] is True."""
    kept = [replace(accesses, is_bad=accesses.is_bad & where) for accesses in found]
    return [accesses for accesses in kept if accesses.is_bad.any()]


def report(
    log: HazardLog,
    instruction: Instruction,
    found: list[Unordered],
    example: Callable[[int, int, str], str],  # (access, cell, earlier) -> text of the example
    silent: SilentStores | None = None,
) -> None:
    """Logs unordered accesses of ``instruction`` as hazards; races of silent stores as benign ones."""
    for accesses in found:
        harmless = np.zeros_like(accesses.is_bad)
        if silent is not None and accesses.kind in RACES:
            is_same = silent.is_as_after if accesses.earlier == SAME_INSTRUCTION else silent.is_as_before
            harmless = accesses.is_bad & is_same
        for kind, bad in ((Defect.SAME_VALUE, harmless), (accesses.kind, accesses.is_bad & ~harmless)):
            if not bad.any():
                continue
            access, position = np.argwhere(bad)[0]
            first = partial(example, int(access), int(accesses.cells[access, position]), accesses.earlier)
            log.report(kind, instruction, first, int(bad.sum()))
