"""C functions that compiled host code calls: MLIR's runner functions, and the C math library."""

import ctypes
import re
import time
from collections.abc import Callable, Iterator
from ctypes import c_char_p, c_double, c_float, c_int64, c_uint16, c_uint64, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuner.core.device import AbstractHostWatch
from tuner.core.numpy_types import DTYPES, dtype_of
from tuner.mlir.effects.runner_signatures import (
    C_INTERFACE,
    CLOCKS,
    MEMREFS,
    PRINTED_SCALARS,
    SHAPES,
    number_text,
)
from tuner.mlir.programs.host_code import MATH_PREFIX
from tuner.runtime.arrays import MemRef, array_of
from tuner.runtime.programs.host_errors import HostFaults, addresses_of

MATH_LIBRARY = "libm.so.6"
DECLARED = re.compile(rf"llvm\.func @{MATH_PREFIX}(\w+)\(")
ARGUMENTS: dict[str, Any] = {
    "i64": c_int64,
    "i16": c_uint16,
    "f32": c_float,
    "f64": c_double,
    "ptr": c_char_p,
}
Write = Callable[[str], object]  # receives text, like the ``write`` method of a stream
READINGS: dict[str, Callable[[], float]] = {"rtclock": time.perf_counter, "nanoTime": time.perf_counter_ns}


def math_symbols(llvm_text: str) -> dict[str, int]:
    """Returns the addresses of C math functions that host code calls, by their names ``math_NAME``.

    ``llvm_text``: the result of ``with_prefixed_c_functions``. {} where there is no C math library.
    """
    names = sorted(set(DECLARED.findall(llvm_text)))
    try:
        library = ctypes.CDLL(MATH_LIBRARY)
    except OSError:
        return {}
    functions = {MATH_PREFIX + name: getattr(library, name, None) for name in names}
    return addresses_of({name: function for name, function in functions.items() if function is not None})


# MLIR's runner functions for compiled code that calls them; printed text goes to a Python function.
#
# The text is the same as mlir-runner's, see the C++ code of
# ``mlir/include/mlir/ExecutionEngine/RunnerUtils.h``.


def discard(_text: str) -> None:
    """Ignores printed text; used for calls that are timed."""


class RunnerFunctions:
    """The C functions of MLIR's runner libraries, which print and read clocks.

    Their addresses are valid as long as this object.
    """

    def __init__(
        self,
        write: Write,  # receives the printed text
        watch: AbstractHostWatch | None = None,  # checks host accesses
        faults: HostFaults | None = None,  # stores an error for a print of device memory, which is left out
    ) -> None:
        self._write = write
        self._watch = watch
        self._faults = faults
        self._functions: dict[str, Any] = {name: self._scalar(name) for name in PRINTED_SCALARS}
        for name, type_ in CLOCKS.items():
            self._functions[name] = ctypes.CFUNCTYPE(ARGUMENTS[type_])(READINGS[name])
        self._functions |= {C_INTERFACE + name: self._functions[name] for name in (*PRINTED_SCALARS, *CLOCKS)}
        for names, text_of in ((MEMREFS, memref_text), (SHAPES, shape_text)):
            for name, element in names.items():
                self._add_memref(name, element, text_of)

    def addresses(self) -> dict[str, int]:
        """Returns the address of each function by the name that the host code calls."""
        return addresses_of(self._functions)

    def _scalar(self, name: str) -> Any:
        types = [ARGUMENTS[type_] for type_ in PRINTED_SCALARS[name]]
        text_of = SCALAR_TEXTS[name]
        return ctypes.CFUNCTYPE(None, *types)(lambda *values: self._write(text_of(*values)))

    def _add_memref(self, name: str, element: str, text_of: Callable[[MemRef, str], str]) -> None:
        def show(rank: int, descriptor: int) -> None:
            view = MemRef.at(descriptor, rank)
            item_bytes = dtype_of(element).itemsize
            address = view.address(item_bytes)
            if self._faults is not None and self._faults.is_fault(address, "a print"):
                return
            if self._watch is not None:
                self._watch.host_reads(address, view.extent_bytes(item_bytes))
            self._write(text_of(view, element))

        def show_at(address: int) -> None:  # of an unranked descriptor: rank, then a pointer
            show(*(c_int64 * 2).from_address(address))

        self._functions[name] = ctypes.CFUNCTYPE(None, c_int64, c_void_p)(show)
        self._functions[C_INTERFACE + name] = ctypes.CFUNCTYPE(None, c_void_p)(show_at)


def memref_text(view: MemRef, element: str) -> str:
    """Returns what mlir-runner prints of a memref: address, offset, sizes, strides and all elements."""
    array = array_of(view, dtype_of(element))
    if array.ndim == 0:
        numbers = f"[{number_text(array[()])}]"
    else:
        numbers = "".join(_nested(array, array.ndim))
    return f"Unranked Memref {_head(view)} data = \n{numbers}\n"


def shape_text(view: MemRef, _element: str) -> str:
    """Returns what mlir-runner prints of a memref's shape: address, offset, sizes, strides, no elements."""
    return f"Unranked Memref {_head(view)}\n"


def _head(view: MemRef) -> str:
    sizes, strides = (", ".join(map(str, numbers)) for numbers in (view.sizes, view.strides))
    at = f"base@ = {view.aligned:#x} rank = {len(view.sizes)} offset = {view.offset}"
    return f"{at} sizes = [{sizes}] strides = [{strides}]"


def _nested(array: NDArray[Any], rank: int) -> Iterator[str]:
    if array.ndim == 0:
        yield number_text(array[()])
        return
    between = ", \n" if array.ndim > 1 else ", "
    indent = " " * (rank - array.ndim + 1)  # as many as there are open brackets
    yield "["
    for index, inner in enumerate(array):
        if index > 0:
            yield between + indent
        yield from _nested(np.asarray(inner), rank)
    yield "]"


SCALAR_TEXTS: dict[str, Callable[..., str]] = {
    "printI64": str,
    "printU64": lambda value: str(c_uint64(value).value),
    "printF16": lambda bits: number_text(np.uint16(bits).view(DTYPES["f16"])),
    "printBF16": lambda bits: number_text(np.uint16(bits).view(DTYPES["bf16"])),
    "printF32": number_text,
    "printF64": number_text,
    "printString": lambda text: text.decode(errors="replace"),
    "printOpen": lambda: "( ",
    "printClose": lambda: " )",
    "printComma": lambda: ", ",
    "printNewline": lambda: "\n",
    "printFlops": lambda per_second: f"{per_second / 1e9:f} GFLOPS\n",
}
