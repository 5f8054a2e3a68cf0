"""One call of a program, captured as a CUDA graph."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tuner.core.device import AbstractDevice
from tuner.core.device_program import DeviceProgram
from tuner.core.errors import UsageError
from tuner.programs.run.marshalling import PassedArgument
from tuner.programs.run.results import note_reads
from tuner.runtime.arrays.stream_handle import stream_handle


class ProgramGraph:
    """A captured call of a program: each launch reads the arguments again and writes the same results.

    The program must stay open as long as the graph is launched.
    """

    def __init__(
        self,
        device: AbstractDevice,
        graph: int,
        results: tuple[Any, ...],
        passed: tuple[PassedArgument, ...],
        program: DeviceProgram,
        is_program_open: Callable[[], bool],
        free: Callable[[], None],
    ) -> None:
        """Stores a captured graph.

        Args:
            device: the device of the graph.
            graph: handle of the graph.
            results: arrays that the launches write.
            passed: arguments, which must stay alive.
            program: the captured program.
            is_program_open: returns whether the program is open.
            free: frees the memory of the captured call.
        """
        self.results = results  # the same arrays after each launch
        self._device = device
        self._graph: int | None = graph
        self._passed = passed
        self._program = program
        self._is_program_open = is_program_open
        self._free = free
        self._stream = device.create_stream()

    def launch(self, stream: object = None) -> tuple[Any, ...]:
        """Launches the graph on ``stream``, or on the graph's stream if None; returns ``results``.

        Waits for the end of the work if host memory is read or written. Raises UsageError when the graph or
        the program is closed.
        """
        if self._graph is None:
            raise UsageError(f"{self._program.entry}: found a closed graph, allowed an open one")
        if not self._is_program_open():  # a closed program's kernels and constants are gone
            raise UsageError(f"{self._program.entry}: found a graph of a closed program, allowed an open one")
        handle = self._stream if stream is None else stream_handle(stream)
        self._device.launch_graph(self._graph, handle)
        if self.results or not self._program.device_arguments:
            self._device.synchronize_stream(handle)
            self._note_reads()
        return self.results

    def close(self) -> None:
        """Destroys the graph and its stream; ``results`` become copies, which stay valid."""
        if self._graph is None:
            return
        self._device.synchronize_stream(self._stream)
        self._device.destroy_graph(self._graph)
        self._device.destroy_stream(self._stream)
        self._graph = None
        self.results = tuple(each.copy() if isinstance(each, np.ndarray) else each for each in self.results)
        self._free()

    def _note_reads(self) -> None:
        watch = self._device.watch
        note_reads(self._passed, self._program, watch)
        for array in self.results:
            if watch is not None and isinstance(array, np.ndarray) and array.nbytes:
                watch.host_reads(array.ctypes.data, array.nbytes)
