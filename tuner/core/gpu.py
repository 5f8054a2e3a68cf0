"""The NVIDIA chips that code can be generated for, and the abstract interface of a GPU."""

import abc
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from tuner.core.errors import TunerError, unknown_value

KIB = 1024
WARP_THREADS = 32
MAX_THREADS_PER_BLOCK = 1024  # CUDA programming guide, compute capabilities: the same for every chip
MAX_REGISTERS_PER_THREAD = 255  # same table
REGISTERS = 64 * KIB  # 32-bit, of a multiprocessor and of a block; same table
RESERVED_SHARED_BYTES = KIB  # of each block, taken by the driver since sm_80; Ampere tuning guide, 1.4.5.1
MAX_BLOCK = (1024, 1024, 64)  # threads along x, y, z; same table
MAX_GRID = (2**31 - 1, 65535, 65535)  # blocks along x, y, z; same table

# In which order a simulated device runs work of several streams that is ready.
StreamOrder = Literal["fifo", "lifo", "random"]
STREAM_ORDERS: tuple[StreamOrder, ...] = get_args(StreamOrder)
# Of the largest product of each chip that is sold, for machines that do not report it; NVIDIA's data sheets:
# A100, A40, L40S, H200, B200, RTX PRO 6000.
USUAL_MULTIPROCESSORS = {
    "sm_80": 108,
    "sm_86": 84,
    "sm_89": 142,
    "sm_90": 132,
    "sm_90a": 132,
    "sm_100": 148,
    "sm_120": 188,
}
# Dense flop of a multiprocessor in one clock, sums in f32 (f64 of f64, i32 of i8), tensor or CUDA cores.
# Chips of which several products differ in this (GeForce adds in f32 at half the speed) are left out.
# Keys are chips as the driver reports them: sm_90, never sm_90a.
# sm_80: NVIDIA A100 whitepaper v1.0, table 3; sm_90: NVIDIA H100 whitepaper v1.04, table 2
CLOCK_FLOP = {
    "sm_80": {"f16": 2048, "bf16": 2048, "tf32": 1024, "f32": 128, "f64": 128, "i8": 4096},
    "sm_90": {"f16": 4096, "bf16": 4096, "tf32": 2048, "f32": 256, "f64": 256}
    | {"tf32x3": 2048 // 3}  # three products for each
    | dict.fromkeys(("i8", "e4m3", "e5m2"), 8192),
}
# After these "the process must be terminated and relaunched": CUDA driver API, CUresult.
STICKY_ERRORS = frozenset(
    f"CUDA_ERROR_{name}"
    for name in (
        *("ILLEGAL_ADDRESS", "LAUNCH_TIMEOUT", "ASSERT", "HARDWARE_STACK_ERROR", "ILLEGAL_INSTRUCTION"),
        *("MISALIGNED_ADDRESS", "INVALID_ADDRESS_SPACE", "INVALID_PC", "LAUNCH_FAILED", "TENSOR_MEMORY_LEAK"),
        *("ECC_UNCORRECTABLE", "CONTAINED", "EXTERNAL_DEVICE"),
    )
)
# Device memory of a device that checks its host lies where address >> BITS == TAG. x86-64 gives out nothing
# there unless asked: programs and their heaps are above 0x5500_0000_0000.
DEVICE_ADDRESS_BITS = 44
DEVICE_ADDRESS_TAG = 0x2


@dataclass(frozen=True)
class Chip:
    """An NVIDIA chip, such as sm_90, with the limits of its compute capability.

    Source: CUDA programming guide, technical specifications per compute capability; blocks and barriers as in
    ``cuda_occupancy.h`` of CUDA 13.0.
    """

    name: str  # as ptxas and LLVM spell it: "sm_90"
    features: str  # PTX version that LLVM writes, the oldest with all that tuner's kernels use on the chip
    shared_bytes: int  # of a multiprocessor, for blocks
    max_threads: int  # resident on a multiprocessor
    max_blocks: int  # resident on a multiprocessor
    max_barriers: int  # named barriers of all blocks of a multiprocessor; before sm_90 each block has 16

    @property
    def max_shared_bytes(self) -> int:
        """Returns the bytes of shared memory that one block may use at most, static and dynamic together."""
        return self.shared_bytes - RESERVED_SHARED_BYTES

    @property
    def max_warps(self) -> int:
        """Returns how many warps of 32 threads can be resident on a multiprocessor."""
        return self.max_threads // WARP_THREADS

    @property
    def capability(self) -> int:
        """Returns the compute capability times ten: 90 for sm_90 and sm_90a."""
        return int(self.name.removeprefix("sm_").rstrip("a"))

    @property
    def is_specific(self) -> bool:
        """Returns whether code may use features of this architecture alone, such as wgmma on sm_90a."""
        return self.name.endswith("a")


CHIPS = {
    chip.name: chip
    for chip in (
        Chip("sm_80", "+ptx80", 164 * KIB, max_threads=2048, max_blocks=32, max_barriers=32 * 16),
        Chip("sm_86", "+ptx80", 100 * KIB, max_threads=1536, max_blocks=16, max_barriers=16 * 16),
        Chip("sm_89", "+ptx84", 100 * KIB, max_threads=1536, max_blocks=24, max_barriers=24 * 16),
        Chip("sm_90", "+ptx84", 228 * KIB, max_threads=2048, max_blocks=32, max_barriers=64),
        Chip("sm_90a", "+ptx84", 228 * KIB, max_threads=2048, max_blocks=32, max_barriers=64),
        Chip("sm_100", "+ptx86", 228 * KIB, max_threads=2048, max_blocks=32, max_barriers=64),
        Chip("sm_120", "+ptx87", 100 * KIB, max_threads=1536, max_blocks=24, max_barriers=24),
    )
}


def chip_of(name: str) -> Chip:
    """Returns the chip with a name such as sm_90a. Raises UsageError for the name of no known chip."""
    if name not in CHIPS:
        raise unknown_value("chip", name, CHIPS)
    return CHIPS[name]


def most_specific(chip: str) -> str:
    """Returns the name under which code for a GPU may use all it has: sm_90a for sm_90; else the name."""
    if f"{chip}a" in CHIPS:
        return f"{chip}a"
    return chip


# The port (abstract interface) of a GPU as the host sees it: memory, streams, events, modules, launches.
# Handles and addresses are integers; stream 0 is the default stream. One address space: ``copy`` takes host
# and device addresses alike. Every operation on a stream is asynchronous: it may run at any time from the
# call until the host waits for the stream, or for an event recorded after the operation.


class DeviceError(TunerError):
    """A call of the GPU driver failed, or no GPU can do what was asked; a simulated GPU raises it, too.

    Args:
        message: what failed.
        error_name: the driver's name of the error, such as "CUDA_ERROR_ILLEGAL_ADDRESS"; "" if it named none.

    Example:
        >>> import tuner
        >>> payload = "func.func @twice(%x: f32) -> f32 { %y = arith.addf %x, %x : f32 return %y : f32 }"
        >>> program = tuner.compile_program(payload, target="simulator")
        >>> try:
        ...     program(1.0, stream=7)
        ... except tuner.DeviceError as error:
        ...     print(error.error_name)
        CUDA_ERROR_INVALID_HANDLE
    """

    def __init__(self, message: str, error_name: str = "") -> None:
        super().__init__(message)
        self.error_name = error_name

    def __reduce__(self) -> tuple[type["DeviceError"], tuple[str, str]]:
        """Pickles the exception by its fields, so that it can be sent between processes."""
        return (DeviceError, (str(self), self.error_name))

    @property
    def is_sticky(self) -> bool:
        """Returns whether every later GPU call of this process will fail too, as after an illegal address."""
        return self.error_name in STICKY_ERRORS


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


@dataclass(frozen=True)
class TensorMapLayout:
    """How a tensor map (CUtensorMap) tiles a tensor: arguments of cuTensorMapEncodeTiled."""

    sizes: tuple[int, ...]  # elements, innermost first
    strides_bytes: tuple[int, ...]  # of every dimension but the innermost
    box: tuple[int, ...]  # elements, innermost first
    dtype: int  # CUtensorMapDataType
    interleave: int = 0  # CUtensorMapInterleave
    swizzle: int = 0  # CUtensorMapSwizzle
    l2_promotion: int = 0  # CUtensorMapL2promotion
    out_of_bounds: int = 0  # CUtensorMapFloatOOBfill


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

        The call's work runs after the work enqueued on ``stream``; None: it is done when the call ends.
        """

    @abc.abstractmethod
    def end_call(self, stream: int | None) -> None:
        """Notifies that the current call of a host program ends."""

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

    In the life of a candidate (``tuner.targets.gpu.arrays``): ``load_module``, ``function`` for each
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
        """Loads GPU code (a cubin, fatbin or PTX text); returns the module's handle.

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
