"""The port (abstract interface) of a GPU as the host sees it: memory, streams, events, modules, launches.

Handles and addresses are integers; stream 0 is the default stream. One address space: ``copy`` takes host
and device addresses alike. Every operation on a stream is asynchronous: it may run at any time from the
call until the host waits for the stream, or for an event recorded after the operation.
"""

import abc
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from tuner.core.compiled_code import TensorMapLayout

# In which order a simulated device runs work of several streams that is ready.
StreamOrder = Literal["fifo", "lifo", "random"]
STREAM_ORDERS: tuple[StreamOrder, ...] = get_args(StreamOrder)
# Device memory of a device that checks its host lies where address >> BITS == TAG. x86-64 gives out nothing
# there unless asked: programs and their heaps are above 0x5500_0000_0000.
DEVICE_ADDRESS_BITS = 44
DEVICE_ADDRESS_TAG = 0x2


class Extent(NamedTuple):
    """Sizes along x, y and z: of a grid in blocks, of a block in threads, of a cluster in blocks."""

    x: int
    y: int = 1
    z: int = 1


@dataclass(frozen=True)
class KernelLaunch:
    """One launch of a kernel: its handle, grid, block, cluster, dynamic shared memory and parameters."""

    function: int
    grid: Extent
    block: Extent
    shared_bytes: int = 0  # dynamic; above 48 KiB the function's limit is raised first
    parameters: int = 0  # address of void*[parameter_count], each pointing at one parameter's value
    parameter_count: int = 0
    cluster: Extent | None = None


class AbstractHostWatch(abc.ABC):
    """Receives what the host (CPU code) does, on a device that checks the host for races and leaks.

    The notifications come in addition to the device's methods. For each call of a host program in this order:
    ``begin_call``, then the device calls of the program's code, then ``end_call``, or ``abandon_call`` where
    the code raised; then what the caller reads of arguments and results. A notification changes no memory and
    starts no work.
    """

    @abc.abstractmethod
    def begin_call(self, stream: int | None) -> None:
        """Notifies that a call of a host program begins.

        ``stream``: the stream after whose enqueued work the call's device work runs; None: the call returns
        only when its work is done.
        """

    @abc.abstractmethod
    def end_call(self, stream: int | None) -> None:
        """Notifies that the current call of a host program ends; ``stream`` is that of its ``begin_call``."""

    @abc.abstractmethod
    def abandon_call(self) -> None:
        """Notifies that the current call raised; its pending work must not access host memory any more."""

    @abc.abstractmethod
    def outside_of_calls(self) -> AbstractContextManager[None]:
        """Returns a context manager: device work inside it does not belong to the program's current call."""

    @abc.abstractmethod
    def host_reads(self, address: int, size_bytes: int) -> None:
        """Notifies that the host reads ``size_bytes`` bytes of host memory at ``address`` now."""

    @abc.abstractmethod
    def host_writes(self, address: int, size_bytes: int) -> None:
        """Notifies that the host writes or frees ``size_bytes`` bytes of host memory at ``address`` now."""

    @abc.abstractmethod
    def device_memory_at(self, address: int) -> str | None:
        """Returns a text that describes the device-only memory at an address; None for other memory."""

    @abc.abstractmethod
    def keep(self, address: int) -> None:
        """Notifies that the device allocation at ``address`` outlives the call on purpose: not a leak."""

    @abc.abstractmethod
    def reports(self) -> tuple[str, ...]:
        """Returns the defects of the host code found so far, one line each: races, leaks, missing waits."""


