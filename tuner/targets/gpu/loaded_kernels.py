"""A compiled program on a device: kernels loaded, scratch memory allocated."""

import contextlib
import ctypes
import weakref
from collections.abc import Callable, Mapping
from typing import final

from tuner.core.device import AbstractDevice, DeviceError, Extent, KernelLaunch
from tuner.core.errors import Stage
from tuner.core.kernel_program import BufferMap, KernelBuffer, KernelProgram, Launch
from tuner.targets.gpu.failures import allocating

POISON = 0xFFFFFFFF  # a NaN in every floating-point type
SLOT_BYTES = 128  # of an argument: a tensor map, which must be aligned to 64 bytes


@final
class LoadedKernels:
    """A compiled program on a device: its kernels are loaded and its scratch memory is allocated.

    Kernels are unloaded and memory is freed when this object is garbage-collected.
    """

    def __init__(self, device: AbstractDevice, program: KernelProgram) -> None:
        """Loads cubin or PTX and allocates scratch memory.

        Raises DeviceError, and CandidateError(LOAD) where the GPU lacks memory.
        """
        self._device = device
        self._program = program
        self._scratch: dict[str, int] = {}
        module = device.load_module(program.cubin or program.ptx.encode())
        forget = weakref.finalize(self, _give_back, device, module, self._scratch)
        forget.atexit = False  # the driver and its memory are gone by then
        self._functions = {
            launch.kernel: device.function(module, launch.kernel) for launch in program.launches
        }
        own = [buffer for buffer in program.buffers if buffer.role == "scratch"]
        with allocating("scratch", sum(buffer.bytes for buffer in own), Stage.LOAD):
            for buffer in own:
                self._scratch[buffer.name] = device.allocate(buffer.bytes, 0)

    def poison(self) -> None:
        """Sets all bits of the program's scratch memory: a read of an unwritten element shows in C.

        These bits are NaN in every floating-point type and -1 in signed integers.
        """
        for buffer in self._program.buffers:
            if buffer.name in self._scratch:
                self._fill(buffer, self._scratch[buffer.name], POISON, 0)

    def work(self, addresses: Mapping[str, int]) -> Callable[[int], None]:
        """Returns a function that enqueues one run of the program on the stream that it is given.

        ``addresses``: device addresses of the problem's buffers by name, such as "a". Each run first zeroes
        the buffers that the program needs zeroed.
        """
        every = {**addresses, **self._scratch}
        zeroed = [(buffer, every[buffer.name]) for buffer in self._program.buffers if buffer.is_zeroed]
        launches = [self._prepared(launch, every) for launch in self._program.launches]

        def enqueue(stream: int) -> None:
            for buffer, address in zeroed:
                self._fill(buffer, address, 0, stream)
            for launch, _ in launches:
                self._device.launch(launch, stream)

        return enqueue

    def _prepared(self, launch: Launch, addresses: Mapping[str, int]) -> tuple[KernelLaunch, "Arguments"]:
        """Returns a launch for the device, and its arguments, which must stay alive as long as the launch."""
        arguments = Arguments(launch, addresses, self._device)
        ready = KernelLaunch(
            self._functions[launch.kernel],
            Extent(*launch.grid),
            Extent(*launch.block),
            launch.dynamic_shared_bytes,
            arguments.address,
            len(launch.arguments),
        )
        return ready, arguments

    def _fill(self, buffer: KernelBuffer, address: int, value: int, stream: int) -> None:
        item_bytes = 4 if buffer.bytes % 4 == 0 else 1
        low = value & (1 << 8 * item_bytes) - 1
        self._device.fill(address, low, item_bytes, buffer.bytes // item_bytes, stream)


@final
class Arguments:
    """The arguments of a kernel launch, pointers and tensor maps, in memory as CUDA reads them."""

    def __init__(self, launch: Launch, addresses: Mapping[str, int], device: AbstractDevice) -> None:
        """Encodes the launch's tensor maps. Raises DeviceError for a tensor map that the driver rejects."""
        values = [_value(launch.tensor_map(name) or name, addresses, device) for name in launch.arguments]
        self._values = (ctypes.c_uint8 * (SLOT_BYTES * (len(values) + 1)))()  # one more: the start moves
        start = -(-ctypes.addressof(self._values) // SLOT_BYTES) * SLOT_BYTES
        places = [start + SLOT_BYTES * number for number in range(len(values))]
        for place, each in zip(places, values, strict=True):
            ctypes.memmove(place, each, len(each))
        self._pointers = (ctypes.c_uint64 * len(places))(*places)

    @property
    def address(self) -> int:
        """Returns the address of the ``void*[]`` for the launch, whose entries point to the arguments."""
        return ctypes.addressof(self._pointers)


def _value(argument: str | BufferMap, addresses: Mapping[str, int], device: AbstractDevice) -> bytes:
    if isinstance(argument, BufferMap):
        return device.tensor_map(addresses[argument.buffer], argument.layout)
    return addresses[argument].to_bytes(8, "little")


def _give_back(device: AbstractDevice, module: int, scratch: dict[str, int]) -> None:
    with contextlib.suppress(DeviceError):  # of a context that is lost
        for address in scratch.values():
            device.free(address, 0)
        device.unload_module(module)
