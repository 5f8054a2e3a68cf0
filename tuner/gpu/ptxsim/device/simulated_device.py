"""SimulatedDevice, which implements AbstractDevice by operations on streams; they report invalid accesses.

``MemoryOperations`` creates the operations on memory; kernels, streams and the order of work are those of
``kernels``, ``streams`` and ``timeline``. ``SimulatedHostWatch`` passes what the host does on to their
checks.
"""

import ctypes
import functools
import itertools
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tuner.core.compiled_code import TensorMapLayout
from tuner.core.device import STREAM_ORDERS, AbstractDevice, AbstractHostWatch, KernelLaunch, StreamOrder
from tuner.core.errors import DeviceError, UsageError
from tuner.core.gpu import chip_of
from tuner.gpu.ptxsim.device.happens_before import (
    HOST_QUEUE,
    NO_BYTES,
    ByteRanges,
    DefectLog,
    HostDefect,
    HostReport,
    MemoryAccess,
    Moment,
    refused,
)
from tuner.gpu.ptxsim.device.kernels import PreparedLaunch, RunLaunch, SimulatedKernels
from tuner.gpu.ptxsim.device.memory import EncodedMap, MemoryKind, MemoryRegion, SimulatedMemory
from tuner.gpu.ptxsim.device.streams import StreamOperation
from tuner.gpu.ptxsim.device.timeline import Timeline
from tuner.gpu.ptxsim.engine import Pause

FILL_BYTES = (1, 2, 4)  # item sizes of cuMemsetD8, D16, D32
Write = Callable[[str], object]  # receives text, like ``write`` of a file
FIRST_HANDLE = 0x100
BEFORE_ALL = Moment(HOST_QUEUE, 0, {})  # before each other moment: any later use is one after a free


class MemoryOperations:
    """Creates stream operations on simulated memory, and reports invalid accesses of them."""

    def __init__(
        self,
        memory: SimulatedMemory,
        log: DefectLog,
        write: Callable[[str], object],
        run_launch: RunLaunch | None = None,
    ) -> None:
        """``write`` gets what kernels print; ``run_launch`` replaces the PTX simulator for launches."""
        self._memory = memory
        self._log = log
        self._write = write
        self._run_launch = run_launch or PreparedLaunch.pausing_run

    def allocation(self, region: MemoryRegion) -> StreamOperation:
        """Returns the operation that makes a region usable when submitted, and fills it with NaN when run."""

        def revive(_: Moment) -> None:
            region.freed = None

        def poison(_: Moment) -> None:
            region.poison()
            region.is_written = False

        return StreamOperation(f"allocation of {region.name}", poison, revive, writes=_whole(region))

    def free(self, address: int) -> StreamOperation:
        """Returns the operation that frees memory; a second free is reported.

        Raises DeviceError for an address at which no device memory was allocated.
        """
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
        """Returns the operation that copies bytes; None for a copy out of bounds, which is reported."""
        to = self._side(target)
        from_ = self._side(source)
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
        """Returns the operation that fills items with the low bits of ``value``.

        None: out of bounds, reported. Raises DeviceError for pageable host memory, and for an item size that
        is not 1, 2 or 4 bytes.
        """
        if item_bytes not in FILL_BYTES:
            raise refused("INVALID_VALUE", f"found items of {item_bytes} bytes, allowed {FILL_BYTES}")
        region = self._memory.near(address)
        size_bytes = item_bytes * count
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
        """Returns the operation that runs a launch; ``note`` gets its memory accesses.

        ``seed``: of a random schedule of threads; None: a fixed one.
        """
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
            reads_of = tuple(array.address for array in touched if len(array.reads))
            writes_of = tuple(array.address for array in touched if len(array.writes))
            self._note_written(what, reads_of, writes_of)
            for hazard in simulation.races:
                self._log.add(HostDefect.KERNEL, f"{what}: {hazard}")
            self._check_use_after_free(what, *(array.address for array in touched))(moment)
            fields = ["reads", "writes"]
            # ``Touched.of`` makes separate arrays of plain accesses only where a launch had atomics
            if any(array.plain_reads is not array.reads for array in touched):
                fields += ["plain_reads", "plain_writes"]
            ranges = []
            for field in fields:
                pairs = [getattr(array, field) + array.address for array in touched]
                ranges.append(ByteRanges.of(pairs))
            note(MemoryAccess(what, moment, *ranges))

        return StreamOperation(what, run)

    def end(self, region: MemoryRegion) -> None:
        """Finishes the free of a region: reports overwritten red zones, fills it with NaN, retires it."""
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
        if region is None:
            return "the host"
        return region.name


def _whole(region: MemoryRegion) -> ByteRanges:
    return ByteRanges.one(region.address, region.bytes.size)


