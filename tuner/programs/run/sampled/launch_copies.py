"""Copies of the memory that a launch can access, for running its blocks without side effects."""

from dataclasses import replace

from tuner.simulator.device.kernels import POINTER_BYTES, Near, PreparedLaunch
from tuner.simulator.device.memory import MemoryRegion
from tuner.simulator.ptx.memory.global_memory import device_number
from tuner.simulator.ptx.memory.touched import Touched


class LaunchCopies:
    """Copies of the memory regions that the parameters of a launch point into, and a launch on the copies.

    The launch on the copies (``launch``) leaves the original memory unchanged.
    """

    def __init__(self, launch: PreparedLaunch, near: Near) -> None:
        self._regions = {region.address: region for region in regions_of(launch, near)}
        self._copies = {
            address: MemoryRegion(region.name, region.kind, region.bytes.copy(), region.number)
            for address, region in self._regions.items()
        }
        self.launch = replace(launch, parameters=tuple(map(self._moved, launch.parameters)))

    def near(self, address: int) -> MemoryRegion | None:
        """Returns the copied region that contains an address of a copy; None if no copy does.

        The address may be as kernels have it, which is the same of a region and of its copy.
        """
        number = device_number(address)
        copies = self._copies.values()
        return next((each for each in copies if each.holds(address, 1) or each.number == number), None)

    def of(self, region: MemoryRegion) -> MemoryRegion:
        """Returns the copy of an original memory region of the launch."""
        return self._copies[region.address]

    def in_place(self, touched: tuple[Touched, ...]) -> tuple[Touched, ...]:
        """Returns recorded memory accesses to copies as accesses to the original regions."""
        origins = {copy.address: address for address, copy in self._copies.items()}
        return tuple(replace(one, address=origins.get(one.address, one.address)) for one in touched)

    def _moved(self, content: bytes) -> bytes:
        """Returns a parameter, with a pointer into a region replaced by a pointer into its copy."""
        address = int.from_bytes(content, "little")
        for region in self._regions.values() if len(content) == POINTER_BYTES else ():
            if region.holds(address, 1):
                moved = address - region.address + self._copies[region.address].address
                return moved.to_bytes(POINTER_BYTES, "little")
        return content


def regions_of(launch: PreparedLaunch, near: Near) -> tuple[MemoryRegion, ...]:
    """Returns the memory regions that the parameters of a launch point into, each once.

    ``near`` returns the region at an address; None for a parameter that is no pointer.
    """
    pointers = (content for content in launch.parameters if len(content) == POINTER_BYTES)
    found = (near(int.from_bytes(content, "little")) for content in pointers)
    return tuple({region.address: region for region in found if region is not None}.values())