class AbstractDevice(abc.ABC):
    """One GPU, or a simulation of one. Each method raises DeviceError when the call fails.

    In the life of a candidate (``tuner.gpu.target.arrays``): ``load_module``, ``function`` for each
    kernel, ``allocate`` for scratch memory; ``launch`` for each kernel of each run; ``free`` and
    ``unload_module`` when the candidate is unloaded. In the life of a whole program
    (``tuner.gpu.run.device_function``): ``load_module`` when the program's host code is loaded,
    ``create_stream`` for each slot; in each call what compiled code calls through the ``mgpu*`` table;
    ``synchronize_stream``, ``destroy_stream``, ``unload_module`` when the program is closed. Calls of one
    candidate or program come from one thread at a time.
    """

    name: str  # "NVIDIA H200", "PTX simulator"
    chip: str  # "sm_90"
    watch: AbstractHostWatch | None = None  # of a device that checks its host

    @abc.abstractmethod
    def load_module(self, image: bytes) -> int:
        """Loads GPU code (a cubin, fatbin or PTX text; a simulator only PTX); returns the module's handle.

        An equal image that is loaded already is not loaded again; each call needs one ``unload_module``.
        """

    @abc.abstractmethod
    def unload_module(self, module: int) -> None:
        """Undoes one ``load_module``; the module is unloaded when each ``load_module`` of it is undone."""

    @abc.abstractmethod
    def function(self, module: int, name: str) -> int:
        """Returns the handle of the kernel ``name`` of a loaded module, for ``KernelLaunch.function``."""

    @abc.abstractmethod
    def launch(self, launch: KernelLaunch, stream: int) -> None:
        """Enqueues a kernel launch on a stream; its parameters are read before the call returns."""

    @abc.abstractmethod
    def create_stream(self) -> int:
        """Returns the handle of a new stream that does not synchronize with the default stream (stream 0)."""

    @abc.abstractmethod
    def destroy_stream(self, stream: int) -> None:
        """Destroys a stream; work on the stream still runs to its end."""

    @abc.abstractmethod
    def synchronize_stream(self, stream: int) -> None:
        """Blocks the host until all work enqueued on a stream is done."""

    @abc.abstractmethod
    def create_event(self, *, is_timed: bool = False) -> int:
        """Returns the handle of a new event; for ``elapsed_s`` it has to be created with ``is_timed``."""

    @abc.abstractmethod
    def destroy_event(self, event: int) -> None:
        """Destroys an event; streams that already wait for the event still wait."""

    @abc.abstractmethod
    def record_event(self, event: int, stream: int) -> None:
        """Records an event on a stream: the event then stands for all work enqueued on the stream so far."""

    @abc.abstractmethod
    def wait_event(self, stream: int, event: int) -> None:
        """Makes later work of ``stream`` wait for the work that ``event`` stands for at this call."""

    @abc.abstractmethod
    def synchronize_event(self, event: int) -> None:
        """Blocks the host until the work that an event stands for is done."""

    @abc.abstractmethod
    def elapsed_s(self, start: int, stop: int) -> float:
        """Returns the seconds between two completed events that were created with ``is_timed``.

        Raises DeviceError on a simulated device, which has no clock.
        """

    @abc.abstractmethod
    def allocate(self, size_bytes: int, stream: int) -> int:
        """Returns the address of new device memory of ``size_bytes`` bytes.

        Work that is enqueued on ``stream`` after this call may use the memory.
        """

    @abc.abstractmethod
    def free(self, address: int, stream: int) -> None:
        """Frees device memory once the work enqueued on ``stream`` so far is done. Address 0 is ignored."""

    @abc.abstractmethod
    def allocate_host(self, size_bytes: int) -> int:
        """Returns the address of new pinned (page-locked) host memory of ``size_bytes`` bytes."""

    @abc.abstractmethod
    def free_host(self, address: int) -> None:
        """Frees memory of ``allocate_host``; first waits for the work that uses the memory."""

    @abc.abstractmethod
    def register_host(self, address: int, size_bytes: int) -> None:
        """Pins (page-locks) ``size_bytes`` bytes of existing host memory, for asynchronous copies."""

    @abc.abstractmethod
    def unregister_host(self, address: int) -> None:
        """Unpins host memory that ``register_host`` pinned."""

    @abc.abstractmethod
    def copy(self, target: int, source: int, size_bytes: int, stream: int) -> None:
        """Enqueues a copy of ``size_bytes`` bytes from ``source`` to ``target``: host or device addresses."""

    @abc.abstractmethod
    def fill(self, address: int, value: int, item_bytes: int, count: int, stream: int) -> None:
        """Enqueues a fill of ``count`` items, of 1, 2 or 4 bytes each, with the low bits of ``value``."""

    @abc.abstractmethod
    def begin_capture(self, stream: int) -> None:
        """Begins graph capture on a stream: work is recorded in a graph and not run, until ``end_capture``.

        Work of streams that wait for an event of a captured stream is captured too.
        """

    @abc.abstractmethod
    def end_capture(self, stream: int) -> int:
        """Ends graph capture on a stream; returns the handle of the graph, ready for ``launch_graph``."""

    @abc.abstractmethod
    def launch_graph(self, graph: int, stream: int) -> None:
        """Enqueues all work of a captured graph on a stream."""

    @abc.abstractmethod
    def destroy_graph(self, graph: int) -> None:
        """Destroys a graph that ``end_capture`` returned."""

    @abc.abstractmethod
    def tensor_map(self, address: int, layout: TensorMapLayout) -> bytes:
        """Returns an encoded CUtensorMap (128 bytes) for the tensor at an address of device memory."""
