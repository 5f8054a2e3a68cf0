"""Loads and stores by state space or generic address. PTX ISA, "State Spaces" and "Generic Addressing"."""

import zlib
from collections.abc import Iterator

import numpy as np

from tuner.simulator.ptx.defects import Defect, Fault
from tuner.simulator.ptx.dtypes import UNSIGNED, Array, Bools, Indices
from tuner.simulator.ptx.memory.global_memory import GLOBAL_BITS, GlobalMemory
from tuner.simulator.ptx.memory.shared_memory import POISON, SharedMemory
from tuner.simulator.ptx.races.access_watch import Watch

# Windows of the state spaces in generic addresses; a global address is its own generic address. The offset
# makes a generic address that is truncated to 32 bits an invalid shared address.
WINDOW_BITS = GLOBAL_BITS
WINDOW_OFFSET = 1 << 24
SPACES = ("global", "shared", "local", "param")
WINDOWS = {name: (number << WINDOW_BITS) + WINDOW_OFFSET for number, name in enumerate(SPACES) if number}


class Spaces:
    """The state spaces that threads of resident blocks can address: global, shared, local and parameters."""

    def __init__(
        self, watch: Watch, global_: GlobalMemory, shared: SharedMemory, local_bytes: int, parameters: Array
    ) -> None:
        self._watch = watch
        self.global_ = global_
        self.shared = shared
        self._parameters = parameters
        self._local = np.full((watch.geometry.lanes, max(local_bytes, 1)), POISON, np.uint8)
        self._local_bytes = local_bytes

    def checksum(self) -> int:
        """Returns a CRC-32 of all bytes of global, shared and local memory, to see whether they change."""
        found = 0
        for each in (self._local, self.shared.bytes, *(buffer.bytes for buffer in self.global_.buffers)):
            found = zlib.crc32(each.data, found)
        return found

    def load(
        self,
        lanes: Indices,
        addresses: Indices,
        space: str,
        item_bytes: int,
        count: int,
        is_strong: bool = False,
    ) -> Array:
        """Loads ``count`` unsigned integers of ``item_bytes`` per lane: [lane, element].

        ``space`` is "global", "shared", "local", "param", or "generic", where each address names its space.
        Raises Fault for an address that is misaligned or out of bounds.
        """
        found = np.empty((len(lanes), count), UNSIGNED[item_bytes])
        for name, which, inner in _named(space, addresses):
            some = lanes[which]
            if name == "shared":
                found[which] = self.shared.load(some, inner, item_bytes, count)
            elif name == "global":
                found[which] = self.global_.load(self._watch, some, inner, item_bytes, count, is_strong)
            else:
                content = self._private(some, inner, name, item_bytes * count)
                found[which] = np.ascontiguousarray(content).view(UNSIGNED[item_bytes])
        return found

    def store(
        self, lanes: Indices, addresses: Indices, space: str, values: Array, is_strong: bool = False
    ) -> None:
        """Stores unsigned integers ``values`` [lane, element] at the lanes' addresses.

        ``space`` is as for ``load``. Raises Fault for an address that is misaligned or out of bounds, a
        parameter or a constant.
        """
        for name, which, inner in _named(space, addresses):
            some = lanes[which]
            if name == "shared":
                self.shared.store(some, inner, values[which])
            elif name == "global":
                self.global_.store(self._watch, some, inner, values[which], is_strong)
            elif name == "local":
                content = np.ascontiguousarray(values[which]).view(np.uint8)
                columns = self._columns(some, inner, content.shape[1], self._local_bytes, "local")
                self._local[some[:, None], columns] = content
            else:
                raise Fault(Defect.ILLEGAL, "found a store to a parameter")

    def updates(
        self, lanes: Indices, addresses: Indices, space: str, item_bytes: int, count: int
    ) -> Iterator[tuple[Array, Bools | slice, Indices]]:
        """Yields, per memory that an atomic updates, the memory and the indices to update; changes no memory.

        A tuple holds the memory as unsigned integers of ``item_bytes``, the mask or slice of the lanes that
        access it, and the index of the first of each lane's ``count`` integers. Raises Fault for a bad
        address, or a space other than global and shared memory.
        """
        for name, which, inner in _named(space, addresses):
            if name == "shared":
                numbers, starts = self.shared.update_start(lanes[which], inner, item_bytes, count)
                yield numbers, which, starts
                continue
            if name != "global":
                raise Fault(Defect.ILLEGAL, f"found an atomic on {name} memory")
            some = self.global_.update_starts(self._watch, lanes[which], inner, item_bytes, count)
            for numbers, part, starts in some:
                chosen = np.zeros(len(lanes), bool)
                chosen[np.arange(len(lanes))[which][part]] = True
                yield numbers, chosen, starts

    def _private(self, lanes: Indices, addresses: Indices, name: str, size_bytes: int) -> Array:
        """Loads bytes of local memory or of the parameters: [lane, byte]."""
        if name == "local":
            columns = self._columns(lanes, addresses, size_bytes, self._local_bytes, name)
            local: Array = self._local[lanes[:, None], columns]
            return local
        columns = self._columns(lanes, addresses, size_bytes, self._parameters.size, name)
        parameters: Array = self._parameters[columns]
        return parameters

    def _columns(self, lanes: Indices, addresses: Indices, size: int, limit: int, name: str) -> Indices:
        self._watch.require_aligned(lanes, addresses, min(size, 16))
        is_out = (addresses < 0) | (addresses + size > limit)
        if is_out.any():
            worst = int(is_out.argmax())
            reason = f"found {size} bytes at {name} address {int(addresses[worst])}, allowed up to {limit}"
            raise self._watch.out_of_bounds(int(lanes[worst]), reason)
        return addresses[:, None] + np.arange(size)


def _named(space: str, addresses: Indices) -> Iterator[tuple[str, Bools | slice, Indices]]:
    """Yields (state space, mask or slice of the accesses to it, their addresses in it)."""
    if space != "generic":
        yield space, slice(None), addresses
        return
    numbers = addresses >> WINDOW_BITS
    for number in np.unique(numbers):
        if not 0 <= number < len(SPACES):
            raise Fault(
                Defect.OUT_OF_BOUNDS, f"found generic address {int(addresses[numbers == number][0]):#x}"
            )
        name = SPACES[int(number)]
        is_here = numbers == number
        yield name, is_here, addresses[is_here] - WINDOWS.get(name, 0)
