"""The port (abstract interface) of a GPU as the host sees it: memory, streams, events, modules, launches.

Handles and addresses are integers; stream 0 is the default stream. One address space: ``copy`` takes host and
device addresses alike. Every operation on a stream is asynchronous: it may run at any time from the call
until the host waits for the stream, or for an event recorded after the operation.
"""

import abc
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

from tuner.core.errors import TunerError

# After these "the process must be terminated and relaunched": CUDA driver API, CUresult.
STICKY_ERRORS = frozenset(
    f"CUDA_ERROR_{name}"
    for name in (
        *("ILLEGAL_ADDRESS", "LAUNCH_TIMEOUT", "ASSERT", "HARDWARE_STACK_ERROR", "ILLEGAL_INSTRUCTION"),
        *("MISALIGNED_ADDRESS", "INVALID_ADDRESS_SPACE", "INVALID_PC", "LAUNCH_FAILED", "TENSOR_MEMORY_LEAK"),
        *("ECC_UNCORRECTABLE", "CONTAINED", "EXTERNAL_DEVICE"),
    )
)


class DeviceError(TunerError):
    """A call of the GPU driver failed: the message says which call, which error, and what was being done."""

    def __init__(self, message: str, error_name: str = "") -> None:
        """Takes the message, and the driver's name of the error: "CUDA_ERROR_ILLEGAL_ADDRESS"."""
        super().__init__(message)
        self.error_name = error_name

    def __reduce__(self) -> tuple[type["DeviceError"], tuple[str, str]]:
        """Pickles the exception by its fields, so that it can be sent between processes."""
        return (DeviceError, (str(self), self.error_name))

    @property
    def is_sticky(self) -> bool:
        """Returns whether every later call of this process to the GPU will fail as well."""
        return self.error_name in STICKY_ERRORS


class Extent(NamedTuple):
    """Sizes along x, y and z: of a grid in blocks, of a block in threads, of a cluster in blocks."""

    x: int
    y: int = 1
    z: int = 1


@dataclass(frozen=True)
class KernelLaunch:
    """One launch of a kernel."""

    function: int
    grid: Extent
    block: Extent
    shared_bytes: int = 0  # dynamic; above 48 KiB the function's limit is raised first
    parameters: int = 0  # address of void*[parameter_count], each pointing at one parameter's value
    parameter_count: int = 0
    cluster: Extent | None = None


@dataclass(frozen=True)
class TensorMapLayout:
    """How a tensor map tiles a tensor: cuTensorMapEncodeTiled's arguments without the tensor's address."""

    sizes: tuple[int, ...]  # elements, innermost first
    strides_bytes: tuple[int, ...]  # of every dimension but the innermost
    box: tuple[int, ...]  # elements, innermost first
    dtype: int  # CUtensorMapDataType
    interleave: int = 0  # CUtensorMapInterleave
    swizzle: int = 0  # CUtensorMapSwizzle
    l2_promotion: int = 0  # CUtensorMapL2promotion
    out_of_bounds: int = 0  # CUtensorMapFloatOOBfill


# Device memory of a device that checks its host lies where address >> BITS == TAG. x86-64 gives out nothing
# there unless asked: programs and their heaps are above 0x5500_0000_0000.
DEVICE_ADDRESS_BITS, DEVICE_ADDRESS_TAG = 44, 0x2


class AbstractHostWatch(abc.ABC):
    """Notifications to a device that checks its host for races, in addition to the device's own calls.

    For each call of a program in this order: ``begin_call``, then the calls of the program's code, then
    ``end_call``, or ``abandon_call`` where the code raised; then what the caller reads of arguments and
    results. A notification changes no memory and starts no work.
    """

    @abc.abstractmethod
    def begin_call(self, stream: int | None) -> None:
        """Notifies that a host program begins, ordered after the stream's work; None: after the host's."""

    @abc.abstractmethod
    def end_call(self, stream: int | None) -> None:
        """Notifies that the program ends: its work precedes the stream's later work; None: all is done."""

    @abc.abstractmethod
    def abandon_call(self) -> None:
        """Notifies that the program failed: its pending work must not access host memory any more."""

    @abc.abstractmethod
    def outside_of_calls(self) -> AbstractContextManager[None]:
        """Context manager for the runtime's own work, outside a program's call; it is waited for at once."""

    @abc.abstractmethod
    def host_reads(self, address: int, size_bytes: int) -> None:
        """Notifies that the host reads host memory now."""

    @abc.abstractmethod
    def host_writes(self, address: int, size_bytes: int) -> None:
        """Notifies that the host writes or frees host memory now."""

    @abc.abstractmethod
    def device_memory_at(self, address: int) -> str | None:
        """Returns a description, for messages, of the device memory at an address; None for any other memory.

        Device memory is memory that host code cannot access: not host-shared memory.
        """

    @abc.abstractmethod
    def keep(self, address: int) -> None:
        """Notifies that a device allocation outlives the program's call on purpose."""

    @abc.abstractmethod
    def reports(self) -> tuple[str, ...]:
        """Returns the defects found so far, one line each."""


