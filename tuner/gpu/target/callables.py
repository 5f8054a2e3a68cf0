"""A tuned GPU program as a Python callable, on arrays in host memory or on the device."""

from collections.abc import Callable
from typing import Any, final

import numpy as np

from tuner.core.compiled_code import KernelCode, buffers_of
from tuner.core.device import AbstractDevice
from tuner.core.errors import UsageError
from tuner.core.problem import Problem
from tuner.gpu.driver.probe import open_device
from tuner.gpu.target.arrays import LoadedKernels
from tuner.runtime.arrays import (
    device_array,
    overlap,
    require_distinct,
    require_writable,
    stream_handle,
    wait_for_producers,
)
from tuner.runtime.process_state import LoadedCode, thread_lock
from tuner.targets.signature import LOAD_AGAIN, KernelSignature, kernel_text


@final
class GpuCallable(LoadedCode):
    """A tuned GPU program of one problem as a Python callable: C = A B, on host arrays or device arrays.

    Safe to call from several threads: a lock serialises calls. Calls on several streams at once are not safe:
    they share the program's scratch memory.
    """

    load_again = LOAD_AGAIN

    def __init__(
        self, problem: Problem, program: KernelCode, device: AbstractDevice, origin: str = ""
    ) -> None:
        """Loads the program's kernels; ``origin``: text for ``repr`` on where they come from.

        Raises DeviceError if the driver rejects the code, CandidateError(LOAD) if device memory is missing.
        """
        self.problem = problem
        self.origin = origin
        self._device = device
        self._loaded = LoadedKernels(device, program)
        self._buffers = buffers_of(problem)
        self._signature = KernelSignature.of(problem, copies_inputs=True)
        self._lock = thread_lock()

    def __repr__(self) -> str:
        return kernel_text(self)

    def __call__(self, *inputs: Any, out: Any = None, stream: Any = None) -> Any:
        """Computes C from (a, b, arguments of the epilogue), row-major arrays as the layout stores them.

        numpy arrays are copied to the device and back; the call returns when C is computed. With arrays on
        the device (DLPack or ``__cuda_array_interface__``) ``out`` must be given and be on the device: the
        work is enqueued on ``stream`` (a handle, or an object that has one), and the call does not wait for
        the work. Returns ``out``, or a new numpy array. Raises UsageError for a wrong number, shape, dtype or
        element order and for an ``out`` that is read-only, or missing where it is needed; on the device also
        for an ``out`` that overlaps an input, and for an address that is not a multiple of 16; on the host
        for offsets of a grouped_matmul that fall or are not within 0 and m. On the device these are not read.
        """
        signature = self._signature
        signature.require_call(len(inputs), out)
        handle = 0 if stream is None else stream_handle(stream)
        if all(isinstance(array, np.ndarray) for array in inputs):
            return self._on_host(inputs, out, handle)
        if out is None:
            allowed = f"of {signature.output.dtype} {signature.output.shape}"
            raise UsageError(f"out: missing: it needs an array on the device, {allowed}")
        views = []
        for array, expected in zip((*inputs, out), (*signature.inputs, signature.output), strict=True):
            views.append(expected.checked_view(device_array(expected.name, array, handle)))
        *read, written = views
        require_writable("out", is_read_only=written.is_read_only)
        for view, expected in zip(read, signature.inputs, strict=True):
            require_distinct("out", expected.name, is_shared=overlap(view.memory, written.memory))
        with self._lock:
            wait_for_producers(self._device, views, handle)
            self._enqueue([view.address for view in views], handle)
        return out

    def _on_host(self, inputs: tuple[Any, ...], out: Any, stream: int) -> Any:
        result = self._signature.result(inputs, out)
        self._signature.require_offsets(inputs)
        device = self._device
        addresses: list[int] = []
        with self._lock:
            try:
                addresses.extend(device.allocate(buffer.bytes, stream) for buffer in self._buffers)
                for array, address in zip(inputs, addresses, strict=False):
                    device.copy(address, array.ctypes.data, array.nbytes, stream)
                # of groups, rows that are in none stay as they are
                if self.problem.after_product.reads_output or self.problem.groups:
                    device.copy(addresses[-1], result.ctypes.data, result.nbytes, stream)
                self._enqueue(addresses, stream)
                device.copy(result.ctypes.data, addresses[-1], result.nbytes, stream)
            finally:
                for address in addresses:
                    device.free(address, stream)
            device.synchronize_stream(stream)
        return result

    def _enqueue(self, addresses: list[int], stream: int) -> None:
        names = [buffer.name for buffer in self._buffers]
        self._loaded.work(dict(zip(names, addresses, strict=True)))(stream)


def load_program(problem: Problem, program: KernelCode, origin: str = "") -> Callable[..., Any]:
    """Opens this machine's GPU and returns a compiled program as a function of arrays.

    ``origin``: text on where the program comes from. Raises DeviceError without a GPU or if the driver
    rejects the code, CandidateError(LOAD) if memory is missing.
    """
    return GpuCallable(problem, program, open_device(), origin)