@dataclass
class DeviceCounts:
    """The number of calls of a simulated device, by what they ask for: streams created, copies, launches."""

    streams_created: int = 0
    streams_destroyed: int = 0
    events_created: int = 0
    events_destroyed: int = 0
    modules_loaded: int = 0  # equal images are counted once
    modules_unloaded: int = 0  # at the last unload of an image
    allocations: int = 0  # of device memory
    frees: int = 0  # of device memory
    copies: int = 0
    fills: int = 0
    launches: int = 0
    graph_launches: int = 0


class SimulatedDevice(AbstractDevice):
    """A simulated GPU: runs kernels in the PTX simulator, and finds defects of the host program that uses it.

    All work runs as late as the driver would allow. ``reports`` holds defects, such as races and leaks. What
    the driver would reject raises a DeviceError with the driver's name of the error; a fault of a kernel
    raises one at the synchronisation that waits for the kernel.
    """

    name = "PTX simulator"

    def __init__(
        self,
        chip: str = "sm_90",
        order: StreamOrder = "fifo",
        seed: int = 0,
        write: Write | None = None,
        run_launch: RunLaunch | None = None,
    ) -> None:
        """Creates a device with the limits of ``chip``.

        Args:
            chip: a name such as "sm_90".
            order: of ready work: "fifo", "lifo" or "random", which also randomises the schedule of threads.
            seed: of the order "random".
            write: receives what kernels print; None: standard output.
            run_launch: runs launches in place of the PTX simulator, for example a sample of their blocks.

        Raises UsageError for an unknown chip or order.
        """
        if order not in STREAM_ORDERS:
            raise UsageError(f"order: found {order!r}, allowed {', '.join(STREAM_ORDERS)}")
        self.chip = chip_of(chip).name
        self.counts = DeviceCounts()
        self._seed = seed if order == "random" else None
        # not a bound method: without a reference cycle, the memory is freed with the device's last reference
        self._handle = functools.partial(next, itertools.count(FIRST_HANDLE))
        self._log = DefectLog()
        self._memory = SimulatedMemory()
        self._operations = MemoryOperations(self._memory, self._log, write or _print, run_launch)
        self._kernels = SimulatedKernels(chip_of(chip))
        self._timeline = Timeline(self._log, self._memory.describe, self._handle, order, seed)
        # one object by two names: ``watch`` is None for other devices, so callers check; ``_watch`` never is
        self._watch = SimulatedHostWatch(self._timeline, self._memory, self._log)
        self.watch = self._watch

    @property
    def reports(self) -> tuple[HostReport, ...]:
        return self._log.reports()

    def load_module(self, image: bytes) -> int:
        """Loads PTX text; equal texts share a module. Raises DeviceError for what is not valid PTX."""
        module, is_new = self._kernels.load(image, self._handle)
        self.counts.modules_loaded += is_new
        return module

    def unload_module(self, module: int) -> None:
        self.counts.modules_unloaded += self._kernels.unload(module)

    def function(self, module: int, name: str) -> int:
        return self._kernels.function(module, name, self._handle)

    def launch(self, launch: KernelLaunch, stream: int) -> None:
        """Enqueues a kernel launch.

        Raises DeviceError for clusters of more than one block, which only PTX may set, and for a launch that
        does not fit the kernel or the chip.
        """
        if launch.cluster not in (None, (1, 1, 1)):
            raise DeviceError(f"found clusters of {tuple(launch.cluster)} blocks, which are not simulated")
        prepared = self._kernels.prepare(launch)
        self.counts.launches += 1
        self._timeline.enqueue(stream, self._operations.kernel(prepared, self._seed, self._timeline.note))

    def create_stream(self) -> int:
        self.counts.streams_created += 1
        return self._timeline.create_stream()

    def destroy_stream(self, stream: int) -> None:
        self._timeline.destroy_stream(stream)
        self.counts.streams_destroyed += 1

    def synchronize_stream(self, stream: int) -> None:
        self._timeline.synchronize_stream(stream)
        self._release()

    def create_event(self, *, is_timed: bool = False) -> int:
        self.counts.events_created += 1
        return self._timeline.create_event()

    def destroy_event(self, event: int) -> None:
        self._timeline.destroy_event(event)
        self.counts.events_destroyed += 1

    def record_event(self, event: int, stream: int) -> None:
        self._timeline.record(event, stream)

    def wait_event(self, stream: int, event: int) -> None:
        self._timeline.wait(stream, event)

    def synchronize_event(self, event: int) -> None:
        self._timeline.synchronize_event(event)
        self._release()

    def elapsed_s(self, start: int, stop: int) -> float:
        raise DeviceError("the simulator has no clock")

    def allocate(self, size_bytes: int, stream: int) -> int:
        is_captured = self._timeline.is_captured(stream)
        region = self._memory.allocate(max(size_bytes, 1), MemoryKind.DEVICE)
        region.is_kept = is_captured  # kept by the graph
        self.counts.allocations += 1
        self._timeline.enqueue(stream, self._operations.allocation(region))
        return region.address

    def free(self, address: int, stream: int) -> None:
        if address == 0:  # like cuMemFree
            return
        self._timeline.enqueue(stream, self._operations.free(address))
        self.counts.frees += 1

    def allocate_host(self, size_bytes: int) -> int:
        return self._memory.allocate(max(size_bytes, 1), MemoryKind.PINNED).address

    def free_host(self, address: int) -> None:
        """Frees pinned memory after all submitted work; a second free of the memory is only reported.

        Raises DeviceError for other memory.
        """
        region = self._memory.at(address)
        if region is None or region.kind is not MemoryKind.PINNED:
            raise refused("INVALID_VALUE", f"found free of {address:#x}, allowed pinned memory made here")
        if region.freed is not None:
            self._log.add(HostDefect.DOUBLE_FREE, f"{region.name} is freed twice")
            return
        self._timeline.synchronize()
        region.freed = BEFORE_ALL
        region.is_kept = False
        self._operations.end(region)

    def register_host(self, address: int, size_bytes: int) -> None:
        self._memory.register(address, max(size_bytes, 1))

    def unregister_host(self, address: int) -> None:
        """Unregisters host memory; reports a race with work that may still access it.

        Raises DeviceError for memory that is not registered.
        """
        region = self._memory.unregister(address)
        if region is None:
            raise refused("HOST_MEMORY_NOT_REGISTERED", f"found {address:#x}, allowed what was registered")
        self._watch.host_writes(address, region.bytes.size)

    def copy(self, target: int, source: int, size_bytes: int, stream: int) -> None:
        """Enqueues a copy of bytes; one out of bounds is reported and omitted."""
        self.counts.copies += 1
        self._enqueue(stream, self._operations.copy(target, source, size_bytes))

    def fill(self, address: int, value: int, item_bytes: int, count: int, stream: int) -> None:
        """Enqueues a fill; one out of bounds is reported and omitted.

        Raises DeviceError for pageable host memory, and for items of other than 1, 2 or 4 bytes.
        """
        self.counts.fills += 1
        self._enqueue(stream, self._operations.fill(address, value, item_bytes, count))

    def begin_capture(self, stream: int) -> None:
        self._timeline.begin_capture(stream)

    def end_capture(self, stream: int) -> int:
        return self._timeline.end_capture(stream)

    def launch_graph(self, graph: int, stream: int) -> None:
        self._timeline.launch_graph(graph, stream)
        self.counts.graph_launches += 1

    def destroy_graph(self, graph: int) -> None:
        self._timeline.destroy_graph(graph)

    def tensor_map(self, address: int, layout: TensorMapLayout) -> bytes:
        """Returns an encoded tensor map. Raises DeviceError for a layout that is not simulated."""
        if layout.interleave or layout.out_of_bounds:
            found = f"interleave {layout.interleave} and fill {layout.out_of_bounds}"
            raise DeviceError(f"tensor map: found {found}, allowed 0 and 0 in the simulator")
        fields = (layout.sizes, layout.strides_bytes, layout.box, layout.dtype, layout.swizzle)
        return EncodedMap(address, *fields).encode()

    def _enqueue(self, stream: int, operation: StreamOperation | None) -> None:
        if operation is not None:
            self._timeline.enqueue(stream, operation)

    def _release(self) -> None:
        if self._timeline.is_idle:
            self._memory.release()


