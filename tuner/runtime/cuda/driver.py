"""The interface for calls of the CUDA driver; errors of the driver become DeviceError."""

import abc
from typing import Any, final

from tuner.core.device import DeviceError

SUCCESS = 0
Called = tuple[int, tuple[Any, ...]]  # CUresult, and the outputs in C's order


class AbstractDriver(abc.ABC):
    """An interface to call functions of the CUDA driver, those of the table ``driver_calls.CALLS``."""

    origin: str  # "cuda-bindings 13.5", "libcuda.so.1"

    @abc.abstractmethod
    def call(self, name: str, *inputs: Any) -> Called:
        """Calls the driver function ``name`` of the table CALLS; returns (CUresult, tuple of outputs).

        ``inputs`` are the function's inputs in C's order. An error of the function raises nothing: see the
        CUresult. Raises DeviceError where the driver is too old to have the function.
        """


@final
class CheckedDriver:
    """Calls functions of the CUDA driver; raises DeviceError for a CUresult other than CUDA_SUCCESS."""

    def __init__(self, driver: AbstractDriver) -> None:
        self._driver = driver
        self.origin = driver.origin

    def __call__(self, name: str, *inputs: Any, doing: str = "") -> Any:
        """Makes a driver call; returns its output, a tuple of several outputs, or None without outputs.

        ``doing`` says in the error what the call is for. Raises DeviceError.
        """
        result, outputs = self._driver.call(name, *inputs)
        if result != SUCCESS:
            raise self._error(name, result, doing)
        return outputs[0] if len(outputs) == 1 else outputs or None

    def _error(self, name: str, result: int, doing: str) -> DeviceError:
        error_name = self._text("cuGetErrorName", result) or f"CUDA error {result}"
        description = self._text("cuGetErrorString", result)
        parts = (name, doing, error_name, description)
        return DeviceError(": ".join(part for part in parts if part), error_name)

    def _text(self, name: str, result: int) -> str:
        code, outputs = self._driver.call(name, result)
        return (outputs[0] or b"").decode() if code == SUCCESS else ""
