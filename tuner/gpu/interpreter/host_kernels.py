"""Kernels that the interpreter runs for compiled host code, as C functions that the code calls."""

import ctypes
from ctypes import c_int64, c_void_p
from typing import Any

from tuner.gpu.interpreter.kernels import LaneKernel, LaneLaunch, read_kernels
from tuner.gpu.interpreter.kernels_on_host import PREFIX, SIZES, UNKNOWN_SIZE
from tuner.mlir.programs.host_code import CALLBACK
from tuner.runtime.arrays import MemRef
from tuner.runtime.programs.host_errors import KeptError, addresses_of
from tuner.runtime.programs.runner_functions import Write


class InterpretedKernels:
    """C functions that compiled host code calls, each of which interprets one kernel.

    Their addresses are valid as long as this object. After a call of the host code, call ``raise_error``.
    """

    def __init__(self, text: str, write: Write) -> None:
        """Decodes the kernels of MLIR text ("": none); ``write`` receives the text that kernels print."""
        kernels = read_kernels(text) if text else {}
        self._error = KeptError()
        self._write = write
        self._functions = {name: self._function(kernel) for name, kernel in kernels.items()}

    def addresses(self) -> dict[str, int]:
        """Returns the address of each kernel's C function, by the name that the host code calls."""
        return addresses_of(
            {CALLBACK + PREFIX + name: function for name, function in self._functions.items()}
        )

    def raise_error(self) -> None:
        """Raises the error of a kernel that failed in a call of the host code, once."""
        self._error.raise_it()

    def _function(self, kernel: LaneKernel) -> Any:
        def launch(sizes: int, *parameters: int) -> None:
            if self._error.is_there:
                return
            try:
                first = MemRef.at(sizes, 1).address(ctypes.sizeof(c_int64))
                gx, gy, gz, bx, by, bz, shared_bytes = (c_int64 * SIZES).from_address(first)
                dynamic_bytes = None if shared_bytes == UNKNOWN_SIZE else shared_bytes
                launched = LaneLaunch((gx, gy, gz), (bx, by, bz), dynamic_bytes)
                kernel.launch(launched, parameters, self._write)
            except BaseException as error:  # noqa: BLE001 - kept, and raised again
                self._error.keep(error)

        return ctypes.CFUNCTYPE(None, *[c_void_p] * (1 + len(kernel.parameters)))(launch)
