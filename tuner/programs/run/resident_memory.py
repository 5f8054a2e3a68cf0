"""Device memory that a program keeps from call to call: weights, and buffers with padding."""

import contextlib
import ctypes

import numpy as np

from tuner.core.device import AbstractDevice
from tuner.core.device_program import ResidentBuffer
from tuner.programs.run.marshalling import PassedArgument
from tuner.runtime.arrays.memref import MemRef


class ResidentMemory:
    """The resident buffers of a program on a device, as arguments of its calls."""

    def __init__(
        self,
        device: AbstractDevice,
        buffers: tuple[ResidentBuffer, ...],
        shared: tuple[PassedArgument | None, ...] = (),
    ) -> None:
        """Takes the buffers; ``shared``: memory of another object, per buffer, for those that it has."""
        self._device, self._buffers = device, buffers
        self._shared = shared or (None,) * len(buffers)
        self._addresses: list[int] = []
        self.arguments: tuple[PassedArgument, ...] = ()

    def load(self) -> None:
        """Allocates the buffers and copies their content to the device. Raises DeviceError."""
        if not self._buffers:
            return
        watch = self._device.watch
        with watch.outside_of_calls() if watch is not None else contextlib.nullcontext():
            stream = self._device.create_stream()
            try:
                self.arguments = tuple(
                    self._loaded(buffer, stream) if known is None else known
                    for buffer, known in zip(self._buffers, self._shared, strict=True)
                )
            finally:
                self._device.destroy_stream(stream)

    def for_graph(self) -> "ResidentMemory":
        """Returns the same buffers with own memory for those that calls write: graphs may run together.

        Raises DeviceError.
        """
        shared = tuple(
            None if buffer.is_written else argument
            for buffer, argument in zip(self._buffers, self.arguments, strict=True)
        )
        own = ResidentMemory(self._device, self._buffers, shared)
        if None in shared:
            own.load()
        else:
            own.arguments = self.arguments
        return own

    def close(self) -> None:
        """Frees the memory, once the work on it is done. Raises DeviceError."""
        addresses, self._addresses = self._addresses, []
        for address in addresses:
            self._device.free(address, 0)

    def _loaded(self, buffer: ResidentBuffer, stream: int) -> PassedArgument:
        size = len(buffer.content)
        address = self._device.allocate(max(size, 1), stream)
        self._addresses.append(address)
        if size:
            source = ctypes.create_string_buffer(buffer.content, size)
            self._device.copy(address, ctypes.addressof(source), size, stream)
            self._device.synchronize_stream(stream)
        if self._device.watch is not None:
            self._device.watch.keep(address)
        shape = tuple(extent or 0 for extent in buffer.type.shape)
        content = np.array(MemRef.of(address, shape).words, np.int64).tobytes()
        return PassedArgument(content, True, None, None)
