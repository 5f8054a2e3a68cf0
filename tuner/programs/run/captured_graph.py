"""One call of a program, captured as a CUDA graph."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tuner.core.errors import UsageError
from tuner.core.gpu import AbstractDevice
from tuner.core.gpu_code import DeviceProgram
from tuner.programs.run.marshalling import PassedArgument, notify_after_call
from tuner.runtime.arrays import stream_handle


class ProgramGraph:
    """One call of a program, captured as a CUDA graph, which launches until the program is closed.

    Each launch reads the argument arrays again and writes the same result arrays.
    """

    def __init__(
        self,
        device: AbstractDevice,
        graph: int,  # its handle
        results: tuple[Any, ...],  # arrays that the launches write
        passed: tuple[PassedArgument, ...],  # arguments, which must stay alive
        program: DeviceProgram,
        is_program_open: Callable[[], bool],
        free: Callable[[], None],  # frees the memory of the captured call
    ) -> None:
        self.results = results  # the same arrays after each launch
        self._device = device
        self._graph: int | None = graph
        self._passed = passed
        self._program = program
        self._is_program_open = is_program_open
        self._free = free
        self._stream = device.create_stream()

    def launch(self, stream: object = None) -> tuple[Any, ...]:
        """Launches the captured call; waits for its end if there are results or arguments on the host.

        Args:
            stream: handle of a CUDA stream, or an object that has one; None: a stream of the graph.

        Returns:
            The results as a tuple: the same arrays after each launch.

        Raises:
            UsageError: the graph or its program is closed.
            DeviceError: the device or its driver refused.

        Example:
            >>> import tuner
            >>> payload = "func.func @twice(%x: f32) -> f32 { %y = arith.addf %x, %x : f32 return %y : f32 }"
            >>> program = tuner.compile_program(payload, target="simulator")
            >>> graph = program.as_graph(1.0)
            >>> graph.launch()
            (np.float32(2.0),)
        """
        if self._graph is None:
            raise UsageError(f"{self._program.entry}: the graph is closed")
        if not self._is_program_open():  # a closed program's kernels and constants are gone
            raise UsageError(f"{self._program.entry}: the graph's program is closed")
        handle = self._stream if stream is None else stream_handle(stream)
        self._device.launch_graph(self._graph, handle)
        if self.results or not self._program.device_arguments:
            self._device.synchronize_stream(handle)
            watch = self._device.watch
            notify_after_call(self._passed, self._program, watch)
            for array in self.results:
                if watch is not None and isinstance(array, np.ndarray) and array.nbytes:
                    watch.host_reads(array.ctypes.data, array.nbytes)
        return self.results

    def close(self) -> None:
        """Destroys the graph and its stream, once the work on this stream is done.

        Does not wait for a stream that ``launch`` was given: synchronize that one first. ``results`` becomes
        copies of the result arrays; do not use arrays that ``launch`` returned any more. A second call does
        nothing.

        Returns:
            None.

        Raises:
            DeviceError: the device or its driver refused.

        Example:
            >>> import tuner
            >>> payload = "func.func @twice(%x: f32) -> f32 { %y = arith.addf %x, %x : f32 return %y : f32 }"
            >>> program = tuner.compile_program(payload, target="simulator")
            >>> graph = program.as_graph(1.0)
            >>> graph.close()
        """
        if self._graph is None:
            return
        self._device.synchronize_stream(self._stream)
        self._device.destroy_graph(self._graph)
        self._device.destroy_stream(self._stream)
        self._graph = None
        self.results = tuple(each.copy() if isinstance(each, np.ndarray) else each for each in self.results)
        self._free()
