"""The interface through which the CUDA driver is called, and its errors as DeviceError."""

import abc
from typing import Any, final

from tuner.core.device import DeviceError

SUCCESS = 0
Called = tuple[int, tuple[Any, ...]]  # the CUresult, the outputs in C's order


class AbstractDriver(abc.ABC):
    """Makes the calls in the table of ``driver_calls``."""

    origin: str  # "cuda-bindings 13.5", "libcuda.so.1"

    @abc.abstractmethod
    def call(self, name: str, *inputs: Any) -> Called:
        """Makes one call. Raises DeviceError where the driver is too old to have it."""


@final
class CheckedDriver:
    """Makes calls; raises DeviceError for a CUresult other than success."""

    def __init__(self, driver: AbstractDriver) -> None:
        self._driver = driver
        self.origin = driver.origin

    def __call__(self, name: str, *inputs: Any, doing: str = "") -> Any:
        """Returns the output, a tuple of several, None without one. Raises DeviceError.

        ``doing`` tells in the error what the call is for.
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