def _print(text: str) -> None:
    sys.stdout.write(text)  # looked up at each call: a test may have replaced it


class SimulatedHostWatch(AbstractHostWatch):
    """Passes a host program's calls and memory accesses on to the checks of a simulated device."""

    def __init__(self, timeline: Timeline, memory: SimulatedMemory, log: DefectLog) -> None:
        self._timeline = timeline
        self._memory = memory
        self._log = log

    def begin_call(self, stream: int | None) -> None:
        self._timeline.begin_call(stream, self._memory.live())

    def end_call(self, stream: int | None) -> None:
        self._timeline.end_call(stream, self._memory.live())

    def abandon_call(self) -> None:
        self._timeline.abandon_call()

    def outside_of_calls(self) -> AbstractContextManager[None]:
        return self._timeline.outside_of_calls()

    def host_reads(self, address: int, size_bytes: int) -> None:
        self._timeline.note_host("a read by the host", ByteRanges.one(address, size_bytes), NO_BYTES)

    def host_writes(self, address: int, size_bytes: int) -> None:
        self._timeline.note_host("a write by the host", NO_BYTES, ByteRanges.one(address, size_bytes))

    def device_memory_at(self, address: int) -> str | None:
        region = self._memory.near(address)
        is_device = region is not None and region.kind is MemoryKind.DEVICE
        if is_device:
            return self._memory.describe(address)
        return None

    def keep(self, address: int) -> None:
        region = self._memory.at(address)
        if region is not None:
            region.is_kept = True

    def reports(self) -> tuple[str, ...]:
        return tuple(map(str, self._log.reports()))
