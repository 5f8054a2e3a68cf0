"""Calls the CUDA driver through NVIDIA's package cuda-bindings."""

import ctypes
from typing import Any, final

from tuner.core.device import DeviceError
from tuner.runtime.cuda.driver import AbstractDriver, Called
from tuner.runtime.cuda.driver_calls import (
    CALLS,
    LAUNCH,
    NAME_BYTES,
    NUMBERS_32,
    NUMBERS_64,
    OUT_HANDLE,
    OUT_MAP,
    OUT_NAME,
    OUT_TEXT,
    TENSOR_MAP_BYTES,
    ParameterKind,
)
from tuner.runtime.cuda.launch_config import CLUSTER_DIMENSION, LaunchConfig


@final
class BindingsDriver(AbstractDriver):
    """Calls the CUDA driver through NVIDIA's package cuda-bindings."""

    def __init__(self) -> None:
        """Imports cuda-bindings. Raises ImportError; a missing driver fails at the first call."""
        import cuda.bindings
        from cuda.bindings import driver

        self._driver: Any = driver
        self.origin = f"cuda-bindings {cuda.bindings.__version__}"

    def call(self, name: str, *inputs: Any) -> Called:
        """Calls the driver function ``name`` of the table CALLS; returns (CUresult, tuple of outputs).

        ``inputs`` are the function's inputs in C's order. A CUresult other than 0 comes without outputs.
        Raises DeviceError where the function or the driver library is missing.
        """
        kinds = CALLS[name].kinds
        given = iter(inputs)
        # the bindings allocate the buffer for a name; its size is an input
        arguments = [
            NAME_BYTES if kind is OUT_NAME else self._input(kind, next(given))
            for kind in kinds
            if kind is OUT_NAME or not kind.is_output
        ]
        try:
            result, *outputs = getattr(self._driver, name)(*arguments)
        except (RuntimeError, AttributeError) as error:  # the function or the library is missing
            raise DeviceError(f"{name}: {_line(error)}") from error
        wanted = [kind for kind in kinds if kind.is_output]
        if int(result) != 0:
            return int(result), ()
        return 0, tuple(_output(kind, each) for kind, each in zip(wanted, outputs, strict=True))

    def _input(self, kind: ParameterKind, value: Any) -> Any:
        if kind is NUMBERS_64 or kind is NUMBERS_32:
            number = self._driver.cuuint64_t if kind is NUMBERS_64 else self._driver.cuuint32_t
            return [number(each) for each in value]
        if kind is LAUNCH:
            return self._config(value)
        return getattr(self._driver, kind.enum)(value) if kind.enum else value

    def _config(self, config: LaunchConfig) -> Any:
        driver = self._driver
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID(CLUSTER_DIMENSION)
        sizes = attribute.value.clusterDim
        sizes.x, sizes.y, sizes.z = config.cluster
        found = driver.CUlaunchConfig()
        found.gridDimX, found.gridDimY, found.gridDimZ = config.grid
        found.blockDimX, found.blockDimY, found.blockDimZ = config.block
        found.sharedMemBytes, found.hStream = config.shared_bytes, config.stream
        found.attrs, found.numAttrs = [attribute], 1
        return found


def _output(kind: ParameterKind, found: Any) -> Any:
    """Returns an output of cuda-bindings as a number or as bytes."""
    if kind is OUT_MAP:
        return ctypes.string_at(found.getPtr(), TENSOR_MAP_BYTES)
    if kind is OUT_NAME or kind is OUT_TEXT:
        return (found or b"").split(b"\0")[0]
    return int(found) if kind is OUT_HANDLE or not isinstance(found, int | float) else found


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
