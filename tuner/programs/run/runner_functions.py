"""MLIR's runner functions for compiled code that calls them; printed text goes to a Python function.

The text is the same as mlir-runner's, see the C++ code of
``mlir/include/mlir/ExecutionEngine/RunnerUtils.h``.
"""

import ctypes
import time
from collections.abc import Callable, Iterator
from ctypes import c_char_p, c_double, c_float, c_int64, c_uint16, c_uint64, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuner.core.device import AbstractHostWatch
from tuner.core.numpy_types import DTYPES
from tuner.mlir.effects.runner_names import C_INTERFACE, CLOCKS, MEMREFS, PRINTED_SCALARS, SHAPES
from tuner.programs.run.element_types import dtype_of
from tuner.programs.run.host_faults import HostFaults
from tuner.runtime.arrays.memref import MemRef, array_of

ARGUMENTS: dict[str, Any] = {
    "i64": c_int64,
    "i16": c_uint16,
    "f32": c_float,
    "f64": c_double,
    "ptr": c_char_p,
}
DIGITS = 6  # significant digits that C++ prints of a float: std::ostream, default precision

Write = Callable[[str], object]  # receives text, like the ``write`` method of a stream


def discard(_text: str) -> None:
    """Does nothing with a text: the function that receives printed text in calls that are timed."""


class RunnerFunctions:
    """The C functions of MLIR's runner libraries, which print and read clocks, for JIT-compiled code.

    Their addresses are valid as long as this object. A device that checks host accesses is notified of the
    reads of printed memory.
    """

    def __init__(
        self, write: Write, watch: AbstractHostWatch | None = None, faults: HostFaults | None = None
    ) -> None:
        """Creates a C function per runner function and name; device memory is not printed.

        Args:
            write: receives the printed text.
            watch: checks host accesses; None: no checks.
            faults: stores an error for a print of device memory; None: no checks.
        """
        self._write = write
        self._watch = watch
        self._faults = faults
        self._functions: dict[str, Any] = {name: self._scalar(name) for name in PRINTED_SCALARS}
        for name, kind in CLOCKS.items():
            self._functions[name] = ctypes.CFUNCTYPE(ARGUMENTS[kind])(READINGS[name])
        self._functions |= {C_INTERFACE + name: self._functions[name] for name in (*PRINTED_SCALARS, *CLOCKS)}
        for names, text_of in ((MEMREFS, memref_text), (SHAPES, shape_text)):
            for name, element in names.items():
                self._functions[name] = self._memref(element, text_of)
                self._functions[C_INTERFACE + name] = self._memref_at(element, text_of)

    def addresses(self) -> dict[str, int]:
        """Returns the address of each C function, by its name."""
        return {name: ctypes.cast(each, c_void_p).value or 0 for name, each in self._functions.items()}

    def _scalar(self, name: str) -> Any:
        kinds = [ARGUMENTS[kind] for kind in PRINTED_SCALARS[name]]
        text_of = SCALAR_TEXTS[name]
        return ctypes.CFUNCTYPE(None, *kinds)(lambda *values: self._write(text_of(*values)))

    def _memref(self, element: str, text_of: Callable[[MemRef, str], str]) -> Any:
        def show(rank: int, descriptor: int) -> None:
            view = MemRef.at(descriptor, rank)
            item_bytes = dtype_of(element).itemsize
            address = view.address(item_bytes)
            if self._faults is not None and self._faults.is_fault(address, "a print"):
                return
            if self._watch is not None:
                self._watch.host_reads(address, view.extent_bytes(item_bytes))
            self._write(text_of(view, element))

        return ctypes.CFUNCTYPE(None, c_int64, c_void_p)(show)

    def _memref_at(self, element: str, text_of: Callable[[MemRef, str], str]) -> Any:
        """Returns the variant that takes the address of an unranked descriptor: rank, then a pointer."""
        show = self._memref(element, text_of)

        def show_at(address: int) -> None:
            rank, descriptor = (c_int64 * 2).from_address(address)
            show(rank, descriptor)

        return ctypes.CFUNCTYPE(None, c_void_p)(show_at)


def memref_text(view: MemRef, element: str) -> str:
    """Returns what mlir-runner prints of a memref: address, offset, sizes, strides and all elements.

    ``element`` is the MLIR element type.
    """
    array = array_of(view, dtype_of(element))
    numbers = f"[{number_text(array[()])}]" if array.ndim == 0 else "".join(_nested(array, array.ndim))
    return f"Unranked Memref {_head(view)} data = \n{numbers}\n"


def shape_text(view: MemRef, _element: str) -> str:
    """Returns what mlir-runner prints of a memref's shape: address, offset, sizes, strides, no elements."""
    return f"Unranked Memref {_head(view)}\n"


def number_text(number: Any) -> str:
    """Returns a number as a C++ stream prints it: an integer in full, a float with six significant digits."""
    if isinstance(number, np.integer | np.bool_ | int):
        return str(int(number))
    text = f"{float(number):.{DIGITS}g}"
    return text.replace("nan", "-nan") if np.signbit(float(number)) and text == "nan" else text


def _head(view: MemRef) -> str:
    sizes, strides = (", ".join(map(str, part)) for part in (view.sizes, view.strides))
    at = f"base@ = {view.aligned:#x} rank = {len(view.sizes)} offset = {view.offset}"
    return f"{at} sizes = [{sizes}] strides = [{strides}]"


def _nested(array: NDArray[Any], rank: int) -> Iterator[str]:
    """Yields the text of rows in brackets, indented by the number of open brackets, except the first row."""
    if array.ndim == 0:
        yield number_text(array[()])
        return
    between = ", \n" if array.ndim > 1 else ", "
    indent = " " * (rank - array.ndim + 1)
    yield "["
    for row, part in enumerate(array):
        if row > 0:
            yield between + indent
        yield from _nested(np.asarray(part), rank)
    yield "]"


def _half_text(name: str) -> Callable[[int], str]:
    return lambda bits: number_text(np.uint16(bits).view(DTYPES[name]))


SCALAR_TEXTS: dict[str, Callable[..., str]] = {
    "printI64": str,
    "printU64": lambda value: str(c_uint64(value).value),
    "printF16": _half_text("f16"),
    "printBF16": _half_text("bf16"),
    "printF32": number_text,
    "printF64": number_text,
    "printString": lambda text: text.decode(errors="replace"),
    "printOpen": lambda: "( ",
    "printClose": lambda: " )",
    "printComma": lambda: ", ",
    "printNewline": lambda: "\n",
    "printFlops": lambda per_second: f"{per_second / 1e9:f} GFLOPS\n",
}
READINGS: dict[str, Callable[[], float]] = {"rtclock": time.perf_counter, "nanoTime": time.perf_counter_ns}
