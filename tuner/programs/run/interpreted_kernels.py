"""Interpreted kernels as C functions that JIT-compiled host code calls."""

import ctypes
from collections.abc import Callable
from ctypes import c_int64, c_void_p
from typing import Any

from tuner.programs.interpret.kernels import LaneKernel, LaneLaunch, read_kernels
from tuner.programs.lower.on_host.interpreted_kernels import PREFIX, SIZES, UNKNOWN_SIZE
from tuner.programs.lower.on_host.libm_names import CALLBACK
from tuner.programs.run.kept_error import KeptError
from tuner.programs.run.runner_functions import Write
from tuner.runtime.arrays.memref import MemRef


class InterpretedKernels:
    """C functions, one per kernel, that JIT-compiled host code calls and that interpret the kernel's MLIR.

    Their addresses are valid as long as this object. After a call of the compiled code, its caller must call
    ``error.raise_it``.
    """

    def __init__(self, text: str, write: Write) -> None:
        """Reads kernels from MLIR text, which may be empty. Raises CandidateError.

        Args:
            text: a module with the kernels.
            write: receives the text that the kernels print.
        """
        kernels = read_kernels(text) if text else {}
        self.error = KeptError()
        self._write = write
        self._functions = {name: self._function(kernel) for name, kernel in kernels.items()}

    def addresses(self) -> dict[str, int]:
        """Returns the address of each kernel's C function, by the name that the host code calls."""
        return {
            CALLBACK + PREFIX + name: ctypes.cast(function, c_void_p).value or 0
            for name, function in self._functions.items()
        }

    def _function(self, kernel: LaneKernel) -> Any:
        kinds = [c_void_p] * (1 + len(kernel.parameters))
        return ctypes.CFUNCTYPE(None, *kinds)(self._guarded(kernel))

    def _guarded(self, kernel: LaneKernel) -> Callable[..., None]:
        def launch(sizes: int, *parameters: int) -> None:
            if self.error.is_there:
                return
            try:
                first = MemRef.at(sizes, 1).address(ctypes.sizeof(c_int64))
                gx, gy, gz, bx, by, bz, shared_bytes = (c_int64 * SIZES).from_address(first)
                given = None if shared_bytes == UNKNOWN_SIZE else shared_bytes
                kernel.launch(LaneLaunch((gx, gy, gz), (bx, by, bz), given), parameters, self._write)
            except BaseException as error:  # noqa: BLE001 - kept, and raised again
                self.error.keep(error)

        return launch
