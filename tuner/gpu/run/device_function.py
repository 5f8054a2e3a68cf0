"""A compiled host program on a device as a Python function, and a call captured as a CUDA graph.

``DeviceFunction`` is the function; ``ResidentMemory`` holds the buffers that stay on the device from call to
call; a ``ProgramGraph`` replays a captured call.
"""

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tuner.core.device import AbstractDevice
from tuner.core.device_programs import BufferType, DeviceProgram, ResidentBuffer
from tuner.core.errors import DeviceError, UsageError
from tuner.gpu.run.mgpu import MgpuTable
from tuner.runtime.arrays import stream_handle, wait_for_producers
from tuner.runtime.process_state import LoadedCode, thread_lock
from tuner.runtime.programs.host_errors import HostFaults, with_checks
from tuner.runtime.programs.host_heap import HostHeap
from tuner.runtime.programs.machine_code import HostCode
from tuner.runtime.programs.marshalling import (
    CallFrame,
    PassedArgument,
    allocated_for_results,
    copied,
    descriptor_of,
    notify_after_call,
    pass_arguments,
    viewed,
)
from tuner.runtime.programs.runner_functions import RunnerFunctions, Write, math_symbols

# CUDA errors for a host wait for captured work
WAITS = ("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "CUDA_ERROR_CAPTURED_EVENT")


class ProgramGraph:
    """One call of a program, captured as a CUDA graph that can be launched until the program is closed.

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
        self.results = tuple(
            result.copy() if isinstance(result, np.ndarray) else result for result in self.results
        )
        self._free()


class ResidentMemory:
    """The buffers of a program that stay on the device between calls, as arguments of the calls."""

    def __init__(
        self,
        device: AbstractDevice,
        buffers: tuple[ResidentBuffer, ...],
        shared: tuple[PassedArgument | None, ...] = (),
    ) -> None:
        """Takes the buffers; ``shared``: per buffer an argument to use in place of new memory, else None."""
        self._device = device
        self._buffers = buffers
        self._shared = shared or (None,) * len(buffers)
        self._addresses: list[int] = []
        self.arguments: tuple[PassedArgument, ...] = ()

    def load(self) -> None:
        """Allocates the buffers and copies their contents to the device.

        Raises DeviceError where the device refuses, for example for lack of memory.
        """
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
        """Returns the same buffers for a graph; buffers that calls write get new memory and are loaded.

        So graphs of a program may run at the same time.
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
        """Frees the memory that ``load`` allocated; shared arguments stay. A second call does nothing."""
        addresses = self._addresses
        self._addresses = []
        for address in addresses:
            self._device.free(address, 0)

    def _loaded(self, buffer: ResidentBuffer, stream: int) -> PassedArgument:
        size = len(buffer.data)
        address = self._device.allocate(max(size, 1), stream)
        self._addresses.append(address)
        if size:
            source = np.frombuffer(buffer.data, np.uint8)
            self._device.copy(address, source.ctypes.data, size, stream)
            self._device.synchronize_stream(stream)
        if self._device.watch is not None:
            self._device.watch.keep(address)
        shape = tuple(extent or 0 for extent in buffer.type.shape)
        return PassedArgument(descriptor_of(address, shape), True)


class DeviceFunction(LoadedCode):
    """A callable that runs a compiled program on a device, one call at a time, from any thread.

    Buffers are numpy arrays, or arrays in device memory if the program has device arguments. A program on
    streams keeps its streams from call to call; the caller may provide the first stream.
    """

    load_again = "tuner.compile_program(payload)"

    def __init__(
        self,
        program: DeviceProgram,
        device: AbstractDevice,
        write: Write = sys.stdout.write,
        why_no_fusions: str = "",
    ) -> None:
        """Compiles the host code, loads the kernels, copies resident buffers to the device.

        ``write`` receives the text that the program prints. ``why_no_fusions`` says why the program is not
        compiled as fusions; "" where fusions were not asked for. Raises CandidateError(LOAD) where host code
        or kernels do not load, DeviceError where the device refuses.
        """
        self.program = program
        self.device = device
        self.why_no_fusions = why_no_fusions
        self._lock = thread_lock()
        self._table = MgpuTable(device)
        self._heap = HostHeap(device.watch)
        watch = device.watch
        self._faults = None if watch is None else HostFaults(watch, self._table.error.keep)
        self._runner = RunnerFunctions(write, watch, self._faults)
        symbols = self._table.addresses() | self._heap.addresses() | self._runner.addresses()
        symbols |= math_symbols(program.llvm)
        llvm = program.llvm
        if self._faults is not None:
            symbols |= self._faults.addresses()
            llvm = with_checks(llvm)
        self._code: HostCode | None = HostCode(
            llvm, program.entry, symbols, catches_assertions=watch is not None
        )
        self._streams: tuple[int, ...] = ()
        self._resident = ResidentMemory(device, program.resident)
        self._kept: tuple[PassedArgument, ...] = ()  # arguments of a call that may still run
        try:
            self._table.error.raise_it()
            self._streams = tuple(device.create_stream() for _ in range(program.stream_slots))
            self._resident.load()
        except BaseException:
            with contextlib.suppress(DeviceError):  # the first error is the one to report
                self.close()
            raise

    def __repr__(self) -> str:
        return f"DeviceFunction({self.program.signature}; on {self.device.name})"

    def __call__(self, *arguments: object, stream: object = None) -> Any:
        """Calls the function on the device.

        The call returns when host memory is as the function leaves it. A program on device memory without
        results only enqueues its work on ``stream``.

        Args:
            arguments: numpy arrays, or other arrays in host memory (DLPack), of the function's shapes and
                types; arrays in device memory where the program was compiled with ``device_arguments``;
                numbers for scalars.
            stream: handle of a stream, or an object that has one; None: a stream of the program.

        Returns:
            The result; a tuple of several results; None without a result.

        Raises:
            UsageError: arguments of another number, shape or type, a closed program, or a stream that the
                program cannot take.
            CandidateError: an assertion of the program failed, on the simulator (stage RUN).
            DeviceError: the device or its driver refused.

        Example:
            >>> import numpy as np
            >>> import tuner
            >>> twice = "func.func @twice(%x: !t) -> !t { %y = arith.addf %x, %x : !t return %y : !t }"
            >>> payload = f"!t = tensor<4xf32> {twice}"
            >>> program = tuner.compile_program(payload, target="simulator")
            >>> program(np.ones(4, np.float32))
            array([2., 2., 2., 2.], dtype=float32)
        """
        with self._lock:
            slots = self._slots(stream)
            passed = self._pass(arguments, slots)
            self._wait_for_producers(passed, slots[0] if slots else None)
            results = self._run(passed, slots)
        if len(results) == 1:
            return results[0]
        return results or None

    def as_graph(self, *arguments: object) -> ProgramGraph:
        """Captures one call as a CUDA graph; each launch of the graph reads the same argument arrays anew.

        Args:
            arguments: those of a call of the program.

        Returns:
            The graph; ``graph.launch()`` runs the call again.

        Raises:
            UsageError: arguments of another number, shape or type, a closed program, a program that
                creates its own streams, or one that waits for the device in the middle of the call.
            DeviceError: the device or its driver refused.

        Example:
            >>> import tuner
            >>> payload = "func.func @twice(%x: f32) -> f32 { %y = arith.addf %x, %x : f32 return %y : f32 }"
            >>> program = tuner.compile_program(payload, target="simulator")
            >>> graph = program.as_graph(1.0)
            >>> graph.launch()
            (np.float32(2.0),)
        """
        entry = self.program.entry
        with self._lock:
            slots = self._slots(None)
            if not slots:
                raise UsageError(f"{entry}: the program makes its own streams, which a graph cannot contain")
            passed = self._pass(arguments, slots)
            self._wait_for_producers(passed, None)  # before the capture, not in it
            own = self._resident.for_graph()
            frame = CallFrame((*passed, *own.arguments), slots, self.program.results)
            graph = self._capture(frame, slots[0])
            results = frame.results()
            # freed for the program, but kept from the allocator until the graph is closed: each launch uses
            # the memory of the captured call
            for address in allocated_for_results(results, passed):
                self._heap.free(address)
            kept = self._heap.take_freed()

        def free() -> None:
            self._heap.give_back(kept)
            own.close()

        return ProgramGraph(
            self.device,
            graph,
            viewed(results, self.program),
            passed,
            self.program,
            lambda: self._code is not None,
            free,
        )

    def close(self) -> None:
        """Unloads the kernels and destroys the program's streams, once the work on these streams is done.

        Does not wait for a stream that a call was given: synchronize that one first. A second call does
        nothing.

        Returns:
            None.

        Raises:
            DeviceError: the device or its driver refused; everything else is released nevertheless.

        Example:
            >>> import tuner
            >>> payload = "func.func @twice(%x: f32) -> f32 { %y = arith.addf %x, %x : f32 return %y : f32 }"
            >>> program = tuner.compile_program(payload, target="simulator")
            >>> program.close()
        """
        with self._lock:
            code = self._code
            self._code = None
            if code is None:
                return
            with contextlib.ExitStack() as last_first:  # runs every callback, even if one raises
                last_first.callback(self._table.error.raise_it)
                last_first.callback(lambda: self._heap.give_back(self._heap.take_freed()))
                last_first.callback(code.close)
                last_first.callback(self._table.close)
                last_first.callback(self._resident.close)
                for stream in self._streams:
                    last_first.callback(self.device.destroy_stream, stream)
                    last_first.callback(self.device.synchronize_stream, stream)

    @property
    def host_allocations(self) -> int:
        """Returns how many memory blocks the host code has allocated and not freed so far; 0: no leak."""
        return self._heap.in_use

    @property
    def is_synchronous(self) -> bool:
        """True if a call waits for its work: it uses host memory, returns arrays, or takes no stream."""
        program = self.program
        has_results = any(isinstance(result, BufferType) for result in program.results)
        return not program.stream_slots or not program.device_arguments or has_results

    def _slots(self, stream: object) -> tuple[int, ...]:
        if self._code is None:
            raise UsageError(f"{self.program.entry}: the program is closed")
        if stream is None:
            return self._streams
        if not self._streams:
            raise UsageError(f"{self.program.entry}: takes no stream: each call makes its own")
        return (stream_handle(stream), *self._streams[1:])

    def _wait_for_producers(self, passed: tuple[PassedArgument, ...], stream: int | None) -> None:
        views = [argument.view for argument in passed if argument.view is not None]
        wait_for_producers(self.device, views, stream)

    def _pass(self, arguments: tuple[object, ...], slots: tuple[int, ...]) -> tuple[PassedArgument, ...]:
        return pass_arguments(self.program, arguments, slots[0] if slots else 0)

    def _run(self, passed: tuple[PassedArgument, ...], slots: tuple[int, ...]) -> tuple[Any, ...]:
        first = slots[0] if slots else None
        watch = self.device.watch
        frame = CallFrame((*passed, *self._resident.arguments), slots, self.program.results)
        self._invoke(frame, first, passed)
        self._kept = passed
        if not self.is_synchronous:
            return copied(frame.results(), self.program, watch)
        if first is not None:
            self.device.synchronize_stream(first)
        notify_after_call(passed, self.program, watch)
        results = copied(frame.results(), self.program, watch)
        for address in allocated_for_results(frame.results(), passed):
            if not self._table.free_shared(address):
                self._heap.free(address)
        self._kept = ()
        self._heap.give_back(self._heap.take_freed())
        return results

    def _invoke(self, frame: CallFrame, first: int | None, passed: tuple[PassedArgument, ...]) -> None:
        assert self._code is not None
        watch = self.device.watch
        if watch is not None:
            watch.begin_call(first)
        try:
            self._code(frame.address)
            self._table.error.raise_it()
        except BaseException:
            if watch is not None:
                watch.abandon_call()
            raise
        if watch is not None:
            for address in allocated_for_results(frame.results(), passed):
                watch.keep(address)
            watch.end_call(first)

    def _capture(self, frame: CallFrame, stream: int) -> int:
        assert self._code is not None
        self.device.begin_capture(stream)
        try:
            self._code(frame.address)
            self._table.error.raise_it()
        except BaseException as error:
            with contextlib.suppress(DeviceError):  # the first error is the one to report
                self.device.destroy_graph(self.device.end_capture(stream))
            if isinstance(error, DeviceError) and error.error_name in WAITS:
                entry = self.program.entry
                raise UsageError(f"{entry}: waits in its middle, which a graph cannot: {error}") from error
            raise
        return self.device.end_capture(stream)