class AbstractDevice(abc.ABC):
    """One GPU, or a simulation of one. Each method raises DeviceError when the call fails.

    In the life of a candidate (``tuner.targets.gpu.loaded_kernels``): ``load_module``, ``function`` for each
    kernel, ``allocate`` for scratch memory; ``launch`` for each kernel of each run; ``free`` and
    ``unload_module`` when the candidate is unloaded. In the life of a whole program
    (``tuner.programs.run.device_function``): ``load_module`` when the program's host code is loaded,
    ``create_stream`` for each slot; in each call what compiled code calls through the ``mgpu*`` table;
    ``synchronize_stream``, ``destroy_stream``, ``unload_module`` when the program is closed. Calls of one
    candidate or program come from one thread at a time.
    """

    name: str  # "NVIDIA H200", "PTX simulator"
    chip: str  # "sm_90"
    watch: AbstractHostWatch | None = None  # of a device that checks its host

    @abc.abstractmethod
    def load_module(self, image: bytes) -> int:
        """Returns the handle of a loaded cubin, fatbin or PTX text; equal images are loaded once."""

    @abc.abstractmethod
    def unload_module(self, module: int) -> None:
        """Releases one ``load_module``; the last release of a module unloads it."""

    @abc.abstractmethod
    def function(self, module: int, name: str) -> int:
        """Returns the handle of a kernel of a module; the kernel is looked up once."""

    @abc.abstractmethod
    def launch(self, launch: KernelLaunch, stream: int) -> None:
        """Enqueues a kernel launch; its parameters are read before the call returns."""

    @abc.abstractmethod
    def create_stream(self) -> int:
        """Returns a new stream that does not synchronize with the default stream."""

    @abc.abstractmethod
    def destroy_stream(self, stream: int) -> None:
        """Destroys a stream; work on the stream still runs to its end."""

    @abc.abstractmethod
    def synchronize_stream(self, stream: int) -> None:
        """Waits until all work on a stream is done."""

    @abc.abstractmethod
    def create_event(self, *, is_timed: bool = False) -> int:
        """Returns a new event; ``elapsed_s`` takes only events created with ``is_timed``."""

    @abc.abstractmethod
    def destroy_event(self, event: int) -> None:
        """Destroys an event; enqueued waits for the event stay in force."""

    @abc.abstractmethod
    def record_event(self, event: int, stream: int) -> None:
        """Records the event: it now stands for all work enqueued on the stream so far."""

    @abc.abstractmethod
    def wait_event(self, stream: int, event: int) -> None:
        """Makes later work on the stream wait for the work that the event stands for now."""

    @abc.abstractmethod
    def synchronize_event(self, event: int) -> None:
        """Waits until the work that the event stands for is done."""

    @abc.abstractmethod
    def elapsed_s(self, start: int, stop: int) -> float:
        """Returns the seconds between two completed events that were created with ``is_timed``."""

    @abc.abstractmethod
    def allocate(self, size_bytes: int, stream: int) -> int:
        """Returns the address of new device memory, usable by work enqueued on the stream after the call."""

    @abc.abstractmethod
    def free(self, address: int, stream: int) -> None:
        """Frees device memory after the work enqueued on the stream so far."""

    @abc.abstractmethod
    def allocate_host(self, size_bytes: int) -> int:
        """Returns the address of new pinned host memory."""

    @abc.abstractmethod
    def free_host(self, address: int) -> None:
        """Frees pinned host memory; waits for the work that uses it."""

    @abc.abstractmethod
    def register_host(self, address: int, size_bytes: int) -> None:
        """Pins (page-locks) existing host memory."""

    @abc.abstractmethod
    def unregister_host(self, address: int) -> None:
        """Unpins host memory that ``register_host`` pinned."""

    @abc.abstractmethod
    def copy(self, target: int, source: int, size_bytes: int, stream: int) -> None:
        """Enqueues a copy of ``size_bytes`` bytes, from and to host or device memory."""

    @abc.abstractmethod
    def fill(self, address: int, value: int, item_bytes: int, count: int, stream: int) -> None:
        """Enqueues a fill of ``count`` items of 1, 2 or 4 bytes with the bits of ``value``."""

    @abc.abstractmethod
    def begin_capture(self, stream: int) -> None:
        """Begins graph capture of the work enqueued on the stream, and on streams that fork from it."""

    @abc.abstractmethod
    def end_capture(self, stream: int) -> int:
        """Ends graph capture; returns the handle of the graph, ready to launch."""

    @abc.abstractmethod
    def launch_graph(self, graph: int, stream: int) -> None:
        """Enqueues all work of a graph."""

    @abc.abstractmethod
    def destroy_graph(self, graph: int) -> None:
        """Destroys a graph."""

    @abc.abstractmethod
    def tensor_map(self, address: int, layout: TensorMapLayout) -> bytes:
        """Returns the 128 bytes of a CUtensorMap for the tensor at an address of device memory."""
