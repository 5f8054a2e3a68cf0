"""The port of a GPU as the host sees it: memory, streams, events, modules, launches.

Handles and addresses are integers; stream 0 is the default stream. One address space: ``copy`` takes host and
device addresses alike. Everything given a stream is asynchronous: it may run at any time from the call until
the stream, or an event recorded behind it, is waited for.
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
    """The GPU or its driver refused: the call, its name of the error, and what was being done."""

    def __init__(self, message: str, error_name: str = "") -> None:
        """Takes the whole line, and the driver's name of the error: "CUDA_ERROR_ILLEGAL_ADDRESS"."""
        super().__init__(message)
        self.error_name = error_name

    def __reduce__(self) -> tuple[type["DeviceError"], tuple[str, str]]:
        """Pickles by its fields: it crosses process borders."""
        return (DeviceError, (str(self), self.error_name))

    @property
    def is_sticky(self) -> bool:
        """Tells whether everything else this process asks of the GPU will fail as well."""
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
    """How a tensor map cuts a tensor: the arguments of cuTensorMapEncodeTiled but the tensor's address."""

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
    """What a device that checks its host is told beside the calls; none of it does anything by itself.

    Of each call of a program in this order: ``begin_call``, then what its code does, then ``end_call``, or
    ``abandon_call`` where that raised; then what the caller reads of arguments and results.
    """

    @abc.abstractmethod
    def begin_call(self, stream: int | None) -> None:
        """A host program begins: its work belongs behind what is on the stream; None: behind the host."""

    @abc.abstractmethod
    def end_call(self, stream: int | None) -> None:
        """It ends: all its work must be ordered before what comes on the stream; None: must be done."""

    @abc.abstractmethod
    def abandon_call(self) -> None:
        """It failed: what it asked for and was not done yet must not touch host memory any more."""

    @abc.abstractmethod
    def outside_of_calls(self) -> AbstractContextManager[None]:
        """Work in it is the runtime's own, which waits for it at once: no call's streams order it."""

    @abc.abstractmethod
    def host_reads(self, address: int, size_bytes: int) -> None:
        """The host reads host memory now."""

    @abc.abstractmethod
    def host_writes(self, address: int, size_bytes: int) -> None:
        """The host writes host memory now, or gives it back."""

    @abc.abstractmethod
    def device_memory_at(self, address: int) -> str | None:
        """Names the device memory at an address, which the host cannot touch; None for other memory."""

    @abc.abstractmethod
    def keep(self, address: int) -> None:
        """An allocation on the device outlives the program's call on purpose."""

    @abc.abstractmethod
    def reports(self) -> tuple[str, ...]:
        """Returns every defect that was found so far."""


class AbstractDevice(abc.ABC):
    """One GPU, or what stands for it. Each method raises DeviceError when it is refused.

    In the life of a candidate (``tuner.targets.gpu.loaded_kernels``): ``load_module``, ``function`` for each
    kernel, ``allocate`` for scratch memory; ``launch`` for each kernel of each run; ``free``,
    ``unload_module`` when it is forgotten. Of a whole program (``tuner.programs.run.device_function``):
    ``load_module`` when its host code is loaded, ``create_stream`` for each slot; in each call what compiled
    code asks for through the ``mgpu*`` table; ``synchronize_stream``, ``destroy_stream``, ``unload_module``
    when it is closed. Calls of one candidate or program come from one thread at a time.
    """

    name: str  # "NVIDIA H200", "PTX simulator"
    chip: str  # "sm_90"
    watch: AbstractHostWatch | None = None  # of a device that checks its host

    @abc.abstractmethod
    def load_module(self, image: bytes) -> int:
        """Loads a cubin, fatbin or PTX text; equal images give the same handle, loaded once."""

    @abc.abstractmethod
    def unload_module(self, module: int) -> None:
        """Gives back one ``load_module``; the last one unloads."""

    @abc.abstractmethod
    def function(self, module: int, name: str) -> int:
        """Returns the handle of a kernel, looked up once."""

    @abc.abstractmethod
    def launch(self, launch: KernelLaunch, stream: int) -> None:
        """Enqueues a kernel; the parameters are read before the call returns."""

    @abc.abstractmethod
    def create_stream(self) -> int:
        """Returns a stream that does not wait for the default one."""

    @abc.abstractmethod
    def destroy_stream(self, stream: int) -> None:
        """Destroys a stream; work on it still ends."""

    @abc.abstractmethod
    def synchronize_stream(self, stream: int) -> None:
        """Waits until all work on a stream is done."""

    @abc.abstractmethod
    def create_event(self, *, is_timed: bool = False) -> int:
        """Returns an event; only timed ones can be given to ``elapsed_s``."""

    @abc.abstractmethod
    def destroy_event(self, event: int) -> None:
        """Destroys an event; waits that name it still hold."""

    @abc.abstractmethod
    def record_event(self, event: int, stream: int) -> None:
        """Makes the event stand for all work enqueued on the stream so far."""

    @abc.abstractmethod
    def wait_event(self, stream: int, event: int) -> None:
        """Lets later work on the stream wait for what the event stands for now."""

    @abc.abstractmethod
    def synchronize_event(self, event: int) -> None:
        """Waits until what the event stands for is done."""

    @abc.abstractmethod
    def elapsed_s(self, start: int, stop: int) -> float:
        """Returns the seconds between two timed events that are done."""

    @abc.abstractmethod
    def allocate(self, size_bytes: int, stream: int) -> int:
        """Returns the address of device memory, usable by work behind the call on the stream."""

    @abc.abstractmethod
    def free(self, address: int, stream: int) -> None:
        """Frees device memory behind the work on the stream."""

    @abc.abstractmethod
    def allocate_host(self, size_bytes: int) -> int:
        """Returns the address of pinned host memory."""

    @abc.abstractmethod
    def free_host(self, address: int) -> None:
        """Frees pinned host memory; waits for the work that uses it."""

    @abc.abstractmethod
    def register_host(self, address: int, size_bytes: int) -> None:
        """Pins host memory that exists."""

    @abc.abstractmethod
    def unregister_host(self, address: int) -> None:
        """Takes back ``register_host``."""

    @abc.abstractmethod
    def copy(self, target: int, source: int, size_bytes: int, stream: int) -> None:
        """Enqueues a copy between any two of host and device."""

    @abc.abstractmethod
    def fill(self, address: int, value: int, item_bytes: int, count: int, stream: int) -> None:
        """Enqueues a fill of ``count`` items of 1, 2 or 4 bytes with the bits of ``value``."""

    @abc.abstractmethod
    def begin_capture(self, stream: int) -> None:
        """Collects what is enqueued from here on this stream, and on streams that it forks to."""

    @abc.abstractmethod
    def end_capture(self, stream: int) -> int:
        """Returns the collected work as a graph that can be launched."""

    @abc.abstractmethod
    def launch_graph(self, graph: int, stream: int) -> None:
        """Enqueues everything a graph holds."""

    @abc.abstractmethod
    def destroy_graph(self, graph: int) -> None:
        """Destroys a graph."""

    @abc.abstractmethod
    def tensor_map(self, address: int, layout: TensorMapLayout) -> bytes:
        """Returns the 128 bytes of a CUtensorMap of the tensor at an address of device memory."""
