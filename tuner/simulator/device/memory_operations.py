"""Stream operations on memory: allocation, free, copy, fill, kernel; each reports invalid accesses."""

import ctypes
from collections.abc import Callable, Generator

from tuner.simulator.device.happens_before import (
    ByteRanges,
    DefectLog,
    HostDefect,
    MemoryAccess,
    Moment,
    refused,
)
from tuner.simulator.device.kernels import PreparedLaunch, RunLaunch
from tuner.simulator.device.memory import MemoryKind, MemoryRegion, SimulatedMemory
from tuner.simulator.device.streams import StreamOperation
from tuner.simulator.launch import Pause

FILL_BYTES = (1, 2, 4)  # item sizes of cuMemsetD8, D16, D32


class MemoryOperations:
    """Creates operations on simulated memory; each is checked when it is created, submitted and run."""

    def __init__(
        self,
        memory: SimulatedMemory,
        log: DefectLog,
        write: Callable[[str], object],
        run_launch: RunLaunch | None = None,
    ) -> None:
        """``write`` receives what kernels print; ``run_launch`` replaces the PTX simulator for launches."""
        self._memory = memory
        self._log = log
        self._write = write
        self._run_launch = run_launch or PreparedLaunch.pausing_run

    def allocation(self, region: MemoryRegion) -> StreamOperation:
        """Returns the operation that makes a region usable at submission, and fills it with NaN when run."""

        def revive(_: Moment) -> None:
            region.freed = None

        def poison(_: Moment) -> None:
            region.poison()
            region.is_written = False

        return StreamOperation(f"allocation of {region.name}", poison, revive, writes=_whole(region))

    def free(self, address: int) -> StreamOperation:
        """Returns the operation that frees memory, or reports a second free; DeviceError: no allocation."""
        region = self._memory.at(address)
        if region is None or region.kind is not MemoryKind.DEVICE:
            raise refused("INVALID_VALUE", f"found free of {address:#x}, allowed what was allocated here")

        def mark(moment: Moment) -> None:
            if region.freed is not None:
                self._log.add(HostDefect.DOUBLE_FREE, f"{region.name} is freed twice")
            else:
                region.freed = moment

        return StreamOperation(
            f"free of {region.name}", lambda _: self.end(region), mark, writes=_whole(region)
        )

    def copy(self, target: int, source: int, size_bytes: int) -> StreamOperation | None:
        """Returns the operation that copies bytes, or None for a copy out of bounds, which is reported."""
        to, from_ = self._side(target), self._side(source)
        what = f"copy of {size_bytes} bytes to {to} from {from_}"
        if not all(self._is_inside(address, size_bytes, what) for address in (target, source)):
            return None

        def run(_: Moment) -> None:
            if size_bytes:  # a copy of nothing reads nothing
                self._note_written(what, reads=(source,), writes=(target,))
            ctypes.memmove(target, source, size_bytes)

        return StreamOperation(
            what,
            run,
            self._check_use_after_free(what, target, source),
            ByteRanges.one(source, size_bytes),
            ByteRanges.one(target, size_bytes),
            uses_host_memory=self._memory.near(target) is None or self._memory.near(source) is None,
        )

    def fill(self, address: int, value: int, item_bytes: int, count: int) -> StreamOperation | None:
        """Returns the operation that fills items with the low bits of ``value``, or None if out of bounds.

        Raises DeviceError for pageable host memory, and for an item size that is not 1, 2 or 4.
        """
        if item_bytes not in FILL_BYTES:
            raise refused("INVALID_VALUE", f"found items of {item_bytes} bytes, allowed {FILL_BYTES}")
        region, size_bytes = self._memory.near(address), item_bytes * count
        if region is None:
            raise refused("INVALID_VALUE", f"found a fill at {address:#x}, allowed device memory")
        what = f"fill of {size_bytes} bytes of {region.name}"
        if not self._is_inside(address, size_bytes, what):
            return None
        first = address - region.address
        items = region.bytes[first : first + size_bytes].view(f"<u{item_bytes}")
        bits = value & (1 << 8 * item_bytes) - 1

        def run(_: Moment) -> None:
            region.is_written = True
            items.fill(bits)

        writes = ByteRanges.one(address, size_bytes)
        return StreamOperation(what, run, self._check_use_after_free(what, address), writes=writes)

    def kernel(
        self, launch: PreparedLaunch, seed: int | None, note: Callable[[MemoryAccess], None]
    ) -> StreamOperation:
        """Returns the operation that runs a launch, its threads scheduled by ``seed``, and notes accesses."""
        what = f"kernel {launch.name}"

        def run(moment: Moment) -> Generator[Pause, None, None]:
            try:
                simulation = yield from self._run_launch(launch, self._memory.near, seed)
            finally:
                text = "".join(launch.printed)
                launch.printed.clear()  # a graph launches it again
                if text:
                    self._write(text)
            touched = simulation.touched
            reads_of = tuple(one.address for one in touched if len(one.reads))
            self._note_written(what, reads_of, tuple(one.address for one in touched if len(one.writes)))
            for hazard in simulation.races:
                self._log.add(HostDefect.KERNEL, f"{what}: {hazard}")
            self._check_use_after_free(what, *(one.address for one in touched))(moment)
            fields = ["reads", "writes"]
            if any(one.plain_reads is not one.reads for one in touched):  # atomics
                fields += ["plain_reads", "plain_writes"]
            ranges = (ByteRanges.of(getattr(one, each) + one.address for one in touched) for each in fields)
            note(MemoryAccess(what, moment, *ranges))

        return StreamOperation(what, run)

    def end(self, region: MemoryRegion) -> None:
        """Finishes the free of a region: reports writes to red zones, fills it with NaN, quarantines it."""
        stray = region.stray_bytes()
        if stray:
            self._log.add(HostDefect.OUT_OF_BOUNDS, f"{stray} bytes around {region.name} were overwritten")
        region.poison()
        self._memory.retire(region)

    def _check_use_after_free(self, what: str, *addresses: int) -> Callable[[Moment], None]:
        def evaluate(moment: Moment) -> None:
            for region in filter(None, map(self._memory.near, addresses)):
                if region.freed is not None and region.freed.is_before(moment):
                    self._log.add(HostDefect.USE_AFTER_FREE, f"{what}: {region.name} is freed before")

        return evaluate

    def _note_written(self, what: str, reads: tuple[int, ...], writes: tuple[int, ...]) -> None:
        """Reports reads of never written regions, then marks the regions at ``writes`` as written."""
        for region in filter(None, map(self._memory.near, reads)):
            if not region.is_written:
                self._log.add(HostDefect.UNWRITTEN, f"{what}: nothing was put into {region.name} before")
        for region in filter(None, map(self._memory.near, writes)):
            region.is_written = True

    def _is_inside(self, address: int, size_bytes: int, what: str) -> bool:
        """Returns whether a range is in one region or in none; reports a range across a region's end."""
        region = self._memory.overlapping(address, size_bytes)
        if region is None or region.holds(address, size_bytes):
            return True
        where = f"byte {address - region.address} of {region.name}, which has {region.bytes.size}"
        self._log.add(HostDefect.OUT_OF_BOUNDS, f"{what}: found {size_bytes} bytes at {where}")
        return False

    def _side(self, address: int) -> str:
        region = self._memory.near(address)
        return "the host" if region is None else region.name


def _whole(region: MemoryRegion) -> ByteRanges:
    return ByteRanges.one(region.address, region.bytes.size)
