"""Calls the CUDA driver through ctypes, which needs only libcuda."""

import ctypes
from collections.abc import Callable
from typing import Any, final

from tuner.core.device import DeviceError
from tuner.runtime.cuda.driver import AbstractDriver, Called
from tuner.runtime.cuda.driver_calls import (
    CALLS,
    LAUNCH,
    NAME_BYTES,
    NUMBERS_32,
    NUMBERS_64,
    OUT_NAME,
    UINT64_BY_POINTER,
    DriverCall,
    ParameterKind,
)
from tuner.runtime.cuda.launch_config import c_config

LIBRARY = "libcuda.so.1"


@final
class CtypesDriver(AbstractDriver):
    """Calls the CUDA driver through ctypes, in the shared library libcuda."""

    def __init__(self, library: str = LIBRARY) -> None:
        """Loads the library. Raises OSError where it is missing."""
        self._library = ctypes.CDLL(library)
        self._functions: dict[str, Any] = {}
        self.origin = library

    def call(self, name: str, *inputs: Any) -> Called:
        """Calls the driver function ``name`` of the table CALLS; returns (CUresult, tuple of outputs).

        ``inputs`` are the function's inputs in C's order. Raises DeviceError where the library lacks the
        function: the driver is too old.
        """
        call = CALLS[name]
        function = self._functions.get(name) or self._function(name, call)
        given, outputs = iter(inputs), []
        arguments: list[Any] = []
        for kind in call.kinds:
            if kind.is_output:
                outputs.append(kind.ctype())
                arguments.append(ctypes.byref(outputs[-1]))
                arguments += [NAME_BYTES] if kind is OUT_NAME else []
            else:
                arguments.append(_input(kind, next(given)))
        result = function(*arguments)
        return result, tuple(map(_output, outputs))

    def _function(self, name: str, call: DriverCall) -> Callable[..., int]:
        function: Any = getattr(self._library, call.symbol, None)
        if function is None:
            raise DeviceError(f"{name}: {self.origin} has no {call.symbol}: the CUDA driver is too old")
        function.restype = ctypes.c_int
        function.argtypes = [ctype for kind in call.kinds for ctype in _c_types(kind)]
        self._functions[name] = function
        found: Callable[..., int] = function
        return found


def _c_types(kind: ParameterKind) -> list[Any]:
    if kind is OUT_NAME:
        return [ctypes.c_void_p, ctypes.c_int]
    return [ctypes.c_void_p if kind.is_output else kind.ctype]


def _input(kind: ParameterKind, value: Any) -> Any:
    """Returns the ctypes argument for an input."""
    if kind is NUMBERS_64 or kind is NUMBERS_32:
        return (kind.ctype._type_ * len(value))(*value)
    if kind is UINT64_BY_POINTER:
        return ctypes.pointer(ctypes.c_uint64(value))
    if kind is LAUNCH:
        return ctypes.byref(c_config(value))
    return value


def _output(found: Any) -> Any:
    """Returns an output that the driver wrote as a number or as bytes."""
    if isinstance(found, ctypes.Array):
        return found.value if found._type_ is ctypes.c_char else bytes(found)
    return found.value or 0 if isinstance(found, ctypes.c_void_p) else found.value
