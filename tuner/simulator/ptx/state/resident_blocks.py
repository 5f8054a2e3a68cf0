"""Thread blocks that execute together, as if resident on one multiprocessor: one numpy lane per thread."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tuner.simulator.ptx.defects import Defect, Fault
from tuner.simulator.ptx.dtypes import UNSIGNED, Array, Bools, Indices
from tuner.simulator.ptx.geometry import WARP_LANES, Geometry
from tuner.simulator.ptx.matrices.wgmma_in_flight import Warpgroups
from tuner.simulator.ptx.memory.async_copies import Copies
from tuner.simulator.ptx.memory.bulk_copies import BulkCopies
from tuner.simulator.ptx.memory.mbarriers import MBarriers
from tuner.simulator.ptx.memory.state_spaces import Spaces
from tuner.simulator.ptx.memory.tensor_map import PlacedMap
from tuner.simulator.ptx.races.access_watch import Watch
from tuner.simulator.ptx.state.cluster_barriers import ClusterBarriers

# Content of a register before its first write: NaN in every floating-point type.
UNWRITTEN = 0xFFFF_FFFF_FFFF_FFFF


@dataclass
class ResidentBlocks:
    """The state of thread blocks that are simulated together: registers, memories and the active lanes."""

    geometry: Geometry
    watch: Watch
    spaces: Spaces
    copies: Copies
    mbarriers: MBarriers
    cluster_barriers: ClusterBarriers
    bulk: BulkCopies
    warpgroups: Warpgroups
    tensor_maps: dict[int, PlacedMap]  # by generic address
    special: dict[str, Array]
    width_of: Callable[[str], "np.dtype[np.generic] | None"]  # register -> numpy type of its bits
    exited: Bools  # lanes whose thread has ended, and padding lanes
    printed: list[str]  # output of vprintf, of all thread blocks of the launch
    mask: Bools = field(init=False)
    is_full: bool = True  # all lanes are active
    registers: dict[str, Array] = field(default_factory=dict)
    written_at: dict[str, int] = field(default_factory=dict)  # register -> time of its last write
    time: int = 0  # instructions executed so far

    def __post_init__(self) -> None:
        self.set_mask(np.ones(self.geometry.lanes, bool))

    def set_mask(self, mask: Bools) -> None:
        """Sets the active mask, a bool per lane: the lanes in which the following instructions execute."""
        self.mask = mask
        self.is_full = bool(mask.all())

    def active(self) -> Indices:
        """Returns the indices of the active lanes, in ascending order."""
        return np.flatnonzero(self.mask)

    def read(self, name: str) -> Array:
        """Returns the bits of register ``name`` in all lanes, active or not: unsigned integers, or bool.

        A register that was never written holds all ones, a predicate False.
        """
        found = self.registers.get(name)
        return self._unwritten(name) if found is None else found

    def write(self, name: str, bits: Array) -> None:
        """Writes ``bits``, one value per lane or one for all, to register ``name`` in the active lanes."""
        if name == "_":
            return
        self.written_at[name] = self.time
        if self.is_full and bits.shape == self.mask.shape:
            self.registers[name] = bits
        else:
            self.registers[name] = np.where(self.mask, bits, self.read(name))

    def scatter(self, name: str, lanes: Indices, bits: Array) -> None:
        """Writes ``bits``, one value for each of ``lanes``, to register ``name`` in these lanes.

        The lanes need not be active.
        """
        if name == "_":
            return
        self.written_at[name] = self.time
        self.put(name, lanes, bits)

    def put(self, name: str, lanes: Indices, bits: Array) -> None:
        """Writes a register in ``lanes``, active or not, for an asynchronous operation.

        Unlike ``scatter``, leaves ``written_at`` unchanged, so that it does not count as a write by the
        kernel.
        """
        found = np.array(self.read(name))
        found[lanes] = bits
        self.registers[name] = found

    def report_unfinished(self) -> None:
        """Ends asynchronous operations when all threads have ended; reports those that no thread waited for.

        Bulk stores of which only the read was waited for are written.
        """
        self.copies.report_unfinished()
        self.bulk.end()
        self.spaces.shared.cluster.report_ended()
        self.warpgroups.report_unfinished(self.watch)

    def full(self, values: Array) -> Array:
        """Returns ``values``, one per lane or one for all lanes, broadcast to one per lane; read-only."""
        return np.broadcast_to(values, self.mask.shape)

    def chosen(self, values: Array) -> Array:
        """Returns ``values`` of the active lanes; ``values`` has one value per lane, or one for all lanes."""
        full = self.full(values)
        return full if self.is_full else full[self.mask]

    def require_whole_warps(self, lanes: Bools) -> None:
        """Raises Fault where ``lanes`` has some but not all threads of a warp; ended threads do not count.

        An .aligned barrier requires this.
        """
        here = lanes.reshape(-1, WARP_LANES)
        rest = ~here & ~self.exited.reshape(-1, WARP_LANES)
        is_split = here.any(axis=1) & rest.any(axis=1)
        if is_split.any():
            warp = int(is_split.argmax())
            lane = warp * WARP_LANES + int(rest[warp].argmax())
            raise Fault(
                Defect.DIVERGENCE,
                f"{self.geometry.who(lane)} is not here, but others of its warp are",
            )

    def whole_warps(self) -> Indices:
        """Returns the indices of the warps whose lanes are active.

        Raises Fault for a partially active warp.
        """
        lanes = self.mask.reshape(-1, WARP_LANES)
        some = lanes.any(axis=1)
        is_split = some & ~lanes.all(axis=1)
        if is_split.any():
            warp = int(is_split.argmax())
            found = int(lanes[warp].sum())
            who = self.geometry.who(warp * WARP_LANES + int(lanes[warp].argmax()))
            raise Fault(Defect.DIVERGENCE, f"the warp of {who} has {found} of 32 threads here, allowed all")
        return np.flatnonzero(some)

    def lanes_of_warps(self, warps: Indices) -> Indices:
        """Returns the indices of all lanes of the warps with the indices ``warps``."""
        return (warps[:, None] * WARP_LANES + np.arange(WARP_LANES)).ravel()

    def _unwritten(self, name: str) -> Array:
        dtype = self.width_of(name)
        assert dtype is not None, "operands are declared: checked when they are decoded"
        if dtype == np.bool_:
            return np.zeros(self.mask.shape, bool)
        return np.full(self.mask.shape, UNWRITTEN & ((1 << 8 * dtype.itemsize) - 1), UNSIGNED[dtype.itemsize])
